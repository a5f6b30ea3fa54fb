"""The mean over a known number of people: a noisy sum over a constant.

Guarantee:
    Dividing a released sum by a constant of the catalog is post-processing. The constant is never compared with the
    data, so that the guarantee does not depend on whether it is right. Under replace_one the sum of one row a person
    moves by the width of the bounds at most, wherever its origin is (`query.stability`), and nothing else is released:
    where nobody joins or leaves, their number is the same for all neighbours and needs no noise.

If n people have a row, and the catalog says N, what is estimated is origin + (mean − origin)·n/N, where the origin is
the middle of the bounds: a mean that is moved from or to the middle by the share that N is wrong by. Its interval is
for that number, not for the mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from lapwing.query.derivation import rationals
from lapwing.query.derivation.columns import Rationals, Shape, constant
from lapwing.query.derivation.derived import MeasureValue, NoisyCells
from lapwing.query.derivation.intervals import Endpoints, Interval
from lapwing.query.derivation.node import Derived, Part
from lapwing.query.measures.measures import Measure, Sum


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMean:
    """origin + sum/people, clamped to the argument's bounds."""

    total: Sum
    people: int
    shape: Shape = "real"

    children: ClassVar[tuple[Derived, ...]] = ()
    has_interval: ClassVar[bool] = True
    never_null: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Part, ...]:
        """The released numbers that it reads itself."""
        return (self.total,)

    def column(self, cells: NoisyCells) -> Rationals:
        """Return its value in every cell."""
        return self._mean(MeasureValue(measure=self.total).column(cells))

    def interval(self, cells: NoisyCells, margins: Mapping[Measure, Fraction]) -> Interval:
        """Return where the true value is in every cell, if as many people have a row as the catalog says."""
        low, high = MeasureValue(measure=self.total).interval(cells, margins)
        return Endpoints(numbers=self._mean(low.numbers)), Endpoints(numbers=self._mean(high.numbers))

    def half_width(self, of_sum: Fraction) -> Fraction:
        """Return the half-width that follows from that of the sum."""
        return of_sum / self.people

    def of_sum(self, half_width: Fraction) -> Fraction:
        """Return the half-width of the sum that one of the mean asks for."""
        return half_width * self.people

    def _mean(self, sums: Rationals) -> Rationals:
        step, (low, high) = self.total.step, self.total.type.interval()
        if low is None or high is None:
            raise ValueError("a sum is taken over bounded values")
        around = rationals.multiply(sums, constant(Fraction(1, self.people)))
        mean = rationals.add(around, constant(self.total.origin * step))
        return rationals.within(mean, constant(low), constant(high))
