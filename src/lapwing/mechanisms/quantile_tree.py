"""A tree of counts over a grid, released once: every quantile, the distribution function, and counts between points.

Theory of operation. Data are integers, steps of a public grid. The leaves of the tree are the grid points; each level
above joins `branching` neighbours, up to a level of at most `branching` nodes. (A root would be a further level to pay
for; the total follows from the level below it.) Nodes beyond the grid do not exist. Noise is added once to the count of
every node.

Privacy. A row is counted in one node of every level. So one row more moves as many counts as there are levels by 1
each; K rows of one unit move them by K·levels in all, and, as they may all fall into the same nodes, by at most
K²·levels in the sum of squares. All else is computed from the noisy counts.

Consistency. The noisy counts do not add up. The released estimate is the least-squares fit x of leaf counts: the sums
of x over all nodes are the orthogonal projection Πy of the noisy counts y onto what adds up. It takes two passes: going
up, a node's own count and the sum of its children's estimates are averaged with weights inverse to their variances;
going down, what a node's children miss of its estimate is divided among them in proportion to their variances.

Error. An estimate of the count of a set of leaves is a sum of the noisy counts with weights c. Σc² is its variance for
noise of variance 1, which `_largest_weight` computes. And |c_u| ≤ 1 for each node u, that is, noise of 1 at u alone
moves the estimate by at most 1. Going up, the estimates are then 0 but at u and above it, where they lie in [0, 1] and
do not grow. Going down to u, each node on the way is at least its parent and at most its estimate on the way up; hence
what is divided among the children beside the way is not above 0, and u gets an x_u in [0, 1]. The leaves below u get
shares ≥ 0 of x_u; all others get 0 or less, and together no less than −x_u. So no set of leaves gets more than 1 in
size. `noisy_sums` bounds what such a sum of noise can be, also where the noise is not Gaussian.

Source: Hay, Rastogi, Miklau and Suciu 2010 (Boosting the Accuracy of Differentially Private Histograms Through
Consistency); Honaker 2015 (Efficient Use of Differentially Private Binary Trees) for unequal variances. The bound on
each coefficient, and hence on the error at a confidence, is worked out here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import nan
from typing import ClassVar, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.discrete_gaussian import DiscreteGaussian
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy_sums import Noise, sum_half_width
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.quantile import clamped, grid
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.sensitivity import Sensitivity
from lapwing.privacy.amounts import Number, exact, probability
from lapwing.privacy.measures import Loss, PureDP

_MOST_NODES = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileTree:
    """Count the rows in every node of a tree over a grid, with noise; answer as many questions as one likes.

    Guarantee: the loss of the noise at L1 distance rows·levels and squared L2 distance rows²·levels, under add_remove
        of a unit with up to `rows` rows.
    Args: lower, upper: the public grid; branching: how many children a node has, ≥ 2; noise: a mechanism that adds
        noise to counts. A tree has at most 2²² nodes.
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

        Raises: InvalidParameter if the noise states no loss in this measure.
        """
        return self.noise.loss(_sensitivity(len(self.sizes), rows), kind)

    def release(self, values: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> "ReleasedQuantileTree":
        """Return the noisy counts, and what follows from them; values off the grid count at its nearest end.

        Raises: InvalidParameter if the values are not whole numbers; nothing is drawn then.
        """
        places = clamped(values, self.lower, self.upper) - self.lower
        sizes = self.sizes
        levels = [np.bincount(places, minlength=sizes[-1]).astype(np.int64)]
        for _ in sizes[1:]:
            levels.insert(0, _sums(levels[0], self.branching))
        noisy = self.noise.release(np.concatenate(levels), entropy)
        ends = accumulate(sizes)
        counts = tuple(noisy[end - size : end] for size, end in zip(sizes, ends, strict=True))
        return ReleasedQuantileTree(lower=self.lower, upper=self.upper, branching=self.branching, counts=counts)

    def rank_error(self, confidence: Number) -> int:
        """Return an e such that, with this confidence at least, all answers together are within e rows, for all data.

        Namely at every point v the estimates of #{x ≤ v} and of #{x > v} are within e, so that `count_between` is
        within 2e, and every `quantile` q gives a v with #{x < v} − e ≤ q·n ≤ #{x ≤ v} + e; but for the rounding of
        floating-point averages.

        The estimate of #{x ≤ v} − q·n is the mean of that of #{x ≤ v} and minus that of #{x > v}, weighted by 1 − q
        and q, so it too is within e. `quantile` returns the first v where it is not negative, and so v has
        #{x ≤ v} − q·n ≥ −e, and the point before it #{x < v} − q·n < e. At the last point, which it returns if there
        is no other, the first holds by itself. That no estimate is let below 0 or above the total, nor below one
        before it, takes none further from the truth than e, as the true counts keep to this as well.
        """
        beta = 1 - probability(confidence, "confidence")
        return sum_half_width(self.noise, _largest_weight(self.sizes, self.branching), beta / (2 * self.sizes[-1]))


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
            raise InvalidParameter("The counts are not those of such a tree; use what QuantileTree.release returns.")
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


def consistent(counts: tuple[IntArray, ...], branching: int) -> NDArray[np.float64]:
    """Return the leaf counts of the least-squares fit to all noisy counts, which have equal variances."""
    *upper, leaves = (level.astype(np.float64) for level in counts)
    variances = _variances(tuple(level.size for level in counts), branching)
    estimates = [leaves]
    for own, share in zip(upper[::-1], variances[-2::-1], strict=True):
        estimates.append(share * own + (1 - share) * _sums(estimates[-1], branching))
    fit = estimates[-1]
    for estimate, variance in zip(estimates[-2::-1], variances[1:], strict=True):
        missing = (fit - _sums(estimate, branching)) / _sums(variance, branching)
        fit = estimate + variance * np.repeat(missing, branching)[: estimate.size]
    return fit


def _variances(sizes: tuple[int, ...], branching: int) -> list[NDArray[np.float64]]:
    """Return the variance of each node's estimate on the way up, from the top down, where a count's own is 1.

    Of a count of variance 1 and a sum of variance T, the mean of least variance has T/(1 + T), which also is the weight
    of the count in it.
    """
    variances = [np.ones(sizes[-1])]
    for _ in sizes[1:]:
        spread = _sums(variances[0], branching)
        variances.insert(0, spread / (1 + spread))
    return variances


def _largest_weight(sizes: tuple[int, ...], branching: int) -> Fraction:
    """Return the largest variance of an estimate of a count up to, or from, any grid point, where a count's own is 1.

    Within a node whose estimate is X, let the count up to a leaf have the estimate aX + (a rest independent of X), the
    rest of variance r: a = 1, r = 0 in the leaf itself. On the way up the node's children had independent estimates of
    variances v, v_0 of the child with the leaf, of which b the sum of those before it, t the sum of all. Given X they
    are what independent normal numbers of these variances are given their sum. So with s = b + a·v_0 the node above has
    a' = s/t and r' = r + b + a²·v_0 − s²/t. What lies beyond the leaf has 1 − a and the same r.

    Rounded up by a millionth, far more than the error of the floating-point sums.
    """
    node = np.arange(sizes[-1])
    a, rest = np.ones(sizes[-1]), np.zeros(sizes[-1])
    levels = _variances(sizes, branching)
    for variances in levels[:0:-1]:
        own, total = variances[node], _sums(variances, branching)[node // branching]
        # Within a level all nodes but the last have the same variance.
        before = (node % branching) * variances[node // branching * branching]
        share = (before + a * own) / total
        rest += before + a**2 * own - share**2 * total
        a, node = share, node // branching
    own = levels[0][node]
    before = np.cumsum(levels[0])[node] - own
    beyond = levels[0].sum() - before - own
    largest = max((before + a**2 * own + rest).max(), (beyond + (1 - a) ** 2 * own + rest).max())
    return Fraction(float(largest)) * Fraction(1_000_001, 1_000_000)


_Counts = TypeVar("_Counts", np.int64, np.float64)


def _sums(level: NDArray[_Counts], branching: int) -> NDArray[_Counts]:
    """Return the sums over each `branching` neighbours, the last over what is left."""
    return np.add.reduceat(level, np.arange(0, level.size, branching))


def _sizes(lower: int, upper: int, branching: int) -> tuple[int, ...]:
    """Return the number of nodes of each level, from the top down, after a check of the tree's parameters."""
    lower, upper = grid(lower, upper)
    sizes = [upper - lower + 1]
    branching = whole_number(branching, "branching", least=2)
    while sizes[0] > branching:
        sizes.insert(0, -(-sizes[0] // branching))
    if sum(sizes) > _MOST_NODES:
        raise InvalidParameter(
            f"The tree has {sum(sizes)} nodes; it may have 2^22: use a coarser step or a smaller range."
        )
    return tuple(sizes)


def _sensitivity(levels: int, rows: int) -> Sensitivity:
    rows = whole_number(rows, "rows", least=1)
    return Sensitivity(l1=rows * levels, l2_squared=rows**2 * levels)
