"""How often a guess is right: attained by the worst pair of a loss, and by no pair more often."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from lapwing.privacy.additive import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.guesses import right_guesses_up


def best(first: np.ndarray, second: np.ndarray) -> float:
    """Return how often the best guess between two laws on the same points is right."""
    return float(np.maximum(first, second).sum() / 2)


def two_answers(epsilon: float, delta: float) -> float:
    """The worst pair of (ε, δ): randomized response, which with probability δ shows the truth instead."""
    truth = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    return best(np.array([delta, 0, truth, 1 - delta - truth]), np.array([0, delta, 1 - delta - truth, truth]))


def gaussian(mu: float, delta: float) -> float:
    return delta + (1 - delta) * float(norm.cdf(mu / 2))


SIZES = [(size, delta) for size in (0.01, 0.5, 3) for delta in (0, 0.02)]
CASES: list[tuple[Loss, float, float]] = [
    *((PureDP(Fraction(str(size))), two_answers(size, delta), delta) for size, delta in SIZES),
    *((GaussianDP(Fraction(str(size))), gaussian(size, delta), delta) for size, delta in SIZES),
]


def holds(loss: Loss, worst: float, delta: float, part: float = 1.0) -> bool:
    """Tell whether this part of the figure above a half covers the worst pair, and is at most 0.0002 above it."""
    said = 0.5 + part * (float(right_guesses_up(loss, Fraction(str(delta)))) - 0.5)
    return worst <= said + 1e-12 and said <= worst + 2e-4


@pytest.mark.parametrize(("loss", "worst", "delta"), CASES)
def test_the_worst_pair_attains_the_figure(loss: Loss, worst: float, delta: float) -> None:
    assert holds(loss, worst, delta)


@pytest.mark.parametrize("rho", ["0.001", "0.1", "1", "8"])
def test_gaussian_noise_is_within_the_figure_of_its_rho(rho: str) -> None:
    """Gaussian noise at distance μ has ρ = μ²/2, and any pair with this ρ is within the two inequalities."""
    loss = ZeroConcentratedDP(Fraction(rho))
    assert norm.cdf(math.sqrt(2 * float(rho)) / 2) <= right_guesses_up(loss) <= 1


def test_a_figure_that_is_too_low_is_found() -> None:
    assert not any(holds(*case, part=0.9) for case in CASES)
