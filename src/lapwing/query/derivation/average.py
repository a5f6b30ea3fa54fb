"""The mean of a column: a noisy sum over a noisy count."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from lapwing.exact.arrays import product, total
from lapwing.query.derivation import intervals, rationals
from lapwing.query.derivation.columns import Rationals, Shape, constant, some
from lapwing.query.derivation.derived import Derived, MeasureValue, NoisyCells, Part
from lapwing.query.derivation.intervals import Ends, Interval, JointMargins
from lapwing.query.derivation.rationals import single
from lapwing.query.measures import Count, Measure, Sum

_ONE = constant(Fraction(1))


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
        fewest, most = (end.numbers for end in MeasureValue(measure=self.count).interval(cells, margins))
        sums = MeasureValue(measure=self.total).interval(cells, margins)
        none = rationals.compared(operator.lt, fewest if isinstance(margins, JointMargins) else most, _ONE)
        counts = (Ends(numbers=rationals.greater(fewest, _ONE)), Ends(numbers=rationals.greater(most, _ONE)))
        ratios = intervals.divide(sums, counts)
        step = self.total.step
        low, high = (constant(bound * step) for bound in self._bounds)
        origin = constant(self.total.origin * step)
        first, last = (rationals.within(rationals.add(origin, ratio.numbers), low, high) for ratio in ratios)
        return (Ends(numbers=rationals.choose(none, low, first)), Ends(numbers=rationals.choose(none, high, last)))

    @property
    def _bounds(self) -> tuple[int, int]:
        """The bounds of the argument in steps, which every summed argument has."""
        low, high = self.total.type.low, self.total.type.high
        if low is None or high is None:
            raise ValueError("a sum is taken over bounded values")
        return low, high
