"""The factor of the best of Gaussian tries: beside the laws of adversarial scores, and an integral of its own."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.learn.gaussian_tries import factor_up
from lapwing.learn.random_stopping import Tries
from tests.support.effort import one_in, only

LAWS = [(2, 0), (5, 0), (20, 1)]
MORE = [(10, 0), (50, 0), (100, 2), (1000, 0)]


def cdf(at: Any) -> Any:
    return np.array([math.erfc(-one / math.sqrt(2)) / 2 for one in np.ravel(at)]).reshape(np.shape(at))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the δ of μ-GDP (Balle and Wang 2018)."""
    upper, lower = cdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
    return float(upper - math.exp(epsilon) * lower)


def chances(weights: tuple[int, ...]) -> Any:
    return np.array([weight / sum(weights) for weight in weights])


def attained(weights: tuple[int, ...], mu: float, factor: float, bins: int = 300) -> float:
    """Return the largest ratio of the δ of the best of N tries to that of factor·μ-GDP.

    A try is a bin of a normal draw, and scores the more the further out it is on either side: so Q and Q* are μ-GDP as
    post-processing, and what is best may be far more likely under one of them. Law and δ are sums over all bins.
    """
    edges = np.linspace(-6, 6 + mu, bins + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    laws = []
    for mean in (0.0, mu):
        below = cdf(edges - mean)
        below[0], below[-1] = 0, 1
        order = np.argsort(np.abs(middles - mu / 2), kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.diff(below)[order])])
        laws.append(np.diff(np.polynomial.polynomial.polyval(ends, [0, *chances(weights)])))
    worst = 0.0
    for one, other in (laws, laws[::-1]):
        for epsilon in np.linspace(0, 3, 13) * mu:
            lost = float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
            worst = max(worst, lost / gaussian_delta(factor * mu, float(epsilon)))
    return worst


@pytest.mark.parametrize("mu", only([0], [1.0, 0.2]))
@pytest.mark.parametrize(
    ("most", "eta"),
    only([0], [*one_in(2, LAWS, many=True), *[pytest.param(*law, marks=pytest.mark.long) for law in MORE]], many=True),
)
def test_no_scores_make_the_best_lose_more(most: int, eta: int, mu: float) -> None:
    """Planted: a factor that is 5 % smaller is too small for these scores."""
    weights = Tries(most=most, eta=eta).weights
    factor = float(factor_up(weights))
    assert attained(weights, mu, factor) <= 1
    if mu < 1 and most <= 100:
        assert attained(weights, mu, 0.95 * factor) > 1


@pytest.mark.parametrize(
    ("most", "eta"), [LAWS[1], *[pytest.param(*law, marks=pytest.mark.long) for law in (*LAWS, *MORE)]]
)
def test_the_curve_before_it_was_simplified_is_below(most: int, eta: int) -> None:
    """∫ max_y [f′(1 − a − y) − e^ε·g′(a)·f′(1 − g(a) − G(y))]₊ da at μ = ½, without the steps of the proof after it."""
    weights, mu = Tries(most=most, eta=eta).weights, 0.5
    slopes = chances(weights) * np.arange(1, most + 1)
    z, w = np.linspace(-7, 7, 561), np.linspace(-7, 7, 281)
    a, y = cdf(z)[:, None], cdf(w)[None]
    first = np.polynomial.polynomial.polyval(np.clip(1 - a - y, 0, 1), slopes)
    moved = np.clip(1 - cdf(z - mu)[:, None] - cdf(w + mu)[None], 0, 1)
    second = np.polynomial.polynomial.polyval(moved, slopes) * np.exp(mu * z - mu**2 / 2)[:, None]
    mass = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    factor = float(factor_up(weights))
    for epsilon in np.linspace(0, 4, 9) * mu:
        gain = np.where(a + y <= 1, first - math.exp(epsilon) * second, 0)
        assert np.maximum(gain.max(axis=1), 0) @ mass <= gaussian_delta(factor * mu, float(epsilon)) * 1.001 + 1e-12


def test_a_single_try_has_no_factor_and_none_is_above_that_of_all_tries() -> None:
    assert factor_up(Tries(most=1, eta=0).weights) == 1
    assert 1 < factor_up(Tries(most=2, eta=0).weights) <= Fraction(1415, 1000)  # √2, rounded up
