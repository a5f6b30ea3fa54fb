"""Bind WHERE: a condition on a row; IN and EXISTS over public rows become joins that keep or leave out rows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal as Choice

from sqlglot import exp

from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.rows import RowScope, is_column
from lapwing.query.from_clause.conditions import bound_condition, conjuncts, filtered
from lapwing.query.from_clause.equalities import equal
from lapwing.query.from_clause.public_joins import check_name, equalities, joined, split
from lapwing.query.from_clause.scope import Binder, Input, PublicInput, Scope, rows_of
from lapwing.query.from_clause.unit_joins import bind_unit_join, check_units, is_linked, paired, unlinked
from lapwing.query.relations.size import require_bounded_size


def bind_where(parts: Sequence[exp.Expression], bound: Input, scope: Scope, *, subquery: Binder, item: Binder) -> Input:
    """Bind the conditions of WHERE, given how subqueries and the items of a FROM clause are bound."""
    rows = rows_of(bound, scope)
    memberships = [node for node in parts if _is_membership(node)]
    for node in parts:
        if node not in memberships:
            bound = replace(bound, selection=filtered(bound.selection, bound_condition(node, rows, "WHERE")))
    subquery, item = _once(subquery), _once(item)
    binders = [partial(_membership, node, scope=scope, subquery=subquery, item=item) for node in memberships]
    # Each keeps rows by their own columns alone. So their order does not matter, nor how often one stands there.
    ordered = {str(binder(bound).selection): binder for binder in binders}
    for _, binder in sorted(ordered.items(), key=lambda named: named[0]):
        bound = binder(bound)
        require_bounded_size(bound.selection, memberships[0], scope.nowhere)
    return bound


def _once(bind: Binder) -> Binder:
    """Bind every subquery once, however often it is asked for, so that time grows with the depth and no faster."""
    results: dict[int, Input | PublicInput] = {}

    def bound(node: exp.Expression, scope: Scope) -> Input | PublicInput:
        if id(node) not in results:
            results[id(node)] = bind(node, scope)
        return results[id(node)]

    return bound


def _membership(node: exp.Expression, bound: Input, scope: Scope, subquery: Binder, item: Binder) -> Input:
    inner, denied = _inner(node)
    if isinstance(inner, exp.Exists):
        return _exists(inner, denied, bound, scope, item)
    return _in(inner, denied, bound, scope, subquery)


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


def _in(node: exp.Expression, denied: bool, bound: Input, scope: Scope, subquery: Binder) -> Input:
    """Bind [NOT] x IN (SELECT …), with SQL's meaning: one public NULL, and NOT IN holds for no row."""
    rows = rows_of(bound, scope)
    rows.only(node, "this", "query")
    public = subquery(node.args["query"], scope)
    if isinstance(public, Input):
        return _in_units(node, denied, bound, public, scope)
    value = bind_expression(node.this, rows)
    columns = list(public.source.columns.values())
    if len(columns) != 1:
        raise rows.refusal(node, "IN takes a subquery with one column")
    with rows.pointing(node):
        pair = equal(value, columns[0])
    return joined(bound, public, "not_in" if denied else "semi", [pair], scope)


def _in_units(node: exp.Expression, denied: bool, bound: Input, other: Input, scope: Scope) -> Input:
    """Bind x [NOT] IN (SELECT y FROM …) over protected rows, where equality of x and y means one unit.

    Rows with a unit always have it, and so has a linked row its key; but the key of a parent's row may be NULL, and
    then SQL's NOT IN holds for no row of anybody. So NOT IN is answered of the unit alone.
    """
    rows = rows_of(bound, scope)
    other = replace(other, sources=tuple(replace(source, name="") for source in other.sources))
    shown = [(name, value) for source in other.sources for name, value in source.columns.items()]
    by_unit = rows.is_unit(node.this) and other.sources[0].unit is not None
    if by_unit and all(name == other.sources[0].unit for name, _ in shown):
        check_units(node, bound, other, rows)
        return paired("anti" if denied else "semi", bound, other, [], [], scope)
    if len(shown) != 1 or denied:
        what = "NOT IN takes" if denied else "IN takes"
        reason = f"{what} a subquery over a public table, or one that shows the privacy unit alone"
        if not denied:
            reason = "IN takes a subquery with one column"
        unit = rows.unit or "the unit"
        raise rows.refusal(node, reason, f"Write {unit} IN (SELECT {unit} FROM …), or NOT EXISTS with an equality.")
    check_units(node, bound, other, rows)
    with rows.pointing(node):
        pair = equal(bind_expression(node.this, rows), shown[0][1])
    if not is_linked([pair], bound, other, scope):
        raise rows.refusal(node, *unlinked(bound, other, scope))
    return paired("semi", bound, other, [pair], [], scope)


def _exists(node: exp.Expression, denied: bool, bound: Input, scope: Scope, item: Binder) -> Input:
    rows = rows_of(bound, scope)
    rows.only(node, "this")
    select = node.this
    while isinstance(select, exp.Subquery):
        rows.only(select, "this")
        select = select.this
    clause = select.args.get("from_")
    other = item(clause.this, scope) if clause is not None else None
    if not isinstance(select, exp.Select) or other is None:
        raise rows.refusal(select, "EXISTS takes a subquery over a public table", "Write EXISTS (SELECT 1 FROM …).")
    if isinstance(other, PublicInput):
        check_name(select, bound, other, rows)
    rows.only(select, "expressions", "from_", "where")
    _check_shown(select, rows)
    where = select.args.get("where")
    if where is not None:
        rows.only(where, "this")
    conditions = conjuncts(where.this, rows) if where is not None else []
    kind: Choice["semi", "anti"] = "anti" if denied else "semi"
    if isinstance(other, Input):
        return bind_unit_join(select, kind, bound, other, conditions, scope)
    if not conditions:
        raise rows.refusal(select, "EXISTS without a condition does not depend on the row", "Compare with a column.")
    pairs, rest = equalities(conditions, bound, other, scope)
    outside, other = split(rest, bound, other, scope)
    if outside:
        reason = "EXISTS takes conditions on the public table and equalities with a row's columns"
        raise rows.refusal(outside[0], reason)
    return joined(bound, other, kind, pairs, scope)


def _check_shown(select: exp.Select, rows: RowScope) -> None:
    """Refuse an aggregate: it would have a row, and so EXISTS be true, whatever it is of."""
    for node in select.expressions:
        if not isinstance(node, exp.Star | exp.Literal | exp.Boolean | exp.Null) and not is_column(node):
            raise rows.refusal(node, "EXISTS takes a subquery that shows a column or a constant", "Write SELECT 1.")
