"""Discrete Laplace noise: the additive mechanism for pure differential privacy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, final, overload

from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, Enclosure, dyadic_unit, dyadic_up, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.noisy import (
    MOST_HALF_WIDTH,
    NOTHING,
    SCALE_BITS,
    TAIL_BITS,
    Sensitivity,
    add,
    check_positive,
    complement,
    largest_scale,
    vector,
    wanted_half_width,
)
from lapwing.mechanisms.parameters import SMALLEST_SCALE, scale_of_noise
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.laplace_implies import discrete_laplace_loss
from lapwing.privacy.measures import Loss, PureDP
from lapwing.privacy.search import smallest


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Add discrete Laplace noise, P(x) ∝ e^(−|x|/scale), to each integer.

    Guarantee:
        PureDP(l1 / scale) for integer vectors at L1 distance at most l1: each entry's probability changes by a factor
        of at most e^(|change|/scale). Attained, and optimal for counts under pure differential privacy. In gdp and zcdp
        the loss is the noise's own, which is below what its ε implies (`privacy.laplace_implies`).

    Args:
        scale: In steps of the answer, from 2⁻³⁰ to 2⁸⁰.

    Source:
        Ghosh, Roughgarden and Sundararajan 2009; the sampler is `exact.laplace`.
    """

    name: ClassVar[str] = "discrete Laplace"
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`: l1/ε exactly for a pure loss, else rounded up."""
        check_positive(loss)
        l1 = vector(sensitivity).l1
        if l1 == 0:
            return cls(scale=SMALLEST_SCALE)
        if isinstance(loss, PureDP):
            return cls(scale=max(SMALLEST_SCALE, l1 / loss.epsilon))
        return cls(scale=max(SMALLEST_SCALE, _least_scale(loss, l1)))

    @classmethod
    def for_half_width(cls, h: int, confidence: Number) -> Self:
        """Return the most noise with P(|noise| ≤ h) ≥ confidence; the scale is rounded down."""
        tail, h = 1 - probability(confidence, "confidence"), wanted_half_width(h)
        guess = _scale_near(h, tail)
        return cls(scale=largest_scale(lambda scale: _tail(scale, h).upper <= tail, guess))

    @property
    def standard_deviation(self) -> float:
        """√(2q)/(1 − q) = 1/(√2·sinh(1/(2·scale))) for q = e^(−1/scale), to floating-point accuracy."""
        half_rate = float(1 / (2 * self.scale))
        return 1 / (math.sqrt(2) * math.sinh(half_rate)) if half_rate < 700 else 0.0

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return the loss in a measure: l1/scale in pure, and what this noise loses in the others."""
        return discrete_laplace_loss(1 / self.scale, vector(sensitivity).l1, kind)

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how far one unit moves the vector in L1, which the loss depends on."""
        return float(sensitivity.l1)

    @overload
    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray: ...
    @overload
    def release(self, values: int, entropy: Entropy = SYSTEM) -> int: ...
    def release(self, values: int | IntArray, entropy: Entropy = SYSTEM) -> int | IntArray:
        """Return the values plus independent noise, as exact integers: an int for an int, else an array."""
        return add(values, lambda size: samplers.discrete_laplace(self.scale, size, entropy))

    def coverage(self, h: int) -> Enclosure:
        """Bound P(|noise| ≤ h) = 1 − 2q^(h+1)/(1 + q), q = e^(−1/scale)."""
        h = wanted_half_width(h, least=-MOST_HALF_WIDTH)
        return complement(_tail(self.scale, h)) if h >= 0 else NOTHING

    def half_width(self, confidence: Number) -> int:
        """Return the smallest h that is certified to have P(|noise| ≤ h) ≥ confidence."""
        return _half_width(self.scale, 1 - probability(confidence, "confidence"))

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        return [str(self.scale)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        (scale,) = map(Fraction, parameters)
        return cls(scale=scale)


@lru_cache(maxsize=1 << 10)  # of public numbers, and asked for several times in every question
def _half_width(scale: Fraction, tail: Fraction) -> int:
    """Return the smallest h that is certified to have P(|noise| > h) ≤ tail."""

    def near(t: Ball, p: Ball) -> Ball:
        return t * (2 / ((1 + (-1 / t).exp()) * p)).log() - 1

    guess = enclose_tightly(near, scale, tail, bits=TAIL_BITS).upper
    return smallest(lambda h: _tail(scale, h).upper <= tail, guess=math.ceil(guess))


@lru_cache(maxsize=1 << 10)
def _least_scale(loss: Loss, distance: int) -> Fraction:
    """Return the least scale, of about 45 binary digits, at which the loss in gdp or zcdp is at most `loss`."""
    guess = _scale_for(loss, distance)
    unit = dyadic_unit(guess, SCALE_BITS)
    steps = smallest(
        lambda n: discrete_laplace_loss(1 / (n * unit), distance, loss.kind) <= loss,
        guess=math.ceil(guess / unit),
        least=1,
    )
    return steps * unit


def _scale_for(loss: Loss, distance: int) -> Fraction:
    """Return about the scale whose loss is `loss`: by secants of its logarithm, from the scale that ε would ask for.

    A guess in floating point; what it leads to is certified.
    """
    scale = distance / pure_epsilon_down(loss.kind, loss.amount)
    slope, before = -2.0, (0.0, 0.0)
    for step in range(8):
        found = discrete_laplace_loss(1 / scale, distance, loss.kind).amount / loss.amount
        gap = math.log(found.numerator) - math.log(found.denominator)
        if abs(gap) < 1e-13:
            break
        if step and gap != before[1]:
            slope = max(-4.0, min(-0.25, (gap - before[1]) / before[0]))
        before = (-gap / slope, gap)
        scale = dyadic_up(scale * Fraction(math.exp(max(-30.0, min(30.0, before[0])))), 60)
    return scale


def _tail(scale: Fraction, h: int) -> Enclosure:
    """Bound P(|noise| > h) = 2q^(h+1)/(1 + q), q = e^(−1/scale), to 128 binary digits."""
    return enclose_tightly(
        lambda r, n: 2 * (-r * (n + 1)).exp() / (1 + (-r).exp()), 1 / scale, Fraction(h), bits=TAIL_BITS
    )


def _scale_near(h: int, tail: Fraction) -> Fraction:
    """Return about the scale with 2q^(h+1)/(1 + q) = tail, by iterating on r = −ln q: a contraction by ½ or better."""
    rate, wanted = 0.0, math.log(2) + math.log(tail.denominator) - math.log(tail.numerator)
    for _ in range(60):
        rate = max((wanted - math.log1p(math.exp(-rate))) / (h + 1), 2.0**-90)
    return 1 / Fraction(rate)
