"""Sums of Laplace noise with weights stray beyond the quantile as rarely as said: by adding up their exact law."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from math import exp, expm1, tanh

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.mechanisms import laplace_combinations
from lapwing.mechanisms.laplace_combinations import combination_quantile, continuous_scale
from tests.support.effort import one_in

Law = NDArray[np.float64]
CASES = [
    (weights, scales)
    for weights in ((1, 1, 1), (1, 2, 5), (0, 1, 1), (7, 7, 1), (0, 0, 3))
    for scales in ((3.0, 3.0, 3.0), (0.2, 1.0, 4.0), (12.0, 0.5, 0.1), (20.0, 20.0, 1.0))
]
CHANCES = (Fraction(1, 20), Fraction(1, 1000), Fraction(1, 2))


def law(weight: int, scale: float) -> Law:
    """The probabilities of weight·X, X discrete Laplace, from −n to n: what is left out is below 1e-13."""
    most = int(30 * scale) + 30
    ratio = exp(-1 / scale)
    chances = ratio ** np.abs(np.arange(-most, most + 1)) * -expm1(-1 / scale) / (1 + ratio)
    spread = np.zeros(2 * most * max(1, weight) + 1)
    spread[:: max(1, weight)] = chances
    return spread if weight else np.ones(1)


def beyond(weights: tuple[int, ...], scales: tuple[float, ...], most: float) -> float:
    """P(|Σ c_i·X_i| > most), by convolution."""
    total = np.ones(1)
    for weight, scale in zip(weights, scales, strict=True):
        total = np.convolve(total, law(weight, scale))
    places = np.abs(np.arange(len(total)) - len(total) // 2)
    return float(total[places > most].sum())


def bound(weights: tuple[int, ...], scales: tuple[float, ...], chance: Fraction) -> float:
    parts = [weight * continuous_scale(Fraction(scale)) for weight, scale in zip(weights, scales, strict=True)]
    return float(combination_quantile(parts, chance)) + sum(weights) / 2


@pytest.mark.parametrize(("weights", "scales"), one_in(3, CASES, many=True))
@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_sums_of_noise_stray_as_rarely_as_said(
    weights: tuple[int, ...], scales: tuple[float, ...], chance: Fraction
) -> None:
    assert beyond(weights, scales, bound(weights, scales, chance)) <= float(chance) + 1e-12


def test_six_tenths_of_it_would_be_noticed() -> None:
    assert all(
        beyond(weights, scales, 0.6 * bound(weights, scales, Fraction(1, 20))) > 0.05
        for weights, scales in CASES
        if max(weight * scale for weight, scale in zip(weights, scales, strict=True)) > 2
    )


def test_the_scale_of_the_discrete_law_alone_would_be_too_small() -> None:
    """What is beyond h + ½ is on a chord of the tail, and so more than the tail of a Laplace number of scale s is."""
    scale, place = 0.5, 0.1
    chord = 1 - 2 * tanh(1 / (2 * scale)) * place
    assert exp(-place / float(continuous_scale(Fraction(1, 2)))) >= chord > exp(-place / scale)


def test_it_is_the_least_by_the_integral_of_the_density() -> None:
    """P(|Σ a_i·L_i| > T) = 1 − (2/π)·∫ sin(Tt)/t·Π 1/(1 + a_i²t²) dt, a way of its own."""
    for scales in combinations_with_replacement((1, 3, 4), 3):
        distance = float(combination_quantile([Fraction(scale) for scale in scales], Fraction(1, 20)))

        places = np.linspace(0, 40, 100_001)[1:]
        density = np.sin(distance * places) / places / np.prod([1 + (a * places) ** 2 for a in scales], axis=0)
        inside = 2 / np.pi * np.trapezoid(np.concatenate([[distance], density]), dx=places[0])
        assert 0.0499 < 1 - inside < 0.05001  # of the rest, beyond 40, at most 1e-9


@pytest.mark.parametrize("chance", [Fraction(1, 10**12), Fraction(999, 1000)], ids=str)
def test_any_chance_has_one(chance: Fraction) -> None:
    ones = combination_quantile([Fraction(1)] * 3, chance)
    assert combination_quantile([Fraction(1), Fraction(0), Fraction(0)], chance) < ones
    assert combination_quantile([Fraction(0)] * 3, chance) == 0


def test_ratios_that_are_rounded_down_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = [Fraction(1), Fraction(3, 7)]
    true = combination_quantile(scales, Fraction(1, 20))
    monkeypatch.setattr(laplace_combinations, "ceil", int)
    assert combination_quantile(scales, Fraction(1, 20)) < true


def quantile(scales: tuple[float, ...], chance: float) -> float:
    """The quantile of Σ a_i·L_i for distinct scales, by halving their exact tail in doubles."""
    weights = [np.prod([a**2 / (a**2 - b**2) for b in scales if b != a]) for a in scales]
    low, high = 0.0, 200.0 * max(scales)
    for _ in range(80):
        middle = (low + high) / 2
        tail = sum(weight * exp(-middle / a) for weight, a in zip(weights, scales, strict=True))
        low, high = (middle, high) if tail > chance else (low, middle)
    return high


def stable(scales: tuple[float, ...], _: float) -> float:
    """The same for stable laws of index ½, whose tails are too heavy: (Σ √a_i)² times a constant."""
    return float(sum(a**0.5 for a in scales) ** 2)


LINES = [
    (tuple(first), tuple(last))
    for first, last in np.random.default_rng(5).uniform(0.05, 3, (40, 2, 3)).tolist()
    if len({*first, *last}) == 6
]


def is_convex(of: Callable[[tuple[float, ...], float], float], chance: float) -> bool:
    """Whether it is convex in the scales along some lines, from one corner of their signs to another, too."""

    def middle(first: tuple[float, ...], last: tuple[float, ...], signs: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(abs(a + sign * b) / 2 for a, b, sign in zip(first, last, signs, strict=True))

    return all(
        of(middle(first, last, signs), chance) <= (of(first, chance) + of(last, chance)) / 2 * (1 + 1e-6)
        for first, last in LINES
        for signs in ((1, 1, 1), (1, 1, -1), (1, -1, -1))
    )


@pytest.mark.parametrize("chance", [0.9, 0.5, 0.05, 1e-4, 1e-9])
def test_quantiles_are_convex_in_the_scales(chance: float) -> None:
    assert is_convex(quantile, chance)


def test_twin_laws_of_heavy_tails_are_not_convex() -> None:
    assert not is_convex(stable, 0.05)
