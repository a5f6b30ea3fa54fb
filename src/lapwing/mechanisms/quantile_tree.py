"""A tree of counts over a grid, released once: every quantile, the distribution function, and counts between points.

Theory of operation. Data are integers, steps of a public grid. The leaves of the tree are the grid points, and `trees`
has the shape of what is above them. Nodes beyond the grid do not exist. Noise is added once to the count of every node.

Privacy. A row is counted in one node of every level. So one row more moves as many counts as there are levels by 1
each; K rows of one unit move them by K·levels in all, and, as they may all fall into the same nodes, by at most
K²·levels in the sum of squares. All else is computed from the noisy counts.

Consistency, and how the noise enters: `trees`. `noisy_sums` bounds what such a sum of noise can be, also where the
noise is not Gaussian.

Source:
    Hay, Rastogi, Miklau and Suciu 2010 (Boosting the Accuracy of Differentially Private Histograms Through
    Consistency). The bound on the error at a confidence is worked out here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import nan
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.discrete_gaussian import DiscreteGaussian
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.noisy_sums import Noise, sum_half_width
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.quantile import clamped, grid
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.trees import consistent, largest_weight, levels_above, sizes_of
from lapwing.privacy.amounts import Number, exact, probability
from lapwing.privacy.measures import Loss, PureDP

_MOST_NODES = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileTree:
    """Count the rows in every node of a tree over a grid, with noise; answer as many questions as one likes.

    Guarantee:
        The loss of the noise under add_remove of a unit with up to `rows` rows: L1 distance rows·levels and squared L2
        distance rows²·levels.

    Args:
        lower: The public grid.
        upper: The public grid.
        branching: How many children a node has, ≥ 2.
        noise: A mechanism that adds noise to counts. A tree has at most 2²² nodes.
    """

    name: ClassVar[str] = "quantile tree"
    lower: int
    upper: int
    branching: int = 16
    noise: Noise

    def __post_init__(self) -> None:
        lower, upper = grid(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "branching", whole_number(self.branching, "branching", least=2))
        _sizes(lower, upper, self.branching)
        if not isinstance(self.noise, DiscreteLaplace | RoundedGaussian | DiscreteGaussian):
            raise InvalidParameter(
                f"The noise is a {type(self.noise).__name__}; it must be DiscreteLaplace, RoundedGaussian or "
                "DiscreteGaussian."
            )

    @classmethod
    def for_loss(cls, loss: Loss, *, lower: int, upper: int, branching: int = 16, rows: int = 1) -> Self:
        """Return the tree of least noise, for units of up to `rows` rows, whose loss is at most `loss`.

        The noise is discrete Laplace for a pure loss, else rounded Gaussian.
        """
        sensitivity = _sensitivity(len(_sizes(lower, upper, branching)), rows)
        noise = DiscreteLaplace if isinstance(loss, PureDP) else RoundedGaussian
        return cls(lower=lower, upper=upper, branching=branching, noise=noise.for_loss(loss, sensitivity))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level, from the top down to the grid points."""
        return _sizes(self.lower, self.upper, self.branching)

    def loss(self, kind: str, *, rows: int = 1) -> Loss:
        """Return the loss in a measure, for units of up to `rows` rows.

        Raises:
            InvalidParameter: If the noise states no loss in this measure.
        """
        return self.noise.loss(_sensitivity(len(self.sizes), rows), kind)

    def release(self, values: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> "ReleasedQuantileTree":
        """Return the noisy counts, and what follows from them; values off the grid count at its nearest end.

        Raises:
            InvalidParameter: If the values are not whole numbers; nothing is drawn then.
        """
        places = clamped(values, self.lower, self.upper) - self.lower
        sizes = self.sizes
        levels = levels_above(np.bincount(places, minlength=sizes[-1]).astype(np.int64), self.branching)
        noisy = self.noise.release(np.concatenate(levels), entropy)
        ends = accumulate(sizes)
        counts = tuple(noisy[end - size : end] for size, end in zip(sizes, ends, strict=True))
        return ReleasedQuantileTree(lower=self.lower, upper=self.upper, branching=self.branching, counts=counts)

    def rank_error(self, confidence: Number) -> int:
        """Return an e such that, with this confidence at least, all answers together are within e rows, for all data.

        Namely at every point v the estimates of #{x ≤ v} and of #{x > v} are within e, so `count_between` is within 2e.
        Every `quantile` q gives a v with #{x < v} − e ≤ q·n ≤ #{x ≤ v} + e, except for the rounding of floating-point
        averages.

        The estimate of #{x ≤ v} − q·n is a weighted mean. It is the estimate of #{x ≤ v} with 1 − q, minus the estimate
        of #{x > v} with q. So it too is within e. `quantile` returns the first v where it is not negative. So v has #{x
        ≤ v} − q·n ≥ −e, and the point before it #{x < v} − q·n < e. At the last point, which it returns if there is no
        other, the first holds by itself. Estimates are clamped at 0, at the total and at the one before. This takes
        none further from the truth than e, because the true counts obey these limits as well.
        """
        beta = 1 - probability(confidence, "confidence")
        return sum_half_width(self.noise, largest_weight(self.sizes, self.branching), beta / (2 * self.sizes[-1]))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedQuantileTree:
    """Noisy counts of a tree's nodes, level by level from the top, and answers that cost nothing more.

    Everything is a function of the noisy counts, in floating point. Equal questions get equal answers, quantiles ascend
    with q, and the distribution function never falls.
    """

    lower: int
    upper: int
    branching: int
    counts: tuple[IntArray, ...] = field(repr=False)
    _up_to: NDArray[np.float64] = field(init=False, repr=False)
    _ascending: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if tuple(level.size for level in self.counts) != _sizes(self.lower, self.upper, self.branching):
            raise InvalidParameter("The counts do not fit such a tree; use the result of QuantileTree.release.")
        up_to = np.cumsum(consistent(self.counts, self.branching))
        object.__setattr__(self, "_up_to", up_to)
        object.__setattr__(self, "_ascending", np.clip(np.maximum.accumulate(up_to), 0, max(0.0, float(up_to[-1]))))
        for array in (*self.counts, self._up_to, self._ascending):
            array.setflags(write=False)

    @property
    def total(self) -> float:
        """The estimated number of rows, at least 0."""
        return float(self._ascending[-1])

    def quantile(self, q: Number) -> int:
        """Return the first grid point up to which the estimated share of rows is q or more; the first of all for 0."""
        return self.quantiles((q,))[0]

    def quantiles(self, wanted: Iterable[Number]) -> tuple[int, ...]:
        """Return the grid point of each quantile."""
        shares = [exact(q, "The quantile") for q in wanted]
        if not all(0 <= q <= 1 for q in shares):
            raise InvalidParameter("A quantile is not from 0 to 1; give shares of the rows, such as 0.5.")
        ranks = np.array([float(q) for q in shares]) * self.total
        places = np.searchsorted(self._ascending, ranks, side="left")
        return tuple(self.lower + int(place) for place in places)

    def cdf(self, value: int) -> float:
        """Return the estimated share of rows up to a value, from 0 to 1; NaN if the estimated total is 0."""
        if self.total == 0:
            return nan
        place = min(whole_number(value, "value", least=-(1 << 256)), self.upper) - self.lower
        return float(self._ascending[place]) / self.total if place >= 0 else 0.0

    def count_between(self, low: int, high: int) -> float:
        """Return the estimated number of rows from `low` to `high`, both included; it may be negative.

        Unbiased, and the best linear estimate from the counts if the ends are on the grid.
        """
        low, high = (whole_number(end, "Each end", least=-(1 << 256)) for end in (low, high))
        if low > high:
            raise InvalidParameter(f"low is {low} and high is {high}; low must not be above high.")
        return self._count_up_to(high) - self._count_up_to(low - 1)

    def _count_up_to(self, value: int) -> float:
        return float(self._up_to[min(value, self.upper) - self.lower]) if value >= self.lower else 0.0


def _sizes(lower: int, upper: int, branching: int) -> tuple[int, ...]:
    """Return the number of nodes of each level, from the top down, after a check of the tree's parameters."""
    lower, upper = grid(lower, upper)
    sizes = sizes_of(upper - lower + 1, whole_number(branching, "branching", least=2))
    if sum(sizes) > _MOST_NODES:
        raise InvalidParameter(
            f"The tree has {sum(sizes)} nodes; it may have at most 2^22: use a coarser step or a smaller range."
        )
    return sizes


def _sensitivity(levels: int, rows: int) -> Sensitivity:
    rows = whole_number(rows, "rows", least=1)
    return Sensitivity(l1=rows * levels, l2_squared=rows**2 * levels)
