"""Weighted sums of noise: the bounds on their tails hold, for any weights, and are not idle."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.noisy_sums import sum_half_width
from tests.support import mechanism_cases
from tests.support.effort import some
from tests.support.privacy.oracle import real

NOISES: tuple[Any, ...] = (
    DiscreteLaplace(scale=Fraction(1, 5)),
    DiscreteLaplace(scale=Fraction(3)),
    RoundedGaussian(sigma=Fraction(1, 4)),
    RoundedGaussian(sigma=Fraction(2)),
    DiscreteGaussian(variance=Fraction(1, 4)),
    DiscreteGaussian(variance=Fraction(4)),
)
TAILS = (Fraction(1, 10), Fraction(1, 10**6))
REACH = 60


def law(noise: Any) -> dict[int, mpf]:
    """The law of the noise, written apart from the code under test."""
    if isinstance(noise, DiscreteLaplace):
        return {x: mechanism_cases.laplace_law(noise.scale, x) for x in range(-REACH, REACH + 1)}
    if isinstance(noise, RoundedGaussian):
        return {x: mechanism_cases.gaussian_law(noise.sigma, x) for x in range(-REACH, REACH + 1)}
    weights = {x: mp.exp(-x * x / (2 * real(noise.variance))) for x in range(-REACH, REACH + 1)}
    return {x: w / mp.fsum(weights.values()) for x, w in weights.items()}


def beyond(noise: Any, weight: int, h: int) -> float:
    """P(|sum of `weight` independent numbers| > h), by convolution."""
    one = np.array([float(p) for p in law(noise).values()])
    total = np.array([1.0])
    for _ in range(weight):
        total = np.convolve(total, one)
    middle = total.size // 2
    return float(total[: max(middle - h, 0)].sum() + total[middle + h + 1 :].sum())


def check_tails(half_width: Callable[[Any, Fraction, Fraction], int]) -> None:
    """No sum of so many numbers goes beyond more often, and the bound is at most twice the least that will do."""
    for noise in NOISES:
        for weight in some(2, (1, 4, 25)):
            for tail in TAILS:
                h = half_width(noise, Fraction(weight), tail)
                assert beyond(noise, weight, h) <= float(tail) * (1 + 1e-9)
                assert beyond(noise, weight, h // 2 - 2) > float(tail) or h < 4


def test_the_tails() -> None:
    check_tails(sum_half_width)


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(9, 4)])
def test_twins_of_the_tails_are_caught(factor: Fraction) -> None:
    with pytest.raises(AssertionError):
        check_tails(lambda noise, weight, tail: int(factor * sum_half_width(noise, weight, tail)))


def check_rounded_gaussian(variance_added: mpf) -> None:
    """E[e^(tX)] ≤ e^((σ² + ¼)·t²/2) of the rounded Gaussian, for all kinds of σ and t."""
    for sigma in (Fraction(1, 100), Fraction(1, 20), Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(3)):
        # Up to where the terms that REACH leaves out would matter.
        for t in (mpf("0.01"), mpf("0.3"), mpf(1), mpf(3), mpf(6)):
            moment = mp.fsum(
                mechanism_cases.gaussian_law(sigma, x) * mp.exp(t * x)
                for x in range(-REACH, REACH + 1)
                if abs(x) < 40 * sigma + 2
            )
            assert mp.log(moment) <= (real(sigma) ** 2 + variance_added) * t**2 / 2 + mpf(10) ** -30


@pytest.mark.long
def test_the_rounded_gaussian_is_subgaussian_with_a_quarter_more() -> None:
    check_rounded_gaussian(mpf(1) / 4)


def test_twin_a_twentieth_more_is_caught() -> None:
    with pytest.raises(AssertionError):
        check_rounded_gaussian(mpf(1) / 20)


def check_convex(exponent: Callable[[mpf], mpf]) -> None:
    """g(c·t) ≤ c²·g(t), by which any weights are bounded by whole ones."""
    for t in (mpf("0.05"), mpf("0.2"), mpf("0.332")):
        for c in (mpf("0.1"), mpf("0.5"), mpf("0.9")):
            assert exponent(c * t) <= c**2 * exponent(t)


@pytest.mark.long
def test_the_exponent_of_the_laplace_law_is_convex_in_the_square() -> None:
    scale = Fraction(3)
    q = mp.exp(-1 / real(scale))

    def exponent(t: mpf) -> mpf:
        return -mp.log(1 - q / (1 - q) ** 2 * (2 * mp.cosh(t) - 2))

    check_convex(exponent)
    # It is the logarithm of the moment, added up.
    far = range(-2000, 2001)
    moment = mp.fsum(mechanism_cases.laplace_law(scale, x) * mp.exp(mpf("0.2") * x) for x in far)
    assert abs(exponent(mpf("0.2")) - mp.log(moment)) < mpf(10) ** -20
    with pytest.raises(AssertionError):
        check_convex(lambda t: mp.sqrt(exponent(t)))


@pytest.mark.parametrize("scale", [Fraction(1, 2**30), Fraction(1), Fraction(2**80)])
def test_scales_at_the_ends(scale: Fraction) -> None:
    for weight in (1, 10**6):
        assert sum_half_width(DiscreteLaplace(scale=scale), Fraction(weight), Fraction(1, 10**12)) <= 10**5 * scale + 2
    assert sum_half_width(RoundedGaussian(sigma=scale), Fraction(1), Fraction(1, 10)) <= 3 * scale + 2


def test_other_mechanisms_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="int was given"):
        sum_half_width(3, Fraction(1), Fraction(1, 2))
