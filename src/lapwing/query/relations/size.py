"""How large a question may become in all: an engine plans the whole of it before it reads a row.

Each expression is bounded where it is made (`expressions.expression`). Here the sum over all relations of a question is
bounded, each counted as often as an engine plans it: the engine's limits do not cover its planner, and a question that
exhausts the planner has been paid for by then.
"""

from collections.abc import Iterator
from itertools import accumulate

from sqlglot import exp

from lapwing.catalog.protection import noun_of
from lapwing.errors import RefusalCause
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.weight import require_small, weight
from lapwing.query.relations.node import Relation
from lapwing.query.relations.relation import FilteredRows, tables_of, units_of_row

MOST_COLUMNS = 400
MOST_RELATIONS = 100
MOST_NESTED = 20
MOST_VIEWS = 10
MOST_ROWS_PER_UNIT = 10**6
HEAVIEST_IN_ALL = 100_000
"""The most parts that an engine makes of all expressions in the relations of a question: planned in a second."""
COLUMN = 3
"""A column that is computed is printed so often: it is kept inside its bounds."""


def require_bounded_size(selection: FilteredRows, node: exp.Expression, rows: RowScope) -> None:
    """Refuse rows that are made of too much, or of which one unit may have too many."""
    relation = selection.relation
    if _size(relation) > MOST_RELATIONS or _nesting(relation) > MOST_NESTED:
        reason = f"Subqueries, joins and unions are more than {MOST_RELATIONS}, or more than {MOST_NESTED} deep"
        raise rows.refusal(node, RefusalCause.QUERY_TOO_COMPLEX, reason, "Use fewer.")
    if selection.where is not None:
        with rows.pointing(node):
            require_small(selection.where)
    if any(total > HEAVIEST_IN_ALL for total in accumulate(_weights(selection))):
        reason = "All subqueries together compute more than an engine plans in a moment"
        raise rows.refusal(
            node,
            RefusalCause.QUERY_TOO_COMPLEX,
            reason,
            "Compute fewer things from one another, or unite fewer subqueries.",
        )
    if units_of_row(relation) > 1:  # no bound to be kept
        return
    if selection.rows_per_unit > max(MOST_ROWS_PER_UNIT, *(table.max_rows_per_unit for table in tables_of(relation))):
        reason = f"Joins and unions make more than {MOST_ROWS_PER_UNIT:,} rows of one {noun_of(tables_of(relation))}"
        raise rows.refusal(
            node, RefusalCause.QUERY_TOO_COMPLEX, reason, "Join on columns whose values are rarer, or fewer tables."
        )


def _size(relation: Relation) -> int:
    """Return of how many relations a relation is made, itself included."""
    return 1 + sum(_size(source.relation) for source in relation.sources)


def _nesting(relation: Relation) -> int:
    """Return how many relations deep a relation is nested, itself included."""
    return 1 + max((_nesting(source.relation) for source in relation.sources), default=0)


def _weights(selection: FilteredRows) -> Iterator[int]:
    relation = selection.relation
    if selection.where is not None:
        yield weight(selection.where)
    for values in relation.computed:
        yield from (COLUMN * weight(value) for value in values)
    if relation.public is not None and relation.public.where is not None:
        yield COLUMN * weight(relation.public.where)
    for source in relation.sources:
        yield from _weights(source)
