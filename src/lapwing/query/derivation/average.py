"""The mean of a column: a noisy sum over a noisy count."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import ClassVar, final

import numpy as np

from lapwing.exact.arrays import IntArray, product, total
from lapwing.query.derivation.columns import BoolArray, Rationals, Shape, some
from lapwing.query.derivation.derived import NoisyCells
from lapwing.query.derivation.intervals import Endpoints, Interval, JointMargins
from lapwing.query.derivation.node import Derived, Part
from lapwing.query.derivation.rationals import single
from lapwing.query.measures.measures import Count, Measure, Sum


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """origin + sum/count, clamped to the argument's bounds; NULL where the released count is below 1."""

    total: Sum
    count: Count
    shape: Shape = "real"

    children: ClassVar[tuple[Derived, ...]] = ()
    has_interval: ClassVar[bool] = True
    never_null: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """The released numbers that it reads itself."""
        return (self.total, self.count)

    def column(self, cells: NoisyCells) -> Rationals:
        """Return its value in every cell, as integers over the count."""
        sums, counts = cells.measures[self.total], cells.measures[self.count]
        few = counts < 1
        counts = np.where(few, 1, counts)
        low, high = (product(counts, single(bound)) for bound in self._bounds)
        tops = total(product(counts, single(self.total.origin)), sums)
        return Rationals(
            tops=np.minimum(np.maximum(tops, low), high), bottoms=counts, scale=self.total.step, null=some(few)
        )

    def interval(self, cells: NoisyCells, margins: Mapping[Measure, Fraction]) -> Interval:
        """Divide the sum's interval by the count's, over the counts that are possible: a mean is of at least one row.

        Where no count is, the mean may be anywhere inside its bounds.
        """
        # In integers over one denominator, as an operation on columns takes as long as many cells do.
        step = self.total.step
        (of_sum, sum_parts), (of_count, count_parts) = (
            fraction.as_integer_ratio() for fraction in (margins[self.total] / step, margins[self.count])
        )
        parts = lcm(sum_parts, count_parts)
        whole = single(parts)
        sums, counts = (product(cells.measures[measure], whole) for measure in (self.total, self.count))
        off, around = single(of_sum * (parts // sum_parts)), single(of_count * (parts // count_parts))
        least, most = total(sums, -off), total(sums, off)
        fewest, many = total(counts, -around), total(counts, around)
        none = (fewest if isinstance(margins, JointMargins) else many) < whole
        fewest, many = np.maximum(fewest, whole), np.maximum(many, whole)
        low, high = self._bounds
        return (
            self._end(least, np.where(least >= 0, many, fewest), none, low),
            self._end(most, np.where(most >= 0, fewest, many), none, high),
        )

    def _end(self, sums: IntArray, counts: IntArray, none: BoolArray, anywhere: int) -> Endpoints:
        """Return sums over counts from the origin, inside the bounds, and a bound where there is no count."""
        low, high = (product(counts, single(bound)) for bound in self._bounds)
        tops = total(product(counts, single(self.total.origin)), sums)
        tops = np.where(none, product(counts, single(anywhere)), np.minimum(np.maximum(tops, low), high))
        return Endpoints(numbers=Rationals(tops=tops, bottoms=counts, scale=self.total.step))

    @property
    def _bounds(self) -> tuple[int, int]:
        """The bounds of the argument in steps, which every summed argument has."""
        low, high = self.total.type.low, self.total.type.high
        if low is None or high is None:
            raise ValueError("a sum is taken over bounded values")
        return low, high
