"""Two noisy answers to one question made one: the weighted mean of rounded Gaussians."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import ROOM, IntArray, integer_array
from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.noisy import TAIL_BITS
from lapwing.mechanisms.parameters import LARGEST_SCALE, SMALLEST_SCALE, positive
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number, probability


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MergedGaussian:
    """What the mean of several noisy answers errs by. It is post-processing: it adds no noise and has no loss.

    A released value is within |Z| + slack of the true integer, Z ~ N(0, sigma²).

    Proof. round(N(0, σ²)) is within ½ of N(0, σ²). Let two answers to one integer v be v + Z₁ + e₁ and v + Z₂ + e₂ with
    independent Gaussians and |eᵢ| ≤ slackᵢ. Their mean with weights wᵢ ∝ 1/σᵢ² is v + Z + w₁e₁ + w₂e₂, where Z is
    Gaussian with 1/σ² = 1/σ₁² + 1/σ₂², and rounding it to an integer adds ½ to the slack at most.

    Args:
        sigma: In steps of the answer, > 0.
        slack: In steps, > 0.
    """

    name: ClassVar[str] = "merged Gaussians"
    sigma: Fraction
    slack: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        object.__setattr__(self, "slack", positive(self.slack, "slack"))

    @property
    def scale(self) -> Fraction:
        """σ."""
        return self.sigma

    @property
    def standard_deviation(self) -> float:
        """√(σ² + 1/12), as the mean is rounded to an integer: to within the roundings of its parts."""
        return math.sqrt(float(self.sigma) ** 2 + 1 / 12)

    def half_width(self, confidence: Number) -> int:
        """Return an h that is certified to have P(|error| ≤ h) ≥ confidence."""
        tail = 1 - probability(confidence, "confidence")
        quantile = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=TAIL_BITS).upper
        return math.ceil(self.sigma * quantile + self.slack)

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        return [str(self.sigma), str(self.slack)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        sigma, slack = map(Fraction, parameters)
        return cls(sigma=sigma, slack=slack)


Noisy = RoundedGaussian | MergedGaussian | ReconstructedGaussian


def gaussians(noises: Iterable[NoiseLaw]) -> tuple[Noisy, ...] | None:
    """Return the noises if all are Gaussian or means of such, else None: of others no mean is proven to be better."""
    listed = tuple(noises)
    normal = tuple(noise for noise in listed if isinstance(noise, Noisy))
    return normal if len(normal) == len(listed) else None


def sharpened(bought: Noisy, wanted: Noisy, confidence: Number) -> tuple[RoundedGaussian, Fraction] | None:
    """Return the noise of a further answer that makes the mean as good as wanted, and the sigma of that mean.

    As good means that its half-width at this confidence is no larger than the wanted noise's, nor is its sigma. The
    slack of the mean is at most the larger one of both answers, plus ½. So it suffices that quantile·sigma + slack is
    at most the wanted half-width. None if that leaves nothing for the noise, or the stored answer alone is as good.
    """
    tail = 1 - probability(confidence, "confidence")
    quantile = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=TAIL_BITS).upper
    slack = max(slack_of(bought), Fraction(1, 2)) + Fraction(1, 2)
    sigma = min(wanted.sigma, (wanted.half_width(confidence) - slack) / quantile)
    if sigma <= 0 or sigma >= bought.sigma:
        return None
    fresh = 1 / square_root_up(1 / sigma**2 - 1 / bought.sigma**2)
    if fresh < SMALLEST_SCALE:
        return None
    return RoundedGaussian(sigma=min(fresh, LARGEST_SCALE)), sigma


def merged(
    first: IntArray, bought: Noisy, second: IntArray, fresh: RoundedGaussian, wanted: Fraction
) -> tuple[IntArray, MergedGaussian]:
    """Return the mean of two answers, each weighted by the inverse of its variance, and what it errs by.

    Args:
        wanted: The sigma that the mean is stated with, at least its own.
    """
    weight = (1 / bought.sigma**2) / (1 / bought.sigma**2 + 1 / fresh.sigma**2)
    pairs, half = zip(first.tolist(), second.tolist(), strict=True), Fraction(1, 2)
    values = [math.floor(weight * a + (1 - weight) * b + half) for a, b in pairs]
    if wanted**2 < 1 / (1 / bought.sigma**2 + 1 / fresh.sigma**2):
        raise InvalidParameter("The mean of the two results is less accurate than the requested sigma.")
    slack = weight * slack_of(bought) + (1 - weight) * slack_of(fresh) + Fraction(1, 2)
    return integer_array(values, below=ROOM), MergedGaussian(sigma=wanted, slack=slack)


def slack_of(noise: Noisy) -> Fraction:
    """Return how far a noise may stray from a normal one of its sigma."""
    return Fraction(1, 2) if isinstance(noise, RoundedGaussian) else noise.slack
