"""`lapwing init --questions`: the measure with the narrowest intervals for a plan, against a reckoning apart."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import pytest

from lapwing.catalog.toml import load
from lapwing.cli.measure_advice import advise
from tests.support.cli.command import INIT, Outcome, Run
from tests.support.effort import only

COUNT = "SELECT COUNT(*) AS n FROM visits"
ROWS = 3
Widths = Callable[[int], dict[str, float]]


def mu_of(epsilon: float, delta: float) -> float:
    """Return the μ at which Gaussian noise is (ε, δ)-DP and no better, by bisection in floats."""
    normal, low, high = NormalDist(), 0.0, 10.0
    for _ in range(200):
        mu = (low + high) / 2
        attained = normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)
        low, high = (mu, high) if attained <= delta else (low, mu)
    return low


def reckoned(questions: int, epsilon: float = 3.0, delta: float = 1e-6) -> dict[str, float]:
    """Return the half-widths by the textbook: Laplace noise of scale k·K/ε, Gaussian noise of σ = √k·K/μ."""
    return {
        "pure": questions * ROWS / epsilon * math.log(20),
        "gdp": math.sqrt(questions) * ROWS / mu_of(epsilon, delta) * NormalDist().inv_cdf(0.975),
    }


def best(widths: dict[str, float]) -> str:
    return min(widths, key=widths.__getitem__)


def init(run: Run, questions: int, *options: str) -> Outcome:
    outcome = run(*INIT, "--force", "--questions", str(questions), *options)
    assert outcome.status == 0, outcome.err
    assert outcome.out == ""
    return outcome


def measure_for(run: Run, questions: int) -> str:
    init(run, questions)
    return load(Path("lapwing.toml")).budget.measure


def check_flips_where_the_widths_cross(run: Run, widths: Widths) -> None:
    for questions in (1, 4, 8, 9, 10, 11, 40, 10**6):
        assert measure_for(run, questions) == best(widths(questions)), questions


@pytest.mark.long
def test_the_advice_flips_where_the_widths_cross(folder: Path, run: Run) -> None:
    assert (best(reckoned(9)), best(reckoned(10))) == ("pure", "gdp")
    check_flips_where_the_widths_cross(run, reckoned)


@pytest.mark.parametrize("factor", only([0], [0.9, 1.1]))
def test_twin_widths_off_by_a_tenth_are_noticed(folder: Path, run: Run, factor: float) -> None:
    with pytest.raises(AssertionError):
        check_flips_where_the_widths_cross(run, lambda k: reckoned(k) | {"gdp": factor * reckoned(k)["gdp"]})


@pytest.mark.parametrize("questions", [1, 9, 10, 300])
def test_the_widths_are_those_of_the_textbook(folder: Path, run: Run, questions: int) -> None:
    run(*INIT)
    advised = {choice.kind: choice for choice in advise(load(Path("lapwing.toml")), questions)}
    for kind, width in reckoned(questions).items():
        assert float(advised[kind].half_width) == pytest.approx(width, rel=1e-6)
    assert advised.keys() == {"pure", "gdp", "zcdp"}
    assert advised["zcdp"].half_width > advised["gdp"].half_width
    widths = [choice.half_width for choice in advised.values()]
    assert widths == sorted(widths)


@pytest.mark.parametrize("neighbouring", only([0], ["add_remove", "replace_one"]))
@pytest.mark.parametrize("questions", only([0], [7, 12, 300]))
def test_so_many_questions_fit_at_the_width_that_was_promised(
    folder: Path, run: Run, questions: int, neighbouring: str
) -> None:
    """And not at a width that is 4 % narrower, up to whole rows."""
    init(run, questions, "--neighbouring", neighbouring, "--max-rows", "300")
    catalog = load(Path("lapwing.toml"))
    width = next(choice.half_width for choice in advise(catalog, questions) if choice.kind == catalog.budget.measure)

    def fitting(error: int) -> int:
        document = json.loads(run("explain", COUNT, "--error", str(error), "--format", "json").out)
        fits = document["fits"]
        assert isinstance(fits, int)
        return fits

    assert fitting(math.ceil(width)) >= questions
    assert fitting(math.floor(width * Fraction(96, 100))) < questions


def test_the_table_is_said_and_the_reason(folder: Path, run: Run) -> None:
    said = " ".join(init(run, 40).err.split())
    assert "40 queries, each a COUNT of visits, at most 3 rows of each person_id:" in said
    assert "measure gdp, the most accurate for this plan." in said
    assert said.index("gdp epsilon 3, delta 1e-6 Gaussian ±58") < said.index("zcdp epsilon 3, delta 1e-6 Gaussian")
    assert "pure epsilon 3, delta 0 Laplace ±120" in said
    assert "measure pure, the most accurate for this plan. It uses no delta" in " ".join(init(run, 4).err.split())


@pytest.mark.long
def test_a_pure_catalog_gives_up_its_delta_and_works(folder: Path, run: Run) -> None:
    init(run, 4)
    budget = load(Path("lapwing.toml")).budget
    assert (budget.measure, budget.epsilon, budget.delta) == ("pure", Fraction(3), Fraction(0))
    assert run("explain", COUNT, "--epsilon", "0.75").status == 0
    init(run, 4, "--delta-keys", "1e-7")
    budget = load(Path("lapwing.toml")).budget
    assert (budget.measure, budget.delta, budget.delta_keys) == ("pure", Fraction(1, 10**7), Fraction(1, 10**7))


def test_a_delta_that_is_given_up_is_not_judged(folder: Path, run: Run) -> None:
    large = (*INIT[:7], "0.05", *INIT[8:], "--people", "60", "--force", "--questions")
    assert "one in 60 people" in run(*large, "400").err
    assert "one in 60 people" not in run(*large, "1").err


def test_a_measure_that_is_given_stays(folder: Path, run: Run) -> None:
    said = " ".join(init(run, 4, "--measure", "zcdp").err.split())
    assert "zcdp, as given; pure would be more accurate." in said
    budget = load(Path("lapwing.toml")).budget
    assert (budget.measure, budget.delta) == ("zcdp", Fraction(1, 10**6))
    said = " ".join(init(run, 40, "--measure", "gdp").err.split())
    assert "gdp, as given; it is the most accurate for this plan." in said


def test_without_delta_there_is_nothing_to_compare(folder: Path, run: Run) -> None:
    outcome = run(*INIT[:6], *INIT[8:], "--questions", "500")
    assert outcome.status == 0
    assert "pure, the only one without a delta" in outcome.err
    assert "Gaussian" not in outcome.err
    assert load(Path("lapwing.toml")).budget.measure == "pure"


def test_without_questions_it_is_as_it_was(folder: Path, run: Run) -> None:
    outcome = run(*INIT)
    assert "± at 95 %" not in outcome.err
    assert "measure" not in outcome.err
    assert load(Path("lapwing.toml")).budget.measure == "gdp"


@pytest.mark.parametrize("questions", ["0", "-1", "1.5", "many", "nan"])
def test_questions_that_are_no_number(folder: Path, run: Run, questions: str) -> None:
    outcome = run(*INIT, "--questions", questions)
    assert outcome.status == 2
    assert "--questions" in outcome.err
    assert not Path("lapwing.toml").exists()


def test_rows_that_stand_alone(folder: Path, run: Run) -> None:
    start = INIT.index("--privacy-unit")
    options = ("--privacy-unit", "row", *INIT[start + 2 : start + 6], "--questions", "1")
    outcome = run("init", "visits.parquet", *options)
    assert "1 question, a COUNT of visits, each row by itself:" in outcome.err


def test_a_plan_beyond_all_measure(folder: Path, run: Run) -> None:
    assert measure_for(run, 10**30) == "gdp"
