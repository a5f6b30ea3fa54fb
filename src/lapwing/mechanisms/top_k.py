"""The best few of finitely many candidates, in order, in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.noisy import check_positive
from lapwing.mechanisms.parameters import SMALLEST_SCALE, scale_of_noise, whole_number
from lapwing.mechanisms.scores import (
    MOST_CANDIDATES,
    ScoreSensitivity,
    below_best,
    bounded_range_loss,
    exponential_shortfall,
    range_within,
    read_scores,
    scored,
)
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """Report `count` different candidates, the presumably best first: the order of s_i + G_i for Gumbel noise G.

    P(first = i) ∝ e^(s_i/scale), and each next one is chosen by the same law among those that are left. (Given which of
    the s_i + G_i is the largest, and its value v, the others are independent and conditioned to stay below v. The
    largest of these is j with probability ∝ e^(s_j/scale), for any v.)

    Guarantee:
        Each round has bounded range η = range/scale, for any earlier choices, and rounds compose adaptively:
        PureDP(count·η), (count·η²/8)-zCDP, and in GaussianDP count times the μ² of one round.

    Args:
        scale: In steps of the score, from 2⁻³⁰ to 2⁸⁰.
        count: How many to report, at least 1.

    Source:
        Durfee and Rogers 2019 (one shot is peeling); for one round see `ExponentialMechanism`.
    """

    name: ClassVar[str] = "top k"
    scale: Fraction
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        object.__setattr__(self, "count", whole_number(self.count, "count", least=1, most=MOST_CANDIDATES))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: ScoreSensitivity, count: int) -> Self:
        """Return the least noise whose loss is at most `loss`: each round may spend a `count`-th of the amount."""
        count = whole_number(count, "count", least=1, most=MOST_CANDIDATES)
        check_positive(loss)
        one = loss.from_amount(loss.amount / count)
        return cls(scale=max(SMALLEST_SCALE, scored(sensitivity).range / range_within(one)), count=count)

    def loss(self, sensitivity: ScoreSensitivity, kind: str) -> Loss:
        """Return the loss in a measure: `count` times the loss of one round."""
        return self.count * bounded_range_loss(kind, scored(sensitivity).range / self.scale)

    def release(self, scores: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
        """Return the indices of the choices, in order.

        Raises:
            InvalidParameter: If the scores are not integers, or fewer than `count`; nothing is drawn then.
        """
        whole = read_scores(scores)
        if whole.size < self.count:
            raise InvalidParameter(f"There are {whole.size} scores; give at least {self.count}, or ask for fewer.")
        return samplers.exponential_choices(below_best(whole), self.scale, self.count, entropy)

    def shortfall(self, candidates: int, confidence: Number) -> int:
        """Return an h with P(score of the j-th choice ≥ j-th best score − h, for all j) ≥ confidence.

        When the j-th is chosen, one of the j best is left, so the bound of one round holds for it. Each of the rounds
        may fail with a `count`-th of the probability.
        """
        tail = (1 - probability(confidence, "confidence")) / self.count
        return exponential_shortfall(self.scale, candidates, 1 - tail, halved=False)
