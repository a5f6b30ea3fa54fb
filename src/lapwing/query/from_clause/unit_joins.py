"""Bind joins of protected rows with protected rows of the same units: on the privacy unit, and further conditions.

What is proven of the joined rows stands with the node (`relations.unit_join`). Rows have a unit always, so that NOT IN
leaves out exactly the units of the other side.

The question has to say that the rows are of one unit: by the unit, or by a key that the catalog links, which names the
unit as well, or a reference (`identity`). Either way, the engine compares the units.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Final

from sqlglot import exp

from lapwing.catalog.protection import NOT_THE_SAME_PEOPLE, noun_of
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import logic
from lapwing.query.expressions.as_read import as_read
from lapwing.query.expressions.attempts import NAMES
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.rows import RowScope, TableReference, attempted
from lapwing.query.expressions.types import BOOLEAN
from lapwing.query.from_clause.conditions import conjunction, filtered
from lapwing.query.from_clause.equalities import (
    Pairs,
    all_of,
    column_called,
    equal,
    filtered_by_own,
    pairs_in_order,
    separated,
    shown_of,
    sides_alike,
)
from lapwing.query.from_clause.scope import Input, Scope, rows_of
from lapwing.query.relations.fresh_columns import fresh, with_read
from lapwing.query.relations.identity import Origin, at_most_one, names_unit, origin, refers, same_unit
from lapwing.query.relations.relation import FilteredRows, table_of
from lapwing.query.relations.shared_join import kinds_of_units
from lapwing.query.relations.unit_join import UnitJoin, UnitJoinKind

MOST_NAMED: Final = 3
"""How many ways to join an error names at most."""


def bind_unit_join(
    node: exp.Expression,
    kind: UnitJoinKind,
    input_: Input,
    other: Input,
    conditions: Sequence[exp.Expression],
    scope: Scope,
) -> Input:
    """Join rows of units with others of theirs.

    Args:
        conditions: What stands in ON, or in the WHERE of an EXISTS; some of them say that the units are the same.

    Raises:
        QueryRefused: If none does, or the rows are not of the same units.
    """
    rows = rows_of(input_, scope)
    check_units(node, input_, other, rows, _to_meet(kind, input_, other))
    theirs = rows_of(other, scope)
    rest = [part for part in conditions if not compares_units(part, rows, theirs)]
    pairs, others = separated(rest, rows, theirs)
    if len(rest) == len(conditions) and not is_linked(pairs, input_, other, scope):
        raise not_of_one_unit(node, kind, input_, other, scope)
    return paired(kind, input_, other, pairs, others, scope)


def not_of_one_unit(
    node: exp.Expression, kind: UnitJoinKind, input_: Input, other: Input, scope: Scope
) -> QueryRefused:
    """Return the refusal of a join of which nothing says that its rows are of one unit."""
    rows, further = rows_of(input_, scope), _to_meet(kind, input_, other)
    check_units(node, input_, other, rows, further)
    reason, ways = unlinked(input_, other, scope)
    return rows.refusal(node, RefusalCause.UNLINKED_TABLES, reason, ways + further)


def _to_meet(kind: UnitJoinKind, input_: Input, other: Input) -> str:
    """Return the remedy that rows of different units meet, in an inner join of rows that are no units themselves."""
    alone = any(table_of(side.selection.relation).unit_is_row for side in (input_, other))
    if kind != "inner" or alone:
        return ""
    whose = table_of(input_.selection.relation).unit_name
    return (
        f" Or let rows of more than one {whose} meet, and limit what each adds: "
        "COUNT(*, contribution_bounds_per_group => AUTO)."
    )


def connects(input_: Input, other: Input, conditions: Sequence[exp.Expression], scope: Scope) -> bool:
    """Tell whether conditions say that rows of two inputs are of one unit."""
    rows, theirs = rows_of(input_, scope), rows_of(other, scope)
    if kinds_of_units(input_.selection.relation) != kinds_of_units(other.selection.relation):
        return False
    rest = [part for part in conditions if not compares_units(part, rows, theirs)]
    return len(rest) < len(conditions) or is_linked(separated(rest, rows, theirs)[0], input_, other, scope)


def is_linked(pairs: Pairs, input_: Input, other: Input, scope: Scope) -> bool:
    """Tell whether the catalog links what equalities compare, so that they imply one unit, or refers by it."""
    ours, theirs = input_.selection.relation, other.selection.relation
    origins = [(origin(left, ours), origin(right, theirs)) for left, right in pairs]
    return same_unit(origins, scope.catalog) or refers(origins, scope.catalog)


def unlinked(input_: Input, other: Input, scope: Scope) -> tuple[str, str]:
    """Return why rows are not joined, and what to write."""
    whose = table_of(input_.selection.relation).unit_name
    reason = f"A join between protected tables pairs only rows of the same {whose}"
    ours, theirs = (next(((s.name, s.unit) for s in side.sources if s.unit), None) for side in (input_, other))
    by_unit = [f"{'.'.join(ours)} = {'.'.join(theirs)}"] if ours is not None and theirs is not None else []
    columns = product(_naming(input_, scope).items(), _naming(other, scope).items())
    linking = (
        f"{here} = {there}" for (here, left), (there, right) in columns if same_unit([(left, right)], scope.catalog)
    )
    ways = list(dict.fromkeys([*by_unit, *islice(linking, MOST_NAMED)]))
    if not ways:
        left, right = (side.sources[0].name for side in (input_, other))
        how = f"join ON {left}.{whose} = {right}.{whose}" if right else f"write {whose} IN (SELECT {whose} FROM …)"
        return (
            reason,
            f"Add {whose} to the SELECT list of each subquery, and {how}. Keys that the catalog links do, too.",
        )
    return reason, f"Join ON {' or ON '.join(ways[:MOST_NAMED])}, and add other conditions with AND."


def _naming(input_: Input, scope: Scope) -> dict[str, Origin]:
    """Return the columns that say whose row it is, each by itself, under the names that the text may use."""
    relation = input_.selection.relation
    origins = {
        f"{source.name}.{name}": come
        for source in input_.sources
        for name, value in source.columns.items()
        if (come := origin(value, relation)) is not None
    }
    return {name: come for name, come in origins.items() if names_unit([come], scope.catalog)}


def paired(
    kind: UnitJoinKind,
    input_: Input,
    other: Input,
    pairs: Pairs,
    rest: Sequence[exp.Expression],
    scope: Scope,
) -> Input:
    """Join rows with those of their unit that are equal in pairs of expressions, and for which conditions hold."""
    other, rest = filtered_by_own(other, rest, rows_of(input_, scope), rows_of(other, scope))
    result, combined = _joined(kind, input_, other, pairs, scope)
    where = all_of(rest, combined)
    if kind == "inner":
        return replace(result, selection=filtered(result.selection, where))
    return _asking(result, where)


def join_using(
    node: exp.Expression, kind: UnitJoinKind, input_: Input, other: Input, names: Sequence[exp.Expression], scope: Scope
) -> Input:
    """Join on columns of one name, the unit or a linked key among them, which the result has once."""
    rows, theirs = rows_of(input_, scope), rows_of(other, scope)
    check_units(node, input_, other, rows)
    columns = list(map(column_called, names))
    shared = [column for column in columns if not (rows.is_unit(column) and theirs.is_unit(column))]
    pairs = [equal(as_read(rows.column(column)), as_read(theirs.column(column))) for column in shared]
    if len(shared) == len(columns) and not is_linked(pairs, input_, other, scope):
        _, remedy = unlinked(input_, other, scope)
        table = table_of(input_.selection.relation)
        raise rows.refusal(
            node, RefusalCause.UNLINKED_TABLES, f"USING names neither {noun_of([table])} nor a linked key", remedy
        )
    result, _ = _joined(kind, input_, other, pairs, scope)
    gone = {name.name.casefold() for name in names}
    sources = tuple(
        source
        if source in input_.sources
        else replace(source, unit=None, columns={n: e for n, e in source.columns.items() if n.casefold() not in gone})
        for source in result.sources
    )
    return replace(result, sources=sources)


def _asking(result: Input, where: Expression | None) -> Input:
    """Return a join in which a pair matches only where a condition holds, as in ON; it does not filter the result."""
    relation = result.selection.relation
    if isinstance(relation, UnitJoin):
        relation = replace(relation, condition=where)
    return replace(result, selection=FilteredRows(relation=relation))


def compared(node: exp.Expression, input_: Input, other: Input, scope: Scope) -> Input:
    """Bind INTERSECT and EXCEPT of distinct rows with rows of the same columns, in which NULL is a value."""
    check_units(node, input_, replace(other, sources=(replace(other.sources[0], name=""),)), rows_of(input_, scope))
    result, combined = _joined("semi" if isinstance(node, exp.Intersect) else "anti", input_, other, [], scope)
    ours, theirs = combined.sources
    where: Expression | None = None
    for name, value in ours.columns.items():
        pair = as_read(value), as_read(theirs.columns[name])
        where = conjunction(where, logic.negation(logic.distinct(*pair)))
    return _asking(result, where)


def check_units(node: exp.Expression, input_: Input, other: Input, rows: RowScope, further: str = "") -> None:
    """Refuse to join rows that are not of the same units, or are units themselves."""
    table, second = (table_of(side.selection.relation) for side in (input_, other))
    if table.units != second.units:
        reason = f"{table.name} and {second.name} are not joined, because {NOT_THE_SAME_PEOPLE}"
        link = "link the tables in the catalog, if they do"
        raise rows.refusal(node, RefusalCause.DIFFERENT_UNITS, reason, f"Ask about each by itself.{further}", link)
    if table.unit_is_row:
        raise rows.refusal(
            node, RefusalCause.ROWS_ARE_UNITS, f"{table.name} protects each row by itself, so its rows are not joined"
        )
    check_names(node, input_, other, rows)


def check_names(node: exp.Expression, input_: Input, other: Input, rows: RowScope) -> None:
    """Refuse to join two tables of one name."""
    names = {source.name.casefold() for source in input_.sources}
    twice = next((source.name for source in other.sources if source.name.casefold() in names), None)
    if twice is not None:
        raise rows.refusal(node, RefusalCause.DUPLICATE_NAME, f"Two tables are called '{twice}'", "Rename one with AS.")


def compares_units(node: exp.Expression, ours: RowScope, theirs: RowScope) -> bool:
    """Tell whether a condition is that a row's unit is the other row's.

    Rows have a unit always, so that it is as well if both may be missing, too, as tools write it (`sides_alike`).
    """
    sides = sides_alike(node, ours)
    pairs = () if sides is None else (sides, sides[::-1])
    return any(_is_unit(one, ours, theirs) and _is_unit(other, theirs, ours) for one, other in pairs)


def _is_unit(node: exp.Expression, rows: RowScope, others: RowScope) -> bool:
    """Tell whether a node names the unit of these rows, and nothing of the others."""
    ours, theirs = (attempted(NAMES, side.is_unit, node) is True for side in (rows, others))
    return ours and not theirs


def marked(input_: Input) -> tuple[Input, ColumnReference]:
    """Return a semi-join as a mark join, which keeps all rows, and the column that says which it would have kept.

    Whether a row is kept is TRUE or FALSE, as that of EXISTS; of IN it is FALSE where SQL has NULL, too.
    """
    relation = input_.selection.relation
    if not isinstance(relation, UnitJoin) or relation.kind != "semi":
        raise TypeError(f"{relation.construct} is no semi-join")
    (mark,) = fresh("m", [BOOLEAN], relation, relation.other.relation)
    return replace(input_, selection=FilteredRows(relation=replace(relation, kind="mark", mark=mark))), mark


def _joined(kind: UnitJoinKind, input_: Input, other: Input, pairs: Pairs, scope: Scope) -> tuple[Input, RowScope]:
    """Return the join, and the rows that conditions on a pair may name."""
    shown = shown_of(other)
    added = fresh("j", [value.type for value in shown], input_.selection.relation, other.selection.relation)
    added, further = with_read(added, shown)
    ours, theirs = (frozenset(side) for side in zip(*pairs, strict=True)) if pairs else (frozenset(), frozenset())
    relation = UnitJoin(
        kind=kind,
        source=input_.selection,
        other=other.selection,
        shown=(*shown, *further.values()),
        added=(*added, *further),
        on=pairs_in_order(pairs),
        matches=1 if at_most_one(other.selection, theirs, scope.catalog) else other.selection.rows_per_unit,
        matched=1 if at_most_one(input_.selection, ours, scope.catalog) else input_.selection.rows_per_unit,
    )
    places = dict(zip(shown, added, strict=True))
    unit_too = kind != "left"  # in a LEFT JOIN it may be NULL
    sources: tuple[TableReference, ...] = tuple(
        replace(
            source,
            columns={name: places[value] for name, value in source.columns.items()},
            unit=source.unit if unit_too else None,
        )
        for source in other.sources
    )
    both = (*input_.sources, *sources)
    kept = both if kind in ("inner", "left") else input_.sources
    result = replace(input_, selection=FilteredRows(relation=relation), sources=kept)
    return result, RowScope(text=scope.text, sources=both)
