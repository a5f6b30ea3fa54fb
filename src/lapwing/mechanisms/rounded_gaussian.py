"""Rounded Gaussian noise: the additive mechanism for Gaussian differential privacy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, final, overload

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Enclosure, enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.rounded_gaussian import rounded_gaussian
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
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.search import smallest


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedGaussian:
    """Add round(N(0, σ²)) to each integer.

    Guarantee:
        GaussianDP(√l2_squared / σ) for integer vectors at squared L2 distance at most l2_squared. For an integer v, v +
        round(z) = round(v + z), so the release is a rounding of the real Gaussian mechanism, entry by entry.
        Post-processing loses nothing (Dong, Roth and Su 2022, arXiv 1905.02383). In the same way it is (l2_squared /
        2σ²)-zCDP (Bun and Steinke 2016, Proposition 1.6).

    Args:
        sigma: In steps of the answer, from 2⁻³⁰ to 2⁸⁰.
    """

    name: ClassVar[str] = "rounded Gaussian"
    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", scale_of_noise(self.sigma, "sigma"))

    def __hash__(self) -> int:
        """Hash σ by its parts: `Fraction` inverts its denominator for that, as integers and floats may equal it."""
        return hash((self.sigma.numerator, self.sigma.denominator))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`: σ = √l2_squared/μ, rounded up.

        Raises:
            InvalidParameter: For a pure loss, which no Gaussian noise keeps.
        """
        check_positive(loss)
        if isinstance(loss, PureDP):
            raise InvalidParameter("Gaussian noise keeps no pure loss; use discrete Laplace noise, or a gdp ledger.")
        mu_squared = 2 * loss.amount if isinstance(loss, ZeroConcentratedDP) else loss.amount
        return cls(sigma=max(SMALLEST_SCALE, square_root_up(vector(sensitivity).l2_squared / mu_squared, SCALE_BITS)))

    @classmethod
    def for_half_width(cls, h: int, confidence: Number) -> Self:
        """Return the most noise with P(|noise| ≤ h) ≥ confidence; σ is rounded down."""
        tail, h = 1 - probability(confidence, "confidence"), wanted_half_width(h)
        quantile = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=TAIL_BITS).upper
        guess = (h + Fraction(1, 2)) / quantile
        return cls(sigma=largest_scale(lambda sigma: _tail(sigma, h).upper <= tail, guess))

    @property
    def scale(self) -> Fraction:
        """σ."""
        return self.sigma

    @property
    def standard_deviation(self) -> float:
        """√E[round(N(0, σ²))²] = √(Σ_{k≥0} (2k+1)·P(|N(0, σ²)| > k + ½)), to floating-point accuracy.

        From σ = 4 on it is √(σ² + 1/12): what Poisson's summation formula adds is of the order of σ²·e^(−2π²σ²).
        """
        sigma = float(self.sigma)
        if sigma >= 4:
            return math.sqrt(sigma**2 + 1 / 12)
        return math.sqrt(math.fsum((2 * k + 1) * math.erfc((k + 0.5) / (sigma * math.sqrt(2))) for k in range(160)))

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return the loss in a measure: μ² = l2_squared/σ² in gdp, ρ = l2_squared/(2σ²) in zcdp.

        Raises:
            InvalidParameter: For pure: no Gaussian noise has a finite ε at δ = 0.
        """
        return GaussianDP.from_amount(vector(sensitivity).l2_squared / self.sigma**2).to_kind(kind)

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how far one unit moves the vector in L2, which the loss depends on."""
        norm: float = float(sensitivity.l2_squared) ** 0.5
        return norm

    @overload
    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray: ...
    @overload
    def release(self, values: int, entropy: Entropy = SYSTEM) -> int: ...
    def release(self, values: int | IntArray, entropy: Entropy = SYSTEM) -> int | IntArray:
        """Return the values plus independent noise, as exact integers: an int for an int, else an array."""
        return add(values, lambda size: rounded_gaussian(self.sigma**2, size, entropy))

    def coverage(self, h: int) -> Enclosure:
        """Bound P(|noise| ≤ h) = 2Φ((h + ½)/σ) − 1."""
        h = wanted_half_width(h, least=-MOST_HALF_WIDTH)
        return complement(_tail(self.sigma, h)) if h >= 0 else NOTHING

    def half_width(self, confidence: Number) -> int:
        """Return the smallest h that is certified to have P(|noise| ≤ h) ≥ confidence."""
        return _half_width(self.sigma, confidence)

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        return [str(self.sigma)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        (sigma,) = map(Fraction, parameters)
        return cls(sigma=sigma)


@lru_cache(maxsize=1 << 10, typed=True)  # of public numbers, and asked for several times in every question
def _half_width(sigma: Fraction, confidence: Number) -> int:
    tail = 1 - probability(confidence, "confidence")
    quantile = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=TAIL_BITS).upper
    guess = sigma * quantile - Fraction(1, 2)
    return smallest(lambda h: _tail(sigma, h).upper <= tail, guess=math.ceil(guess))


def _tail(sigma: Fraction, h: int) -> Enclosure:
    """Bound P(|noise| > h) = 2Φ(−(h + ½)/σ) = erfc((h + ½)/(σ√2)), to 128 binary digits."""
    return enclose_tightly(lambda x: (x / 2).sqrt().erfc(), ((h + Fraction(1, 2)) / sigma) ** 2, bits=TAIL_BITS)
