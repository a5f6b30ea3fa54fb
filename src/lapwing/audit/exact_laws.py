"""Exact probabilities of noises and choices, from their formulas, without the code that draws them.

Each is computed in double precision with a relative error below 1e-9. The tested frequencies have a random error above
1e-4, so that rounding decides nothing.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

from lapwing.mechanisms.discrete_gaussian import DiscreteGaussian
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian

Distribution = Callable[[int], float]
"""The probability that a noise is at most a whole number."""
_MOST_DISCRETE_SIGMA: Final = 2_000


def laplace(scale: float) -> Distribution:
    """Return the distribution with P(x) ∝ e^(−|x|/scale).

    With q = e^(−1/scale) it is q^|x|/(1 + q) below 0, and 1 − q^(x + 1)/(1 + q) from 0 on.
    """
    whole = 1 + math.exp(-1 / scale)

    def at_most(x: int) -> float:
        return math.exp(x / scale) / whole if x < 0 else 1 - math.exp(-(x + 1) / scale) / whole

    return at_most


def rounded_normal(sigma: float) -> Distribution:
    """Return the distribution of round(N(0, σ²)): Φ((x + ½)/σ)."""
    return lambda x: normal((x + 0.5) / sigma)


def discrete_normal(sigma: float) -> Distribution:
    """Return the distribution with P(x) ∝ e^(−x²/(2σ²)), by adding up, for σ up to 2,000."""
    reach = math.ceil(40 * sigma) + 1
    weights = [math.exp(-((x / sigma) ** 2) / 2) for x in range(-reach, reach + 1)]
    whole, sums, added = math.fsum(weights), [0.0], 0.0
    for weight in weights:
        added += weight
        sums.append(added)
    return lambda x: sums[min(max(x + reach + 1, 0), len(sums) - 1)] / whole


def normal(x: float) -> float:
    """Return Φ(x)."""
    return math.erfc(-x / math.sqrt(2)) / 2


def distribution_of(mechanism: object, factor: float = 1.0) -> Distribution | None:
    """Return the distribution of a mechanism's noise, with its scale times a factor; None if it adds no noise."""
    match mechanism:
        case DiscreteLaplace():
            return laplace(float(mechanism.scale) * factor)
        case RoundedGaussian():
            return rounded_normal(float(mechanism.sigma) * factor)
        case DiscreteGaussian() if mechanism.variance <= _MOST_DISCRETE_SIGMA**2:
            return discrete_normal(math.sqrt(mechanism.variance) * factor)
        case _:
            return None


def exponential(scores: Sequence[int], scale: float) -> list[float]:
    """Return the probabilities of a choice with P(i) ∝ e^(score_i/scale)."""
    best = max(scores)
    weights = [math.exp((score - best) / scale) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


def permute_and_flip(scores: Sequence[int], scale: float) -> list[float]:
    """Return the probabilities of permute-and-flip: coins of chance e^((score − best)/scale), one of the heads chosen.

    Every outcome of all coins is enumerated; of its heads each is equally likely (McKenna and Sheldon 2020).
    """
    best = max(scores)
    chances = [math.exp((score - best) / scale) for score in scores]
    found = [0.0] * len(scores)
    for heads in product((False, True), repeat=len(scores)):
        chance = math.prod(p if head else 1 - p for p, head in zip(chances, heads, strict=True))
        for place, head in enumerate(heads):
            found[place] += chance / sum(heads) if head and chance else 0.0
    return found


def first_above(answers: Sequence[int], offset: int, threshold_scale: float, query_scale: float) -> list[float]:
    """Return the probabilities that each answer is the first above 0, and last that none is, of a sparse vector.

    The threshold gets noise ρ and every answer noise ν, P(noise ≥ k) = e^(−k/scale) from k = 0 on. An answer q is above
    if q + ν ≥ b + ρ for the public offset b.
    """
    found, step = [0.0] * (len(answers) + 1), 1 - math.exp(-1 / threshold_scale)
    for drawn in range(math.ceil(45 * threshold_scale)):
        left = math.exp(-drawn / threshold_scale) * step
        for place, answer in enumerate(answers):
            above = math.exp(-max(0, offset + drawn - answer) / query_scale)
            found[place] += left * above
            left *= 1 - above
        found[-1] += left
    return found


def released_keys(epsilon: float, delta: float, units: int) -> float:
    """Return π_n of the truncated geometric selection of keys, for one key a unit (Desfontaines et al. 2022)."""
    chance = 0.0
    for _ in range(units):
        chance = min(math.exp(epsilon) * chance + delta, 1 - math.exp(-epsilon) * (1 - chance - delta), 1.0)
    return chance
