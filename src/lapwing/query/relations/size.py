"""How large a question may become in all: an engine plans the whole of it before it reads a row.

Expressions are bounded one by one where they are made (`expressions.expression`). Here their sum is,
over all relations that a question is made of, counted as often as an engine plans them: a planner's time and memory are
not under the engine's limits, and a question that exhausts them has been paid for.
"""

from collections.abc import Iterator
from itertools import accumulate

from sqlglot import exp

from lapwing.query.expressions.expression import Expression, require_small, weight
from lapwing.query.expressions.rows import Rows
from lapwing.query.relations.lineage import nesting_of, size_of, sources_of, tables_of
from lapwing.query.relations.relation import (
    Distinct,
    FirstGroups,
    PerUnit,
    PublicJoin,
    Relation,
    Selection,
    SharedJoin,
    Union,
    UnitJoin,
    Windowed,
    units_of_row,
)

MOST_COLUMNS = 400
MOST_RELATIONS = 100
MOST_NESTED = 20
MOST_VIEWS = 10
MOST_ROWS_PER_UNIT = 10**6
HEAVIEST_IN_ALL = 100_000
"""The most parts that an engine makes of all expressions in the relations of a question: planned in a second."""
COLUMN = 3
"""A column that is computed is printed so often: it is kept inside its bounds."""


def require_bounded_size(selection: Selection, node: exp.Expression, rows: Rows) -> None:
    """Refuse rows that are made of too much, or of which one unit may have too many."""
    relation = selection.relation
    if size_of(relation) > MOST_RELATIONS or nesting_of(relation) > MOST_NESTED:
        reason = f"Subqueries, joins and unions are more than {MOST_RELATIONS}, or more than {MOST_NESTED} deep"
        raise rows.refusal(node, reason, "Use fewer.")
    if selection.where is not None:
        with rows.pointing(node):
            require_small(selection.where)
    if any(total > HEAVIEST_IN_ALL for total in accumulate(_weights(selection))):
        reason = "All subqueries together compute more than an engine plans in a moment"
        raise rows.refusal(node, reason, "Compute fewer things from one another, or unite fewer subqueries.")
    if units_of_row(relation) > 1:  # no bound to be kept
        return
    if selection.rows_per_unit > max(MOST_ROWS_PER_UNIT, *(table.max_rows_per_unit for table in tables_of(relation))):
        reason = f"Joins and unions multiply the rows of a unit beyond {MOST_ROWS_PER_UNIT:,}"
        raise rows.refusal(node, reason, "Join on columns whose values are rarer, or fewer tables.")


def _weights(selection: Selection) -> Iterator[int]:
    if selection.where is not None:
        yield weight(selection.where)
    for value in _columns(selection.relation):
        yield COLUMN * weight(value)
    for source in sources_of(selection.relation):
        yield from _weights(source)


def _columns(relation: Relation) -> Iterator[Expression]:
    """Yield the expressions that a relation computes."""
    match relation:
        case Distinct():
            yield from relation.expressions
        case Union():
            for part in relation.parts:
                yield from part.expressions
        case PerUnit():
            yield from relation.groups
            yield from (part.argument for part in relation.aggregates if part.argument is not None)
        case Windowed():
            for window in relation.windows:
                yield from (*window.arguments, *window.partition, *(term.value for term in window.order))
        case UnitJoin():
            yield from relation.shown
            yield from (side for pair in relation.on for side in pair)
            if relation.where is not None:
                yield relation.where
        case SharedJoin():
            yield from relation.shown
            yield from (side for pair in relation.on for side in pair)
        case PublicJoin():
            yield from (left for left, _ in relation.on)
            if relation.public.where is not None:
                yield relation.public.where
        case FirstGroups():
            yield from (key.expression for key in relation.keys)
