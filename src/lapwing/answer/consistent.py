"""A made-consistent view of an answer: the nearest numbers to the released ones that can be true together.

It is post-processing of one release and costs nothing. What can be true together is said in `constraints` of the
numbers of one cell, and in `marginals` of the cells of several grouping sets: counts and sums add up to their total
where keys are exhaustive, and to at most their total elsewhere; units and distinct values are in no part more than in
the whole. `projection` finds the nearest such numbers, weighted by the inverse of the variances, which are public, and
`rounding` makes them whole. Numbers that can be true together already stay as they are, so that to do it twice changes
nothing more.

Quantiles need nothing: those of one column in one cell come from one tree, and ascend (`noisy_trees`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np

from lapwing.answer.constraints import Limit, adds_up, is_count, limits, sign
from lapwing.answer.frames import pandas_frame, polars_frame
from lapwing.answer.marginals import MarginTables
from lapwing.answer.projection import move_to_nearest
from lapwing.answer.python_values import Cell, cells
from lapwing.answer.rounding import Wholes, in_whole_numbers
from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.additive import CHOICES, NoiseLaw
from lapwing.privacy import figures
from lapwing.query.derivation.columns import Column, IndexArray
from lapwing.query.derivation.comparing import differ
from lapwing.query.derivation.derived import NoisyCells, measures_of
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan, Question

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answer.answer import Answer

_SURE: Final = 1e-6
"""The deviation of a public number, so that the others are moved, and not it."""


@final
class ConsistentAnswer:
    """The rows of an answer, adjusted so that they can be true together.

    `changed` names the columns of which some number differs from the raw answer.
    """

    def __init__(self, plan: Plan, raw: NoisyCells, adjusted_cells: NoisyCells, adjusted: Sequence[Measure]) -> None:
        self.plan = plan
        self._columns: Mapping[str, Column] = {o.name: adjusted_cells.column(o.value) for o in plan.outputs}
        moved = set(adjusted)
        self.changed: tuple[str, ...] = tuple(
            output.name
            for output in plan.outputs
            if moved & set(measures_of(output.value)) and differ(self._columns[output.name], raw.column(output.value))
        )

    @classmethod
    def of(cls, answer: "Answer", numbers: Mapping[Measure, IntArray], changed: Sequence[Measure]) -> Self:
        """Return the rows of an answer, computed from other numbers.

        Args:
            numbers: Of each measure, a number a cell, as `released_numbers` has them.
            changed: The measures with other numbers.
        """
        kept = replace(answer._released, measures=numbers).taken(answer._places_kept)
        rows = answer._with_windows(kept).taken(answer._places_shown)
        return cls(answer.plan, answer._rows, rows, changed)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return next(iter(self._columns.values())).size

    def __repr__(self) -> str:
        return f"<ConsistentAnswer: {len(self)} rows; changed {', '.join(self.changed) or 'nothing'}>"

    def _repr_html_(self) -> str:
        from lapwing.answer.presentation import show  # here: few views are shown
        from lapwing.answer.truncated_times import short_text, truncated_keys

        noisy = [output.name for output in self.plan.outputs if measures_of(output.value)]
        units = truncated_keys(self.plan)
        rows = [
            [show(value) if name in noisy else short_text(value, units.get(name)) for name, value in row.items()]
            for row in self.rows()
        ]
        caption = f"adjusted to add up; changed: {', '.join(self.changed) or 'nothing'}"
        return figures.html_table(self.columns, rows, caption=caption, numbers=noisy)

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts, as `Answer.rows` does."""
        columns = [cells(self._columns[output.name], output.value.shape) for output in self.plan.outputs]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_arrow(self) -> "pa.Table":
        """Return a PyArrow table."""
        from lapwing.answer.arrow import arrow_table  # here: Arrow takes longer to load than most questions to answer

        return arrow_table(self.plan.outputs, self._columns, {})

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of `to_arrow`, if pandas is installed."""
        return pandas_frame(self.to_arrow())

    def to_polars(self) -> Any:
        """Return a polars DataFrame of `to_arrow`, if polars is installed."""
        return polars_frame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the view to anything that reads Arrow (polars, pandas, DuckDB)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def released_numbers(answer: "Answer") -> Mapping[Measure, IntArray]:
    """Return the released integers of each measure, of all cells, also those that are not shown."""
    return answer._released.measures


def adjusted_numbers(
    question: Question, measures: Mapping[Measure, IntArray], mechanisms: Mapping[Measure, NoiseLaw]
) -> tuple[Mapping[Measure, IntArray], tuple[Measure, ...]]:
    """Return released integers as `adjusted` makes them, and chosen values as they are: they have no noise."""
    if any(mechanisms[measure].name in CHOICES for measure in measures):
        return measures, ()
    deviations = {measure: mechanisms[measure].standard_deviation or _SURE for measure in measures}
    return adjusted(question, measures, deviations)


def adjusted(
    question: Question, measures: Mapping[Measure, IntArray], deviations: Mapping[Measure, float]
) -> tuple[Mapping[Measure, IntArray], tuple[Measure, ...]]:
    """Return released integers moved to where they can be true together, and the measures that moved.

    Args:
        measures: A number a cell of the question, of all its cells.
        deviations: Their noise's standard deviations.

    Raises:
        InvalidParameter: For an answer that is made of others.
    """
    if not question.measures and not question.keys:
        reason = "A result that is computed from others has no consistent view"
        raise InvalidParameter(f"{reason}; take `consistent()` of each of its `sources`.")
    constraints = limits(tuple(measures))
    if question.sets and not question.combined:  # which are not margins of tables that hold every combination
        nearest = _all(question, measures, deviations, constraints)
    else:
        nearest = _each_cell(measures, deviations, constraints)
    return nearest, tuple(m for m, values in measures.items() if (nearest[m] != values).any())


def _each_cell(
    measures: Mapping[Measure, IntArray], deviations: Mapping[Measure, float], constraints: Sequence[Limit]
) -> Mapping[Measure, IntArray]:
    """Move the numbers of every cell by itself, in those cells where some limit fails."""
    failing = np.flatnonzero(np.any([limit.fails(measures) for limit in constraints], axis=0))
    if not failing.size:
        return measures
    tables = {m: [values[failing].astype(np.float64)] for m, values in measures.items()}
    move_to_nearest(tables, deviations, constraints, None)
    wholes = in_whole_numbers(tables, constraints, None)
    return {m: _with(values, failing, wholes[m][0]) for m, values in measures.items()}


def _with(values: IntArray, places: IndexArray, new: IntArray) -> IntArray:
    changed = values.astype(object) if new.dtype == object else values.copy()
    changed[places] = new
    return changed


def _all(
    question: Question,
    measures: Mapping[Measure, IntArray],
    deviations: Mapping[Measure, float],
    constraints: Sequence[Limit],
) -> Mapping[Measure, IntArray]:
    """Move the numbers of several grouping sets together."""
    groupings = MarginTables.of(question)
    released: Wholes = {measure: groupings.split(values) for measure, values in measures.items()}
    if can_be_true(released, constraints, groupings):
        return measures
    tables = {m: [part.astype(np.float64) for part in parts] for m, parts in released.items()}
    move_to_nearest(tables, deviations, constraints, groupings)
    wholes = in_whole_numbers(tables, constraints, groupings)
    return {m: np.concatenate([part.reshape(-1) for part in parts]) for m, parts in wholes.items()}


def can_be_true(numbers: Wholes, constraints: Sequence[Limit], groupings: MarginTables) -> bool:
    """Tell whether all conditions hold, exactly."""
    for place in range(len(groupings.sets)):
        here = {measure: parts[place] for measure, parts in numbers.items()}
        if any(limit.fails(here).any() for limit in constraints):
            return False
    return all(_agree(measure, parts, groupings) for measure, parts in numbers.items())


def _agree(measure: Measure, parts: Sequence[IntArray], groupings: MarginTables) -> bool:
    """Tell whether the numbers of a measure in all sets can be true together."""
    if not adds_up(measure):
        return not is_count(measure) or all((parts[part] <= parts[whole]).all() for part, whole in groupings.within)
    ties = [(a, b, keys, 0) for tied in groupings.tied for a, b, keys in tied.ties]
    beneath = [(a, b, groupings.sets[a] & groupings.sets[b], sign(measure)) for a, b in groupings.beneath]
    for one, other, keys, side in (*ties, *(beneath if sign(measure) else ())):
        common = groupings.sets[one] if keys is None else keys
        first, second = (groupings.summed_to(parts[place], place, common) for place in (one, other))
        if (side * first > side * second if side else first != second).any():
            return False
    return True
