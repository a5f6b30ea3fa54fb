"""The tail of the discrete Gaussian against a plain sum in 60 digits, and twins that leave something out."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest
from mpmath import mp, mpf

from lapwing.exact.bounds import Ball, Enclosure, enclose, enclose_tightly, normal_cdf_ball
from lapwing.mechanisms import discrete_gaussian_tail
from lapwing.mechanisms.discrete_gaussian_tail import tail
from tests.support.privacy.oracle import real

# On both sides of where the formula changes.
VARIANCES = tuple(Fraction(x) for x in ("1/1000", "1/4", "9", "1600", "16001/10", "2500", "40000"))
Tail = Callable[[Fraction, int], Enclosure]


@cache
def terms(variance: Fraction) -> list[mpf]:
    """e^(−x²/(2v)) for x ≥ 0, far beyond every tail that is asked for."""
    return [mp.exp(-x * x / (2 * real(variance))) for x in range(int(45 * variance ** Fraction(1, 2)) + 40)]


def true_tail(variance: Fraction, h: int) -> mpf:
    weights = terms(variance)
    return 2 * mp.fsum(weights[h + 1 :]) / (2 * mp.fsum(weights) - 1)


def check_tail(tail: Tail) -> None:
    for variance in VARIANCES:
        sigma = float(variance) ** 0.5
        for h in {0, 1, 2, int(sigma), int(3 * sigma), int(12 * sigma), int(25 * sigma)}:
            lower, upper = tail(variance, h)
            true = true_tail(variance, h)
            assert real(lower) <= true * (1 + mpf(10) ** -50)
            assert real(upper) >= true * (1 - mpf(10) ** -50)
            assert upper - lower <= upper / 2**127


@pytest.mark.long
def test_the_tail_is_bounded_tightly() -> None:
    check_tail(tail)


def rounded(variance: Fraction, h: int) -> Enclosure:
    """The rounded Gaussian's tail."""
    return enclose_tightly(lambda v, a: 2 * normal_cdf_ball(-a / v.sqrt()), variance, Fraction(2 * h + 1, 2), bits=140)


def with_one_correction(variance: Fraction, h: int) -> Enclosure:
    """True bounds, but wide ones."""
    if variance <= 1600:
        return tail(variance, h)
    return enclose(lambda v, a: discrete_gaussian_tail._large(v, a, 1), variance, Fraction(2 * h + 1, 2), bits=300)


def cut_off(variance: Fraction, h: int) -> Enclosure:
    """The sum of the first thirty terms."""

    def few(v: Ball) -> Ball:
        beyond, total = 0 * v, 0 * v + 1
        for x in range(1, 400):
            weight = (-x * x / (2 * v)).exp()
            total += 2 * weight
            beyond += 2 * weight if h < x <= h + 30 else 0 * v
        return beyond / total

    return enclose_tightly(few, variance, bits=140) if variance <= 1600 else tail(variance, h)


@pytest.mark.parametrize("twin", [rounded, with_one_correction, cut_off])
def test_twins_that_leave_something_out_are_caught(twin: Tail) -> None:
    with pytest.raises(AssertionError):
        check_tail(twin)


@pytest.mark.parametrize("sigma", [10**6, 10**11])
def test_large_variances(sigma: int) -> None:
    """The tail is the rounded Gaussian's less φ(y)·y/(12σ²), and terms of the order σ⁻⁴."""
    for multiple in (Fraction(1, 10), Fraction(1), Fraction(5), Fraction(30)):
        h = int(sigma * multiple)
        lower, upper = tail(Fraction(sigma**2), h)
        y = mpf(2 * h + 1) / (2 * sigma)
        wanted = real(rounded(Fraction(sigma**2), h).upper) - mp.npdf(y) * y / (12 * sigma**2)
        assert abs(real(upper) - wanted) <= wanted / mpf(sigma) ** 3
        assert upper - lower <= upper / 2**127


def test_at_the_largest_variance_it_is_the_rounded_gaussian() -> None:
    for h in (0, 2**80, 2**83):
        lower, upper = tail(Fraction(2**160), h)
        above = rounded(Fraction(2**160), h)
        assert lower <= above.upper
        assert above.upper * (1 - Fraction(1, 2**125)) <= upper <= above.upper * (1 + Fraction(1, 2**125))


def test_far_tails_are_bounded_from_above() -> None:
    lower, upper = tail(Fraction(10**6), 40_000)
    assert lower == 0
    assert upper < Fraction(1, 10**330)
    assert tail(Fraction(10**6), 10**9).upper <= Fraction(1, 2**16384)
    assert tail(Fraction(1, 2**60), 0).upper <= Fraction(1, 2**16384)
