"""What Laplace noise loses in μ and ρ, against the divergences and trade-off functions themselves."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import continuous_laplace, laplace_divergence, laplace_implies
from lapwing.privacy.conversions import gdp_from_pure_up
from lapwing.privacy.measures import Loss, PureDP
from lapwing.privacy.pure_concentrated import zcdp_from_pure_up
from lapwing.privacy.renyi_curves import discrete_laplace_up, laplace_up
from tests.support.effort import only
from tests.support.privacy import oracle
from tests.support.privacy.oracle import real

RATES = tuple(Fraction(x) for x in ("0.01", "0.1", "0.5", "1", "3", "8"))
DISTANCES = (1, 2, 3, 7, 20)
ORDERS = tuple(Fraction(x) for x in ("1.0001", "1.1", "1.5", "2", "3.7", "10", "100"))
Rho = Callable[[Fraction, int], Fraction]


def check_rho(discrete: Rho) -> None:
    """ρα is above the divergence of every order, and is met as α → 1."""
    for rate in RATES:
        for distance in DISTANCES:
            rho = discrete(rate, distance)
            for order in ORDERS:
                assert discrete_laplace_up(rate, distance, order) <= rho * order * (1 + Fraction(1, 10**18))
            assert discrete_laplace_up(rate, distance, ORDERS[0]) >= rho * Fraction(999, 1000)


def test_rho_of_the_discrete_laplace() -> None:
    check_rho(laplace_divergence.zcdp_from_discrete_laplace_up)


@pytest.mark.parametrize(
    "twin",
    [
        lambda rate, distance: laplace_divergence.zcdp_from_discrete_laplace_up(rate, distance) * Fraction(99, 100),
        lambda rate, distance: zcdp_from_pure_up(rate * distance) * Fraction(3, 4),
        lambda rate, distance: (rate * distance) ** 2 / 8,
        lambda rate, distance: laplace_divergence.zcdp_from_laplace_up(rate * distance),
    ],
    ids=["less", "a quarter less than pure", "bounded range", "continuous"],
)
def test_twins_are_caught(twin: Rho) -> None:
    with pytest.raises(AssertionError):
        check_rho(twin)


@pytest.mark.parametrize("distance", [*RATES, Fraction(30)])
def test_rho_of_the_laplace(distance: Fraction) -> None:
    rho, x = laplace_divergence.zcdp_from_laplace_up(distance), real(distance)
    assert x + mp.exp(-x) - 1 <= real(rho) <= (x + mp.exp(-x) - 1) * (1 + mpf(10) ** -15)
    for order in ORDERS:
        assert laplace_up(distance, order) <= rho * order * (1 + Fraction(1, 10**18))


@cache
def noise(rate: Fraction) -> dict[int, mpf]:
    q, reach = mp.exp(-real(rate)), int(140 / rate) + max(DISTANCES)
    return {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-reach, reach + 1)}


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("rate", only([1, 3, 5], RATES))
def test_rho_is_the_divergence_of_order_one(rate: Fraction, distance: int) -> None:
    divergence = real(rate) * mp.fsum(p * (abs(x - distance) - abs(x)) for x, p in noise(rate).items())
    stated = real(laplace_divergence.zcdp_from_discrete_laplace_up(rate, distance))
    assert divergence * (1 - mpf(10) ** -30) <= stated <= divergence * (1 + mpf(10) ** -15)


def check_mu(discrete: Rho) -> None:
    """−Φ⁻¹(a) − Φ⁻¹(b) ≤ μ at each vertex of the trade-off function, for one number and for the same in ones."""
    with mp.workdps(30):
        for rate in RATES:
            q = mp.exp(-real(rate))
            ones = (2 * oracle.quantile(q / (1 + q))) ** 2
            for distance in DISTANCES:
                mu = mp.sqrt(real(discrete(rate, distance)))
                assert distance * ones <= mu**2 * (1 + mpf(10) ** -15)
                for j in range(distance):
                    accused, missed = q ** (j + 1) / (1 + q), q ** (distance - j) / (1 + q)
                    assert -oracle.quantile(accused) - oracle.quantile(missed) <= mu * (1 + mpf(10) ** -15)


def test_mu_of_the_discrete_laplace() -> None:
    check_mu(laplace_implies.gdp_from_discrete_laplace_up)


@pytest.mark.parametrize(
    "twin",
    [
        lambda rate, distance: laplace_implies.gdp_from_discrete_laplace_up(rate, distance) * Fraction(99, 100),
        lambda rate, distance: continuous_laplace.gdp_from_laplace_up(rate * distance),
    ],
    ids=["less", "continuous"],
)
def test_twins_of_mu_are_caught(twin: Rho) -> None:
    with pytest.raises(AssertionError):
        check_mu(twin)


@pytest.mark.parametrize("distance", RATES)
def test_mu_of_the_laplace(distance: Fraction) -> None:
    """It is met where the two errors are equal, and covers δ(ε) = 1 − e^((ε−x)/2) everywhere."""
    mu_squared, x = continuous_laplace.gdp_from_laplace_up(distance), real(distance)
    exact = -2 * oracle.quantile(mp.exp(-x / 2) / 2)
    assert exact**2 * (1 - mpf(10) ** -20) <= real(mu_squared) <= exact**2 * (1 + mpf(10) ** -15)
    for part in range(20):
        epsilon = Fraction(part, 20) * distance
        assert 1 - mp.exp((real(epsilon) - x) / 2) <= oracle.gdp_delta(mu_squared, epsilon) + mpf(10) ** -18


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=50), st.integers(min_value=1, max_value=50))
def test_never_more_than_what_pure_implies(rate: Fraction, distance: int) -> None:
    slack = 1 + Fraction(1, 10**15)
    for kind, pure in (("gdp", gdp_from_pure_up), ("zcdp", zcdp_from_pure_up)):
        assert continuous_laplace.laplace_loss(rate, kind).amount <= pure(rate) * slack
        assert laplace_implies.discrete_laplace_loss(rate, distance, kind).amount <= pure(rate * distance) * slack


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=10, max_denominator=100),
    st.integers(min_value=1, max_value=30),
    st.integers(min_value=1, max_value=30),
)
def test_a_vector_never_loses_more(rate: Fraction, first: int, second: int) -> None:
    for kind in ("gdp", "zcdp"):
        parts = [laplace_implies.discrete_laplace_loss(rate, n, kind).amount for n in (first, second, first + second)]
        assert parts[0] + parts[1] <= parts[2] * (1 + Fraction(1, 10**15))


def test_ends() -> None:
    loss: Loss = laplace_implies.discrete_laplace_loss(Fraction(1, 10), 0, "gdp")
    assert loss.amount == 0
    assert continuous_laplace.laplace_loss(Fraction(0), "zcdp").amount == 0
    assert continuous_laplace.laplace_loss(Fraction(2), "pure") == PureDP(2)
    for rate in (Fraction(1, 10**60), Fraction(10**4), Fraction(10**60)):
        for kind in ("gdp", "zcdp"):
            assert 0 < continuous_laplace.laplace_loss(rate, kind).amount <= 5 * rate
            assert 0 < laplace_implies.discrete_laplace_loss(rate, 3, kind).amount <= 25 * rate
    with pytest.raises(InvalidParameter, match="measure is"):
        continuous_laplace.laplace_loss(Fraction(1), "renyi")


# Provenance: k Laplace answers at ε each, δ = 1e-6, by x + e^(−x) − 1 and by the privacy loss distribution of
# dp-accounting 0.6.0; also tabulated in the project's notes on accounting.
@pytest.mark.parametrize(
    ("times", "epsilon", "total", "by_distribution"),
    [(100, 0.1, 5.125, 4.693), (1000, 0.1, 20.127, 18.950), (100, 0.01, 0.429, 0.391), (100, 1, 80.122, 71.546)],
)
def test_known_values(times: int, epsilon: float, total: float, by_distribution: float) -> None:
    each = continuous_laplace.laplace_loss(Fraction(str(epsilon)), "zcdp")
    stated = (times * each).to_epsilon(delta=1e-6)
    assert stated == pytest.approx(total, abs=6e-4)
    assert stated > by_distribution
    assert (times * continuous_laplace.laplace_loss(Fraction(str(epsilon)), "gdp")).to_epsilon(
        delta=1e-6
    ) > by_distribution
