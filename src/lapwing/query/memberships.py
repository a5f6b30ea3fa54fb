"""Bind WHERE: a condition on a row; IN and EXISTS over public rows become joins that keep or leave out rows."""

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from lapwing.query.calls import bind_expression
from lapwing.query.joins import check_name, equal, equalities, joined, split
from lapwing.query.relations import JoinKind
from lapwing.query.rows import Rows, is_column, only, refusal
from lapwing.query.scope import Input, PublicInput, Scope, bound_condition, conjuncts, filtered, pointing, rows_of

Binder = Callable[[exp.Expression, Scope], Input | PublicInput]


def bind_where(select: exp.Select, bound: Input, scope: Scope, *, subquery: Binder, item: Binder) -> Input:
    """Bind WHERE, given how subqueries and the items of a FROM clause are bound."""
    clause = select.args.get("where")
    if clause is None:
        return bound
    rows = rows_of(bound, scope)
    only(rows, clause, "this")
    parts = conjuncts(clause.this)
    memberships = [node for node in parts if _is_membership(node)]
    if not memberships:
        return replace(bound, selection=filtered(bound.selection, bound_condition(clause.this, rows, "WHERE")))
    for node in parts:
        if node not in memberships:
            bound = replace(bound, selection=filtered(bound.selection, bound_condition(node, rows, "WHERE")))
    for node in memberships:
        inner, denied = _inner(node)
        if isinstance(inner, exp.Exists):
            bound = _exists(inner, denied, bound, scope, item)
        else:
            bound = _in(inner, denied, bound, scope, subquery)
    return bound


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
    only(rows, node, "this", "query")
    value = bind_expression(node.this, rows)
    public = subquery(node.args["query"], scope)
    if isinstance(public, Input):
        reason = "IN takes a subquery over a public table"
        raise refusal(rows, node, reason, "Compute it in a subquery over the unit's rows instead.")
    columns = list(public.source.columns.values())
    if len(columns) != 1:
        raise refusal(rows, node, "IN takes a subquery with one column")
    with pointing(rows, node):
        pair = equal(value, columns[0])
    return joined(bound, public, "not_in" if denied else "semi", [pair], scope)


def _exists(node: exp.Expression, denied: bool, bound: Input, scope: Scope, item: Binder) -> Input:
    rows = rows_of(bound, scope)
    only(rows, node, "this")
    select = node.this
    while isinstance(select, exp.Subquery):
        only(rows, select, "this")
        select = select.this
    clause = select.args.get("from_")
    public = item(clause.this, scope) if clause is not None else None
    if not isinstance(select, exp.Select) or not isinstance(public, PublicInput):
        raise refusal(rows, select, "EXISTS takes a subquery over a public table", "Write EXISTS (SELECT 1 FROM …).")
    check_name(select, bound, public, rows)
    only(rows, select, "expressions", "from_", "where")
    _check_shown(select, rows)
    where = select.args.get("where")
    if where is None:
        raise refusal(rows, select, "EXISTS without a condition does not depend on the row", "Compare with a column.")
    only(rows, where, "this")
    pairs, rest = equalities(conjuncts(where.this), bound, public, scope)
    outside, public = split(rest, bound, public, scope)
    if outside:
        reason = "EXISTS takes conditions on the public table and equalities with a row's columns"
        raise refusal(rows, outside[0], reason)
    kind: JoinKind = "anti" if denied else "semi"
    return joined(bound, public, kind, pairs, scope)


def _check_shown(select: exp.Select, rows: Rows) -> None:
    """Refuse an aggregate: it would have a row, and so EXISTS be true, whatever it is of."""
    for node in select.expressions:
        if not isinstance(node, exp.Star | exp.Literal | exp.Boolean | exp.Null) and not is_column(node):
            raise refusal(rows, node, "EXISTS takes a subquery that shows a column or a constant", "Write SELECT 1.")
