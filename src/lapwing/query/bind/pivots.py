"""PIVOT and UNPIVOT, written as the aggregates with FILTER, and the UNION ALL, that they are.

    FROM (SELECT plan, year, cost FROM visits) PIVOT (SUM(cost) FOR year IN (1, 2))

becomes

    FROM (SELECT plan, SUM(cost) FILTER (WHERE year = 1) AS "1", … FROM (SELECT …) GROUP BY plan)

The text says the values of the column, or the catalog does. So which columns there are is public. All columns
that PIVOT does not name are keys: SQL says so. The new SELECT is bound, and nothing new is proven. One over rows is
released, and one over a result is computed from it. One that keeps a column of the unit is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.classify.kinds import visible_in
from lapwing.query.expressions.rows import is_column, same_name
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope, protected_table, public_table
from lapwing.query.relations.relation import unit_of
from lapwing.query.text.literals import literal
from lapwing.query.text.parse import Parsed
from lapwing.query.text.syntax_refusals import PIVOT
from lapwing.query.text.trees import has, nodes_of

MOST_COLUMNS: Final = 100
"""Columns that one PIVOT makes, or that one UNPIVOT reads, at most."""
_CLAUSE: Final = ("expressions", "fields", "alias")
_NAMING: Final = ("columns", "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming")
"""The parser says by these how the columns are called. It is how they are called here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pivot:
    """What a PIVOT is of: its values with their names, its aggregates, and the keys that it names."""

    source: exp.Expression
    column: exp.Expression
    values: Sequence[tuple[exp.Expression, str]]
    aggregates: Sequence[exp.Expression]
    keys: Sequence[exp.Expression] | None


def without_pivots(parsed: Parsed, within: Scope) -> Parsed:
    """Return a query without PIVOT and UNPIVOT.

    Raises:
        QueryRefused: If one is not understood.
    """
    if not has(parsed.select, exp.Pivot):
        return parsed
    select = parsed.select.copy()
    for node in reversed(list(select.find_all(exp.Table, exp.Subquery, bfs=False))):  # inner ones before outer ones
        if not node.args.get("pivots") and not isinstance(node.this, exp.Pivot):
            continue
        query = _rewritten(node, within)
        if query is None:
            reason = "PIVOT takes one column with listed values, and aggregates with names if there are several"
            raise within.nowhere.refusal(node, RefusalCause.CLAUSE_NOT_SUPPORTED, reason, PIVOT)
        node.replace(exp.Subquery(this=query, alias=_alias_of(node)))
    return replace(parsed, select=select)


def _alias_of(node: exp.Expression) -> exp.Expression | None:
    pivots = node.args.get("pivots") or [node]
    alias = pivots[0].args.get("alias")
    return alias.copy() if isinstance(alias, exp.TableAlias) and alias.this is not None else None


def _rewritten(node: exp.Expression, within: Scope) -> exp.Expression | None:
    """Return the query that an item of FROM is, if that is PIVOT or UNPIVOT."""
    pivots = node.args.get("pivots") or []
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Pivot) and not pivots:
        return _of_simple(node.this, within)
    if len(pivots) != 1:
        return None
    source, clause = node.copy(), pivots[0]
    source.set("pivots", None)
    source.parent = node.parent  # which names it may use
    fields = clause.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not has_only(fields[0], "this", "expressions"):
        return None
    if clause.args.get("unpivot"):
        plain = has_only(clause, *_CLAUSE, "unpivot", "include_nulls", "value_columns_first")
        if not plain or len(clause.expressions) != 1:
            return None
        named = (fields[0].this.name, clause.expressions[0].name)
        return _stacked(source, fields[0].expressions, named, within, nulls=bool(clause.args.get("include_nulls")))
    if not has_only(clause, *_CLAUSE, "group", *_NAMING):
        return None
    values = [_value_of(value) for value in fields[0].expressions]
    pivot = _Pivot(
        source=source,
        column=fields[0].this,
        values=[value for value in values if value is not None],
        aggregates=clause.expressions,
        keys=_keys_of(clause),
    )
    return None if None in values else _grouped(pivot, within)


def _of_simple(pivot: exp.Expression, within: Scope) -> exp.Expression | None:
    """Return PIVOT t ON c USING SUM(x), or UNPIVOT t ON a, b INTO NAME n VALUE v, as a query."""
    if not pivot.args.get("unpivot"):
        found = _simple(pivot, within) if has_only(pivot, "this", "expressions", "using", "group") else None
        return None if found is None else _grouped(found, within)
    into = pivot.args.get("into")
    if not has_only(pivot, "this", "expressions", "unpivot", "into"):
        return None
    if into is not None and (not has_only(into, "this", "expressions") or len(into.expressions) != 1):
        return None
    named = ("name", "value") if into is None else (into.this.name, into.expressions[0].name)
    return _stacked(pivot.this, pivot.expressions, named, within, nulls=False)


def _simple(pivot: exp.Expression, within: Scope) -> _Pivot | None:
    """Return what PIVOT t ON c USING SUM(x) GROUP BY k says; without IN the values are those that the catalog lists."""
    if len(pivot.expressions) != 1 or not pivot.args.get("using"):
        return None
    (on,) = pivot.expressions
    column = on.this if isinstance(on, exp.In) else on
    if isinstance(on, exp.In):
        values = [_value_of(value) for value in on.expressions] if has_only(on, "this", "expressions") else []
    else:
        values = [*_listed(pivot.this, on, within)]
    if not values or None in values:
        return None
    return _Pivot(
        source=pivot.this,
        column=column,
        values=[value for value in values if value is not None],
        aggregates=pivot.args["using"],
        keys=_keys_of(pivot),
    )


def _keys_of(pivot: exp.Expression) -> Sequence[exp.Expression] | None:
    group = pivot.args.get("group")
    return group.expressions if isinstance(group, exp.Group) and has_only(group, "expressions") else None


def _listed(source: exp.Expression, node: exp.Expression, within: Scope) -> list[tuple[exp.Expression, str]]:
    """Return the values that the catalog lists of a column of a table; nothing if it has others."""
    table = protected_table(source.this, within) if isinstance(source, exp.Table) else None
    if not isinstance(source, exp.Table) or table is None or not is_column(node) or _common(source) is not None:
        return []
    column = next((column for column in table.columns if same_name(node.this, column.name)), None)
    if column is None or column.values is None or column.other is not None:
        return []
    named = [(literal(value), str(value).lower() if isinstance(value, bool) else str(value)) for value in column.values]
    return sorted(named, key=lambda pair: pair[1])


def _value_of(node: exp.Expression) -> tuple[exp.Expression, str] | None:
    """Return a value of a list, and the name of its column: 1, 'a', 'a' AS x, and a name for a text, as in [a]."""
    name = None
    if isinstance(node, exp.PivotAlias):
        node, name = node.this, node.args["alias"].name
    if isinstance(node, exp.Literal | exp.Boolean):
        return node, name or (str(node.this).lower() if isinstance(node, exp.Boolean) else str(node.this))
    if is_column(node) and node.args.get("table") is None:
        return exp.Literal.string(node.name), name or str(node.name)
    return None


def _grouped(pivot: _Pivot, within: Scope) -> exp.Expression | None:
    """Return a PIVOT as aggregates with FILTER by the columns that it does not name."""
    parts = [part.this if type(part) is exp.Alias else part for part in pivot.aggregates]
    plain = all(isinstance(part, exp.AggFunc) for part in parts) and len(pivot.values) * len(parts) <= MOST_COLUMNS
    names = [part.alias if type(part) is exp.Alias else "" for part in pivot.aggregates]
    if not plain or not pivot.values or (len(parts) > 1 and "" in names) or not is_column(pivot.column):
        return None
    keys = pivot.keys
    if keys is None:
        columns = _columns_of(pivot.source, within)
        if columns is None:
            return None
        read = [column.this for part in (pivot.column, *parts) for column in nodes_of(part, exp.Column)]
        kept = [name for name in columns if not any(same_name(node, name) for node in read)]
        keys = [exp.column(name, quoted=True) for name in kept]
    items = [key.copy() for key in keys]
    for value, column in pivot.values:
        for part, name in zip(parts, names, strict=True):
            equal = exp.EQ(this=pivot.column.copy(), expression=value.copy())
            filtered = exp.Filter(this=part.copy(), expression=exp.Where(this=equal))
            called = f"{column}_{name}" if name else column
            items.append(exp.Alias(this=filtered, alias=exp.to_identifier(called, quoted=True)))
    select = exp.Select(expressions=items, from_=exp.From(this=pivot.source.copy()))
    if keys:
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return select


def _stacked(
    source: exp.Expression, read: Sequence[exp.Expression], named: tuple[str, str], within: Scope, *, nulls: bool
) -> exp.Expression | None:
    """Return FROM r UNPIVOT (v FOR n IN (a, b)) as what shows a, and below it b.

    Args:
        named: The columns that say where a value comes from, and which one it is.
        nulls: Whether rows without a value are shown.
    """
    columns = _columns_of(source, within)
    if columns is None or not 0 < len(read) <= MOST_COLUMNS:
        return None
    if not all(is_column(node) and node.args.get("table") is None for node in read):
        return None
    kept = [column for column in columns if not any(same_name(node.this, column) for node in read)]
    legs = []
    for node in read:
        name = next((column for column in columns if same_name(node.this, column)), node.name)
        items: list[exp.Expression] = [exp.column(column, quoted=True) for column in kept]
        items += [_named(exp.Literal.string(name), named[0]), _named(node.copy(), named[1])]
        leg = exp.Select(expressions=items, from_=exp.From(this=source.copy()))
        if not nulls:
            known = exp.Not(this=exp.Is(this=node.copy(), expression=exp.Null()))
            leg.set("where", exp.Where(this=known))
        legs.append(leg)
    return _united(legs)


def _named(value: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _united(legs: Sequence[exp.Expression]) -> exp.Expression:
    """Return one query below the other, no deeper than it need be."""
    if len(legs) == 1:
        return legs[0]
    middle = len(legs) // 2
    return exp.Union(this=_united(legs[:middle]), expression=_united(legs[middle:]), distinct=False)


def _columns_of(source: exp.Expression, within: Scope) -> list[str] | None:
    """Return the names of the columns of an item of FROM; None if the text and the catalog do not say them."""
    if isinstance(source, exp.Subquery):
        return _shown_by(source.this, within)
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    common = _common(source)
    if common is not None:
        return None if common.args["alias"].args.get("columns") else _shown_by(common.this, within)
    table = protected_table(source.this, within)
    if table is not None:
        names, unit = [column.name for column in table.columns], unit_of(table)
        return names if unit is None or unit in names else [unit, *names]
    public = public_table(source.this, within)
    return None if public is None else [column.name for column in public.columns]


def _common(source: exp.Table) -> exp.Expression | None:
    """Return the common table expression that a table of FROM is; None if it is one of the catalog."""
    named = (table for table in reversed(visible_in(source)) if same_name(source.this, str(table.alias)))
    return next(named, None)


def _shown_by(query: exp.Expression, within: Scope) -> list[str] | None:
    """Return the names that a SELECT shows, as tables have them; None if it shows * or something without a name."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return None
    if not all(type(item) is exp.Alias or is_column(item) for item in query.expressions):
        return None
    clause = query.args.get("from_")
    known = [] if clause is None or query.args.get("joins") else _columns_of(clause.this, within) or []
    return [_called(item, known) for item in query.expressions]


def _called(item: exp.Expression, known: Sequence[str]) -> str:
    own = (name for name in known if is_column(item) and same_name(item.this, name))
    return next(own, str(item.alias_or_name))
