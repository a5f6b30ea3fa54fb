"""What a number errs by that is put together from several numbers with rounded Gaussian noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball
from lapwing.mechanisms.noisy import TAIL_BITS
from lapwing.mechanisms.parameters import positive
from lapwing.privacy.amounts import Number, probability


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructedGaussian:
    """What one cell of a reconstructed marginal errs by. It is post-processing: it adds no noise and has no loss.

    A released value is within |Z| + slack of the true integer, Z ~ N(0, sigma²). `residual_marginals` has the proof.
    Cells of one table, and of tables from the same measurements, have noise in common: nothing is said of it here.

    Args:
        sigma: In steps of the answer, > 0.
        slack: In steps, > 0.
    """

    name: ClassVar[str] = "reconstructed Gaussian"
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
        """√(σ² + s/6): as if the slack s were that of 2s independent roundings, each of variance 1/12."""
        return math.sqrt(float(self.sigma) ** 2 + float(self.slack) / 6)

    def half_width(self, confidence: Number) -> int:
        """Return an h that is certified to have P(|error| ≤ h) ≥ confidence."""
        tail = 1 - probability(confidence, "confidence")
        quantile = enclose_tightly(normal_two_sided_quantile_ball, tail, bits=TAIL_BITS).upper
        # Values are whole numbers: what is off by at most a number is off by at most its whole part.
        return math.floor(self.sigma * quantile + self.slack)

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        return [str(self.sigma), str(self.slack)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        sigma, slack = map(Fraction, parameters)
        return cls(sigma=sigma, slack=slack)
