"""A bounded number is an integer number of steps, and every impossible column is refused."""

from datetime import UTC, date, datetime
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog import Column
from lapwing.catalog.column_checks import FLOAT_STEPS, MOST_STEPS
from lapwing.errors import CatalogError, InvalidParameter


def bounded(kind: str, lower: str, upper: str, step: str | None = None) -> Column:
    return Column(
        name="x",
        type=kind,
        lower=Fraction(lower),
        upper=Fraction(upper),
        step=None if step is None else Fraction(step),
    )


@pytest.mark.parametrize(
    ("column", "step", "low", "high"),
    [
        (bounded("integer", "-3", "7"), "1", -3, 7),
        (bounded("integer", "-7", "17", "5"), "5", -1, 3),
        (bounded("decimal", "0", "5000", "0.01"), "0.01", 0, 500_000),
        (bounded("decimal", "0.015", "0.025", "0.01"), "0.01", 2, 2),
        (bounded("decimal", "-0.025", "-0.015", "0.01"), "0.01", -2, -2),
        (bounded("float", "0", "1"), "1/1048576", 0, FLOAT_STEPS),
        (bounded("float", "2.5", "2.5"), "2.5", 1, 1),
        (bounded("float", "0", "0"), "1", 0, 0),
        (bounded("integer", "4", "4"), "1", 4, 4),
    ],
)
def test_range_in_steps(column: Column, step: str, low: int, high: int) -> None:
    assert (column.step, column.low, column.high, column.steps) == (Fraction(step), low, high, high - low)


@given(
    lower=st.decimals(-(10**6), 10**6, places=3).map(Fraction),
    width=st.decimals(0, 10**6, places=3).map(Fraction),
    step=st.decimals("0.001", 10**3, places=3).map(Fraction),
)
def test_the_range_never_leaves_the_bounds(lower: Fraction, width: Fraction, step: Fraction) -> None:
    upper = lower + width
    if ceil(lower / step) > floor(upper / step):
        with pytest.raises(CatalogError, match=r"columns\.x\.step: no multiple of"):
            Column(name="x", type="decimal", lower=lower, upper=upper, step=step)
        return
    column = Column(name="x", type="decimal", lower=lower, upper=upper, step=step)
    assert tightest(lower, upper, step, column.low, column.high)
    assert not tightest(lower, upper, step, column.low - 1, column.high), "an off-by-one must be caught"
    assert not tightest(lower, upper, step, column.low, column.high + 1), "an off-by-one must be caught"


def tightest(lower: Fraction, upper: Fraction, step: Fraction, low: int, high: int) -> bool:
    inside = lower <= low * step and high * step <= upper
    return inside and (low - 1) * step < lower and (high + 1) * step > upper


def test_a_boolean_column_lists_its_values() -> None:
    assert Column(name="x", type="boolean").values == (False, True)
    assert Column(name="x", type="boolean", values=(True,)).values == (True,)


def test_a_column_without_bounds_has_no_range() -> None:
    column = Column(name="x", type="integer")
    assert not column.bounded
    assert column.step is None
    with pytest.raises(InvalidParameter, match='"x" has no numeric bounds'):
        _ = column.low


def test_the_most_steps_are_allowed_and_one_more_is_not() -> None:
    assert bounded("integer", "0", str(MOST_STEPS)).steps == MOST_STEPS
    for lower, upper in (("0", str(MOST_STEPS + 1)), (str(MOST_STEPS), str(MOST_STEPS + 1)), (str(-MOST_STEPS), "1")):
        with pytest.raises(CatalogError, match=r"columns\.x\.step: .*more than 2\^53 steps"):
            bounded("integer", lower, upper)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            {"type": "decimal", "lower": Fraction(1, 3), "upper": Fraction(1), "step": Fraction(1)},
            "lower: 1/3 is not a",
        ),
        ({"type": "decimal", "lower": 0, "upper": Fraction(1)}, "lower: 0 is an integer; write a number"),
        ({"type": "timestamp", "lower": datetime(2020, 1, 1)}, "lower: 2020-01-01T00:00:00 is not a time in UTC"),
        ({"type": "date", "lower": datetime(2020, 1, 1, tzinfo=UTC)}, "lower: 2020-01-01T00:00:00+00:00 is not a date"),
        ({"type": "timestamp", "lower": date(2020, 1, 1)}, "lower: 2020-01-01 is not a time in UTC"),
        ({"type": "string", "values": ("a\0b",)}, "values: 'a\\x00b' cannot be stored"),
        ({"type": "string", "values": ("\ud800",)}, "values: '\\ud800' cannot be stored"),
        ({"type": "string", "values": ("a",), "other": "\0"}, "other: '\\x00' is not a text"),
        ({"type": "integer", "values": (True,)}, "values: true is a boolean, but the column is of type integer"),
        ({"type": "boolean", "values": (1,)}, "values: 1 is an integer, but the column is of type boolean"),
        ({"type": "integer", "max_length": 5}, "max_length: only a text has a length, not a value of type integer"),
        ({"type": "string", "max_length": 0}, "max_length: 0 is not allowed; write whole bytes from 1 to 1048576"),
        ({"type": "string", "max_length": True}, "max_length: true is not allowed"),
        ({"type": "string", "max_length": 2**20 + 1}, "max_length: 1048577 is not allowed"),
        ({"type": "string", "values": ("ä",), "max_length": 1}, "max_length: 1 is less than the 2 bytes of a listed"),
        ({"type": "integer", "values": (2**63,)}, f"values: {2**63} does not fit in 64 bits"),
        (
            {"type": "date", "values": (datetime(2020, 1, 1, tzinfo=UTC),)},
            "values: 2020-01-01T00:00:00+00:00 is a datetime",
        ),
    ],
)
def test_impossible_values_are_refused(column: dict[str, object], message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        Column(name="x", **column)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"columns.x.{message}")


def test_a_text_has_256_bytes_unless_a_listed_one_has_more() -> None:
    assert Column(name="x", type="integer").max_length is None
    assert Column(name="x", type="string").max_length == 256
    assert Column(name="x", type="string", values=("a", "ä" * 200)).max_length == 400
    assert Column(name="x", type="string", max_length=2**20).max_length == 2**20


def test_a_name_is_needed() -> None:
    for name in ("", "a\0"):
        with pytest.raises(CatalogError, match="not a name"):
            Column(name=name, type="integer")


def test_a_million_values_are_allowed_and_one_more_is_not() -> None:
    with pytest.raises(CatalogError, match=r"columns\.x\.values: 1000001 values; at most 1000000"):
        Column(name="x", type="integer", values=tuple(range(10**6 + 1)))
