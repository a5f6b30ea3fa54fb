"""Bind FROM: which rows a question is about, as a relation over rows that carry the privacy unit.

Most questions are about one protected table, and some of its rows. What is made of several tables, or of subqueries, is
bound in `subqueries`.
"""

from dataclasses import replace

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.from_clause.scope import (
    Input,
    Scope,
    alias_of,
    bound_condition,
    conjuncts,
    filtered,
    kept,
    protected_table,
    rows_of,
)
from lapwing.query.relations.size import require_bounded_size

__all__ = ["Scope", "bind_from", "rows_of"]


def bind_from(select: exp.Select, scope: Scope, *, sharing: bool = False) -> tuple[Input, Scope]:
    """Bind the WITH, FROM, JOIN and WHERE clauses of a question.

    Args: sharing: whether rows of different units may meet where they cannot be kept apart.
    """
    alone = _one_table(select, scope)
    if alone is not None:
        return alone, scope
    # Here: joins, unions and subqueries are a twentieth of a start, and most questions have none.
    from lapwing.query.from_clause.subqueries import bind_composed

    try:
        return bind_composed(select, scope)
    except QueryRefused:
        if not sharing:
            raise
    return bind_composed(select, replace(scope, sharing=True))


def _one_table(select: exp.Select, scope: Scope) -> Input | None:
    """Bind FROM one protected table WHERE a condition on its rows; None if there is more to it."""
    item = getattr(select.args.get("from_"), "this", None)
    where = select.args.get("where")
    if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
        return None
    if (
        select.args.get("with_")
        or select.args.get("joins")
        or (where is not None and where.find(exp.Select, exp.Exists))
    ):
        return None
    table = protected_table(item.this, scope)
    if table is None:
        return None
    scope.nowhere.only(select.args["from_"], "this")
    scope.nowhere.only(item, "this", "alias")
    scope.nowhere.only(item.this, "this", "quoted")
    bound = kept(table, alias_of(item, scope) or table.name)
    if where is None:
        return bound
    scope.nowhere.only(where, "this")
    rows = rows_of(bound, scope)
    for node in conjuncts(where.this, scope.nowhere):
        bound = replace(bound, selection=filtered(bound.selection, bound_condition(node, rows, "WHERE")))
    require_bounded_size(bound.selection, select, scope.nowhere)
    return bound
