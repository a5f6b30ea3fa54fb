"""Queries in one another, as text: common table expressions, and what they are named by."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from sqlglot import exp

from lapwing.query.expressions.rows import RowScope, same_name
from lapwing.query.text.trees import copied, nodes_of

Query = TypeVar("Query", bound=exp.Expression)


def checked_name(column: exp.Expression, rows: RowScope) -> str:
    """Return the name that an identifier is."""
    rows.only(column, "this", "quoted")
    return str(column.name)


def checked_common_tables(select: exp.Expression, rows: RowScope) -> list[exp.Expression]:
    """Return the common table expressions of a query, having refused what is not understood of them."""
    tables = common_tables(select)
    for table in tables:
        rows.only(select.args["with_"], "expressions")
        rows.only(table, "this", "alias")
        rows.only(table.args["alias"], "this")
        checked_name(table.args["alias"].this, rows)
    return tables


def with_common_tables(select: Query, before: Sequence[exp.Expression]) -> Query:
    """Return a query that may name common table expressions which stand before it."""
    if not before:
        return select
    select = copied(select)
    select.set("with_", exp.With(expressions=[*before, *common_tables(select)]))
    return select


def common_tables(select: exp.Expression) -> list[exp.Expression]:
    """Return the common table expressions of a query."""
    clause = select.args.get("with_")
    return [] if clause is None else list(clause.expressions)


def named_before(item: exp.Table, select: exp.Select) -> tuple[exp.Expression | None, list[exp.Expression]]:
    """Return the common table expression that FROM names, and those before it, which it may name."""
    before: list[exp.Expression] = []
    for node in common_tables(select):
        if isinstance(item.this, exp.Identifier) and same_name(item.this, str(node.alias)):
            return node.this, before
        before.append(node)
    return None, []


def tables_in(query: exp.Expr) -> list[exp.Table]:
    """Return the tables that are named anywhere in a query."""
    return nodes_of(query, exp.Table)


def queries_inside(select: exp.Select) -> list[exp.Query]:
    """Return the queries that stand anywhere in a SELECT."""
    return [query for query in nodes_of(select, exp.Query) if query is not select]


def with_named(query: Query, before: Sequence[exp.Expression]) -> Query:
    """Return a query with those of the common table expressions before it that it names, or that these name."""
    kept: list[exp.Expression] = []
    for node in reversed(before):
        parts: list[exp.Expression] = [query, *kept]
        tables = (table for part in parts for table in tables_in(part))
        if any(isinstance(table.this, exp.Identifier) and same_name(table.this, str(node.alias)) for table in tables):
            kept.insert(0, node)
    return with_common_tables(query, kept)


def all_of(item: exp.Expression, *, distinct: bool = False) -> exp.Select:
    """Return SELECT * FROM an item, or SELECT DISTINCT *. The builder of sqlglot would parse the star."""
    select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=item))
    if distinct:
        select.set("distinct", exp.Distinct())
    return select


def bare(node: exp.Expression) -> exp.Expression:
    """Return a query without the parentheses around it, if these have no LIMIT or other clause."""
    while isinstance(node, exp.Subquery) and all(key == "this" or not value for key, value in node.args.items()):
        node = node.this
    return node


def tables_of(select: exp.Select) -> Iterator[exp.Expression]:
    """Yield what stands in FROM."""
    clause = select.args.get("from_")
    if clause is not None:
        yield clause.this
    yield from (join.this for join in select.args.get("joins") or ())
