"""The one quantile of a distribution that a question asks for, chosen by itself.

The exponential mechanism errs by several times fewer rows than a tree of counts of the same price, from which all
quantiles follow (`mechanisms.quantile_of_counts`). It releases a leaf in every cell and nothing else: how far its rank
may be off is known, but neither how many rows there are nor what values are beside it. So there is a value in every
cell, also in one without rows, and no interval of values.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.query.derivation.columns import Rationals
from lapwing.query.derivation.noisy_trees import Places, Ranked
from lapwing.query.measures.distribution import Distribution


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenQuantiles:
    """The leaf of every cell that was chosen."""

    measure: Distribution
    leaves: IntArray
    quantile: Fraction

    def taken(self, places: Places) -> "ChosenQuantiles":
        """Return some cells, in the order of `places`."""
        return replace(self, leaves=self.leaves[places])

    def values(self, statistic: Ranked) -> Rationals:
        """Return the middle of the leaf of every cell, on a step."""
        if statistic.share != self.quantile:
            raise InvalidParameter("another quantile was chosen than is read; this is a bug in Lapwing")
        measure = self.measure
        first = measure.low + self.leaves * measure.width
        last = (first + measure.width - 1).clip(max=measure.high)
        return Rationals(tops=(first + last) // 2, scale=measure.type.step)

    def ends(self, _statistic: Ranked, _chance: object) -> None:
        """Return nothing: no interval follows."""
        return
