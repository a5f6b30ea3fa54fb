"""What a preview says of the other kind of ledger is what that ledger says, and only while it can still be chosen."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Budget
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import Quote
from lapwing.release import explaining
from tests.support.effort import one_in, only

QUESTIONS = [
    ("SELECT COUNT(*) AS n FROM visits", 1),
    ("SELECT plan, COUNT(DISTINCT person) AS people, SUM(cost) AS s FROM visits GROUP BY plan", Fraction(1, 2)),
    ("SELECT AVG(cost) AS a FROM visits", Fraction(1, 10)),
]


def session(folder: Path, measure: str) -> lw.Session:
    folder.mkdir()
    table = pa.table({"person": [1, 1, 2, 3], "plan": ["a", "b", "a", "a"], "cost": [1, 2, 3, 4]})
    pq.write_table(table, folder / "visits.parquet")
    return lw.protect(
        folder / "visits.parquet",
        privacy_unit="person",
        epsilon=3,
        delta=0 if measure == "pure" else 1e-6,
        max_rows_per_unit=4,
        bounds={"cost": (0, 100)},
        domains={"plan": ["a", "b"]},
        measure=measure,
    )


@pytest.mark.parametrize(("text", "epsilon"), one_in(3, QUESTIONS, many=True))
@pytest.mark.parametrize(("here", "there"), one_in(3, [("gdp", "pure"), ("zcdp", "pure"), ("pure", "gdp")], many=True))
def test_it_is_what_that_ledger_says(tmp_path: Path, text: str, epsilon: Fraction, here: str, there: str) -> None:
    with session(tmp_path / "here", here) as first, session(tmp_path / "there", there) as second:
        told = first.explain(text, epsilon=epsilon).elsewhere
        real = second.explain(text, epsilon=epsilon)
        assert told is not None
        assert (told.measure, told.delta) == (there, Fraction(0) if there == "pure" else Fraction(1, 10**6))
        assert told.fits == real.fits
        assert told.half_widths == pytest.approx([measure.half_width for measure in real.measures], rel=0.02)
        first.sql(text, epsilon=epsilon)
        assert first.explain(QUESTIONS[0][0], epsilon=0.3).elsewhere is None  # it is too late


def test_another_epsilon_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(plan: Plan, budget: Budget, *, epsilon: float, **others: Any) -> Quote:
        return calibrate(plan, budget, epsilon=epsilon * 2, **others)

    monkeypatch.setattr(explaining, "calibrate", doubled)
    with pytest.raises(AssertionError):
        test_it_is_what_that_ledger_says(tmp_path, *QUESTIONS[0], "gdp", "pure")  # type: ignore[arg-type]


@pytest.mark.parametrize(("questions", "measure"), only((1, 2), [(1, "pure"), (5, "pure"), (30, "gdp")], many=True))
def test_protect_takes_the_measure_for_so_many_questions(tmp_path: Path, questions: int, measure: str) -> None:
    file = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"person": [1, 2]}), file)
    for _ in range(2):  # the second time it is there already
        with lw.protect(
            file, privacy_unit="person", epsilon=1, delta=1e-6, max_rows_per_unit=1, questions=questions
        ) as opened:
            budget = opened.catalog.budget
            assert (budget.measure, budget.delta) == (measure, Fraction(0) if measure == "pure" else Fraction(1, 10**6))


def test_protect_takes_one_of_both(tmp_path: Path) -> None:
    file = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"person": [1, 2]}), file)
    with pytest.raises(lw.InvalidParameter, match="questions chooses the measure"):
        lw.protect(file, privacy_unit="person", epsilon=1, max_rows_per_unit=1, questions=3, measure="pure")
