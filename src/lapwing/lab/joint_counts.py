"""The noise of several counts of the same rows that one query asks for, in a `pure` ledger.

Derivation. Each of d counts with a noise of its own has scale d/ε. Lapwing measures the number of rows N instead, and
for each count the sum of x − ½. Here x is 1 in the rows that are counted and 0 in the others. A count is its sum and
N/2. One row moves N by 1 and each sum by ½. Let N get the part p of ε, and each sum (1 − p)/d. Then N/2 has scale
1/(2pε), and a sum has d/(2(1 − p)ε). The variance of a count is least at p = 1/(1 + d^(2/3)). For many counts that
halves the noise. Nearly all of it is a count's own. All share the noise of N/2 (`docs/theory/noise.md`, "Several
numbers of the same rows").
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms import DiscreteLaplace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointCountNoise:
    """The noise of three or more counts of one query, which each somebody changes by one.

    Args:
        count: How many counts.
        epsilon: The cost of all counts together.
    """

    count: int
    epsilon: Fraction

    @property
    def laws(self) -> tuple[DiscreteLaplace, DiscreteLaplace]:
        """The noise of each sum and the noise of N, in halves of a row."""
        part = Fraction(1 / (1 + self.count ** (2 / 3)))
        own, common = self.count / ((1 - part) * self.epsilon), 1 / (part * self.epsilon)
        return DiscreteLaplace(scale=own), DiscreteLaplace(scale=common)

    @property
    def scale(self) -> float:
        """The root of the sum of the squared scales, in rows."""
        return sqrt(sum(float(law.scale) ** 2 for law in self.laws)) / 2

    @property
    def own(self) -> float:
        """The standard deviation of what no other count has; every second number is rounded by ½."""
        return sqrt(self.laws[0].standard_deviation ** 2 / 4 + 1 / 8)

    @property
    def common(self) -> float:
        """The standard deviation of what all counts have."""
        return self.laws[1].standard_deviation / 2

    @property
    def standard_deviation(self) -> float:
        """Of the noise of a count."""
        return sqrt(self.own**2 + self.common**2)

    def release(self, counts: Integers) -> Integers:
        """Return noisy counts, a row a count, a column a query."""
        own, common = self.laws
        halves = own.release(2 * counts) + common.release(np.zeros((1, counts.shape[1]), dtype=np.int64))
        noisy: Integers = np.rint(np.asarray(halves, dtype=np.float64) / 2).astype(np.int64)
        return noisy

    def within(self, reach: int) -> float:
        """Return how likely a count errs by `reach` at most; ends between two numbers are rounded either way."""
        own, common = (float(law.scale) for law in self.laws)
        k = np.arange(-ceil(40 * common), ceil(40 * common) + 1)
        r = exp(-1 / common)
        chances = (1 - r) / (1 + r) * np.exp(-np.abs(k) / common)
        inner, outer = (_below(m - k, own) - _below(-m - 1 - k, own) for m in (2 * reach, 2 * reach + 1))
        return float(chances @ (inner + outer)) / 2


def _below(n: Integers, scale: float) -> Floats:
    """Return P(X ≤ n) of a discrete Laplace number."""
    tail = np.exp(-np.maximum(n + 1, -n) / scale) / (1 + exp(-1 / scale))
    chance: Floats = np.where(n >= 0, 1 - tail, tail)
    return chance
