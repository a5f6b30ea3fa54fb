"""Intervals for a population hold as often as they say, over noise and draw together; a draw left out is found out."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import lapwing as lw
from lapwing.answer import Answer, population
from lapwing.answer.population import population_intervals
from lapwing.mechanisms import RoundedGaussian
from lapwing.mechanisms.combined_noise import CombinedNoise
from lapwing.query.derivation.derived import NoisyCells
from lapwing.query.derivation.noisy_trees import NoisyTrees
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Measure, Sum
from tests.support.effort import only

PEOPLE, DRAWS, CONFIDENCE = 400, 1_500, 0.9
ROWS = {1: "one", 2: "two"}
QUESTIONS = {
    "mean": "SELECT AVG(x) AS n FROM {}",
    "difference": "SELECT AVG(x) FILTER (WHERE half) - AVG(x) FILTER (WHERE NOT half) AS n FROM {}",
    "with variance": "SELECT AVG(x) AS n, VAR_SAMP(x) AS v FROM {}",
    "count": "SELECT COUNT(*) AS n FROM {}",
    "share": "SELECT COUNT_IF(half) / COUNT(*) AS n FROM {}",
    "sum": "SELECT SUM(x) AS n FROM {}",
    "variance": "SELECT VAR_SAMP(x) AS n, STDDEV_POP(x) AS s FROM {}",
    "quantiles": "SELECT QUANTILE_CONT(x, 0.3) AS n, DP_INTERVAL_LOW(MEDIAN(x)) AS m FROM {}",
}


def session(folder: Path, rows: int) -> lw.Session:
    file = folder / f"{ROWS[rows]}.parquet"
    people = np.repeat(np.arange(PEOPLE), rows)
    pq.write_table(pa.table({"person": people, "x": people % 100, "half": people % 2 == 0}), file)
    return lw.protect(
        file, privacy_unit="person", epsilon=100, delta=1e-6, max_rows_per_unit=rows, bounds={"x": (0, 100)}
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Answer]:
    """An answer to each question, of tables with one and with two rows a person; for plans and mechanisms alone."""
    found: dict[tuple[str, int], Answer] = {}
    folder = tmp_path_factory.mktemp("population")
    for rows, table in ROWS.items():
        with session(folder, rows) as held:
            found |= {(name, rows): held.sql(text.format(table), epsilon=10) for name, text in QUESTIONS.items()}
    return found


def drawn(rows: int, drawing: np.random.Generator, draws: int = DRAWS) -> tuple[np.ndarray, np.ndarray]:
    """Draw people, again and again: each with x of 0 or 100 in all rows, as far apart as it gets, and of one half."""
    x = 100 * (drawing.random((draws, PEOPLE)) < 0.4)
    half = drawing.random((draws, PEOPLE)) < 0.5
    return np.repeat(x, rows, axis=1), np.repeat(half, rows, axis=1)


def cells(answer: Answer, x: np.ndarray, half: np.ndarray, people: Any = None) -> NoisyCells:
    """Return the noisy numbers of a question for every draw, a cell each."""
    measures: dict[Measure, Any] = {}
    ranks: dict[Distribution, Any] = {}
    for measure in answer.plan.question.measures:
        kept = np.ones_like(half)
        if "half" in str(measure):
            kept = ~half if "NOT" in str(measure).upper() else half
        if people is not None:
            kept = kept & people
        law: Any = answer.mechanisms[measure]
        law = RoundedGaussian(sigma=law.scale) if isinstance(law, CombinedNoise) else law  # of as much noise
        match measure:
            case Count():
                measures[measure] = law.release(kept.sum(axis=1))
            case Sum() if "multiply" in str(measure):  # of squares around the middle of the bounds
                measures[measure] = law.release((((x - 50) ** 2 - measure.origin) * kept).sum(axis=1))
            case Sum():
                measures[measure] = law.release(((x - measure.origin) * kept).sum(axis=1))
            case Distribution():
                leaves = np.stack([np.bincount(row // measure.width, minlength=measure.sizes[-1]) for row in x])
                nodes = np.hstack([grouped(leaves, size, measure) for size in measure.sizes])
                noisy = law.release(nodes.ravel()).reshape(nodes.shape)
                ranks[measure] = NoisyTrees.of(measure, law, noisy)
    return NoisyCells(size=len(x), measures=measures, ranks=ranks, keys={}, margins=lambda _: {})


def grouped(leaves: np.ndarray, size: int, measure: Distribution) -> np.ndarray:
    """Add up leaves to the nodes of a level."""
    each = 1
    while -(-leaves.shape[1] // each) > size:
        each *= measure.branching
    padded = np.pad(leaves, ((0, 0), (0, size * each - leaves.shape[1])))
    return np.asarray(padded.reshape(len(leaves), size, each).sum(axis=2))


def covers(answer: Answer, rows: NoisyCells, true: float, sampling: Any = None, column: str = "n") -> int:
    ends = population_intervals(
        answer.plan, rows, answer.mechanisms, Fraction(str(CONFIDENCE)), "population", sampling
    )[column]
    return int(((ends[0] <= true) & (true <= ends[1])).sum())


def holds(count: int, draws: int = DRAWS) -> bool:
    return float(stats.binom.cdf(count, draws, CONFIDENCE)) > 1e-9


@pytest.mark.parametrize("rows", only([0], [1, pytest.param(2, marks=pytest.mark.long)]))
@pytest.mark.parametrize(
    ("name", "true", "sampling"),
    only([0], [("mean", 40.0, None), ("difference", 0.0, None), ("sum", None, PEOPLE)], many=True),
)
def test_it_holds_as_often_as_it_says(
    name: str, true: float | None, sampling: Any, rows: int, answers: dict[tuple[str, int], Answer]
) -> None:
    answer = answers[name, rows]
    x, half = drawn(rows, np.random.default_rng())
    expected = 40.0 * PEOPLE * rows if true is None else true
    assert holds(covers(answer, cells(answer, x, half), expected, sampling))


@pytest.mark.long
def test_counts_hold_for_what_is_said_of_the_draw(answers: dict[tuple[str, int], Answer]) -> None:
    answer, drawing = answers["count", 1], np.random.default_rng()
    x, half = drawn(1, drawing)
    among = drawing.random(x.shape) < 0.3  # each person is in the table by a coin: 120 are expected
    assert holds(covers(answer, cells(answer, x, half, among), 0.3 * PEOPLE, PEOPLE))
    poisson = np.arange(PEOPLE) < drawing.poisson(50, DRAWS)[:, None]
    assert holds(covers(answer, cells(answer, x, half, poisson), 50.0, "poisson"))
    share = answers["share", 1]
    assert holds(covers(share, cells(share, x, half), 0.5, PEOPLE))


def test_quantiles_hold(answers: dict[tuple[str, int], Answer]) -> None:
    drawing = np.random.default_rng()
    for rows in (1, 2):
        answer = answers["quantiles", rows]
        x = np.repeat(drawing.integers(0, 101, (DRAWS, PEOPLE)), rows, axis=1)
        assert holds(covers(answer, cells(answer, x, x > 50), 30.0))


def small(drawing: np.random.Generator) -> np.ndarray:
    """Draw people who are all near the lower bound: 95 % at 0, the others at 20, a mean of 1."""
    return np.where(drawing.random((DRAWS, PEOPLE)) < 0.05, 20, 0)


def test_a_variance_that_is_paid_makes_means_narrower(
    answers: dict[tuple[str, int], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, plain = answers["with variance", 1], answers["mean", 1]
    x = small(np.random.default_rng())
    noisy = cells(answer, x, x > 0)
    assert holds(covers(answer, noisy, 1.0))
    level = Fraction(str(CONFIDENCE))
    both = [
        population_intervals(one.plan, rows, one.mechanisms, level, "population", None)["n"]
        for one, rows in ((answer, noisy), (plain, cells(plain, x, x > 0)))
    ]
    assert np.mean(both[0][1]) < np.mean(both[1][1])
    monkeypatch.setattr(population._Drawn, "_by_variance", lambda self, variance, fewest, *_: 0.0 * fewest)
    monkeypatch.setattr(population, "OUTWARDS", 0.0)  # planted bug: the draw is left out
    quiet = {law: type(one)(sigma=Fraction(1)) for law, one in answer.mechanisms.items()}  # type: ignore[call-arg]
    still = Answer(
        plan=answer.plan,
        mechanisms=list(quiet.values()),
        values=[[0]] * len(quiet),
        keys=(),
        cost=answer.cost,
    )
    assert not holds(covers(still, cells(still, x, x > 0), 1.0))


@pytest.mark.long
def test_variances_hold(answers: dict[tuple[str, int], Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a law whose sample variance strays most; planted bug: the draw is left out."""
    answer = answers["variance", 1]
    x = 100 * (np.random.default_rng().random((DRAWS, PEOPLE)) < 0.05)
    noisy = cells(answer, x, x > 0)
    true = 0.05 * 0.95 * 100**2
    assert holds(covers(answer, noisy, true))
    assert holds(covers(answer, noisy, true**0.5, column="s"))
    ends = population_intervals(answer.plan, noisy, answer.mechanisms, Fraction(9, 10), "population", None)["n"]
    assert np.mean(ends[0]) > 0
    assert (ends[1] < 2500).all()  # narrower than what every law between the bounds has
    several = answers["variance", 2]
    none = population_intervals(
        several.plan, cells(several, *drawn(2, np.random.default_rng())), several.mechanisms, Fraction(9, 10),
        "population", None,
    )["n"]  # fmt: skip
    assert np.isnan(none[0]).all()
    quiet = {law: type(one)(sigma=Fraction(1)) for law, one in answer.mechanisms.items()}  # type: ignore[call-arg]
    still = Answer(plan=answer.plan, mechanisms=list(quiet.values()), values=[[0]] * len(quiet), keys=(),
                   cost=answer.cost)  # fmt: skip
    assert holds(covers(still, cells(still, x, x > 0), true))
    monkeypatch.setattr(population, "OUTWARDS", 0.0)
    assert not holds(covers(still, cells(still, x, x > 0), true))


@pytest.mark.parametrize("name", ["mean", "quantiles"])
def test_a_draw_that_is_left_out_is_found_out(
    name: str, answers: dict[tuple[str, int], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted bug: what the draw may have done is 0, and the interval is that of the data."""
    monkeypatch.setattr(population, "OUTWARDS", 0.0)
    answer = answers[name, 2]
    x, half = drawn(2, np.random.default_rng())
    if name == "quantiles":
        x = np.repeat(np.random.default_rng().integers(0, 101, (DRAWS, PEOPLE)), 2, axis=1)
    assert not holds(covers(answer, cells(answer, x, half), 40.0 if name == "mean" else 30.0))


def test_rows_of_one_person_that_are_taken_for_several_are_found_out(answers: dict[tuple[str, int], Answer]) -> None:
    """Planted bug: 64 rows a person, and the bound of two."""
    answer = answers["mean", 2]
    x, half = drawn(64, np.random.default_rng(), 200)
    assert not holds(covers(answer, cells(answer, x, half), 40.0), 200)


# What people see.


def test_the_population_is_asked_for_by_name(answers: dict[tuple[str, int], Answer]) -> None:
    answer = answers["mean", 1]
    data, wide = answer.interval(0.95)["n"], answer.interval(0.95, of="population")["n"]
    assert wide[0][0] < data[0][0] < data[1][0] < wide[1][0]
    again = answer.interval(0.95)["n"]  # the default stays that of the data
    assert (again[0][0], again[1][0]) == (data[0][0], data[1][0])


def test_a_count_needs_a_model_of_the_draw(answers: dict[tuple[str, int], Answer]) -> None:
    answer = answers["count", 1]
    assert np.isnan(answer.interval(0.95, of="population")["n"][0]).all()
    low, high = answer.interval(0.95, of="population", sampling="poisson")["n"]
    assert low[0] < PEOPLE < high[0]
    fixed = answer.interval(0.95, of="population", sampling=PEOPLE)["n"]
    assert fixed[0][0] < PEOPLE <= fixed[1][0]
    assert np.isnan(answers["count", 2].interval(0.95, of="population", sampling="poisson")["n"][0]).all()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"of": "everything"}, "data or population"),
        ({"sampling": 3}, "of='population'"),
        ({"of": "population", "sampling": "cluster"}, "poisson"),
        ({"of": "population", "sampling": 0}, "sampling"),
    ],
)
def test_bad_parameters(more: dict[str, Any], said: str, answers: dict[tuple[str, int], Answer]) -> None:
    with pytest.raises(lw.InvalidParameter, match=said):
        answers["mean", 1].interval(0.95, **more)


def test_poisson_ends_are_outside_of_the_exact_ones() -> None:
    """Garwood's interval for a Poisson mean is inside ours, which has Chernoff's bound for the tails."""
    for seen in (0, 1, 7, 300):
        level = float(np.log(2 / 0.05))
        low, high = (population._expected(float(seen), level, below=below) for below in (True, False))
        exact = (stats.chi2.ppf(0.025, 2 * seen) / 2 if seen else 0.0, stats.chi2.ppf(0.975, 2 * seen + 2) / 2)
        assert low <= exact[0] + 1e-9
        assert exact[1] <= high < 2 * exact[1] + 5


def test_few_rows_say_nothing(answers: dict[tuple[str, int], Answer]) -> None:
    answer = answers["mean", 1]
    nobody = replace(cells(answer, np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0), dtype=np.bool_)), size=1)
    low, high = population_intervals(answer.plan, nobody, answer.mechanisms, Fraction(95, 100), "population", None)["n"]
    assert (low[0], high[0]) == (0.0, 100.0)
