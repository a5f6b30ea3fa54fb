"""What the numbers of one cell must be to be true together.

- a count is at least 0;
- COUNT(x), COUNT(DISTINCT x) and COUNT(DISTINCT unit) are at most COUNT(*): every row counts once, every value and
  every unit has a row; COUNT(DISTINCT x) is at most COUNT(x), and units with a condition are at most all units;
- the sum of x − c over n rows is between n·(low − c) and n·(high − c). Where only the number of all rows is known and
  x may be NULL, n is between 0 and it. Where no number of rows is known, a sum of what is never negative is at least 0.

A rule applies to the measures that were released; a whole that was not asked for limits nothing. A count of which each
unit's part is clamped has the first rules if the clamp holds 0, for then no part exceeds its rows; as its whole, one
with the same clamp counts, too. A sum of clamped parts stays as it is, as does a distribution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray, product
from lapwing.query.derivation.rationals import single
from lapwing.query.expressions.conversion import nullable
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.measures.set_counts import CountOfSets


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A measure is at least, or at most, `factor` times another; without another, 0."""

    measure: Measure
    least: bool
    factor: int = 0
    whole: Measure | None = None

    def bound(self, values: Mapping[Measure, IntArray]) -> IntArray:
        """Return what the measure is bounded by in every cell."""
        return single(0) if self.whole is None else product(values[self.whole], single(self.factor))

    def fails(self, values: Mapping[Measure, IntArray]) -> NDArray[np.bool_]:
        """Tell in which cells it does not hold."""
        number, bound = values[self.measure], self.bound(values)
        fails: NDArray[np.bool_] = np.asarray(number < bound if self.least else number > bound, dtype=np.bool_)
        return fails


def limits(measures: Sequence[Measure]) -> tuple[Limit, ...]:
    """Return the limits of released measures, those on wholes before those on their parts."""
    released = frozenset(measures)
    ordered = sorted(released, key=lambda measure: (len(_wholes(measure)), str(measure)))
    counts = [measure for measure in ordered if is_count(measure)]
    sums = [measure for measure in ordered if is_sum(measure)]
    return (
        *(limit for m in counts for limit in _of_count(m, released)),
        *(limit for m in sums for limit in _of_sum(m, released)),
    )


def is_count(measure: Measure) -> bool:
    """Tell whether a measure is never negative, and no larger in a part than in its whole."""
    match measure:
        case Count(clamp=clamp):
            return clamp is None or clamp[0] <= 0 <= clamp[1]
        case CountUnits() | CountDistinct():
            return True
        case CountOfSets(row_range=(low, _)):
            return low == 0
        case _:
            return False


def is_sum(measure: Measure) -> bool:
    """Tell whether a measure is a sum over rows of values between bounds."""
    return isinstance(measure, Sum) and measure.clamp is None


def adds_up(measure: Measure) -> bool:
    """Tell whether a measure of disjoint sets of rows together is the sum of theirs: units and values may recur."""
    return is_sum(measure) or (isinstance(measure, Count) and measure.clamp is None)


def sign(measure: Measure) -> int:
    """Return 1 if a measure that adds up is never below 0, −1 if it is never above, else 0."""
    if not isinstance(measure, Sum):
        return 1
    least, most = _range(measure)
    return 1 if least >= 0 else -1 if most <= 0 else 0


def _of_count(measure: Measure, released: frozenset[Measure]) -> tuple[Limit, ...]:
    wholes = [whole for whole in _wholes(measure) if whole in released]
    return (
        Limit(measure=measure, least=True),
        *(Limit(measure=measure, least=False, factor=1, whole=whole) for whole in wholes),
    )


def _wholes(measure: Measure) -> tuple[Measure, ...]:
    """Return the measures that are nowhere less than a count."""
    match measure:
        case Count(argument=None, clamp=None):
            return ()
        case Count(argument=argument, clamp=clamp) if argument is not None and clamp is not None:
            return (Count(), Count(argument=argument), Count(clamp=clamp))
        case CountUnits(where=where) if where is not None:
            return (Count(), CountUnits())
        case CountDistinct(argument=argument):
            return (Count(), Count(argument=argument))
        case _:
            return (Count(),)


def _of_sum(measure: Measure, released: frozenset[Measure]) -> tuple[Limit, ...]:
    if not isinstance(measure, Sum):
        return ()
    least, most = _range(measure)
    rows: Measure = Count(argument=measure.argument)
    if rows not in released:
        rows = Count()
        if nullable(measure.argument):
            least, most = min(least, 0), max(most, 0)
    if rows in released:
        ends = ((True, least), (False, most))
        return tuple(Limit(measure=measure, least=end, factor=factor, whole=rows) for end, factor in ends)
    side = sign(measure)
    return (Limit(measure=measure, least=side > 0),) if side else ()


def _range(measure: Sum) -> tuple[int, int]:
    """Return the least and the greatest integer that a row of a sum adds."""
    low, high = measure.type.low, measure.type.high
    if low is None or high is None:
        raise ValueError("a sum is taken over bounded values")
    return low - measure.origin, high - measure.origin
