"""Groups under (μ, δ): composed trade-off functions are below the one that is stated, at every level."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy.groups import gaussian_group_delta_up
from lapwing.privacy.measures import (
    ApproxDP,
    ApproximateGaussianDP,
    ApproximateZeroConcentratedDP,
    GaussianDP,
    PureDP,
    ZeroConcentratedDP,
)
from lapwing.privacy.neighbours import replaced
from tests.support.effort import some
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

CASES = (
    (Fraction(1, 2), Fraction(1, 10**6), 2),
    (Fraction(1, 2), Fraction(1, 10**6), 5),
    (Fraction(1, 10), Fraction(1, 10**6), 20),
    (Fraction(2), Fraction(1, 10**9), 3),
    (Fraction(1), Fraction(1, 1000), 4),
    (Fraction(1, 100), Fraction(1, 5), 4),
)
GroupDelta = Callable[[Fraction, Fraction, int], Fraction]


def quantile(level: mpf) -> mpf:
    """Φ⁻¹."""
    if level > mpf(1) / 2:
        return -quantile(1 - level)
    return oracle.quantile(level)


def power(mu: mpf, delta: mpf, level: mpf) -> mpf:
    """F: the largest power of a test of this level, under (μ, δ)."""
    if level >= 1 - delta:
        return mpf(1)
    return delta + (1 - delta) * (oracle.normal(quantile(level / (1 - delta)) + mu) if level else mpf(0))


def composed(mu: mpf, delta: mpf, level: mpf, size: int) -> mpf:
    for _ in range(size):
        level = power(mu, delta, level)
    return level


def check_covers(group_delta: GroupDelta) -> None:
    with mp.workdps(40):
        for mu, delta, size in CASES:
            stated = real(group_delta(mu**2, delta, size))
            levels = [
                mpf(0),
                *(oracle.normal(mpf(-z) / 2) for z in some(2, (24, 17, 13, 10, 8, 6, 4, 2, 1))),
                mpf("0.5"),
                mpf("0.9"),
            ]
            for level in levels:
                reached = composed(real(mu), real(delta), level, size)
                assert reached <= power(size * real(mu), stated, level) + mpf(10) ** -30


def test_the_stated_delta_covers_every_test() -> None:
    check_covers(gaussian_group_delta_up)


@pytest.mark.parametrize(
    "twin",
    [
        lambda mu_squared, delta, size: size * delta,
        lambda mu_squared, delta, size: gaussian_group_delta_up(mu_squared, delta, size - 1),
        lambda mu_squared, delta, size: gaussian_group_delta_up(mu_squared, delta, size) * Fraction(9, 10),
    ],
    ids=["k times δ", "one unit less", "a tenth less"],
)
def test_twins_are_caught(twin: GroupDelta) -> None:
    with pytest.raises(AssertionError):
        check_covers(twin)


@pytest.mark.parametrize(("mu", "delta", "size"), CASES)
def test_it_is_near_the_least_possible(mu: Fraction, delta: Fraction, size: int) -> None:
    """No δ' below F applied to 0 so many times is possible; for two units that is what is stated."""
    with mp.workdps(40):
        least = composed(real(mu), real(delta), mpf(0), size)
    stated = real(gaussian_group_delta_up(mu**2, delta, size))
    assert least * (1 - mpf(10) ** -30) <= stated <= least * (mpf("1.06") if size > 2 else 1 + mpf(10) ** -15)


@pytest.mark.long
def test_the_first_step_of_the_proof() -> None:
    """The first step of the proof, g(st) ≤ g(s)·g(t), numerically; and its opposite for the inverse."""
    for mu in (mpf("0.1"), mpf(1), mpf(3)):
        for z in (-4, -1, 0, 2):
            for y in (-3, -1, 1):
                s, t = oracle.normal(mpf(z)), oracle.normal(mpf(y))
                both = oracle.normal(quantile(s * t) + mu)
                assert both <= oracle.normal(z + mu) * oracle.normal(y + mu) + mpf(10) ** -30
                back = oracle.normal(quantile(s * t) - mu)
                assert back >= oracle.normal(z - mu) * oracle.normal(y - mu) - mpf(10) ** -30


@given(
    st.fractions(min_value=0, max_value=9, max_denominator=100),
    st.sampled_from([Fraction(1, 10**15), Fraction(1, 10**6), Fraction(1, 2)]),
    st.integers(min_value=1, max_value=40),
)
def test_larger_groups_never_lose_less(mu_squared: Fraction, delta: Fraction, size: int) -> None:
    loss = ApproximateGaussianDP.of(GaussianDP.from_mu_squared(mu_squared), delta)
    group, larger = loss.for_group(size), loss.for_group(size + 1)
    assert min(Fraction(1), size * delta) <= group.delta <= larger.delta <= 1
    assert group.gaussian == loss.gaussian.for_group(size)


def test_ends() -> None:
    assert gaussian_group_delta_up(Fraction(0), Fraction(1, 10), 3) == Fraction(3, 10)
    assert gaussian_group_delta_up(Fraction(0), Fraction(1, 2), 3) == 1
    assert gaussian_group_delta_up(Fraction(1), Fraction(0), 3) == 0
    assert gaussian_group_delta_up(Fraction(1), Fraction(1), 3) == 1
    assert gaussian_group_delta_up(Fraction(9), Fraction(1, 10**300), 10**6) == 1
    assert ApproximateGaussianDP(1, 0.1).for_group(1) == ApproximateGaussianDP(1, 0.1)


def test_replacing_one_is_a_group_of_two() -> None:
    assert replaced(PureDP(1)) == PureDP(2)
    assert replaced(GaussianDP(1)) == GaussianDP(2)
    assert replaced(ZeroConcentratedDP(1)) == ZeroConcentratedDP(4)
    assert replaced(ApproxDP(1, 1e-6)).delta == pytest.approx(1e-6 * (1 + 2.718281828459045))
    assert replaced(ApproximateGaussianDP(0.5, 1e-6)).delta == pytest.approx(1.15263e-5, rel=1e-5)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="implies no"):
        replaced(ApproximateZeroConcentratedDP(1, 1e-6))
