"""The additions to `exact.bounds` that conversions and mechanisms rest on."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.exact.bounds import (
    Ball,
    Enclosure,
    dyadic_up,
    enclose_tightly,
    normal_two_sided_quantile_ball,
    square_root_up,
)
from lapwing.exact.floats import float_down, float_up
from tests.support.privacy import oracle

numbers = st.fractions(min_value=-(10**40), max_value=10**40)
positives = st.fractions(min_value=Fraction(1, 10**40), max_value=10**40)


@given(numbers)
def test_floats_bracket_a_rational_tightly(x: Fraction) -> None:
    assert Fraction(float_down(x)) <= x <= Fraction(float_up(x))
    assert Fraction(float_up(x)) == x or Fraction(math.nextafter(float_up(x), -math.inf)) < x


@pytest.mark.parametrize(
    ("x", "up"),
    [
        (Fraction(1, 10**400), 5e-324),
        (Fraction(10**400), math.inf),
        (Fraction(-(10**400)), -1.7976931348623157e308),
        (Fraction(0), 0.0),
    ],
)
def test_floats_at_the_ends_of_their_range(x: Fraction, up: float) -> None:
    assert float_up(x) == up


def test_twin_rounding_to_nearest_is_caught() -> None:
    thirds = [Fraction(n, 3) for n in range(1, 50)]
    assert all(Fraction(float_up(x)) >= x for x in thirds)
    assert not all(Fraction(float(x)) >= x for x in thirds)


@given(positives, st.integers(min_value=1, max_value=200))
def test_dyadics_are_just_above_a_rational(x: Fraction, bits: int) -> None:
    near = dyadic_up(x, bits)
    odd = near.numerator // (near.numerator & -near.numerator) if near else 0
    assert odd.bit_length() <= bits
    assert near.denominator & (near.denominator - 1) == 0
    assert x <= near <= x * (1 + Fraction(4, 2**bits))


@given(positives)
def test_square_roots_are_exact_or_just_above(x: Fraction) -> None:
    root = square_root_up(x)
    assert square_root_up(x**2) == x
    assert x <= root**2 <= x * (1 + Fraction(1, 2**60))


@given(st.integers(min_value=-200, max_value=300))
def test_the_precision_rises_until_the_value_is_known(n: int) -> None:
    def cancelling(x: Ball) -> Ball:
        return (1 + x) - x.exp() if n > 8 else x.exp()

    bounds = enclose_tightly(cancelling, Fraction(2) ** -abs(n))
    assert bounds.lower <= bounds.upper
    assert bounds.upper - bounds.lower <= abs(bounds.upper) / 2**62


def test_a_value_too_small_to_write_is_bounded_not_written() -> None:
    bounds = enclose_tightly(lambda x: x.exp(), Fraction(-(10**30)))
    assert bounds == Enclosure(Fraction(0), Fraction(1, 2**16384))
    with pytest.raises(ArithmeticError):
        enclose_tightly(lambda x: x.exp(), Fraction(10**30))
    with pytest.raises(ArithmeticError):
        enclose_tightly(lambda x: (x - x).log(), Fraction(1, 3))


def test_the_normal_quantile() -> None:
    bounds = enclose_tightly(normal_two_sided_quantile_ball, Fraction(1, 20))
    assert float(bounds.lower) == pytest.approx(1.959963984540054, rel=1e-15)
    assert abs(2 * oracle.normal(-oracle.real(bounds.upper)) - oracle.real(Fraction(1, 20))) < 1e-18
