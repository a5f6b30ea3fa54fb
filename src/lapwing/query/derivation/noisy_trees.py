"""Quantiles, least and greatest values, and their intervals, from the released nodes of a distribution.

Everything is post-processing of noisy integers, for all cells at once, in floating point. Leaves are numbered from 0;
F(v) is the number of rows up to leaf v, n = F(last), and F̂ and n̂ their estimates (`mechanisms.trees`).

Values. F̂ may fall. So ranks are read off G, the mean of its largest value so far and its least value from there on,
kept between 0 and n̂: it never falls, and where |F̂ − F| ≤ e everywhere, |G − F| ≤ e too. The row of rank t is in the
first leaf with G ≥ t; within a leaf of several steps the rows are taken to be spread evenly. A quantile is of rank
⌈q·n̂⌉, or between two ranks around q·(n̂ − 1), as in SQL, so that without noise it is SQL's wherever a leaf is one step.
Quantiles ascend with q. There is none where n̂ < 1.

Intervals. Let e(v) bound the error of A(v) = F̂(v) − q·n̂ at one leaf v, with probability 1 − β/2 to either side. Any
definition of a quantile lies between the rows of ranks i > q·n − q and j < q·n + 2 − q, in leaves a ≤ b. The first has
F(a) ≥ i, so that A(a) ≥ −q − e(a) with probability 1 − β/2; the second has F(b − 1) ≤ j − 1, so that
A(b − 1) ≤ 1 − q + e(b − 1) or b = 0 with probability 1 − β/2. So from the first leaf where A ≥ −q − e to the last one
whose predecessor has A ≤ 1 − q + e, all values of a quantile are covered with probability 1 − β, whatever the data: two
fixed points are looked at, not all. It holds the released value, as G(v) ≥ t > q·n̂ − q means that F̂ ≥ t somewhere up to
v, and G(v − 1) < t < q·n̂ + 2 − q that F̂ < t somewhere from v − 1 on, and e ≥ 1.

Extremes. The least row is in leaf a with F(a − 1) = 0. So F̂(a − 1) ≤ r(a − 1) or a = 0 with probability 0.95, where r
bounds the error to one side, and MIN is the start of the leaf after the last one with F̂ ≤ r: it is below all rows, but
for the width of a leaf, with probability 0.05 at most, and about r rows are below it. MAX is its mirror image. Neither
passes the median, which it is where there are few rows.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final, Literal, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.additive import QUANTILE, QUANTILES, NoiseLaw
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.mechanisms.trees import Floats, consistent, largest_weight, spreads
from lapwing.query.derivation.columns import Rationals, some
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE
from lapwing.query.measures.distribution import Distribution

_FINE: Final = 1 << 16
"""Estimated counts are rounded to this part of a row."""
_BETWEEN: Final = 10**6
"""Values between two steps are rounded to this part of a step."""
_CLOSE: Final = 1e-9
_AN_OCTAVE: Final = 8
"""Weights are rounded up to so many values between one power of two and the next, to have few bounds to compute."""
_LEAST: Final = 2.0**-6
"""Smaller weights, down to 0 for what is estimated to be nothing, are rounded up to this."""

Places = NDArray[np.int64]
RankKind = Literal["discrete", "continuous", "extreme"]


class Ranked(Protocol):
    """What is read off a distribution: the share of the rows up to it, and how (`ranked_values.OrderStatistic`)."""

    @property
    def share(self) -> Fraction:
        """The share of the rows up to it."""

    @property
    def kind(self) -> RankKind:
        """Whether it is the value of a row, between two, or the outermost that is seen through the noise."""


class Ranks(Protocol):
    """What order statistics of every cell are read off."""

    def taken(self, places: Places) -> "Ranks":
        """Return some cells, in the order of `places`."""

    def values(self, statistic: Ranked) -> Rationals:
        """Return an order statistic of every cell."""

    def ends(self, statistic: Ranked, chance: Fraction) -> tuple[Rationals, Rationals] | None:
        """Return an interval in every cell that misses the true value with at most this chance; None: none follows."""


def ranks_of(measure: Distribution, noise: NoiseLaw, released: IntArray) -> Ranks:
    """Return what is known of a distribution, from what was released of it, a row of the array a cell."""
    if noise.name in (QUANTILE, QUANTILES):
        from lapwing.query.derivation.chosen_quantiles import ChosenQuantiles  # here: most answers have no quantile

        return ChosenQuantiles(measure=measure, noise=noise, released=released)
    return NoisyTrees.of(measure, noise, released)


@final
@dataclass(frozen=True, kw_only=True, eq=False)  # without slots, for what is computed once
class NoisyTrees:
    """The estimated numbers of rows up to each leaf, a row of the array a cell, and the noise they come from."""

    measure: Distribution
    noise: NoiseLaw
    up_to: Floats

    @classmethod
    def of(cls, measure: Distribution, noise: NoiseLaw, nodes: IntArray) -> Self:
        """Return the trees of released nodes, a row of the array a cell."""
        levels = np.split(nodes, np.cumsum(measure.sizes)[:-1], axis=-1)
        up_to = np.cumsum(consistent(levels, measure.branching), axis=-1)
        return cls(measure=measure, noise=noise, up_to=np.round(up_to * _FINE) / _FINE)

    def taken(self, places: Places) -> "Ranks":
        """Return some cells, in the order of `places`."""
        return replace(self, up_to=self.up_to[places])

    @property
    def totals(self) -> Floats:
        """The estimated number of rows of each cell."""
        return self.up_to[:, -1]

    # ---- values ------------------------------------------------------------------------------------------------------

    def values(self, statistic: Ranked) -> Rationals:
        """Return an order statistic of every cell; NULL where the estimated number of rows is below 1."""
        few, share, kind = self.totals < 1, statistic.share, statistic.kind
        if kind == "extreme":
            steps = self._edge(self._extreme(share), upper=share == 1)
            return Rationals(tops=steps, scale=self.measure.type.step, null=some(few))
        ranks = np.maximum(self.totals, 1)
        if kind == "discrete":
            rank = np.clip(np.ceil(float(share) * ranks - _CLOSE), 1, ranks)
            steps = np.floor(self._at(rank) + 0.5).astype(np.int64)
            return Rationals(tops=steps + self.measure.low, scale=self.measure.type.step, null=some(few))
        place = float(share) * (ranks - 1)
        before = np.floor(place + _CLOSE)
        first, second = (self._at(np.minimum(before + more, ranks)) for more in (1, 2))
        between = first + np.maximum(place - before, 0) * (second - first)
        fine = np.floor(between * _BETWEEN + 0.5).astype(np.int64)
        scale = self.measure.type.step / _BETWEEN
        return Rationals(tops=fine + self.measure.low * _BETWEEN, scale=scale, null=some(few))

    @cached_property
    def _ascending(self) -> Floats:
        """G, which never falls."""
        highest = np.maximum.accumulate(self.up_to, axis=-1)
        least = np.minimum.accumulate(self.up_to[:, ::-1], axis=-1)[:, ::-1]
        return np.clip((highest + least) / 2, 0, np.maximum(self.totals, 0)[:, None])

    def _at(self, ranks: Floats) -> Floats:
        """Return the value of the row of a rank, in steps from the lower bound."""
        ascending = self._ascending
        leaf = _first(ascending >= ranks[:, None])
        cells = np.arange(len(leaf))
        before = np.where(leaf > 0, ascending[cells, np.maximum(leaf - 1, 0)], 0.0)
        rows = np.maximum(ascending[cells, leaf] - before, 1 / _FINE)
        start, end = (self._edge(leaf, upper=upper) - self.measure.low for upper in (False, True))
        inside = np.clip((ranks - 0.5 - before) / rows, 0, 1) * (end - start + 1) - 0.5
        return np.clip(start + inside, start, end)

    def _edge(self, leaf: Places, *, upper: bool) -> Places:
        """Return the first or the last step of a leaf."""
        first = self.measure.low + leaf * self.measure.width
        return np.minimum(first + self.measure.width - 1, self.measure.high) if upper else first

    def _extreme(self, share: Fraction) -> Places:
        """Return the outermost leaf that noise lets one see, no further in than the median."""
        noise = rank_margins(self.measure, self.noise, share, 2 * (1 - INTERVAL_CONFIDENCE))
        totals, ascending = self.totals[:, None], self._ascending
        if share == 1:
            median = _first(ascending >= np.minimum((totals + 3) / 2, np.maximum(totals, 0)))
            return np.maximum(_first(totals - self.up_to <= noise), median)
        median = _first(ascending >= np.maximum((totals - 1) / 2, 0.5))
        return np.minimum(_last(self.up_to <= noise) + 1, median)

    # ---- intervals ---------------------------------------------------------------------------------------------------

    def ends(self, statistic: Ranked, chance: Fraction, strays: Floats | None = None) -> tuple[Rationals, Rationals]:
        """Return an interval in every cell that misses the true value with a probability of at most `chance`.

        Args:
            strays: How many rows more the rank may be off by, in every cell, for another reason than noise.
        """
        share = statistic.share
        q = float(share)
        margins = rank_margins(self.measure, self.noise, share, chance) + 2**-10
        margins = margins + _CLOSE * np.abs(self.up_to).max(axis=-1, keepdims=True, initial=0)
        margins = margins if strays is None else margins + strays[:, None]
        above = self.up_to - q * self.totals[:, None]
        low = _first(above >= -q - margins)
        high = _last(above[:, :-1] <= 1 - q + margins[:, :-1]) + 1
        if statistic.kind == "extreme":
            seen = self._extreme(share)
            low, high = np.minimum(low, seen), np.maximum(high, seen)
        step = self.measure.type.step
        return (
            Rationals(tops=self._edge(low, upper=False), scale=step),
            Rationals(tops=self._edge(high, upper=True), scale=step),
        )


def _first(holds: NDArray[np.bool_]) -> Places:
    """Return in each row the first place where it holds; 0 if nowhere."""
    return np.asarray(holds.argmax(axis=-1), dtype=np.int64)


def _last(holds: NDArray[np.bool_]) -> Places:
    """Return in each row the last place where it holds; −1 if nowhere."""
    if holds.shape[-1] == 0:
        return np.full(len(holds), -1)
    last = holds.shape[-1] - 1 - holds[:, ::-1].argmax(axis=-1)
    return np.where(holds.any(axis=-1), last, -1)


# ---- how far ranks stray ---------------------------------------------------------------------------------------------
# These are public facts of a tree and of the noise in its nodes. The estimate of #{x ≤ v} − q·n errs by a weighted sum
# of that noise (`mechanisms.trees`), of which `noisy_sums` bounds how large it is. The bound is for one point v and one
# q: what follows from it for a quantile needs it at two points alone, the quantile and the one before, not at all.


def rank_error(measure: Distribution, noise: NoiseLaw, confidence: Fraction, share: Fraction | None = None) -> int:
    """Return an e such that at each point v the estimate of #{x ≤ v} − q·n is within e rows, with this confidence.

    Of quantiles that were chosen (`chosen_quantiles`): that its rank is.

    Args:
        share: The q; None for any q.
    """
    if noise.name in (QUANTILE, QUANTILES):
        from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts  # here: most answers have no quantile

        if isinstance(noise, QuantilesOfCounts) and share is not None:  # of several each has a bound of its own
            return noise.rank_error(share, confidence)
        return noise.half_width(confidence)
    if share is None:
        return _bound(noise, largest_weight(measure.sizes, measure.branching), 1 - confidence)
    return int(rank_margins(measure, noise, share, 1 - confidence).max())


def rank_margins(measure: Distribution, noise: NoiseLaw, share: Fraction, tail: Fraction) -> Floats:
    """Return at each leaf an e with P(|the estimate of #{x ≤ leaf} − share·n errs by| > e) ≤ tail."""
    weights = np.maximum(spreads(measure.sizes, measure.branching).weights(float(share)), _LEAST)
    steps = np.ceil(np.log2(weights) * _AN_OCTAVE).astype(np.int64)
    values, places = np.unique(steps, return_inverse=True)
    # A weight is 2^(step/8), rounded up far beyond what logarithms err by.
    rounded = [Fraction(2.0 ** (int(step) / _AN_OCTAVE)) * Fraction(1_000_001, 1_000_000) for step in values]
    bounds = [_bound(noise, weight, tail) for weight in rounded]
    margins: Floats = np.array(bounds, dtype=np.float64)[places]
    return margins


@lru_cache(maxsize=4096)
def _bound(noise: NoiseLaw, weight: Fraction, tail: Fraction) -> int:
    return sum_half_width(noise, weight, tail)
