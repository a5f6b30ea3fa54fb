"""For whom a number in a condition is asked: (SELECT AVG(s.cost) FROM sales AS s WHERE s.item = i.item).

Such a number is asked for each value of a column. Which column of a comparison is that of the outer rows follows from
its table, or where nothing names that, from which tables have such a column. Where the outer rows have it of a public
table, only the values of its rows matter, and of these those that WHERE leaves: for all others the condition is asked
of no row, so that what is asked is the same question, and its values are public.
"""

from collections.abc import Sequence

from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.rows import RowScope, is_column, same_name
from lapwing.query.from_clause.common_tables import tables_of
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.scope import Scope


def compared_with_outer(
    condition: exp.Expression, query: exp.Select, select: exp.Select, within: Scope
) -> tuple[exp.Expression, exp.Expression] | None:
    """Return the column of the subquery and that of the outer rows, if a condition says that they are equal."""
    if not isinstance(condition, exp.EQ):
        return None
    sides = (condition.args["this"], condition.args["expression"])
    for inner, outer in (sides, sides[::-1]):
        if not (is_column(inner) and is_column(outer)) or _is_of(inner, query, select, within):
            continue
        if _is_of(outer, query, select, within):
            return inner, outer
    return None


def restricted(
    query: exp.Select, inner: exp.Expression, outer: exp.Expression, select: exp.Select, within: Scope
) -> exp.Select | None:
    """Return a question by groups, for those that the outer rows can be in; None if no public table says which."""
    source = next((table for table in tables_of(select) if _has(table, outer, within.catalog)), None)
    if not isinstance(source, exp.Table) or not _is_public(source, within.catalog):
        return None
    where = select.args.get("where")
    rows = RowScope(text=within.text)
    conditions = [] if where is None else conjuncts(where.this, rows)
    kept = [node.copy() for node in conditions if _is_about(node, source, select, within.catalog)]
    values = exp.Select(expressions=[outer.copy()], from_=exp.From(this=source.copy()))
    if kept:
        values.set("where", exp.Where(this=exp.and_(*kept, copy=False)))
    member = exp.In(this=inner.copy(), query=exp.Subquery(this=values))
    narrower = query.copy()
    own = narrower.args.get("where")
    both = member if own is None else exp.And(this=exp.Paren(this=own.this), expression=member)
    narrower.set("where", exp.Where(this=both))
    return narrower


def _is_of(column: exp.Expression, query: exp.Select, select: exp.Select, within: Scope) -> bool:
    """Tell whether a column in a subquery is one of the outer rows."""
    own = [str(table.alias_or_name).casefold() for table in query.find_all(exp.Table, exp.Subquery)]
    if column.args.get("table") is not None:
        name = column.text("table").casefold()
        return name not in own and name in [str(table.alias_or_name).casefold() for table in tables_of(select)]
    inside, outside = list(tables_of(query)), list(tables_of(select))
    if not all(_is_known(table, within.catalog) for table in inside):
        return False
    return not any(_has(table, column, within.catalog) for table in inside) and any(
        _has(table, column, within.catalog) for table in outside
    )


def _is_about(node: exp.Expression, source: exp.Table, select: exp.Select, catalog: Catalog) -> bool:
    """Tell whether a condition names columns of one table alone, and holds no subquery."""
    columns = list(node.find_all(exp.Column))
    if not columns or node.find(exp.Subquery, exp.Select, exp.AggFunc, exp.Window):
        return False
    tables: Sequence[exp.Expression] = list(tables_of(select))
    return all(
        is_column(column) and [table for table in tables if _has(table, column, catalog)] == [source]
        for column in columns
    )


def _has(table: exp.Expression, column: exp.Expression, catalog: Catalog) -> bool:
    """Tell whether a table of the catalog has a column, by the name that the question gives it."""
    qualifier = column.args.get("table")
    if isinstance(qualifier, exp.Identifier) and not same_name(qualifier, str(table.alias_or_name)):
        return False
    return any(same_name(column.this, name) for name in _columns(table, catalog))


def _is_known(table: exp.Expression, catalog: Catalog) -> bool:
    return bool(_columns(table, catalog))


def _is_public(table: exp.Table, catalog: Catalog) -> bool:
    return any(same_name(table.this, public.name) for public in catalog.public_tables)


def _columns(table: exp.Expression, catalog: Catalog) -> list[str]:
    """Return the names of a table's columns, the unit's among them; none of what is no table of the catalog."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return []
    for public in catalog.public_tables:
        if same_name(table.this, public.name):
            return [column.name for column in public.columns]
    for protected in catalog.tables:
        if same_name(table.this, protected.name):
            unit = [] if protected.unit_is_row else [str(protected.privacy_unit)]
            return [*(column.name for column in protected.columns), *unit]
    return []
