"""If every measure is within its margin, every derived value is within its interval: over random expressions."""

from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.exact.arrays import integer_array
from lapwing.query.derivation import answer_functions, intervals
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.derived import MeasureValue, NoisyCells
from lapwing.query.derivation.intervals import JointMargins
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import Count, Measure, Sum
from tests.support.answer.one_cell import bracket, evaluate, interval_of_columns
from tests.support.effort import examples

PAY_STEP = Fraction(1, 2)
PAY = ColumnReference(name="pay", type=Fixed(step=PAY_STEP, low=-20, high=60))
COUNT = Count()
TOTAL = Sum(argument=PAY)
CENTRED = Sum(argument=PAY, origin=20)
MEASURES: tuple[Measure, ...] = (COUNT, TOTAL, CENTRED)

BINARY = ["add", "subtract", "multiply", "divide", "modulo", "least", "greatest", "null_if"]
UNARY = [
    "negate",
    "absolute",
    "sign",
    "round",
    "floor",
    "ceiling",
    "square_root",
    "logarithm",
    "exponential",
    "sample_factor",
]


def power(base: Derived, exponent: int) -> Derived:
    return compute("power", base, ConstantValue(value=Fraction(exponent), shape="integer"))


leaves: st.SearchStrategy[Derived] = st.one_of(
    st.sampled_from([MeasureValue(measure=COUNT), MeasureValue(measure=TOTAL), Average(total=CENTRED, count=COUNT)]),
    st.integers(-3, 3).map(lambda n: ConstantValue(value=Fraction(n, 2), shape="decimal")),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(compute, st.sampled_from(BINARY), inner, inner),
        st.builds(compute, st.sampled_from(UNARY), inner),
        st.builds(power, inner, st.integers(-3, 3)),
        st.builds(compute, st.just("within"), inner, inner, inner),
    ),
    max_leaves=6,
)
whole = st.integers(-30, 30)
margins = st.integers(0, 12)


def contained(value: Any, interval: Any) -> bool:
    return value is None or interval is None or interval[0] <= value <= interval[1]


@examples(150, 15_000)
@given(
    derived=expressions,
    values=st.tuples(whole, whole, whole),
    widths=st.tuples(margins, margins, margins),
    data=st.data(),
)
def test_intervals_hold_what_is_possible(
    derived: Derived, values: tuple[int, ...], widths: tuple[int, ...], data: st.DataObject
) -> None:
    released = {m: v * m.step for m, v in zip(MEASURES, values, strict=True)}
    room = {m: w * m.step for m, w in zip(MEASURES, widths, strict=True)}
    found = bracket(derived, released, room, {})
    assert contained(evaluate(derived, released, {}), found)
    true = {m: v + data.draw(st.integers(-w, w)) * m.step for (m, v), w in zip(released.items(), widths, strict=True)}
    assert contained(evaluate(derived, true, {}), found)


def test_a_division_that_forgets_zero_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = compute("divide", MeasureValue(measure=TOTAL), MeasureValue(measure=COUNT))
    released: dict[Measure, Fraction] = {COUNT: Fraction(0), TOTAL: Fraction(1)}
    room: dict[Measure, Fraction] = {COUNT: Fraction(2), TOTAL: Fraction(0)}
    assert bracket(ratio, released, room, {}) == (-inf, inf)

    def careless(first: Any, second: Any) -> Any:
        corners = [intervals.over(x, y) for x in first for y in second]
        return (intervals.lesser(*corners), intervals.greater(*corners))

    entry = replace(answer_functions.FUNCTIONS["divide"], interval=careless)
    monkeypatch.setitem(vars(answer_functions)["FUNCTIONS"], "divide", entry)
    possible: dict[Measure, Fraction] = {COUNT: Fraction(1), TOTAL: Fraction(1)}
    assert not contained(evaluate(ratio, possible, {}), interval_of_columns(ratio, released, room, {}))


NUMBERS = st.one_of(st.integers(-100, 100), st.integers(-(2**66), 2**66))
MARGINS = st.fractions(0, 50, max_denominator=32)


@pytest.mark.long
@examples(40, 4_000)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4), MARGINS, MARGINS, st.booleans())
def test_ends_of_a_mean_are_those_of_its_cells_one_by_one(
    released: list[tuple[int, int]], of_sum: Fraction, of_count: Fraction, joint: bool
) -> None:
    margins: dict[Measure, Fraction] = {CENTRED: of_sum, COUNT: of_count}
    sums, counts = ([pair[place] for pair in released] for place in (0, 1))
    cells = NoisyCells(
        size=len(released),
        measures={CENTRED: integer_array(sums), COUNT: integer_array(counts)},
        keys={},
        margins=lambda _: {},
    )
    found = Average(total=CENTRED, count=COUNT).interval(cells, JointMargins(margins) if joint else margins)
    for place, (total, count) in enumerate(released):
        rows = (count - of_count, count + of_count)
        ratios = [
            10 + end / max(Fraction(1), some)
            for end in (total * PAY_STEP - of_sum, total * PAY_STEP + of_sum)
            for some in rows
        ]
        nothing = rows[0 if joint else 1] < 1
        ends = (-10, 30) if nothing else [min(max(end, -10), 30) for end in (min(ratios[:2]), max(ratios[2:]))]
        assert [end.values()[place] for end in found] == list(ends)


def test_a_mean_is_divided_over_possible_counts_only_and_stays_in_bounds() -> None:
    average = Average(total=CENTRED, count=COUNT)
    released: dict[Measure, Fraction] = {COUNT: Fraction(10), CENTRED: Fraction(50)}
    found = bracket(average, released, {COUNT: Fraction(2), CENTRED: Fraction(10)}, {})
    assert found == (10 + Fraction(40, 12), 10 + Fraction(60, 8))
    nothing: dict[Measure, Fraction] = {COUNT: Fraction(-5), CENTRED: Fraction(50)}
    assert bracket(average, nothing, {COUNT: Fraction(2), CENTRED: Fraction(10)}, {}) == (-10, 30)
