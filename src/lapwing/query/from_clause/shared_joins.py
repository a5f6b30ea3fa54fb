"""Bind joins that let rows of different units meet: of tables of different units, or of one table not on the unit.

Guarantee:
    A row of the join is made of one row of either side and of nothing else, and belongs to the units of both. So it is
    there if and only if both rows are, and `relation` proves what follows. Both sides are what they were before they
    met: unit-local relations, or rows that have met in their turn. What is joined on, and which conditions hold, are
    functions of the pair's values. That the units of two rows differ may be asked too: it is a function of the pair as
    well, and what it leaves out are rows that belong to one unit alone.

What nobody can bound is how many rows a unit shares. So such a join is answered only where each aggregate limits what a
unit adds (`contribution_bounds_per_group`), and by sums that are truncated accordingly (`mechanisms.packing`).

Neighbours. Tables of different units have neighbours in which one unit of one of them is added or removed, with all of
its rows, in all tables of its kind. A question about both is a function of both, and moves by as much at most whichever
kind it is; so it is charged once, and one ledger bounds what is lost to units of every kind.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.mechanisms.packing import MOST_UNITS, require_solver
from lapwing.query.expressions.attempts import NAMES
from lapwing.query.expressions.rows import RowScope, TableReference, attempted
from lapwing.query.from_clause.conditions import filtered
from lapwing.query.from_clause.equalities import all_of, filtered_by_own, pairs_in_order, separated, shown_of
from lapwing.query.from_clause.scope import Input, Scope, rows_of
from lapwing.query.from_clause.unit_joins import check_names
from lapwing.query.relations.fresh_columns import fresh, with_read
from lapwing.query.relations.relation import FilteredRows, tables_of, units_of_row
from lapwing.query.relations.shared_join import SharedJoin, kinds_of_units


def bind_shared_join(
    node: exp.Expression, bound: Input, other: Input, conditions: Sequence[exp.Expression], scope: Scope
) -> Input:
    """Join rows with rows of whatever unit.

    Args:
        conditions: What stands in ON or WHERE; one of them at least is an equality between the two sides.

    Raises:
        QueryRefused: If none is, or the units of a side are rows or have parts.
    """
    rows, theirs = rows_of(bound, scope), rows_of(other, scope)
    with rows.pointing(node):
        require_solver()
    check_names(node, bound, other, rows)
    _check_units(node, bound, other, scope)
    apart = {id(part): place for part in conditions if (place := place_apart(part, bound, other, scope)) is not None}
    pairs, rest = separated([part for part in conditions if id(part) not in apart], rows, theirs)
    if not pairs:
        reason = "Rows of several people are joined on an equality of their columns"
        raise rows.refusal(
            node,
            RefusalCause.JOIN_CONDITION_NOT_SUPPORTED,
            reason,
            "Compare a column of one table with one of the other.",
        )
    other, rest = filtered_by_own(other, rest, rows, theirs)
    shown = shown_of(other)
    added = fresh("s", [value.type for value in shown], bound.selection.relation, other.selection.relation)
    added, further = with_read(added, shown)
    relation = SharedJoin(
        source=bound.selection,
        other=other.selection,
        shown=(*shown, *further.values()),
        added=(*added, *further),
        on=pairs_in_order(pairs),
        apart=tuple(sorted(set(apart.values()))),
    )
    found = replace(bound, selection=FilteredRows(relation=relation), sources=_sources(bound, other, relation))
    return replace(found, selection=filtered(found.selection, all_of(rest, rows_of(found, scope))))


def _sources(bound: Input, other: Input, relation: SharedJoin) -> tuple[TableReference, ...]:
    places, place = dict(zip(relation.shown, relation.added, strict=True)), units_of_row(relation) - 1
    theirs = (
        replace(source, columns={name: places[value] for name, value in source.columns.items()}, place=place)
        for source in other.sources
    )
    return (*bound.sources, *theirs)


def _check_units(node: exp.Expression, bound: Input, other: Input, scope: Scope) -> None:
    """Refuse units of which nothing is proven when they meet others."""
    rows = rows_of(bound, scope)
    tables = (*tables_of(bound.selection.relation), *tables_of(other.selection.relation))
    if any(table.unit_is_row for table in tables):
        name = next(table.name for table in tables if table.unit_is_row)
        reason = f"{name} protects each row by itself, so its rows are not joined with other rows"
        raise rows.refusal(
            node,
            RefusalCause.ROWS_ARE_UNITS,
            reason,
            "Ask about each table by itself.",
            "declare in the catalog whose rows they are",
        )
    if any(table.part is not None for table in scope.catalog.tables):
        reason = "The catalog divides the people into parts, so rows of several people are not joined"
        raise rows.refusal(node, RefusalCause.SHARED_ROWS_NOT_SUPPORTED, reason, "Ask about each table by itself.")
    if units_of_row(bound.selection.relation) >= MOST_UNITS:
        raise rows.refusal(
            node,
            RefusalCause.TOO_MANY_TABLES,
            f"A join brings together the rows of more than {MOST_UNITS} people",
            "Join fewer tables.",
        )
    if units_of_row(other.selection.relation) > 1:
        reason = "A subquery that joins rows of several people stands on the right of a join"
        raise rows.refusal(
            node, RefusalCause.SHARED_ROWS_NOT_SUPPORTED, reason, "Write it first, and join the other tables to it."
        )


def meet(bound: Input, other: Input, conditions: Sequence[exp.Expression], scope: Scope) -> list[exp.Expression]:
    """Return the conditions that compare a row of either side, if rows may meet on them; none otherwise."""
    pairs, rest = separated(conditions, rows_of(bound, scope), rows_of(other, scope))
    if not pairs:
        return []
    return [part for part in conditions if part not in rest or place_apart(part, bound, other, scope) is not None]


def place_apart(node: exp.Expression, bound: Input, other: Input, scope: Scope) -> int | None:
    """Return which unit of a row differs from the other row's, if that is what a condition says."""
    if type(node) is not exp.NEQ:
        return None
    rows, theirs = rows_of(bound, scope), rows_of(other, scope)
    for left, right in ((node.this, node.expression), (node.expression, node.this)):
        ours, others = _unit_named(left, rows), _unit_named(right, theirs)
        if ours is None or others is None or _unit_named(left, theirs) or _unit_named(right, rows):
            continue
        kinds, (kind,) = kinds_of_units(bound.selection.relation), kinds_of_units(other.selection.relation)
        return ours.place if kinds[ours.place] == kind else None
    return None


def _unit_named(node: exp.Expression, rows: RowScope) -> TableReference | None:
    """Return the table whose unit a node names."""
    if attempted(NAMES, rows.is_unit, node) is not True:
        return None
    return next((source for source in rows.qualified(node) if source.unit is not None), None)
