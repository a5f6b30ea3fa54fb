"""The theorem of `posterior` holds in worlds small enough to be added up, is attained, and is the sharper one."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, tanh

import mpmath
import numpy as np
import pytest

import lapwing as lw
from lapwing.generalisation import expected_gap, posterior_gap
from tests.support.effort import one_in, only
from tests.support.generalisation.small_worlds import SmallWorld, random_world, randomized_response, revealing

EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 20, 80)])
Bound = Callable[[float, float, float], float]
"""From ε, δ and η, a bound on the probability that the gap is above η, where it says one."""


def ours(epsilon: float, delta: float, eta: float) -> float:
    t = tanh(epsilon / 4)
    return (1 - t) * delta / (eta - t) if eta > t else 1.0


def without_the_delta_term(epsilon: float, delta: float, eta: float) -> float:
    return 0.0 if eta > tanh(epsilon / 4) else 1.0


def with_half_the_epsilon(epsilon: float, delta: float, eta: float) -> float:
    return ours(epsilon / 2, delta, eta)


def with_half_the_delta(epsilon: float, delta: float, eta: float) -> float:
    return ours(epsilon, delta / 2, eta)


def worst(bound: Bound, worlds: int, enough: float = np.inf) -> float:
    """Return the largest ratio of a probability to its bound, in random worlds, or one that is enough; 10 for none."""
    drawing, largest = np.random.default_rng(), 0.0
    for _ in range(worlds):
        world = random_world(drawing)
        deltas = [world.delta(epsilon) for epsilon in EPSILONS]
        gaps, weights = world.gaps, world.transcripts
        for eta in gaps - 1e-12:
            exact = float(weights[gaps > eta].sum())
            least = min(bound(e, d, float(eta)) for e, d in zip(EPSILONS, deltas, strict=True))
            largest = max(largest, exact / least if least > 1e-9 else 10 * (exact > 1e-6))
        if largest > enough:
            break
    return largest


def test_it_holds_in_small_worlds() -> None:
    assert worst(ours, 25) <= 1 + 1e-6


@pytest.mark.long
def test_it_holds_in_many_small_worlds() -> None:
    assert worst(ours, 2_000) <= 1 + 1e-6


@pytest.mark.parametrize("bound", only([0], [without_the_delta_term, with_half_the_epsilon]))
def test_a_bound_that_promises_more_is_refuted(bound: Bound) -> None:
    """Planted bugs: the transfer term dropped, ε/8 in the place of ε/4."""
    assert worst(bound, 50, enough=1.01) > 1.01


def test_half_of_delta_is_refuted_by_a_mechanism_that_tells_all_now_and_then() -> None:
    world = revealing(kinds=20, chance=0.1)
    assert world.delta(0.5) == pytest.approx(0.1)
    assert float(world.transcripts[world.gaps > 0.9].sum()) == pytest.approx(0.1)
    assert with_half_the_delta(0.0, 0.1, 0.9) < 0.1 <= ours(0.0, 0.1, 0.9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_attains_it(epsilon: float) -> None:
    world = randomized_response(epsilon, 1 / (1 + exp(epsilon / 2)))
    assert world.gaps.max() == pytest.approx(tanh(epsilon / 4))
    assert posterior_gap(lw.PureDP(epsilon), 0.01) == pytest.approx(tanh(epsilon / 4), rel=1e-12)
    assert posterior_gap(lw.PureDP(epsilon), 0.01) >= tanh(epsilon / 4) * (1 - 1e-15)


@pytest.mark.long
def test_the_expectation_is_bounded_too() -> None:
    drawing = np.random.default_rng()
    for _ in range(25):
        world = random_world(drawing)
        exact = float(world.transcripts @ world.gaps)
        assert posterior_gap(world, 1) >= exact - 1e-9


def gaussian_gap(mu: float, chance: float) -> float:
    """Return min over ε of t + (1 − t)·δ_μ(ε)/chance, by mpmath."""

    def at(epsilon: mpmath.mpf) -> mpmath.mpf:
        delta = mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
        return mpmath.tanh(epsilon / 4) + (1 - mpmath.tanh(epsilon / 4)) * delta / chance

    low, high = mpmath.mpf(0), mpmath.mpf(20 * mu)
    for _ in range(200):  # ternary search
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return float(at((low + high) / 2))


@pytest.mark.parametrize("mu", one_in(6, [1e-3, 0.0275, 0.3, 1.0]))
@pytest.mark.parametrize("chance", one_in(2, [1.0, 0.05, 1e-6]))
def test_gaussian_figures_are_those_of_mpmath(mu: float, chance: float) -> None:
    with mpmath.workdps(40):
        expected = gaussian_gap(mu, chance)
    assert posterior_gap(lw.GaussianDP(mu), chance) == pytest.approx(min(1.0, expected), rel=1e-9)
    assert posterior_gap(lw.GaussianDP(mu), chance) >= min(1.0, expected) * (1 - 1e-12)


def test_small_gaussian_loss_overfits_by_a_third_of_mu() -> None:
    assert expected_gap(lw.GaussianDP(1e-4)) == pytest.approx(0.3178e-4, rel=1e-3)


def test_concentrated_and_approximate_losses() -> None:
    assert expected_gap(lw.ZeroConcentratedDP(0.005)) <= 0.05 + 1e-12
    gap = posterior_gap(lw.ApproxDP(Fraction(1, 10), Fraction(1, 1000)), Fraction(1, 20))
    t = tanh(0.025)
    assert gap == pytest.approx(t + (1 - t) * 0.02, rel=1e-9)


def test_nothing_is_promised_of_a_large_loss() -> None:
    assert posterior_gap(lw.GaussianDP(100), 0.05) == 1.0


@pytest.mark.parametrize("chance", [-0.1, 1.5, float("nan")])
def test_bad_chances_are_refused(chance: float) -> None:
    with pytest.raises(lw.InvalidParameter, match="chance"):
        posterior_gap(lw.GaussianDP(1), chance)


def test_a_world_knows_its_own_profile() -> None:
    """The oracle agrees with the textbook: randomized response is ε-DP exactly."""
    world: SmallWorld = randomized_response(1.0, 0.3, people=2)
    assert world.delta(1.0) == pytest.approx(0, abs=1e-12)
    assert world.delta(0.0) == pytest.approx(tanh(0.5))
