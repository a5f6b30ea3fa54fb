"""One quantile of numbers of rows: the exponential mechanism of `quantile`, where rows have been counted at each point.

Theory of operation. The points of a grid are numbered, and of each is known how many rows stand on it: that is all of
the data that the d of `quantile` depends on. So a point is drawn with P(v) ∝ e^(−d(v)/(b·scale)) from the counts alone,
one draw for each of several cells, with randomness of its own.

Claim: over all cells together, a unit of up to K rows has bounded range K·w/scale, w = 2·max(q, 1 − q). In a cell with
k of its rows the range is k·w/scale (`quantile`). The draws of cells are independent, so that the log-ratio of all of
them is the sum of theirs, in an interval whose length is the sum of the ranges: at most K·w/scale. Another unit in its
place is a unit removed and one added: 2K rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.exact.choice import exponential_choice
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.floats import float_near
from lapwing.mechanisms.additive import QUANTILE
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.parameters import SMALLEST_SCALE, scale_of_noise, whole_number
from lapwing.mechanisms.quantile import distances, largest_distance, share, width_at_one
from lapwing.mechanisms.scores import bounded_range_loss, range_within
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileOfCounts:
    """Choose a point in each cell, by a rank error that is 0 where equal rows allow it.

    Guarantee:
        Bounded range K·w/scale, w = 2·max(q, 1 − q), or 1 for q = 0 and q = 1, where K is the L1 distance of the counts
        between neighbours. Proof at the top of the file.

    Args:
        quantile: From 0 to 1.
        points: Of the grid in each cell, at least 1.
        scale: In rows.
    """

    name: ClassVar[str] = QUANTILE
    quantile: Fraction
    points: int
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantile", share(self.quantile, "quantile"))
        object.__setattr__(self, "points", whole_number(self.points, "points", least=1))
        object.__setattr__(self, "scale", scale_of_noise(self.scale))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity, *, quantile: Fraction, points: int) -> Self:
        """Return the sharpest choice whose loss is at most `loss`."""
        width = sensitivity.l1 * width_at_one(quantile)
        return cls(quantile=quantile, points=points, scale=max(SMALLEST_SCALE, width / range_within(loss)))

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return what a choice in every cell loses in a measure."""
        return bounded_range_loss(kind, sensitivity.l1 * width_at_one(self.quantile) / self.scale)

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how many rows one unit moves."""
        return float(sensitivity.l1)

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Return the number of a point for each cell, from 0.

        Args:
            values: A row of the array a cell, of which the last `points` entries are the counts of its points.
        """
        chosen = np.zeros((len(values), 1), dtype=np.int64)
        for cell, counts in enumerate(values[:, -self.points :]):
            chosen[cell] = exponential_choice(self._distances(counts), self._fine_scale, entropy)
        return chosen

    def _distances(self, counts: NDArray[np.int64]) -> IntArray:
        at_most = np.cumsum(counts)
        return distances(at_most - counts, at_most, int(at_most[-1]), self.quantile)

    @property
    def _fine_scale(self) -> Fraction:
        return self.scale * self.quantile.denominator

    @property
    def standard_deviation(self) -> float:
        """The scale, in rows: how far the rank strays depends on the data, and on no fewer rows."""
        return float_near(self.scale)

    def half_width(self, confidence: Number) -> int:
        """Return an e such that the rank of a chosen point is within e rows of q·n, with this confidence at least."""
        beta = 1 - probability(confidence, "confidence")
        return ceil(Fraction(largest_distance(self.points, self._fine_scale, beta), self.quantile.denominator))

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        return [str(self.quantile), str(self.points), str(self.scale)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        quantile, points, scale = parameters
        return cls(quantile=Fraction(quantile), points=int(points), scale=Fraction(scale))
