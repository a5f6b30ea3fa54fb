"""Brackets contain the true value, are about one unit wide, and cost nothing for vanishing values."""

from fractions import Fraction

import pytest

from lapwing.exact import bounds
from lapwing.exact.bounds import Ball
from tests.support.exact.independent import exact, number

POINTS = [Fraction(0), Fraction(1, 3), Fraction(-7, 2), Fraction(10**30 + 57, 10**29 + 3), Fraction(-1, 1 << 90)]


@pytest.mark.parametrize("x", POINTS, ids=str)
@pytest.mark.parametrize("bits", [8, 64, 300])
def test_fixed_points_hold_the_truth_tightly(x: Fraction, bits: int) -> None:
    lower, upper = bounds.fixed_point(Ball.exp, x, bits=bits)
    true = exact.exp(number(x)) * 2**bits
    assert lower <= true <= upper
    assert upper - lower <= 2
    lower, upper = bounds.fixed_point(bounds.normal_cdf_ball, x, bits=bits)
    assert lower <= exact.ncdf(number(x)) * 2**bits <= upper
    assert upper - lower <= 2


@pytest.mark.parametrize("x", POINTS, ids=str)
def test_bounds_hold_the_truth(x: Fraction) -> None:
    lower, upper = bounds.exp(x)
    assert number(lower) <= exact.exp(number(x)) <= number(upper)
    lower, upper = bounds.enclose(bounds.normal_cdf_ball, x, bits=128)
    assert number(lower) <= exact.ncdf(number(x)) <= number(upper)


def test_twin_a_rounded_value_is_not_a_bound() -> None:
    """A double, however good, is on the wrong side for one of two neighbouring claims."""
    rounded = Fraction(float(exact.exp(number(POINTS[1]))))
    lower, upper = bounds.exp(POINTS[1])
    assert not lower <= rounded <= upper


def test_vanishing_values_cost_nothing() -> None:
    assert bounds.fixed_point(Ball.exp, Fraction(-(1 << 40)), bits=64).upper <= 1
    assert bounds.fixed_point(bounds.normal_cdf_ball, Fraction(-(1 << 60)), bits=64).upper <= 1


def test_what_has_no_finite_value_is_an_error() -> None:
    with pytest.raises(ArithmeticError):
        bounds.fixed_point(lambda x: 1 / x, Fraction(0), bits=64)
    with pytest.raises(ArithmeticError):
        bounds.fixed_point(Ball.exp, Fraction(1 << 40), bits=64)
