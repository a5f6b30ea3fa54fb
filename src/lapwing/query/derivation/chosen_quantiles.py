"""Quantiles of a distribution that are chosen by themselves, and no counts with them.

The exponential mechanism errs by several times fewer rows than a tree of counts of the same price, from which all
quantiles follow (`mechanisms.quantile_of_counts`, `mechanisms.quantiles_of_counts`). It releases leaves in every cell
and no more than a number of rows: how far a rank may be off is known, but not what values are beside it. So there is no
interval of values. Where the number of rows is released, which by groups it is, there is no value in cells where a rank
may be off by more rows than that; elsewhere there is one in every cell, also in one without rows.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts
from lapwing.query.derivation.columns import Rationals, some
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE
from lapwing.query.derivation.noisy_trees import Places, Ranked
from lapwing.query.measures.distribution import Distribution


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenQuantiles:
    """The leaves of every cell that were chosen, a column a quantile, and then its number of rows if that is sold."""

    measure: Distribution
    noise: NoiseLaw
    released: IntArray

    def taken(self, places: Places) -> "ChosenQuantiles":
        """Return some cells, in the order of `places`."""
        return replace(self, released=self.released[places])

    def values(self, statistic: Ranked) -> Rationals:
        """Return the middle of the leaf of every cell, on a step; of an end of the data its outer step."""
        noise = self.noise
        if not isinstance(noise, QuantileOfCounts | QuantilesOfCounts) or statistic.share not in shares_of(noise):
            raise InvalidParameter("another quantile was chosen than is read; this is a bug in Lapwing")
        measure = self.measure
        chosen = self.released[:, shares_of(noise).index(statistic.share)]
        leaves = np.clip(chosen, 0, noise.points - 1).astype(np.int64)  # a noisy count beside them may be wide
        first = measure.low + leaves * measure.width
        last = (first + measure.width - 1).clip(max=measure.high)
        share = statistic.share if statistic.kind == "extreme" else None
        steps = first if share == 0 else last if share == 1 else (first + last) // 2
        few = None
        if isinstance(noise, QuantilesOfCounts) and noise.count_noise:
            few = some(self.released[:, -1] < max(1, noise.rank_error(statistic.share, INTERVAL_CONFIDENCE)))
        return Rationals(tops=steps, scale=measure.type.step, null=few)

    def ends(self, _statistic: Ranked, _chance: object) -> None:
        """Return nothing: no interval follows."""
        return


def shares_of(noise: QuantileOfCounts | QuantilesOfCounts) -> tuple[object, ...]:
    """Return the shares of which leaves were chosen, in the order of the columns."""
    return (noise.quantile,) if isinstance(noise, QuantileOfCounts) else noise.quantiles
