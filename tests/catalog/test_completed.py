"""Bounds that come from public data hold for every value, in whole steps that doubles and catalogs can hold."""

from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog import Column, public
from lapwing.catalog.column_checks import FLOAT_STEPS
from lapwing.catalog.public import EXACT_STEPS, FINEST, float_step

FLOATS = st.floats(-1e17, 1e17).map(Fraction)


def number(kind: str, step: str | None = None) -> Column:
    return Column(name="x", type=kind, step=None if step is None else Fraction(step))


@pytest.mark.parametrize(
    ("column", "least", "greatest", "bounds"),
    [
        (number("integer"), "-3", "7", ("-3", "7", "1")),
        (number("integer", "5"), "-3", "7", ("-5", "10", "5")),
        (number("decimal", "0.01"), "0.005", "17", ("0", "17", "0.01")),
        (number("float", "0.5"), "-0.1", "0.1", ("-0.5", "0.5", "0.5")),
        (number("float"), "0", "1", ("0", "1", "1/1048576")),
        (number("float"), "0.25", "0.25", ("0.25", "0.25", "1/9007199254740992")),
        (number("float"), "0", "0", ("0", "0", "1")),
    ],
)
def test_bounds_are_whole_steps(column: Column, least: str, greatest: str, bounds: tuple[str, str, str]) -> None:
    found = public.completed(column, Fraction(least), Fraction(greatest))
    assert (found.lower, found.upper, found.step) == tuple(map(Fraction, bounds))


@given(FLOATS, FLOATS)
def test_every_value_lies_inside(first: Fraction, second: Fraction) -> None:
    least, greatest = sorted((first, second))
    found = public.completed(number("float"), least, greatest)
    assert isinstance(found.lower, Fraction)
    assert isinstance(found.upper, Fraction)
    assert holds(found, least, greatest)
    assert not holds(found, least - 1, found.upper + FINEST), "a bound inside the data must be caught"


def holds(column: Column, least: Fraction, greatest: Fraction) -> bool:
    step = column.step or Fraction(0)
    return column.low * step <= least and greatest <= column.high * step and column.low * step == column.lower


@given(FLOATS, FLOATS)
def test_steps_of_floats_are_fine_and_exact(first: Fraction, second: Fraction) -> None:
    least, greatest = sorted((first, second))
    step = float_step(least, greatest)
    assert step.numerator == 1 or step.denominator == 1
    assert (step.numerator * step.denominator).bit_count() == 1, "a power of two"
    assert max(abs(least), abs(greatest)) / step <= 2 * EXACT_STEPS
    fine = (greatest - least) / step >= FLOAT_STEPS
    assert fine or max(abs(least), abs(greatest)) / step >= EXACT_STEPS or step in (FINEST, 1)


@pytest.mark.parametrize(
    ("column", "least", "greatest"),
    [
        (number("integer"), Fraction(0), Fraction(2**62)),
        (number("decimal", "1e-10"), Fraction(0), Fraction(10**9)),
        (number("float"), Fraction(0), Fraction(1e300)),
    ],
)
def test_what_a_catalog_cannot_hold_stays_as_it_is(column: Column, least: Fraction, greatest: Fraction) -> None:
    assert public.completed(column, least, greatest) == column


def test_declared_bounds_and_listed_values_stay() -> None:
    column = Column(name="x", type="integer", lower=Fraction(0), upper=Fraction(9), values=(5, 2))
    found = public.completed(column, Fraction(3), Fraction(4))
    assert found == Column(name="x", type="integer", lower=Fraction(2), upper=Fraction(5), values=(5, 2))


def test_infinities_never_get_here() -> None:
    with pytest.raises(OverflowError):
        Fraction(inf)
