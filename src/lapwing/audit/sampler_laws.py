"""Compare what the samplers draw with exact laws: by likelihood ratios (χ²), and by Kolmogorov and Smirnov's distance.

Both tests have a bound for every number of draws, and no test rests on a limit.

- G = 2n·KL(p̂ ‖ p) over k cells has about the law of χ² with k − 1 degrees of freedom. For every n, and every
  x of k − 1 or more, P(n·KL ≥ x) ≤ (e·x/(k − 1))^(k − 1)·e^(−x). Agrawal 2020 (arXiv 1904.02291) proves that
  E e^(t·n·KL) ≤ (1 − t)^(1 − k) for t in [0, 1). Chernoff's bound at t = 1 − (k − 1)/x gives this.
- For every n and every law, P(sup |F̂ − F| > t) ≤ 2·e^(−2nt²) (Massart 1990; a law on the integers included).

An alarm has a probability of at most `ALARM` in each test. That is 1e-6 over `LIFE` tests. An audit makes at most
`MOST_TESTS`, with the bets of `betting`. So an installation may audit itself every night for 27 years.

Three kinds of draws are compared: numbers one by one, pairs of numbers of one use, and pairs of two uses after each
other. Pairs of independent numbers have the product of their laws. So noise that is used twice is found.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from lapwing.audit.exact_laws import Distribution
from lapwing.audit.sampler_cases import Draws, SamplerCase

MOST_TESTS: Final = 100
"""The most tests of one audit: four of a noise, two of a choice, one of a promise. Today these are 55."""
LIFE: Final = 10_000 * MOST_TESTS
"""The most tests of an installation in 10,000 audits."""
ALARM: Final = 1e-6 / LIFE
SURE: Final = 2.5
"""A normal variable is more than 2.5 deviations below its mean with a probability of 0.62 %, so 0.7 % at most."""
_CELLS: Final = 24
_CLASSES: Final = 4


def differences(case: SamplerCase, draws: int) -> list[str]:
    """Return how the draws of a case differ from its law, in words; nothing if they do not."""
    first, second = case.draw(draws), case.draw(draws)
    edges = edges_of(case.at_most, _CELLS)
    found = _single(np.concatenate([first, second]), case.at_most, edges)
    if case.independent:
        few = edges_of(case.at_most, _CLASSES)
        found += _pairs(first[0::2], first[1::2], case.at_most, few, "numbers of one use depend on each other")
        found += _pairs(first, second, case.at_most, few, "two uses depend on each other: noise is used again")
    return found


def _single(drawn: Draws, at_most: Distribution, edges: Sequence[int]) -> list[str]:
    cells = np.searchsorted(np.array(edges), drawn, side="left")
    divergence = kl_of(np.bincount(cells, minlength=len(edges) + 1), masses(at_most, edges))
    found = []
    if divergence >= least_divergence(len(edges) + 1):
        found.append(f"its cells are too unlikely: G = {2 * divergence:.1f} over {len(edges) + 1} cells")
    distance = distance_of(drawn, at_most)
    if distance > least_distance(len(drawn)):
        found.append(f"its distribution function is {distance:.5f} away from the law's")
    return found


def _pairs(one: Draws, other: Draws, at_most: Distribution, edges: Sequence[int], what: str) -> list[str]:
    """Compare pairs of numbers with the product of their laws."""
    size = min(len(one), len(other))
    classes = [np.searchsorted(np.array(edges), side[:size], side="left") for side in (one, other)]
    width = len(edges) + 1
    counts = np.bincount(classes[0] * width + classes[1], minlength=width * width)
    law = masses(at_most, edges)
    expected = [mine * theirs for mine in law for theirs in law]
    return [what] if kl_of(counts, expected) >= least_divergence(len(expected)) else []


def edges_of(at_most: Distribution, cells: int) -> list[int]:
    """Return the greatest numbers of all cells but the last; no cell has much less than its part of the probability.

    Of a noise that is 0 nearly always there is no such cell. Then one cell has what is below 0.
    """
    edges: list[int] = []
    below = 0.0
    for place in range(1, cells):
        edge = quantile(at_most, max(place / cells, below))
        reached = at_most(edge)
        if reached - below >= 0.5 / cells and 1 - reached >= 0.5 / cells:
            edges.append(edge)
            below = reached
    return edges or [-1]


def quantile(at_most: Distribution, chance: float) -> int:
    """Return the least number with a probability of at most it of `chance` or more."""
    reach = 1
    while at_most(reach) < chance or at_most(-reach) >= chance:
        reach *= 2
    low, high = -reach, reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at_most(middle) >= chance else (middle, high)
    return high


def masses(at_most: Distribution, edges: Sequence[int]) -> list[float]:
    """Return the probability of every cell."""
    sums = [0.0, *map(at_most, edges), 1.0]
    return [high - low for low, high in pairwise(sums)]


def kl_of(counts: Sequence[int] | Draws, law: Sequence[float]) -> float:
    """Return n·KL(p̂ ‖ p) of counts."""
    whole = int(sum(map(int, counts)))
    pairs = [(int(n), p) for n, p in zip(counts, law, strict=True) if n]
    return sum(n * math.log(n / (whole * p)) if p > 0 else math.inf for n, p in pairs)


def least_divergence(cells: int, alarm: float = ALARM) -> float:
    """Return the least n·KL that raises an alarm."""
    degrees = cells - 1
    low, high = float(degrees), 1e6
    while high - low > 1e-9:
        middle = (low + high) / 2
        log_chance = degrees * math.log(math.e * middle / degrees) - middle
        low, high = (low, middle) if log_chance <= math.log(alarm) else (middle, high)
    return high


def distance_of(drawn: Draws, at_most: Distribution) -> float:
    """Return sup |F̂ − F|, which is reached at a drawn number or just below one."""
    values, counts = np.unique(drawn, return_counts=True)
    sums = np.cumsum(counts) / len(drawn)
    law = np.array([at_most(int(value)) for value in values.tolist()])
    below = np.array([at_most(int(value) - 1) for value in values.tolist()])
    return float(max(np.abs(sums - law).max(), np.abs(np.concatenate([[0.0], sums[:-1]]) - below).max()))


def least_distance(draws: int) -> float:
    """Return the distance from which it raises an alarm."""
    return math.sqrt(math.log(2 / ALARM) / (2 * draws))


def smallest_found(law: Callable[[float], Distribution | None], draws: int) -> float:
    """Return the least part by which a scale that is too small is found with a probability of 99 %.

    Of n draws with the masses q, n·KL(p̂ ‖ p) is about normal. Its mean is n·KL(q ‖ p) or more, and its variance is n
    times the variance of log(q/p). So it reaches the alarm where the mean is `SURE` deviations above it.
    """
    honest = law(1.0)
    if honest is None:
        return 1.0
    edges = edges_of(honest, _CELLS)
    wanted, expected = least_divergence(len(edges) + 1), masses(honest, edges)
    for part in (*(step / 1000 for step in range(1, 100)), *(step / 100 for step in range(10, 100))):
        changed = masses(law(1 - part) or honest, edges)
        ratios = [(p, math.log(p / q)) for p, q in zip(changed, expected, strict=True) if p > 0]
        divergence = math.fsum(p * ratio for p, ratio in ratios)
        variance = math.fsum(p * (ratio - divergence) ** 2 for p, ratio in ratios)
        if draws * divergence - SURE * math.sqrt(draws * variance) >= wanted:
            return part
    return 1.0
