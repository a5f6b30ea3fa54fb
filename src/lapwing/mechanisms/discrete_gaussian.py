"""Discrete Gaussian noise: the additive mechanism whose zero-concentrated loss is a theorem about the discrete law."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final, overload

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Enclosure, enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.discrete_gaussian_tail import tail as tail_of
from lapwing.mechanisms.noisy import (
    MOST_HALF_WIDTH,
    NOTHING,
    TAIL_BITS,
    Sensitivity,
    add,
    check_positive,
    complement,
    largest_scale,
    vector,
    wanted_half_width,
)
from lapwing.mechanisms.parameters import LARGEST_SCALE, SMALLEST_SCALE, rational
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss, ZeroConcentratedDP
from lapwing.privacy.search import smallest

_SMALLEST, _LARGEST = SMALLEST_SCALE**2, LARGEST_SCALE**2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Add discrete Gaussian noise, P(x) ∝ e^(−x²/(2·variance)), to each integer.

    Guarantee:
        ZeroConcentratedDP(l2_squared / (2·variance)) for integer vectors at squared L2 distance at most l2_squared.
        Take two integers m apart and c = α·m. The divergence of order α is α·m²/(2·variance) plus a logarithm times
        1/(α − 1). The logarithm is of Σ f(x − c)/Σ f(x) over the integers, f(x) = e^(−x²/(2·variance)). That quotient
        is at most 1 by Poisson's formula, because the Fourier transform of f is positive. Entries are independent and
        their divergences add. At whole orders α the bound is attained.

    Args:
        variance: The parameter, in squared steps of the answer, from 2⁻⁶⁰ to 2¹⁶⁰. The noise's variance is less, by
            less than a millionth from 1 on.

    Source:
        Canonne, Kamath and Steinke 2020 (The Discrete Gaussian for Differential Privacy), Theorem 4.
    """

    name: ClassVar[str] = "discrete Gaussian"
    variance: Fraction

    def __post_init__(self) -> None:
        variance = rational(self.variance, "variance")
        if not _SMALLEST <= variance <= _LARGEST:
            raise InvalidParameter(
                f"variance is {short(variance)}; it must be from 2^-60 to 2^160: use a coarser or finer step."
            )
        object.__setattr__(self, "variance", variance)

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`: variance = l2_squared/(2ρ), exactly.

        Raises:
            InvalidParameter: For any other measure, in which it states no loss.
        """
        check_positive(loss)
        if not isinstance(loss, ZeroConcentratedDP):
            raise InvalidParameter(
                f"Discrete Gaussian noise keeps no {loss.kind} loss that is proven; use it with zcdp, "
                "rounded Gaussian noise with gdp, discrete Laplace noise with pure."
            )
        return cls(variance=max(_SMALLEST, vector(sensitivity).l2_squared / (2 * loss.rho)))

    @classmethod
    def for_half_width(cls, h: int, confidence: Number) -> Self:
        """Return the most noise with P(|noise| ≤ h) ≥ confidence; the variance is rounded down."""
        tail, h = 1 - probability(confidence, "confidence"), wanted_half_width(h)
        guess = ((h + Fraction(1, 2)) / _quantile(tail)) ** 2
        return cls(variance=largest_scale(lambda variance: tail_of(variance, h).upper <= tail, guess))

    @property
    def standard_deviation(self) -> float:
        """√(Σ x²·f(x)/Σ f(x)), f(x) = e^(−x²/(2·variance)), to floating-point accuracy.

        From a variance of 4 on it is √variance. By Poisson's formula the noise's own variance is less than the
        parameter v by 8π²v²·e^(−2π²v) and smaller terms.
        """
        variance = float(self.variance)
        if variance >= 4:
            return math.sqrt(variance)
        weights = [math.exp(-k * k / (2 * variance)) for k in range(1, 80)]
        squares = math.fsum(k * k * weight for k, weight in enumerate(weights, start=1))
        return math.sqrt(2 * squares / (1 + 2 * math.fsum(weights)))

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return the loss in a measure: ρ = l2_squared/(2·variance) in zcdp.

        Raises:
            InvalidParameter: For pure, in which no Gaussian noise has a loss. For gdp: ρ-zCDP implies no gdp loss, and
                this noise has more δ at some ε than √(2ρ)-GDP allows.
        """
        return ZeroConcentratedDP(vector(sensitivity).l2_squared / (2 * self.variance)).to_kind(kind)

    @overload
    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray: ...
    @overload
    def release(self, values: int, entropy: Entropy = SYSTEM) -> int: ...
    def release(self, values: int | IntArray, entropy: Entropy = SYSTEM) -> int | IntArray:
        """Return the values plus independent noise, as exact integers: an int for an int, else an array."""
        return add(values, lambda size: samplers.discrete_gaussian(self.variance, size, entropy))

    def coverage(self, h: int) -> Enclosure:
        """Bound P(|noise| ≤ h)."""
        h = wanted_half_width(h, least=-MOST_HALF_WIDTH)
        return complement(tail_of(self.variance, h)) if h >= 0 else NOTHING

    def half_width(self, confidence: Number) -> int:
        """Return the smallest h that is certified to have P(|noise| ≤ h) ≥ confidence."""
        tail = 1 - probability(confidence, "confidence")
        guess = square_root_up(self.variance) * _quantile(tail) - Fraction(1, 2)
        return smallest(lambda h: tail_of(self.variance, h).upper <= tail, guess=math.ceil(guess))


def _quantile(tail: Fraction) -> Fraction:
    return enclose_tightly(normal_two_sided_quantile_ball, tail, bits=TAIL_BITS).upper
