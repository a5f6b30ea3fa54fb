"""Bind WHERE: a condition on a row; IN and EXISTS become joins that keep or leave out rows.

Under OR, or in a larger condition, IN and EXISTS over protected rows of the same units become marks: a join that keeps
all rows, with a column that says which of them have a match (`relations.unit_join`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal as Choice

from sqlglot import exp

from lapwing.catalog.protection import noun_of
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.as_read import as_read
from lapwing.query.expressions.attempts import NOT_THEIRS
from lapwing.query.expressions.calls import looked_at
from lapwing.query.expressions.rows import RowScope, attempted, is_column, same_name
from lapwing.query.from_clause.conditions import bind_condition, conjuncts, filtered
from lapwing.query.from_clause.equalities import equal
from lapwing.query.from_clause.public_joins import check_name, equalities, joined, split
from lapwing.query.from_clause.scope import Binder, Input, PublicInput, RowsBinder, Scope, rows_of
from lapwing.query.from_clause.unit_joins import bind_unit_join, check_units, is_linked, marked, paired, unlinked
from lapwing.query.relations.relation import tables_of
from lapwing.query.relations.size import require_bounded_size
from lapwing.query.text.trees import nodes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binders:
    """How a subquery, an item of a FROM clause, and a FROM clause of several items are bound."""

    subquery: Binder
    item: Binder
    several: RowsBinder


def bind_where(
    parts: Sequence[exp.Expression],
    input_: Input,
    scope: Scope,
    *,
    subquery: Binder,
    item: Binder,
    several: RowsBinder,
) -> Input:
    """Bind the conditions of WHERE, given how subqueries and FROM clauses are bound."""
    rows = rows_of(input_, scope)
    memberships = [node for node in parts if _is_membership(node)]
    marking = [node for node in parts if node not in memberships and any(_nested(node))]
    for node in parts:
        if node not in memberships and node not in marking:
            input_ = replace(input_, selection=filtered(input_.selection, bind_condition(node, rows, "WHERE")))
    binders = _Binders(subquery=subquery, item=item, several=several)
    for node in marking:
        input_ = _with_marks(node, input_, scope, binders)
    asked = [partial(_membership, node, scope=scope, binders=binders) for node in memberships]
    # Each keeps rows by their own columns alone. So their order does not matter, nor how often one stands there.
    ordered = {str(binder(input_).selection): binder for binder in asked}
    for _, binder in sorted(ordered.items(), key=lambda named: named[0]):
        input_ = binder(input_)
        require_bounded_size(input_.selection, memberships[0], scope.nowhere)
    return input_


def _with_marks(node: exp.Expression, input_: Input, scope: Scope, binders: _Binders) -> Input:
    """Keep the rows for which a condition is true in which IN and EXISTS stand beside others."""
    sources, prepared = input_.sources, {}
    for inner, monotone in _nested(node):
        if isinstance(inner, exp.Exists):
            select = _select_of(inner, rows_of(input_, scope))
            clause = select.args.get("from_")
            joined_inside = bool(select.args.get("joins"))
            if clause is None or not (joined_inside or isinstance(binders.item(clause.this, scope), Input)):
                continue  # of public rows it is refused where the condition is bound
            input_, prepared[id(inner)] = marked(_exists(inner, False, input_, scope, binders))
        elif isinstance(binders.subquery(inner.args["query"], scope), Input):
            if not monotone and not rows_of(input_, scope).is_unit(inner.this):
                # What is NULL in SQL where nothing matches is FALSE in a mark, which NOT would turn into TRUE.
                reason = "IN over protected rows stands for itself or under AND and OR"
                raise rows_of(input_, scope).refusal(
                    inner, RefusalCause.SUBQUERY_NOT_SUPPORTED, reason, "Write NOT EXISTS (SELECT 1 FROM … WHERE …)."
                )
            input_, prepared[id(inner)] = marked(_in(inner, False, input_, scope, binders.subquery))
        require_bounded_size(input_.selection, inner, scope.nowhere)
    rows = RowScope(text=scope.text, sources=sources, prepared=prepared)
    return replace(input_, selection=filtered(input_.selection, bind_condition(node, rows, "WHERE")))


def _nested(node: exp.Expression, monotone: bool = True) -> Iterator[tuple[exp.Expression, bool]]:
    """Yield IN and EXISTS in a condition, outside of subqueries, and whether nothing but AND and OR is above them."""
    if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
        yield node, monotone
    elif not isinstance(node, exp.Query):
        monotone = monotone and isinstance(node, exp.And | exp.Or | exp.Paren)
        for child in node.iter_expressions():
            yield from _nested(child, monotone)


def _membership(node: exp.Expression, input_: Input, scope: Scope, binders: _Binders) -> Input:
    inner, denied = _inner(node)
    if isinstance(inner, exp.Exists):
        return _exists(inner, denied, input_, scope, binders)
    return _in(inner, denied, input_, scope, binders.subquery)


def _inner(node: exp.Expression) -> tuple[exp.Expression, bool]:
    """Return what a node says or denies, and whether it denies it."""
    denied = type(node) is exp.Not
    inner = node.this if denied else node
    while type(inner) is exp.Paren:
        inner = inner.this
    return inner, denied


def _is_membership(node: exp.Expression) -> bool:
    inner, _ = _inner(node)
    return isinstance(inner, exp.Exists) or (isinstance(inner, exp.In) and inner.args.get("query") is not None)


def _in(node: exp.Expression, denied: bool, input_: Input, scope: Scope, subquery: Binder) -> Input:
    """Bind [NOT] x IN (SELECT …), with SQL's meaning: one public NULL, and NOT IN holds for no row."""
    rows = rows_of(input_, scope)
    rows.only(node, "this", "query")
    public = subquery(node.args["query"], scope)
    if isinstance(public, Input):
        return _in_units(node, denied, input_, public, scope)
    value = looked_at(node.this, rows)
    columns = list(public.source.columns.values())
    if len(columns) != 1:
        raise rows.refusal(node, RefusalCause.SUBQUERY_NOT_ONE_COLUMN, "IN takes a subquery with one column")
    with rows.pointing(node):
        pair = equal(value, as_read(columns[0]))
    return joined(input_, public, "not_in" if denied else "semi", [pair], scope)


def _in_units(node: exp.Expression, denied: bool, input_: Input, other: Input, scope: Scope) -> Input:
    """Bind x [NOT] IN (SELECT y FROM …) over protected rows, where equality of x and y means one unit.

    Rows with a unit always have it, and so has a linked row its key; but the key of a parent's row may be NULL, and
    then SQL's NOT IN holds for no row of anybody. So NOT IN is answered of the unit alone.
    """
    rows = rows_of(input_, scope)
    other = replace(other, sources=tuple(replace(source, name="") for source in other.sources))
    shown = [(name, value) for source in other.sources for name, value in source.columns.items()]
    by_unit = rows.is_unit(node.this) and other.sources[0].unit is not None
    if by_unit and all(name == other.sources[0].unit for name, _ in shown):
        check_units(node, input_, other, rows)
        return paired("anti" if denied else "semi", input_, other, [], [], scope)
    if len(shown) != 1 or denied:
        unit = rows.unit or noun_of(tables_of(input_.selection.relation))
        what = "NOT IN takes" if denied else "IN takes"
        reason = f"{what} a subquery over a public table, or one that shows only {unit}"
        if not denied:
            reason = "IN takes a subquery with one column"
        raise rows.refusal(
            node,
            RefusalCause.SUBQUERY_NOT_ONE_COLUMN,
            reason,
            f"Write {unit} IN (SELECT {unit} FROM …), or NOT EXISTS with an equality.",
        )
    check_units(node, input_, other, rows)
    with rows.pointing(node):
        pair = equal(looked_at(node.this, rows), as_read(shown[0][1]))
    if not is_linked([pair], input_, other, scope):
        raise rows.refusal(node, RefusalCause.UNLINKED_TABLES, *unlinked(input_, other, scope))
    return paired("semi", input_, other, [pair], [], scope)


def _exists(node: exp.Expression, denied: bool, input_: Input, scope: Scope, binders: _Binders) -> Input:
    rows = rows_of(input_, scope)
    rows.only(node, "this")
    select = _select_of(node, rows)
    clause = select.args.get("from_")
    other = binders.item(clause.this, scope) if clause is not None else None
    if not isinstance(select, exp.Select) or other is None:
        raise rows.refusal(
            select,
            RefusalCause.INVALID_EXISTS,
            "EXISTS takes a subquery over a public table",
            "Write EXISTS (SELECT 1 FROM …).",
        )
    if isinstance(other, PublicInput) and not select.args.get("joins"):
        check_name(select, input_, other, rows)
    rows.only(select, "expressions", "from_", "joins", "where")
    _check_shown(select, rows)
    where = select.args.get("where")
    if where is not None:
        rows.only(where, "this")
    conditions = conjuncts(where.this, rows) if where is not None else []
    joins = select.args.get("joins") or []
    if joins:
        sides = [other, *(binders.item(join.this, scope) for join in joins)]
        theirs = RowScope(
            text=scope.text, sources=tuple(source for side in sides for source in rows_of(side, scope).sources)
        )
        own = [part for part in conditions if _names_only(part, theirs)]
        other, conditions = (
            binders.several(select, own, scope),
            [part for part in conditions if not any(part is one for one in own)],
        )
    kind: Choice["semi", "anti"] = "anti" if denied else "semi"
    if isinstance(other, Input):
        theirs = rows_of(other, scope)
        return bind_unit_join(select, kind, input_, other, [_qualified(part, theirs) for part in conditions], scope)
    if not conditions:
        raise rows.refusal(
            select,
            RefusalCause.INVALID_EXISTS,
            "EXISTS without a condition does not depend on the row",
            "Compare with a column.",
        )
    if not any(isinstance(part, exp.EQ) for part in conditions):
        reason = "EXISTS takes an equality with a column of the public table, or one comparison of a column"
        raise rows.refusal(where or select, RefusalCause.INVALID_EXISTS, reason, "Write … WHERE a.x = b.x.")
    pairs, rest = equalities(conditions, input_, other, scope)
    outside, other = split(rest, input_, other, scope)
    if outside:
        reason = "EXISTS takes conditions on the public table and equalities with a row's columns"
        raise rows.refusal(outside[0], RefusalCause.INVALID_EXISTS, reason)
    return joined(input_, other, kind, pairs, scope)


def _select_of(node: exp.Expression, rows: RowScope) -> exp.Expression:
    """Return the SELECT of an EXISTS, out of its parentheses."""
    select: exp.Expression = node.this
    while isinstance(select, exp.Subquery):
        rows.only(select, "this")
        select = select.this
    return select


def _names_only(node: exp.Expression, rows: RowScope) -> bool:
    """Tell whether a condition is about these rows alone: names inside a subquery mean what is there, if they can."""
    for column in nodes_of(node, exp.Column):
        unit = attempted(NOT_THEIRS, rows.is_unit, column)
        value = None if unit is True else attempted(NOT_THEIRS, rows.column, column)
        if isinstance(value, QueryRefused) and column.parent_select is node.parent_select:
            return False
    return True


def _qualified(node: exp.Expression, rows: RowScope) -> exp.Expression:
    """Return a condition whose bare names say that they mean these rows, where they may: SQL looks there first."""
    node = node.copy()
    for column in nodes_of(node, exp.Column):
        if not is_column(column) or column.args.get("table") is not None:
            continue
        owners = [
            source
            for source in rows.sources
            if any(same_name(column.this, name) for name in (*source.columns, source.unit or ""))
        ]
        if len(owners) == 1:
            column.set("table", exp.to_identifier(owners[0].name, quoted=True))
    return node


def _check_shown(select: exp.Select, rows: RowScope) -> None:
    """Refuse an aggregate: it would have a row, and so EXISTS be true, whatever it is of."""
    for node in select.expressions:
        if not isinstance(node, exp.Star | exp.Literal | exp.Boolean | exp.Null) and not is_column(node):
            raise rows.refusal(
                node,
                RefusalCause.INVALID_EXISTS,
                "EXISTS takes a subquery that shows a column or a constant",
                "Write SELECT 1.",
            )
