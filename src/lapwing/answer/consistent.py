"""A made-consistent view of an answer: the released numbers moved to where they can be true together.

It is post-processing of one release, in each row by itself, and costs nothing. The rules, in this order:

- a count is at least 0;
- COUNT(x), COUNT(DISTINCT x) and COUNT(DISTINCT unit) are at most COUNT(*): every row counts once, every value and
  every unit has a row; COUNT(DISTINCT x) is at most COUNT(x), and units with a condition are at most all units;
- the sum of x − c over n rows is between n·(low − c) and n·(high − c). Where only the number of all rows is known and
  x may be NULL, n is between 0 and it.

A rule applies to the measures that were released; a whole that was not asked for limits nothing. A count of which each
unit's part is clamped has the first rules if the clamp holds 0, for then no part exceeds its rows; as its whole, one
with the same clamp counts, too. A sum of clamped parts stays as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np
import pyarrow as pa

from lapwing.answer.showing import Cell, arrow, cells
from lapwing.exact.arrays import IntArray
from lapwing.query.columns import Column, differ
from lapwing.query.conversion import nullable
from lapwing.query.derived import measures_of
from lapwing.query.frame import Frame, column
from lapwing.query.integers import product, single
from lapwing.query.measures import Count, CountDistinct, CountUnits, Measure, Sum
from lapwing.query.plan import Plan


@final
class ConsistentAnswer:
    """The rows of an answer, adjusted so that they can be true together.

    `changed` names the columns of which some number differs from the raw answer.
    """

    def __init__(
        self, plan: Plan, raw: Frame, measures: Mapping[Measure, IntArray], adjusted: Sequence[Measure]
    ) -> None:
        self.plan = plan
        frame = replace(raw, measures=measures)
        self._columns: Mapping[str, Column] = {o.name: column(o.value, frame) for o in plan.outputs}
        moved = set(adjusted)
        self.changed: tuple[str, ...] = tuple(
            output.name
            for output in plan.outputs
            if moved & set(measures_of(output.value)) and differ(self._columns[output.name], column(output.value, raw))
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return next(iter(self._columns.values())).size

    def __repr__(self) -> str:
        return f"<ConsistentAnswer: {len(self)} rows; changed {', '.join(self.changed) or 'nothing'}>"

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts, as `Answer.rows` does."""
        shown = [cells(self._columns[output.name], output.value.shape) for output in self.plan.outputs]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*shown, strict=True)]

    def to_arrow(self) -> pa.Table:
        """Return a PyArrow table."""
        return pa.table({o.name: arrow(self._columns[o.name], o.value.shape) for o in self.plan.outputs})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the view to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def adjusted(measures: Mapping[Measure, IntArray]) -> tuple[Mapping[Measure, IntArray], tuple[Measure, ...]]:
    """Return released integers moved to where they can be true together, and the measures that moved."""
    found = dict(measures)
    counts = [measure for measure in measures if _is_at_most_rows(measure)]
    for measure in sorted(counts, key=_depth):  # wholes before their parts
        found[measure] = np.maximum(found[measure], 0)
        for whole in _wholes(measure):
            if whole in found:
                found[measure] = np.minimum(found[measure], found[whole])
    for total in measures:
        if isinstance(total, Sum) and total.clamp is None:
            found[total] = _sum_within(total, measures[total], found)
    return found, tuple(m for m, values in measures.items() if (found[m] != values).any())


def _is_at_most_rows(measure: Measure) -> bool:
    match measure:
        case Count(clamp=clamp):
            return clamp is None or clamp[0] <= 0 <= clamp[1]
        case CountUnits() | CountDistinct():
            return True
        case _:
            return False


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


def _depth(measure: Measure) -> int:
    return len(_wholes(measure))


def _sum_within(measure: Sum, values: IntArray, counts: Mapping[Measure, IntArray]) -> IntArray:
    low, high = measure.type.low, measure.type.high
    if low is None or high is None:
        return values
    least, most = low - measure.origin, high - measure.origin
    rows = counts.get(Count(argument=measure.argument))
    if rows is None:
        rows = counts.get(Count())
        if nullable(measure.argument):
            least, most = min(least, 0), max(most, 0)
    if rows is None:
        return values
    bounds = [product(rows, single(bound)) for bound in (least, most)]
    result: IntArray = np.minimum(np.maximum(values, bounds[0]), bounds[1])
    return result
