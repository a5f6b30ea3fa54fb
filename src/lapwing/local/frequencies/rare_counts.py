"""Exact intervals for shares where supports are rare: for few reports, or for mechanisms with little noise.

A value with m of n respondents has Bin(m, p) + Bin(n − m, q) supports, a law that rises with m, as p > q. The interval
for the respondents is all m under which neither so many supports or more nor so few or less are rarer than half of what
may fail: whatever the true m is, it is in there with the confidence or more. For a
population, supports are Bin(n, λ) with λ = q + f·(p − q), and the interval for λ is that of Clopper and Pearson.

Laws are tables of floats over ten standard deviations on each side, scaled to add up to 1. They are off by 10⁻⁶ of
themselves at most, and tails are compared as if they were larger by that and by 10⁻¹².

Source:
    Clopper and Pearson 1934; Neyman 1937 for the inversion of tests.
"""

from collections.abc import Callable
from functools import lru_cache
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ENOUGH: Final = 50
"""With so large a variance of the number of supports, the normal law is near enough."""
_DEVIATIONS: Final = 10
_MORE: Final = 60
_HALVINGS: Final = 50
_SLACK: Final = 1e-6
_LOST: Final = 1e-12


def rare(reports: int, p: Floats, q: Floats) -> bool:
    """Tell whether supports of true or of other values are so rare, or so nearly certain, that no normal law fits."""
    return bool(reports * min((p * (1 - p)).min(), (q * (1 - q)).min()) < ENOUGH)


def ends_for_respondents(supports: int, reports: int, p: float, q: float, tail: float) -> tuple[float, float]:
    """Return the least and the greatest share among respondents that is not refuted; each side fails with `tail`."""

    def above(having: int) -> bool:  # rises with `having`
        return _tail(*_sum(having, reports, p, q), supports) > tail

    def below(having: int) -> bool:
        return _tail_below(*_sum(having, reports, p, q), supports) > tail

    least = _first(above, reports)
    most = _first(lambda having: not below(having), reports + 1) - 1
    return least / reports, max(most, 0) / reports


def ends_for_population(supports: int, reports: int, tail: float) -> tuple[float, float]:
    """Return the least and the greatest chance of a support that is not refuted; each side fails with `tail`."""
    low, high = 0.0, 1.0
    if supports:
        refuted, held = 0.0, supports / reports
        for _ in range(_HALVINGS):
            middle = (refuted + held) / 2
            good = _tail(*_law(reports, middle), 0, _NOTHING, supports) > tail
            refuted, held = (refuted, middle) if good else (middle, held)
        low = refuted
    if supports < reports:
        held, refuted = supports / reports, 1.0
        for _ in range(_HALVINGS):
            middle = (refuted + held) / 2
            good = _tail_below(*_law(reports, middle), 0, _NOTHING, supports) > tail
            refuted, held = (refuted, middle) if good else (middle, held)
        high = refuted
    return low, high


def most_by_noise(reports: int, q: float, tail: float) -> int:
    """Return the least number that the supports of a value that nobody has exceed with `tail` at most."""
    first, mass = _law(reports, q)
    beyond = np.cumsum(mass[::-1])[::-1] * (1 + _SLACK) + _LOST  # beyond[i]: at least first + i
    return first - 1 + int(np.count_nonzero(beyond > tail))


_NOTHING: Final = np.ones(1)


def _first(holds: Callable[[int], bool], end: int) -> int:
    """Return the least number below an end for which this holds, or the end; it holds for all larger ones, too."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _sum(having: int, reports: int, p: float, q: float) -> tuple[int, Floats, int, Floats]:
    return *_law(having, p), *_law(reports - having, q)


def _tail(first: int, mass: Floats, other: int, more: Floats, least: int) -> float:
    """Return the chance that the sum of two numbers is `least` or more, rounded up."""
    beyond = np.concatenate([np.cumsum(more[::-1])[::-1], [0.0]])  # beyond[i]: the other is other + i or more
    places = np.clip(least - (first + np.arange(mass.size)) - other, 0, more.size)
    return float(mass @ beyond[places]) * (1 + _SLACK) + _LOST


def _tail_below(first: int, mass: Floats, other: int, more: Floats, most: int) -> float:
    """Return the chance that the sum of two numbers is `most` or less, rounded up."""
    within = np.concatenate([[0.0], np.cumsum(more)])  # within[i]: the other is below other + i
    places = np.clip(most - (first + np.arange(mass.size)) - other + 1, 0, more.size)
    return float(mass @ within[places]) * (1 + _SLACK) + _LOST


@lru_cache(4096)
def _law(trials: int, chance: float) -> tuple[int, Floats]:
    """Return the law of so many tosses: the least number of the table, and the chances from there on."""
    if trials == 0 or chance <= 0:
        return 0, _NOTHING
    if chance >= 1:
        return trials, _NOTHING
    mode = min(trials, int((trials + 1) * chance))
    reach = _DEVIATIONS * (isqrt(int(trials * chance * (1 - chance))) + 1) + _MORE
    low, high, odds = max(0, mode - reach), min(trials, mode + reach), chance / (1 - chance)
    rising, falling = np.arange(mode, high, dtype=np.float64), np.arange(mode, low, -1, dtype=np.float64)
    up = np.cumprod((trials - rising) * odds / (rising + 1))
    down = np.cumprod(falling / ((trials - falling + 1) * odds))
    mass = np.concatenate([down[::-1], [1.0], up])
    return low, mass / mass.sum()
