"""Bind RIGHT and FULL JOIN of protected rows with others of their units, as what LEFT JOIN and NOT EXISTS make of them.

A FULL JOIN is a LEFT JOIN, united with the rows of the other side that match nothing: both are unit-local.
`relations.set_operations` has how many rows a unit has at most.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lapwing.query.expressions import logic
from lapwing.query.expressions.as_read import as_read
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.rows import TableReference
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.equalities import column_called
from lapwing.query.from_clause.scope import Input, Scope, rows_of
from lapwing.query.from_clause.unions import hull_of, reading_alike
from lapwing.query.from_clause.unit_joins import bind_unit_join, join_using
from lapwing.query.relations.fresh_columns import fresh
from lapwing.query.relations.relation import FilteredRows
from lapwing.query.relations.set_operations import Part, Union
from lapwing.query.relations.unit_join import UnitJoinKind


def bind_right_join(node: exp.Expression, input_: Input, other: Input, scope: Scope) -> Input:
    """Bind a RIGHT JOIN: a LEFT JOIN the other way round, with the columns in the order of the text."""
    result = _one_way(node, "left", other, input_, scope)
    first = len(other.sources)
    return replace(result, sources=(*result.sources[first:], *result.sources[:first]))


def bind_full_join(node: exp.Expression, input_: Input, other: Input, scope: Scope) -> Input:
    """Bind a FULL JOIN: columns of a side are NULL in rows that match nothing there, but for those that USING names."""
    using = {name.name.casefold() for name in node.args.get("using") or ()}
    left = _one_way(node, "left", input_, other, scope)
    right = _one_way(node, "anti", other, input_, scope)
    theirs = {source.name: source.columns for source in right.sources}
    every = [pair for columns in theirs.values() for pair in columns.items()]
    shared = {name.casefold(): value for name, value in every if name.casefold() in using}
    pairs: list[Sequence[Expression]] = []
    for source in left.sources:
        here = theirs.get(source.name, shared)
        for name, value in source.columns.items():
            beside = here.get(name) if source.name in theirs else here.get(name.casefold())
            with scope.nowhere.pointing(node):
                pairs.append(reading_alike((value, logic.NULL_LITERAL if beside is None else beside)))
    named = fresh("f", [logic.hull(pair) for pair in pairs], left.selection.relation, right.selection.relation)
    both = [hull_of(column, pair) for column, pair in zip(named, pairs, strict=True)]
    columns, read = [one for one, _ in both], [other for _, other in both if other is not None]
    shown: list[Sequence[Expression]] = [*pairs]
    shown += (tuple(map(as_read, pair)) for pair in pairs if any(value.read for value in pair))
    parts = [
        Part(source=side.selection, expressions=tuple(pair[place] for pair in shown))
        for place, side in enumerate((left, right))
    ]
    following = iter(columns)
    sources: tuple[TableReference, ...] = tuple(
        replace(
            source, columns={name: next(following) for name in source.columns}, unit=_unit(node, source, input_, scope)
        )
        for source in left.sources
    )
    united = Union(parts=tuple(parts), columns=(*columns, *read), full=True)
    return replace(input_, selection=FilteredRows(relation=united), sources=sources)


def _one_way(node: exp.Expression, kind: UnitJoinKind, one: Input, other: Input, scope: Scope) -> Input:
    if node.args.get("using"):
        return join_using(node, kind, one, other, node.args["using"], scope)
    on = node.args.get("on")
    return bind_unit_join(node, kind, one, other, conjuncts(on, scope.nowhere) if on is not None else [], scope)


def _unit(node: exp.Expression, source: TableReference, input_: Input, scope: Scope) -> str | None:
    """Return the name of the unit, if a source has it in all rows: where USING names it, of the first side."""
    rows = rows_of(input_, scope)
    by_unit = any(rows.is_unit(column_called(name)) for name in node.args.get("using") or ())
    return source.unit if by_unit and source in input_.sources else None
