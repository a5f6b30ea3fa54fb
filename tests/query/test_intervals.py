"""Interval arithmetic, by brute force: the claimed bounds hold every value, and are attained where they should be."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import product
from math import floor, trunc
from typing import Any

import duckdb
import pytest

from lapwing.query.expressions import arithmetic, conversion, days, logic, numeric
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.types import BOOLEAN, Fixed, Real
from tests.support.effort import one_in

Rule = Callable[..., Any]
RANGES = [(low, high) for low in range(-3, 4) for high in range(low, 4)]
STEPS = [
    (Fraction(1), Fraction(1)),
    (Fraction(1), Fraction(1, 2)),
    (Fraction(1, 10), Fraction(3, 10)),
    (Fraction(5), Fraction(2)),
]


def column(name: str, step: Fraction, low: int, high: int) -> ColumnReference:
    return ColumnReference(name=name, type=Fixed(step=step, low=low, high=high))


def span(argument: Expression) -> list[Fraction | None]:
    """Return every value that an argument may have."""
    kind = argument.type
    assert isinstance(kind, Fixed)
    assert kind.low is not None
    assert kind.high is not None
    if isinstance(argument, Literal):
        return [argument.value]  # type: ignore[list-item]  # a number
    known = [k * kind.step for k in range(kind.low, kind.high + 1)]
    return [*known, None] if conversion.nullable(argument) else [*known]


def never_null(argument: ColumnReference) -> Expression:
    """Return an argument of the same values without NULL, as COALESCE(x, 0) is."""
    return Operation(function="coalesce", arguments=(argument, conversion.number(Fraction(0))), type=argument.type)


def outcomes(arguments: Sequence[Expression], rule: Rule) -> list[Fraction]:
    return [value for values in product(*map(span, arguments)) if (value := rule(*values)) is not None]


def claimed(node: Expression) -> tuple[Fraction, Fraction]:
    assert isinstance(node.type, Fixed | Real)
    low, high = node.type.interval()
    assert low is not None
    assert high is not None
    return low, high


def strict(rule: Rule) -> Rule:
    return lambda *values: None if None in values else rule(*values)


def known(choose: Rule) -> Rule:
    return lambda *values: choose((v for v in values if v is not None), default=None)


def pairs() -> Iterator[tuple[Expression, ...]]:
    for (first, second), left, right in product(STEPS, RANGES[::3], RANGES[::4]):
        yield column("x", first, *left), column("y", second, *right)


TIGHT: dict[str, tuple[Callable[..., Expression], Rule]] = {
    "+": (arithmetic.add, strict(lambda x, y: x + y)),
    "-": (arithmetic.subtract, strict(lambda x, y: x - y)),
    "*": (arithmetic.multiply, strict(lambda x, y: x * y)),
    "LEAST": (arithmetic.smallest, known(min)),
    "GREATEST": (arithmetic.largest, known(max)),
}


def loose(build: Callable[..., Expression], rule: Rule, arguments: Sequence[Expression]) -> bool:
    """Tell whether the claimed bounds are wrong or not attained."""
    found = outcomes(arguments, rule)
    low, high = claimed(build(*arguments))
    return (low, high) != (min(found), max(found))


@pytest.mark.parametrize("name", one_in(3, TIGHT))
def test_bounds_of_two_arguments_are_tight(name: str) -> None:
    build, rule = TIGHT[name]
    assert not any(loose(build, rule, arguments) for arguments in pairs())


@pytest.mark.parametrize("name", ["LEAST", "GREATEST"])
def test_an_argument_that_is_never_null_bounds_for_certain(name: str) -> None:
    build, rule = TIGHT[name]
    for x, y in pairs():
        assert isinstance(y, ColumnReference)
        assert not loose(build, rule, (x, never_null(y)))
        assert not loose(build, rule, (x, conversion.number(Fraction(1, 2))))


@pytest.mark.parametrize("low_high", RANGES)
def test_bounds_of_one_argument_are_tight(low_high: tuple[int, int]) -> None:
    for step in (Fraction(1), Fraction(1, 4), Fraction(3, 10), Fraction(7)):
        x = column("x", step, *low_high)
        tens = [(f"1e{digits}", Fraction(10) ** -digits, digits) for digits in (-1, 0, 1)]
        cases: list[tuple[Expression, Rule]] = [
            (arithmetic.absolute(x), strict(abs)),
            (arithmetic.negate(x), strict(lambda v: -v)),
            (arithmetic.floor_to(x), strict(lambda v: Fraction(floor(v)))),
            (arithmetic.ceiling(x), strict(lambda v: Fraction(-floor(-v)))),
        ]
        for _, ten, digits in tens:
            rounded = arithmetic.round_to(x, conversion.number(Fraction(digits)))
            cases.append((rounded, strict(lambda v, ten=ten: floor(v / ten + Fraction(1, 2)) * ten)))
        for node, rule in cases:
            found = outcomes((x,), rule)
            assert claimed(node) == (min(found), max(found)), node


def test_bounds_of_chosen_values_hold_them_all() -> None:
    condition = ColumnReference(name="c", type=BOOLEAN)
    for x, y in pairs():
        for node in (
            logic.coalesce(x, y),
            logic.case([condition], [x], y),
            logic.case([condition, condition], [logic.NULL_LITERAL, x], y),
        ):
            found = [value for value in (*span(x), *span(y)) if value is not None]
            assert claimed(node) == (min(found), max(found))


# ---- division with remainder, cutting, signs ------------------------------------------------------------------------


def cut(x: Fraction, y: Fraction) -> Fraction | None:
    return Fraction(trunc(x / y)) if y else None


def left_over(x: Fraction, y: Fraction) -> Fraction | None:
    return x - trunc(x / y) * y if y else None


def holds(build: Callable[..., Expression], rule: Rule, arguments: Sequence[Expression]) -> bool:
    found = outcomes(arguments, rule)
    low, high = claimed(build(*arguments))
    return not found or low <= min(found) <= max(found) <= high


@pytest.mark.parametrize(("build", "rule"), [(numeric.quotient, cut), (numeric.remainder, left_over)])
def test_bounds_of_integer_division_hold_every_value(build: Callable[..., Expression], rule: Rule) -> None:
    assert all(holds(build, strict(rule), arguments) for arguments in pairs())


@pytest.mark.parametrize("low_high", RANGES)
def test_bounds_of_quotients_by_a_constant_are_tight(low_high: tuple[int, int]) -> None:
    x = column("x", Fraction(1, 2), *low_high)
    for divisor in (Fraction(2), Fraction(-1, 2), Fraction(1, 3)):
        found = outcomes((x,), strict(lambda v, d=divisor: cut(v, d)))
        assert claimed(numeric.quotient(x, conversion.number(divisor))) == (min(found), max(found))


@pytest.mark.parametrize("low_high", RANGES)
def test_bounds_of_cut_and_signed_values_are_tight(low_high: tuple[int, int]) -> None:
    for step in (Fraction(1), Fraction(1, 4), Fraction(3, 10), Fraction(7)):
        x = column("x", step, *low_high)
        cases: list[tuple[Expression, Rule]] = [
            (numeric.sign(x), strict(lambda v: Fraction((v > 0) - (v < 0)))),
            (numeric.truncate(x), strict(lambda v: Fraction(trunc(v)))),
            (numeric.truncate(x, conversion.number(Fraction(1))), strict(lambda v: Fraction(trunc(v * 10), 10))),
        ]
        for node, rule in cases:
            found = outcomes((x,), rule)
            assert claimed(node) == (min(found), max(found)), node


def test_bounds_of_buckets_hold_every_value() -> None:
    for low, high in RANGES:
        x = column("x", Fraction(1, 4), 3 * low, 3 * high)
        node = numeric.width_bucket(x, *(conversion.number(Fraction(end)) for end in (-1, 1, 3)))
        edges = [Fraction(-1), Fraction(-1, 3), Fraction(1, 3), Fraction(1)]
        found = outcomes((x,), strict(lambda v, edges=edges: Fraction(sum(edge <= v for edge in edges))))
        assert claimed(node)[0] <= min(found) <= max(found) <= claimed(node)[1]
        assert 0 <= claimed(node)[0] <= claimed(node)[1] <= 4


@pytest.mark.parametrize("exponent", [-2, -1, 0, 1, 2, 3, Fraction(1, 2), Fraction(-1, 2)])
def test_bounds_of_powers_hold_every_value(exponent: Fraction | int) -> None:
    for low, high in RANGES:
        x = column("x", Fraction(1, 2), low, high)
        node = numeric.power(x, conversion.number(Fraction(exponent)))
        least, most = claimed(node)
        for value in span(x):
            if value is None or (value == 0 and exponent < 0) or (value < 0 and Fraction(exponent).denominator > 1):
                continue
            assert least <= Fraction(float(value) ** float(exponent)) <= most


# ---- the calendar ----------------------------------------------------------------------------------------------------

TIMES = sorted(
    {
        days.count(datetime(year, month, day, hour, 59, 59, 999_999))
        for year in (1, 2, 1600, 1969, 1970, 2024, 9998, 9999)
        for month, day in ((1, 1), (1, 31), (2, 28), (3, 1), (6, 30), (12, 31))
        for hour in (0, 23)
    }
)


@pytest.mark.parametrize("unit", days.INDEX)
def test_units_begin_one_after_the_other(unit: str) -> None:
    """Never fewer at a later time, and none more between a time and the beginning of its own."""
    counted = [days.INDEX[unit](at) for at in TIMES]
    assert counted == sorted(counted)
    for at in TIMES:
        start = days.truncated(at, unit)
        assert start <= at
        assert days.INDEX[unit](start) == days.INDEX[unit](at)
        if start > TIMES[0]:
            assert days.INDEX[unit](start - 1) == days.INDEX[unit](at) - 1


@pytest.mark.parametrize("months", one_in(6, [0, 1, -1, 12, 13, -25, 12_000]))
def test_months_move_every_time_inside_their_bounds(months: int) -> None:
    query = "SELECT epoch_us(make_timestamp(?::BIGINT) + to_months(?))"
    with duckdb.connect() as connection:
        moved = [value for at in TIMES for (value,) in connection.execute(query, [at, months]).fetchall()]
    for i, at in enumerate(TIMES):
        low, high = days.later(at, months)
        assert low <= min(moved[i:])
        assert max(moved[: i + 1]) <= high


def test_a_month_of_thirty_days_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days, "later", lambda us, months: (us + 30 * days.DAY * months,) * 2)
    with pytest.raises(AssertionError):
        test_months_move_every_time_inside_their_bounds(1)


# ---- doubles ---------------------------------------------------------------------------------------------------------


def as_double(value: Fraction | None, step: Fraction) -> float | None:
    """Convert a number of steps as the engine does: times the numerator, over the denominator."""
    return None if value is None else float(value / step) * float(step.numerator) / float(step.denominator)


def quotient(x: float | None, y: float | None) -> float | None:
    return None if x is None or y is None or y == 0 else x / y


def test_bounds_of_quotients_hold_every_double() -> None:
    for x, y in pairs():
        assert isinstance(x.type, Fixed)
        assert isinstance(y.type, Fixed)
        node = arithmetic.divide(x, y)
        low, high = claimed(node)
        tenths = arithmetic.round_to(node, conversion.number(Fraction(1)))
        least, most = claimed(tenths)
        for a, b in product(span(x), span(y)):
            value = quotient(as_double(a, x.type.step), as_double(b, y.type.step))
            if value is not None:
                assert low <= Fraction(value) <= high
                assert least <= Fraction(floor(value * 10.0 + 0.5), 10) <= most


def test_a_double_that_rounds_beyond_an_exact_bound_is_inside_the_claimed_one() -> None:
    """1.499999999999999999 is 1.5 as a double, and rounds to 2: a bound of 1 would let a product overflow."""
    almost = conversion.number(Fraction("1.499999999999999999"))
    node = arithmetic.round_to(arithmetic.divide(almost, column("y", Fraction(1), 1, 3)))
    assert claimed(node) == (Fraction(1), Fraction(2))
    assert floor(1.499999999999999999 / 1 + 0.5) == 2


def test_an_integer_above_53_bits_is_inside_its_bounds_as_a_double() -> None:
    for k in (2**53 + 1, 2**60 - 1, 2**90 + 2**37 - 1, -(2**77) - 1):
        node = conversion.to_real(column("x", Fraction(1, 10), k, k))
        low, high = claimed(node)
        assert low <= Fraction(float(k) / 10.0) <= high
        assert high - low <= abs(k) * Fraction(1, 2**48)


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def test_forgetting_null_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """LEAST(x, y) is not below y where y is NULL."""
    build, rule = TIGHT["LEAST"]
    arguments = (column("x", Fraction(1), 0, 3), column("y", Fraction(1), 0, 1))
    assert not loose(build, rule, arguments)
    found = outcomes(arguments, rule)
    monkeypatch.setattr(arithmetic, "nullable", lambda _argument: False)
    assert claimed(build(*arguments)) != (min(found), max(found))


def test_a_bound_that_is_off_by_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    build, rule = TIGHT["*"]
    arguments = (column("x", Fraction(1), -2, 3), column("y", Fraction(1), -1, 3))
    assert not loose(build, rule, arguments)
    monkeypatch.setattr(arithmetic, "fixed", lambda step, low, high: Fixed(step=step, low=low, high=high - 1))
    assert loose(build, rule, arguments)
