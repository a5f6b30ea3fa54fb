"""Functions of released numbers: what each gives in a cell, what it takes, and where its interval ends."""

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from math import exp, inf, isclose, log, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.query.derivation import elementary, intervals
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute, interval_end, rests_on_ends
from lapwing.query.derivation.derived import KeyValue, MeasureValue, measures_of
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.measures import Measure
from tests.support.answer.one_cell import bracket, evaluate
from tests.support.answer.plans import CENTRED, DAY, NULL, OPEN, PAID, PLAN, ROWS, SIZE, TOTAL, number, power
from tests.support.refusals import refused_as

COUNT = MeasureValue(measure=ROWS)
TEXT = ConstantValue(value="ab", shape="text")


def value(function: str, *parts: Any) -> Any:
    """Apply a function to constants."""
    return evaluate(compute(function, *map(fixture, parts)), {}, {})


def fixture(part: Any) -> Derived:
    if part is None:
        return ConstantValue(value=None, shape="integer")
    return ConstantValue(value=part, shape="text") if isinstance(part, str) else number(Fraction(part))


@pytest.mark.parametrize(
    ("function", "parts", "result"),
    [
        ("square_root", [9], 3),
        ("square_root", [0], 0),
        ("square_root", [-1], None),
        ("square_root", [None], None),
        ("square_root", [Fraction(10) ** 700], Fraction(10) ** 350),
        ("power", [Fraction(-3, 2), 3], Fraction(-27, 8)),
        ("power", [-2, -2], Fraction(1, 4)),
        ("power", [0, -1], None),
        ("power", [0, 0], 1),
        ("power", [None, 2], None),
        ("logarithm", [0], None),
        ("logarithm", [-1], None),
        ("logarithm", [1], 0),
        ("exponential", [0], 1),
        ("exponential", [710], None),
        ("exponential", [-1000], 0),
        ("sign", [Fraction(-1, 3)], -1),
        ("sign", [0], 0),
        ("sign", [5], 1),
        ("modulo", [7, 3], 1),
        ("modulo", [-7, 3], -1),
        ("modulo", [7, -3], 1),
        ("modulo", [Fraction(15, 2), 2], Fraction(3, 2)),
        ("modulo", [1, 0], None),
        ("null_if", [1, 1], None),
        ("null_if", [1, 2], 1),
        ("null_if", [1, None], 1),
        ("null_if", [None, 1], None),
        ("null_if", ["a", "a"], None),
        ("concatenate", ["a", "b"], "ab"),
        ("upper", ["aé"], "AÉ"),
        ("lower", ["AÉ"], "aé"),
        ("within", [7, 0, 5], 5),
        ("within", [None, 0, 5], None),
        ("sample_factor", [1], None),
        ("sample_factor", [-4], None),
        ("sample_factor", [5], Fraction(5, 4)),
    ],
)
def test_values(function: str, parts: Sequence[Any], result: Any) -> None:
    assert value(function, *parts) == result


@pytest.mark.long
@given(x=st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_roots_logarithms_and_exponentials_are_doubles_near_the_true_ones(x: Fraction) -> None:
    assert value("square_root", x) == sqrt(float(x))
    assert isclose(float(value("logarithm", x)), log(float(x)), rel_tol=1e-14, abs_tol=1e-15)
    y = x % 600 - 300
    assert isclose(float(value("exponential", y)), exp(float(y)), rel_tol=1e-12)


tiny_to_huge = st.builds(lambda m, e: Fraction(m) * Fraction(10) ** e, st.integers(1, 10**6), st.integers(-400, 400))


def root_ends(low: Fraction | float, high: Fraction | float) -> tuple[Any, Any]:
    ((first,), (last,)) = (
        end.values() for end in intervals.square_root((intervals.of_ends([low]), intervals.of_ends([high])))
    )
    return (first, last)


@given(x=tiny_to_huge)
def test_the_ends_of_a_root_hold_the_true_root(x: Fraction) -> None:
    low, high = root_ends(x, x)
    assert not isinstance(low, float)
    assert not isinstance(high, float)
    assert low**2 <= x <= high**2
    assert high - low <= low / 2**47
    assert low <= value("square_root", x) <= high


@pytest.mark.long
def test_a_root_whose_ends_are_not_moved_outwards_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementary, "OUTWARDS", Fraction(0))
    with pytest.raises(AssertionError):
        test_the_ends_of_a_root_hold_the_true_root()


@pytest.mark.parametrize(
    ("part", "ends"),
    [((-inf, -1), (0, 0)), ((-1, inf), (0, inf)), ((4, inf), (2, inf)), ((-inf, inf), (0, inf))],
)
def test_ends_of_roots_at_infinity(part: Any, ends: Any) -> None:
    found = root_ends(*(end if isinstance(end, float) else Fraction(end) for end in part))
    assert all(isclose(float(one), other, rel_tol=1e-12) for one, other in zip(found, ends, strict=True))


def test_an_even_power_has_no_negative_interval() -> None:
    released: dict[Measure, Fraction] = {ROWS: Fraction(1)}
    room: dict[Measure, Fraction] = {ROWS: Fraction(4)}
    assert bracket(power(COUNT, 2), released, room, {}) == (0, 25)
    assert bracket(power(COUNT, 3), released, room, {}) == (-27, 125)
    assert bracket(power(COUNT, -1), released, room, {}) == (-inf, inf)
    assert bracket(compute("modulo", COUNT, number(3)), released, room, {}) == (-3, 3)
    assert bracket(compute("sample_factor", COUNT), released, room, {}) == (Fraction(5, 4), 2)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "parts", "reason"),
    [
        ("square_root", [TEXT], "wrong_type"),
        ("power", [COUNT, MeasureValue(measure=TOTAL)], "invalid_argument"),
        ("power", [COUNT, number(Fraction(1, 2))], "invalid_argument"),
        ("power", [COUNT, number(65)], "invalid_argument"),
        ("power", [COUNT, NULL], "invalid_argument"),
        ("power", [power(COUNT, 64), number(64)], "query_too_complex"),
        ("power", [compute("exponential", COUNT), number(64)], "query_too_complex"),
        ("concatenate", [TEXT, COUNT], "wrong_type"),
        ("upper", [COUNT], "wrong_type"),
        ("null_if", [TEXT, COUNT], "incompatible_types"),
        ("<", [KeyValue(key=DAY, shape="date"), TEXT], "invalid_date"),
        ("<", [KeyValue(key=DAY, shape="date"), COUNT], "incompatible_types"),
        ("not", [COUNT], "wrong_type"),
    ],
)
def test_what_does_not_fit_is_refused(function: str, parts: Sequence[Derived], reason: str) -> None:
    with refused_as(reason):
        compute(function, *parts)


def test_texts_are_dates_beside_dates() -> None:
    day = KeyValue(key=DAY, shape="date")
    condition = compute("<", day, ConstantValue(value="2026-01-01", shape="text"))
    assert evaluate(condition, {}, {str(DAY): date(2025, 1, 1)}) is True
    assert evaluate(condition, {}, {str(DAY): date(2026, 3, 1)}) is False
    moment = ConstantValue(value=datetime(2026, 1, 1, 12), shape="timestamp")
    assert evaluate(compute("=", moment, ConstantValue(value="2026-01-01 12:00:00", shape="text")), {}, {}) is True


# ---- ends of intervals -----------------------------------------------------------------------------------------------


def test_an_end_is_that_of_the_interval_of_its_value() -> None:
    mean = Average(total=CENTRED, count=PAID)
    low, high = interval_end(mean, "low"), interval_end(mean, "high")
    released: dict[Measure, Fraction] = {CENTRED: Fraction(50), PAID: Fraction(100)}
    room: dict[Measure, Fraction] = {CENTRED: Fraction(10), PAID: Fraction(20)}
    asked = []

    def margins(value: Derived) -> dict[Measure, Fraction]:
        asked.append(value)
        return room

    found = [evaluate(end, released, {}, margins) for end in (low, high)]
    assert tuple(found) == bracket(mean, released, room, {})
    assert asked == [mean] * 2
    assert measures_of(low) == (CENTRED, PAID)
    width = compute("subtract", high, low)
    assert evaluate(width, released, {}, margins) == found[1] - found[0]
    assert bracket(width, released, room, {}) is None
    assert rests_on_ends(width)
    assert not width.has_interval


def test_an_infinite_end_is_null() -> None:
    ratio = compute("divide", MeasureValue(measure=TOTAL), COUNT)
    released: dict[Measure, Fraction] = {ROWS: Fraction(1), TOTAL: Fraction(5)}
    for side in ("low", "high"):
        assert (
            evaluate(interval_end(ratio, side), released, {}, lambda _parts: dict.fromkeys([ROWS, TOTAL], Fraction(2)))
            is None
        )


@pytest.mark.parametrize(
    "value",
    [
        number(3),
        KeyValue(key=SIZE, shape="decimal"),
        KeyValue(key=PLAN, shape="text"),
        compute("is_null", COUNT),
        compute("case", KeyValue(key=OPEN, shape="boolean"), COUNT, number(0)),
        compute("add", interval_end(COUNT, "low"), COUNT),
    ],
)
def test_what_has_no_interval_has_no_ends(value: Derived) -> None:
    with refused_as("no_interval"):
        interval_end(value, "low")
