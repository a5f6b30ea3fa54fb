"""Questions in SQL: charged to the ledger, with intervals for the population; and what is no mean is refused."""

from math import exp, tanh
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.holdout import ReusableHoldout
from lapwing.holdout.terms import argument_of
from tests.support.effort import one_in
from tests.support.refusals import refused_as

PEOPLE = 40_000


def session(folder: Path, *, rows: int = 1, **more: object) -> lw.Session:
    drawing = np.random.default_rng(3)
    people = pa.table(
        {
            "person": np.arange(PEOPLE) // rows,
            "age": drawing.integers(0, 100, PEOPLE),
            "plan": drawing.choice(["a", "b"], PEOPLE),
        }
    )
    pq.write_table(people, folder / "people.parquet")
    settings = {"epsilon": 0.2, "delta": 1e-6, "max_rows_per_unit": 1} | more
    return lw.protect(
        folder / "people.parquet",
        privacy_unit="person",
        bounds={"age": (0, 100)},
        domains={"plan": ["a", "b"]},
        **settings,  # type: ignore[arg-type]
    )


def test_a_mean_is_charged_and_covers_the_population(tmp_path: Path) -> None:
    with session(tmp_path) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=10)
        answer = holdout.query_sql("AVG(CASE WHEN age < 25 THEN 1 ELSE 0 END)", label="young")
        low, high = answer.interval() or (1, 0)
        assert low <= 0.25 <= high
        assert high - low == pytest.approx(2 * (holdout.half_width or 0), rel=0.01)
        ages = holdout.query_sql("avg(age)")
        assert (ages.interval() or (99, 0))[0] <= 49.5 <= (ages.interval() or (99, 0))[1]
        assert (ages.bounds, holdout.left, holdout.asked) == ((0.0, 100.0), 8, 2)
        budget = held.budget()
        assert "young" in budget.history[0].asked
        assert budget.share_spent == pytest.approx(0.2, rel=1e-6)
        assert holdout.loss is None


def test_add_remove_counts_twice(tmp_path: Path) -> None:
    widths = {}
    for neighbouring in ("add_remove", "replace_one"):
        (tmp_path / neighbouring).mkdir()
        with session(tmp_path / neighbouring, neighbouring=neighbouring) as held:
            widths[neighbouring] = ReusableHoldout(held, people=PEOPLE, questions=5)._session.terms.gap  # type: ignore[union-attr]
    assert widths["add_remove"] > 1.5 * widths["replace_one"]


@pytest.mark.parametrize("planted", [False, True], ids=["shipped", "planted"])
def test_a_gap_of_one_person_where_two_change_is_noticed(planted: bool, tmp_path: Path) -> None:
    """A pure cap of ε under add_remove is 2ε for another person, so a posterior moves by (√r − 1)/(√r + 1), r = e^2ε.

    The planted bug: the gap of the cap itself, as under replace_one.
    """
    with session(tmp_path, epsilon=0.1, delta=0, neighbouring="replace_one" if planted else "add_remove") as held:
        gap = ReusableHoldout(held, people=PEOPLE, questions=5)._session.terms.gap  # type: ignore[union-attr]
    priors, ratio = np.linspace(0.001, 0.999, 999), exp(2 * 0.1)
    moved = float((priors * ratio / (priors * ratio + 1 - priors) - priors).max())
    assert (float(gap) >= moved) is not planted


@pytest.mark.long
def test_all_questions_fit_the_budget_and_no_more(tmp_path: Path) -> None:
    with session(tmp_path) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=3)
        for limit in (20, 40, 60):
            holdout.query_sql(f"AVG(CASE WHEN age < {limit} THEN 1 ELSE 0 END)")
        with pytest.raises(lw.BudgetExhausted, match="All 3"):
            holdout.query_sql("AVG(age)")


def test_an_answer_that_was_bought_before_is_refused_and_not_charged(tmp_path: Path) -> None:
    with session(tmp_path) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
        holdout.query_sql("AVG(age)")
        spent = held.budget().spent
        with refused_as("noise_not_fresh"):
            holdout.query_sql("AVG(age)")
        held.sql("SELECT SUM(age / 2) AS n FROM people", epsilon=0.01)
        with refused_as("noise_not_fresh"):  # a sharper one would be merged with it
            holdout.query_sql("AVG(age / 2)")
        assert held.budget().spent > spent
        assert (holdout.left, holdout.asked) == (4, 1)


def test_a_budget_that_was_raised_ends_it(tmp_path: Path) -> None:
    with session(tmp_path) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
        held.raise_budget(was=(0.2, 1e-6), epsilon=0.4, delta=1e-6)
        with refused_as("holdout_outdated"):
            holdout.query_sql("AVG(age)")


@pytest.mark.parametrize(
    "text",
    one_in(
        4,
        [
            "SUM(age)",
            "AVG(age) + AVG(age)",
            "AVG(age) FILTER (WHERE age > 3)",
            "AVG(DISTINCT age)",
            "AVG(age",
            "AVG(age) FROM people WHERE (age > 3)",
            "AVG(age), SUM(age)",
            "AVG('a)')",
            "AVG(SUM(age))",
            "AVG(*)",
            "",
            "AVG(age) GROUP BY (plan)",
        ],
    ),
)
def test_what_is_no_mean_of_all_rows_is_refused(text: str, tmp_path: Path) -> None:
    with session(tmp_path) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
        with pytest.raises(lw.QueryRefused):
            holdout.query_sql(text)
        assert held.budget().spent.amount == 0
        assert holdout.left == 5


@pytest.mark.parametrize(("text", "inside"), [("AVG(a)", "a"), (" avg ( f(')', (b)) )", " f(')', (b)) ")])
def test_arguments(text: str, inside: str) -> None:
    assert argument_of(text) == inside


def test_several_rows_a_person_are_refused(tmp_path: Path) -> None:
    with session(tmp_path, rows=2, max_rows_per_unit=2) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
        with refused_as("rows_not_independent"):
            holdout.query_sql("AVG(age)")


def test_what_a_session_needs(tmp_path: Path) -> None:
    with session(tmp_path) as held:
        for more in ({"people": 5}, {"questions": 5}, {"people": 5, "questions": 5, "training": [1]}):
            with pytest.raises(lw.InvalidParameter):
                ReusableHoldout(held, **more)
        holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
        with pytest.raises(lw.InvalidParameter, match="query_sql"):
            holdout.query(lambda rows: rows)
        with pytest.raises(lw.InvalidParameter, match="name one of people"):
            holdout.query_sql("AVG(age)", table="others")
    with pytest.raises(lw.InvalidParameter, match="function"):
        ReusableHoldout([1.0], questions=1).query_sql("AVG(age)")


@pytest.mark.long
@pytest.mark.parametrize(
    ("measure", "epsilon", "strategy"), one_in(2, [("pure", 0.1, "laplace"), ("zcdp", 0.2, "gaussian")], many=True)
)
def test_ledgers_of_other_measures(measure: str, epsilon: float, strategy: str, tmp_path: Path) -> None:
    delta = 0 if measure == "pure" else 1e-6
    with session(tmp_path, epsilon=epsilon, delta=delta, measure=measure) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
        assert holdout.strategy == strategy
        answer = holdout.query_sql("AVG(age)")
        low, high = answer.interval() or (99, 0)
        assert low <= 49.5 <= high
        assert (high - low) / 200 == pytest.approx(holdout.half_width or 0, rel=0.01)
        assert held.budget().share_spent == pytest.approx(0.2, rel=1e-6)
        for limit in (20, 40, 60, 80):
            holdout.query_sql(f"AVG(CASE WHEN age < {limit} THEN 1 ELSE 0 END)")
        with pytest.raises(lw.BudgetExhausted, match="All 5"):
            holdout.query_sql("AVG(age / 2)")
        with pytest.raises(lw.InvalidParameter, match=f"best or {strategy}"):
            ReusableHoldout(held, people=PEOPLE, questions=5, strategy="rounding")


@pytest.mark.long
def test_the_gap_is_that_of_two_persons_where_one_is_added_or_removed(tmp_path: Path) -> None:
    """Of a pure budget of ε it is tanh(2ε/4), for replace_one tanh(ε/4)."""
    for neighbouring, persons in (("add_remove", 2), ("replace_one", 1)):
        (tmp_path / neighbouring).mkdir()
        with session(tmp_path / neighbouring, epsilon=0.1, delta=0, neighbouring=neighbouring) as held:
            holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
            assert holdout._session is not None
            assert float(holdout._session.terms.gap) == pytest.approx(tanh(persons * 0.1 / 4), rel=1e-9)


def test_data_that_were_changed_end_it(tmp_path: Path) -> None:
    with session(tmp_path) as held:
        holdout = ReusableHoldout(held, people=PEOPLE, questions=5)
        people = pq.read_table(tmp_path / "people.parquet")
        pq.write_table(people.slice(0, PEOPLE // 2), tmp_path / "people.parquet")
        held.accept_data()
        with refused_as("holdout_outdated"):
            holdout.query_sql("AVG(age)")
