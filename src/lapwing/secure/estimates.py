"""From noisy totals to estimates with intervals. The noise is the sum of every server's own, or one for all."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np

from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.privacy.amounts import Number as Amount
from lapwing.privacy.amounts import probability
from lapwing.secure.numbers import Number
from lapwing.secure.organising import Totals
from lapwing.secure.task import Noise, Task
from lapwing.secure.vectors import Vector

_MOST_EXACT: Final = 2000
"""Standard deviations up to here are convolved; beyond, Chernoff's bound is taken, which is wider."""
_ROUNDING: Final = 1e-9
"""More than all floating-point errors of the sums here: each of less than 10⁶ terms errs by less than 10⁻¹⁵."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One estimate: of how many clients answered `label`, or of a sum or mean; with its interval."""

    label: str
    value: Fraction
    low: Fraction
    high: Fraction


def estimates(found: Totals, confidence: Amount = Fraction(95, 100)) -> list[Estimate]:
    """Return what the totals say: a count for each value, the sum and mean of a number, or a vector's sums.

    The intervals are for what the clients sent, each interval by itself: the noise reaches no further. The number of
    clients is known exactly, so that a mean needs no noise of its own.
    """
    return labelled(found, half_width(found.task.noise, found.task.noises, confidence))


def labelled(found: Totals, h: int) -> list[Estimate]:
    """Return what totals say whose noise reaches `h` steps: a mean is left out if nobody answered."""
    asked = found.task.asked
    if not isinstance(asked, Number):
        labels, step = (asked.names, asked.step) if isinstance(asked, Vector) else (asked.texts, Fraction(1))
        return [
            Estimate(label=label, value=cell * step, low=(cell - h) * step, high=(cell + h) * step)
            for label, cell in zip(labels, found.cells, strict=True)
        ]
    least, (cell,) = found.clients * asked.lower, found.cells
    total, low, high = (least + asked.step * steps for steps in (cell, cell - h, cell + h))
    whole = Estimate(label="sum", value=total, low=low, high=high)
    if not found.clients:
        return [whole]
    n = found.clients
    return [whole, Estimate(label="mean", value=total / n, low=low / n, high=high / n)]


def largest(found: Totals, confidence: Amount = Fraction(95, 100)) -> list[Estimate]:
    """Return the values whose intervals are above 0, the largest estimates first.

    Guarantee:
        With the probability `confidence` the intervals of all values hold together, also of those that are left out.
        So they hold for the values that are chosen here for their estimates (Bonferroni). Some value that nobody
        answered is among these with probability 1 − confidence at most.
    """
    share = probability(confidence, "confidence")
    each = estimates(found, 1 - (1 - share) / found.task.asked.width)
    return sorted((one for one in each if one.low > 0), key=lambda one: (-one.value, one.label))


def standard_deviation(task: Task) -> float:
    """Return the standard deviation of a cell's noise, in steps: √m times one server's, if m servers add it."""
    return math.sqrt(task.noises) * task.noise.standard_deviation


@lru_cache(maxsize=64)
def half_width(noise: Noise, servers: int, confidence: Amount) -> int:
    """Return an h that the sum of `servers` independent noises exceeds with probability 1 − confidence at most.

    The smallest one, but for rounding, while the noise is small enough to be convolved.
    """
    share = probability(confidence, "confidence")
    if math.sqrt(servers) * noise.standard_deviation > _MOST_EXACT or share > Fraction(999_999, 1_000_000):
        return sum_half_width(noise, Fraction(servers), 1 - share)
    law = _law(noise, math.ceil(40 * noise.standard_deviation) + 40)
    together = law
    for _ in range(servers - 1):
        together = np.convolve(together, law)
    middle = len(together) // 2
    # Cutting the law off loses probability, so what is inside is stated too low, and the half-width never too small.
    inside = together[middle] + 2 * np.cumsum(np.append(0.0, together[middle + 1 :])) - _ROUNDING
    return int(np.argmax(inside >= float(share)))


def _law(noise: Noise, most: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return P(noise = k) for k from −most to most, to floating-point accuracy."""
    chance: Callable[[int], float]
    if isinstance(noise, DiscreteLaplace):
        rate = float(1 / noise.scale)
        top = -math.expm1(-rate) / (1 + math.exp(-rate))

        def chance(k: int) -> float:
            return top * math.exp(-rate * k)
    else:
        root = float(noise.sigma) * math.sqrt(2)

        def chance(k: int) -> float:
            return (math.erfc((k - 0.5) / root) - math.erfc((k + 0.5) / root)) / 2

    half = [chance(k) for k in range(1, most + 1)]
    return np.array([*reversed(half), chance(0), *half])
