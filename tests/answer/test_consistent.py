"""The made-consistent view, and the facts about columns."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import polars
import pytest

from lapwing.answer import Answer, ColumnFacts, consistent, constraints
from lapwing.answer.notes import ENDS_OF_INTERVALS, FEW_ROWS_NULL, WITHIN_BOUNDS, code_of
from lapwing.documents.answer_document import facts_document, facts_of
from lapwing.mechanisms import DiscreteLaplace, Mechanism, RoundedGaussian
from lapwing.privacy.measures import GaussianDP
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derive import compute, interval_end
from lapwing.query.derivation.derived import KeyValue, MeasureValue
from lapwing.query.derivation.node import Derived, Output
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import TEXT, Fixed
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.measures import Count, Key, Measure, Sum
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from tests.support.answer.nearest_point import nearest_point
from tests.support.catalog.linked import table

OF_COUNT = constraints._of_count

PAY = ColumnReference(name="pay", type=Fixed(step=Fraction(1, 4), low=-20, high=60))
TOWN = Key(expression=ColumnReference(name="town", type=TEXT), values=("a", "b", "c"))
ROWS, PAID, UNITS, KINDS = Count(), Count(argument=PAY), CountUnits(), CountDistinct(argument=PAY)
TOTAL, CENTRED = Sum(argument=PAY), Sum(argument=PAY, origin=20)
VALUES: dict[Measure, list[int]] = {
    ROWS: [10, -3, 5],
    PAID: [12, 4, 5],
    UNITS: [11, -1, 2],
    KINDS: [14, 1, -6],
    TOTAL: [800, -70, 100],
    CENTRED: [-700, 5, 10],
}
SCALES: dict[Measure, int] = {PAID: 2, UNITS: 2, KINDS: 4, TOTAL: 80, CENTRED: 40}
COLUMNS: dict[str, Derived] = {
    "town": KeyValue(key=TOWN, shape="text"),
    "n": MeasureValue(measure=ROWS),
    "paid": MeasureValue(measure=PAID),
    "people": MeasureValue(measure=UNITS),
    "kinds": MeasureValue(measure=KINDS),
    "total": MeasureValue(measure=TOTAL),
    "mean": Average(total=CENTRED, count=PAID),
    "share": compute("divide", MeasureValue(measure=PAID), MeasureValue(measure=ROWS)),
}


def plan(columns: dict[str, Derived]) -> Plan:
    return Plan(
        question=Question(
            selection=FilteredRows(relation=ProtectedRows(table=table("shelves"))), keys=(TOWN,), measures=tuple(VALUES)
        ),
        keys=(TOWN,),
        outputs=tuple(Output(name=name, value=value) for name, value in columns.items()),
    )


def answer(columns: dict[str, Derived] = COLUMNS, **more: Any) -> Answer:
    mechanisms: list[Mechanism] = [
        RoundedGaussian(sigma=Fraction(3)),
        *(DiscreteLaplace(scale=Fraction(scale)) for scale in SCALES.values()),
    ]
    return Answer(
        plan=plan(columns),
        mechanisms=mechanisms,
        keys=[TOWN.domain],
        values=list(VALUES.values()),
        cost=GaussianDP.from_amount(1),
        **more,
    )


# Each row times the numbers of a cell, in the order of VALUES, is at most 0.
AT_MOST = np.array(
    [
        [-1, 0, 0, 0, 0, 0],
        [0, -1, 0, 0, 0, 0],
        [0, 0, -1, 0, 0, 0],
        [0, 0, 0, -1, 0, 0],
        [-1, 1, 0, 0, 0, 0],
        [-1, 0, 1, 0, 0, 0],
        [-1, 0, 0, 1, 0, 0],
        [0, -1, 0, 1, 0, 0],
        [0, -60, 0, 0, 1, 0],
        [0, -20, 0, 0, -1, 0],
        [0, -40, 0, 0, 0, 1],
        [0, -40, 0, 0, 0, -1],
    ],
    dtype=np.float64,
)


def check() -> None:
    found, _ = consistent.adjusted(plan(COLUMNS).question, raw_values(), deviations())
    for cell, released in enumerate(np.array(list(VALUES.values()), dtype=np.float64).T):
        wanted = nearest_point(released, np.array(list(deviations().values())), AT_MOST)
        ours = np.array([int(found[measure][cell]) for measure in VALUES])
        assert (AT_MOST @ ours <= 0).all()
        assert (
            np.abs(ours - wanted) <= np.array([1, 1, 1, 1, 61, 41])
        ).all()  # a row more or less moves sums by so much


def raw_values() -> dict[Measure, Any]:
    return {measure: np.array(values) for measure, values in VALUES.items()}


def deviations() -> dict[Measure, float]:
    return {measure: mechanism.standard_deviation for measure, mechanism in answer().mechanisms.items()}


def test_numbers_can_be_true_together() -> None:
    check()


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("_wholes", lambda _measure: ()),
        ("_of_sum", lambda _measure, _asked: ()),
        (
            "_of_count",
            lambda measure, asked: tuple(x for x in OF_COUNT(measure, asked) if not x.least or measure == ROWS),
        ),
    ],
)
def test_a_rule_left_out_is_noticed(name: str, bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraints, name, bug)
    with pytest.raises(AssertionError):
        check()


def test_the_raw_answer_stays_and_the_view_says_what_it_changed() -> None:
    raw = answer()
    before, ends = raw.rows(), raw.interval()
    view = raw.consistent()
    assert view.changed == ("n", "paid", "people", "kinds", "total", "mean", "share")
    assert (raw.rows(), len(view), view.columns) == (before, 3, raw.columns)
    assert all((raw.interval()[name][0] == ends[name][0]).all() for name in ends if name != "share")
    assert repr(view) == "<ConsistentAnswer: 3 rows; changed n, paid, people, kinds, total, mean, share>"
    assert polars.DataFrame(view)["n"].to_list() == [row["n"] for row in view.rows()]


def test_what_need_not_move_does_not() -> None:
    unchanged: dict[str, Derived] = {"town": COLUMNS["town"], "c": Average(total=CENTRED, count=PAID)}
    view = answer(unchanged).consistent()
    assert view.changed == ("c",)


def test_clamped_counts_are_moved_only_where_that_follows() -> None:
    above, around = Count(clamp=(1, 4)), Count(clamp=(0, 4))
    clamped = Sum(argument=PAY, clamp=(0, 3))
    given: dict[Measure, Any] = {m: np.array([v]) for m, v in ((ROWS, 3), (above, 9), (around, 9), (clamped, -8))}
    question = Question(selection=cast(Any, None), keys=(), measures=tuple(given))
    found, changed = consistent.adjusted(question, given, dict.fromkeys(given, 1.0))
    assert {m: int(v[0]) for m, v in found.items()} == {ROWS: 6, above: 9, around: 6, clamped: -8}
    assert changed == (ROWS, around)


# ---- facts -----------------------------------------------------------------------------------------------------------


def codes(columns: Iterable[ColumnFacts]) -> list[list[str]]:
    return [[code_of(note) for note in column.notes] for column in columns]


def test_facts_are_public_and_per_column() -> None:
    columns = {**COLUMNS, "low": interval_end(COLUMNS["n"], "low")}
    shares = [Fraction(1, 6)] * len(VALUES)
    found = {fact.name: fact for fact in answer(columns, shares=shares).describe()}
    assert list(found) == list(columns)
    assert found["town"].measures == ()
    assert found["town"].half_width is None
    (rows,) = found["n"].measures
    assert (rows.measure, rows.mechanism, rows.scale, rows.half_width) == ("n", "rounded Gaussian", 3.0, 6.0)
    assert rows.price_share == pytest.approx(1 / 6)
    assert found["mean"].half_width is None
    assert found["mean"].price_share == pytest.approx(1 / 3)
    assert [m.measure for m in found["mean"].measures] == ["sum of mean", "paid"]
    assert found["mean"].measures[0].scale == 10
    assert [code_of(note) for note in found["mean"].notes] == [FEW_ROWS_NULL, WITHIN_BOUNDS]
    assert found["low"].half_width is None
    assert [code_of(note) for note in found["low"].notes] == [ENDS_OF_INTERVALS]
    documents = [facts_document(column) for column in found.values()]
    assert [column["note_codes"] for column in documents] == codes(found.values())
    assert codes(facts_of(documents)) == codes(found.values())
    older = [{name: value for name, value in column.items() if name != "note_codes"} for column in documents]
    assert [column.notes for column in facts_of(older)] == [column.notes for column in found.values()]
    assert answer().describe()[1].price_share is None
    other = answer(columns, shares=shares)
    other_values = Answer(
        plan=plan(columns),
        mechanisms=list(other.mechanisms.values()),
        keys=[TOWN.domain],
        values=[[0, 0, 0] for _ in VALUES],
        cost=GaussianDP.from_amount(1),
        shares=shares,
    )
    assert other_values.describe() == other.describe()
