"""What to say of a question that will disappoint, before it is paid and beside its answer: functions of its plan alone.

A verdict says what is to be expected and what to write instead. None is a number from data.
"""

from typing import Final

from lapwing.query.derivation.derived import measures_of, parts_of
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation, columns_of
from lapwing.query.measures import Count, Sum
from lapwing.query.plan import Plan

WIDE: Final = 1_000_000
"""Between implied bounds: values that a formula can have in theory, and hardly anybody's row has."""
MANY: Final = 5_000
"""Cells of an answer."""
MANY_ROWS: Final = 50
"""Rows of a unit, for all of which there is noise."""
CHOSEN: Final = frozenset({"case", "greatest", "least"})
"""Functions by which a question keeps its values within bounds of its own."""


def verdicts(plan: Plan) -> tuple[str, ...]:
    """Return the verdicts on a question."""
    return (*_on_bounds(plan), *_on_rows(plan), *_on_chosen_rows(plan), *_on_cells(plan))


def _on_bounds(plan: Plan) -> tuple[str, ...]:
    """Speak of sums of formulas of columns without bounds, such as the days between two dates."""
    bounded = frozenset(column.name for table in plan.question.tables for column in table.columns if column.bounded)
    notes = []
    for output in plan.outputs:
        for measure in measures_of(output.value):
            if isinstance(measure, Sum) and measure.clamp is None and _is_unbounded(measure.argument, bounded):
                low, high = measure.row_range
                if (high - low) * measure.step >= WIDE:
                    ends = [f"{float((end + measure.origin) * measure.step):,.10g}" for end in (low, high)]
                    notes.append(
                        f"{output.name} has noise for values from {' to '.join(ends)}, as the catalog has no bounds "
                        "for what it is made of: likely too noisy to use. Write what is plausible, as in "
                        "AVG(x, contribution_bounds_per_row => (0, 40))"
                    )
    return tuple(dict.fromkeys(notes))


def _is_unbounded(argument: Expression, bounded: frozenset[str]) -> bool:
    """Tell whether a formula rests on a column without bounds, and does not keep its values within some of its own."""
    chosen = isinstance(argument, Operation) and argument.function in CHOSEN
    return not isinstance(argument, ColumnReference) and not chosen and not columns_of(argument) <= bounded


def _on_rows(plan: Plan) -> tuple[str, ...]:
    """Speak of noise for many rows of one unit, which is as much smaller as the rows are fewer (`stability`)."""
    question = plan.question
    rows = question.selection.rows_per_unit if question.units_of_row == 1 else 0
    if rows < MANY_ROWS or not any(isinstance(m, Count | Sum) and m.clamp is None for m in question.measures):
        return ()
    fewer = rows // 10
    return (
        f"the noise is for {rows:,} rows of one unit, each at its bound. If units with so many are rare, SELECT WITH "
        f"DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {fewer}) … makes it a tenth and leaves out their other "
        "rows; or say what a unit adds to a cell at most: SUM(x, contribution_bounds_per_group => (0, 40))",
    )


def _on_chosen_rows(plan: Plan) -> tuple[str, ...]:
    """Speak of the winner's curse: among noisy numbers the greatest are rather too great."""
    if plan.limit is None or not any(parts_of(term.value) for term in plan.order):
        return ()
    return (
        "the rows were chosen by noisy numbers: the first lie rather beyond their true values, and their intervals "
        "cover less often than they say",
    )


def _on_cells(plan: Plan) -> tuple[str, ...]:
    cells = plan.question.cells
    if cells is None or cells < MANY:
        return ()
    return (
        f"the answer has {cells:,} cells with noise of their own, and where few people are in each it is little else: "
        "filter the keys, or group by something coarser",
    )
