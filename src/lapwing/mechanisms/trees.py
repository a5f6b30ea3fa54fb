"""Trees of counts: their shape, the estimate that adds up, and how the noise of the nodes enters its sums.

Theory of operation. Leaves are in a row; each level above joins `branching` neighbours, up to a level of at most
`branching` nodes. (A root would be a further level to pay for; the total follows from the level below it.) Arrays may
have axes before that of the nodes: many trees of one shape at once.

Consistency. Noisy counts of nodes do not add up. The estimate is the least-squares fit x of leaf counts: the sums of x
over all nodes are the orthogonal projection of the noisy counts onto what adds up. It takes two passes: going up, a
node's own count and the sum of its children's estimates are averaged with weights inverse to their variances; going
down, what a node's children miss of its estimate is divided among them in proportion to their variances.

Error. An estimate of the count of a set of leaves is a sum of the noisy counts with weights c. Σc² is its variance for
noise of variance 1, which `spreads` computes. And |c_u| ≤ 1 for each node u, that is, noise of 1 at u alone moves the
estimate by at most 1. Going up, the estimates are then 0 but at u and above it, where they lie in [0, 1] and do not
grow. Going down to u, each node on the way is at least its parent and at most its estimate on the way up; hence what is
divided among the children beside the way is not above 0, and u gets an x_u in [0, 1]. The leaves below u get shares ≥ 0
of x_u; all others get 0 or less, and together no less than −x_u. So no set of leaves gets more than 1 in size.

Source:
    Hay, Rastogi, Miklau and Suciu 2010 (Boosting the Accuracy of Differentially Private Histograms Through
    Consistency); Honaker 2015 (Efficient Use of Differentially Private Binary Trees) for unequal variances. The bound
    on each coefficient is worked out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_Counts = TypeVar("_Counts", np.int64, np.float64)

# Far more than the error of sums of some ten thousand floating-point numbers.
_ROUNDING = 1e-6


def sizes_of(leaves: int, branching: int) -> tuple[int, ...]:
    """Return the number of nodes of each level, from the top down to the leaves."""
    sizes = [leaves]
    while sizes[0] > branching:
        sizes.insert(0, -(-sizes[0] // branching))
    return tuple(sizes)


def sums(level: NDArray[_Counts], branching: int) -> NDArray[_Counts]:
    """Return the sums over each `branching` neighbours; the last may be over fewer."""
    return np.add.reduceat(level, np.arange(0, level.shape[-1], branching), axis=-1)


def levels_above(leaves: NDArray[np.int64], branching: int) -> tuple[NDArray[np.int64], ...]:
    """Return the counts of all levels, from the top down to the leaves."""
    levels = [leaves]
    while levels[0].shape[-1] > branching:
        levels.insert(0, sums(levels[0], branching))
    return tuple(levels)


def consistent(counts: Sequence[NDArray[np.generic]], branching: int) -> Floats:
    """Return the leaf counts of the least-squares fit to all noisy counts, which have equal variances."""
    *upper, leaves = (level.astype(np.float64) for level in counts)
    shares = variances(tuple(level.shape[-1] for level in counts), branching)
    estimates = [leaves]
    for own, share in zip(upper[::-1], shares[-2::-1], strict=True):
        estimates.append(share * own + (1 - share) * sums(estimates[-1], branching))
    fit = estimates[-1]
    for estimate, variance in zip(estimates[-2::-1], shares[1:], strict=True):
        missing = (fit - sums(estimate, branching)) / sums(variance, branching)
        fit = estimate + variance * np.repeat(missing, branching, axis=-1)[..., : estimate.shape[-1]]
    return fit


def variances(sizes: tuple[int, ...], branching: int) -> list[Floats]:
    """Return the variance of each node's estimate on the way up, from the top down, where a count's own is 1.

    Of a count of variance 1 and a sum of variance T, the mean of least variance has T/(1 + T), which also is the weight
    of the count in it.
    """
    levels = [np.ones(sizes[-1])]
    for _ in sizes[1:]:
        spread = sums(levels[0], branching)
        levels.insert(0, spread / (1 + spread))
    return levels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spreads:
    """How the estimate of the count up to each leaf varies, where a noisy count's own variance is 1.

    Let X be the estimate of the top node above the leaf, of variance `own`, and `before` and `beyond` the variances of
    the sums of those before and behind it. Then the count up to the leaf is the sum of those before, `share`·X, and
    something of variance `rest`, all independent.

    Proof. Within a node whose estimate is X, let the count up to a leaf have the estimate aX + (a rest independent of
    X), the rest of variance r: a = 1, r = 0 in the leaf itself. On the way up the node's children had independent
    estimates of variances v, v_0 of the child with the leaf, of which b the sum of those before it, t the sum of all.
    Given X they are what independent normal numbers of these variances are given their sum. So with s = b + a·v_0 the
    node above has a' = s/t and r' = r + b + a²·v_0 − s²/t.
    """

    before: Floats
    own: Floats
    beyond: Floats
    share: Floats
    rest: Floats

    def weights(self, q: float) -> Floats:
        """Return Σc² of the estimate of #{x ≤ leaf} − q·n at each leaf, rounded up; |c| ≤ 1.

        It is the count up to the leaf, times 1 − q, less the count beyond it, times q; so each c lies between two
        numbers of size at most 1. In the terms of this class it is (1 − q) times what comes before, less q times what
        comes behind, plus (share − q)·X, plus the rest, all independent.
        """
        variance = (1 - q) ** 2 * self.before + q**2 * self.beyond + (self.share - q) ** 2 * self.own + self.rest
        return variance * (1 + _ROUNDING)


@lru_cache(maxsize=32)
def spreads(sizes: tuple[int, ...], branching: int) -> Spreads:
    """Return how the estimates of a tree vary."""
    node = np.arange(sizes[-1])
    share, rest = np.ones(sizes[-1]), np.zeros(sizes[-1])
    levels = variances(sizes, branching)
    for level in levels[:0:-1]:
        own, total = level[node], sums(level, branching)[node // branching]
        # Within a level all nodes but the last have the same variance.
        before = (node % branching) * level[node // branching * branching]
        above = (before + share * own) / total
        rest += before + share**2 * own - above**2 * total
        share, node = above, node // branching
    own = levels[0][node]
    before = np.cumsum(levels[0])[node] - own
    beyond = levels[0].sum() - before - own
    for array in (before, own, beyond, share, rest):
        array.setflags(write=False)
    return Spreads(before=before, own=own, beyond=beyond, share=share, rest=np.maximum(rest, 0))


def largest_weight(sizes: tuple[int, ...], branching: int) -> Fraction:
    """Return the largest Σc² of an estimate of a count up to, or from, any leaf, rounded up."""
    varying = spreads(sizes, branching)
    return Fraction(float(max(varying.weights(0).max(), varying.weights(1).max())))
