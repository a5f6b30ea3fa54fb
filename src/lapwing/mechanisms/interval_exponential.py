"""The exponential mechanism on all integers of an interval, where the score is constant on a few pieces.

Theory of operation. The candidates are the grid points lower … upper, perhaps more than could be listed; point x has a
private integer score f(x) and a public integer weight, its base measure, and is chosen with probability proportional
to weight(x) · e^(f(x)/scale). Where both are constant on a piece of the grid, the piece's points have one probability,
so a piece is drawn with the number of its points times their weight as multiplicity, and then one of its points
uniformly. That is the law, point by point; how the grid is cut into pieces changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import integers, scale_of_noise, whole_number
from lapwing.mechanisms.scores import (
    ScoreSensitivity,
    below_best,
    bounded_range_loss,
    read_scores,
    scale_for_range,
    scored,
)
from lapwing.privacy.measures import Loss

_FARTHEST = 1 << 256
_HEAVIEST = 1 << 128
_INT64 = np.iinfo(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalExponential:
    """Choose an integer x from lower to upper with probability proportional to weight(x) · e^(score(x)/scale).

    Public: the fields. Private: the pieces that `release` gets, their starts as well as their scores. They affect the
    probabilities only through the score of each grid point.

    Guarantee:
        Bounded range η = range/scale, hence PureDP(η), (η²/8)-zCDP and GaussianDP(2Φ⁻¹(1/(1 + e^(−η/2)))). Condition:
        between neighbours, for any two grid points x and y, score(x) − score(y) moves by at most `range`. The weights
        are the same on both sides and cancel; `ExponentialMechanism` has the proof.

    Args:
        scale: In steps of the score, from 2⁻³⁰ to 2⁸⁰.
        lower: The ends of the grid, both among the candidates, within ±2²⁵⁶.
        upper: As `lower`.
        weights: Pairs (start, weight), ascending from start = lower. From each start on, grid points have this weight,
            a whole number from 0 to 2¹²⁸, not all 0. Left out, all points weigh the same.

    Source:
        McSherry and Talwar 2007.
    """

    name: ClassVar[str] = "exponential mechanism on an interval"
    scale: Fraction
    lower: int
    upper: int
    weights: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        lower = whole_number(self.lower, "lower", least=-_FARTHEST, most=_FARTHEST)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", whole_number(self.upper, "upper", least=-_FARTHEST, most=_FARTHEST))
        if self.upper < lower:
            raise InvalidParameter("lower is above upper; give the lesser end of the grid first.")
        try:
            pairs = tuple((start, weight) for start, weight in self.weights) or ((lower, 1),)
        except (TypeError, ValueError) as error:
            raise InvalidParameter("The weights are not pairs (start, weight); give a tuple of such pairs.") from error
        weights = tuple(
            (
                whole_number(start, "A start", least=lower, most=self.upper),
                whole_number(weight, "A weight", most=_HEAVIEST),
            )
            for start, weight in pairs
        )
        starts = [start for start, _ in weights]
        if starts[0] != lower or starts != sorted(set(starts)) or not any(weight for _, weight in weights):
            raise InvalidParameter("The weights must start at lower, ascend by their starts, and not all be 0.")
        object.__setattr__(self, "weights", weights)

    @classmethod
    def for_loss(
        cls,
        loss: Loss,
        sensitivity: ScoreSensitivity,
        *,
        lower: int,
        upper: int,
        weights: tuple[tuple[int, int], ...] = (),
    ) -> Self:
        """Return the least noise whose loss is at most `loss`: range/ε exactly for a pure loss, else rounded up."""
        return cls(scale=scale_for_range(loss, sensitivity), lower=lower, upper=upper, weights=weights)

    def loss(self, sensitivity: ScoreSensitivity, kind: str) -> Loss:
        """Return the loss in a measure: the loss of a bounded range of range/scale."""
        return bounded_range_loss(kind, scored(sensitivity).range / self.scale)

    def release(
        self, starts: IntArray | Sequence[int], scores: IntArray | Sequence[int], entropy: Entropy = SYSTEM
    ) -> int:
        """Return the chosen grid point.

        Args:
            starts: Where each piece begins, the first at `lower`, none before the one before it nor beyond upper + 1. A
                piece ends where the next begins, the last at `upper`, and one without points is allowed.
            scores: One integer a piece, the score of all its points.

        Raises:
            InvalidParameter: If these are not integers, or not such pieces; nothing is drawn then.
        """
        begins, heights = self._pieces(starts, scores)
        begins, heights, base = self._cut(begins, heights)
        lengths = np.append(begins[1:], self.upper + 1) - begins
        chosen = samplers.exponential_choice(
            below_best(heights), self.scale, entropy, multiplicities=_products(lengths, base)
        )
        return int(begins[chosen]) + int(samplers.uniform_integers(int(lengths[chosen]), 1, entropy)[0])

    def _pieces(self, starts: IntArray | Sequence[int], scores: IntArray | Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return the private pieces as arrays, Python ints where lower or upper do not fit int64."""
        begins, heights = integers(starts, "The starts"), read_scores(scores)
        if begins.shape != heights.shape:
            raise InvalidParameter(f"There are {begins.size} starts for {heights.size} scores; give one for each.")
        if begins[0] != self.lower or begins[-1] > self.upper + 1 or not (begins[1:] >= begins[:-1]).all():
            raise InvalidParameter(
                f"The starts of the pieces must begin at {self.lower}, never descend, and end by {self.upper} + 1."
            )
        if self.lower < _INT64.min // 4 or self.upper > _INT64.max // 4:
            return begins.astype(np.object_), heights
        return begins.astype(np.int64), heights

    def _cut(self, begins: IntArray, heights: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Cut the pieces where the weights change; return where the parts begin, their scores and their weights."""
        public = integers([start for start, _ in self.weights], "The starts")
        weights = integers([weight for _, weight in self.weights], "The weights")
        if public.size == 1:
            return begins, heights, weights
        merged: IntArray = np.sort(np.concatenate((begins, public[1:].astype(begins.dtype))))
        piece = np.searchsorted(begins, merged, side="right") - 1
        return merged, heights[piece], weights[np.searchsorted(public, merged, side="right") - 1]


def _products(lengths: IntArray, weights: IntArray) -> IntArray:
    """Return lengths · weights exactly; there may be one weight for all."""
    if int(lengths.max()) * int(weights.max()) <= _INT64.max:
        product: IntArray = lengths.astype(np.int64) * weights.astype(np.int64)
        return product
    wide: IntArray = lengths.astype(np.object_) * weights.astype(np.object_)
    return wide
