"""Bind FROM and subqueries: which rows a question is about, as a relation over the rows of one protected table.

A subquery that only chooses and computes columns leaves no trace: its expressions are put where its columns are named.
One that groups by the privacy unit, removes duplicates, unites, joins or looks around in windows becomes a relation.
What would mix the rows of different units (GROUP BY without the unit, LIMIT, a window over all) is refused.
"""

from dataclasses import replace

from sqlglot import exp

from lapwing.catalog.model import Table
from lapwing.catalog.public import PublicTable
from lapwing.errors import QueryRefused
from lapwing.query.expression import Column, Expression
from lapwing.query.joins import bind_join
from lapwing.query.limits import MOST_NESTED, MOST_RELATIONS, MOST_ROWS_PER_UNIT, MOST_VIEWS, require_small
from lapwing.query.memberships import bind_where
from lapwing.query.parse import parse
from lapwing.query.per_unit import bind_aggregates, is_aggregated
from lapwing.query.relations import Distinct, Kept, PublicRows, Selection, fresh, nesting_of, size_of, table_of
from lapwing.query.rows import Rows, Source, only, refusal, same_name
from lapwing.query.scope import Input, PublicInput, Scope, condition, conjunction, filtered, renamed, rows_of
from lapwing.query.select_list import SelectList, bind_list, with_aliases
from lapwing.query.unions import parts_of, united
from lapwing.query.windows import bind_windows, windows_in

__all__ = ["Scope", "bind_from", "rows_of"]


def bind_from(select: exp.Select, scope: Scope) -> tuple[Input, Scope]:
    """Bind the WITH, FROM, JOIN and WHERE clauses of a question."""
    first, scope = _first(select, scope)
    return _from(select, first, scope), scope


def _first(select: exp.Select, scope: Scope) -> tuple[Input | PublicInput, Scope]:
    """Bind the WITH clause of a SELECT, and what FROM begins with."""
    scope = _with(select, scope)
    clause = select.args.get("from_")
    if clause is None:
        raise refusal(scope.nowhere, select, "The question has no FROM", scope.tables)
    only(scope.nowhere, clause, "this")
    return _item(clause.this, scope), scope


def _from(select: exp.Select, first: Input | PublicInput, scope: Scope) -> Input:
    """Bind the JOIN and WHERE clauses of a SELECT."""
    if isinstance(first, PublicInput):
        reason = f"'{first.source.name}' is a public table: no answer about it alone needs protection"
        place = select.args["from_"].this
        raise refusal(scope.nowhere, place, reason, "Begin FROM with a protected table and join the public one.")
    bound = first
    for join in select.args.get("joins") or []:
        bound = bind_join(join, bound, _item(join.this, scope), scope)
    bound = bind_where(select, bound, scope, subquery=_unnamed, item=_item)
    _check_size(bound.selection, select, scope)
    return bound


def _check_size(selection: Selection, node: exp.Expression, scope: Scope) -> None:
    relation = selection.relation
    if selection.where is not None:
        require_small(selection.where, node, scope.nowhere)
    if size_of(relation) > MOST_RELATIONS or nesting_of(relation) > MOST_NESTED:
        reason = f"Subqueries, joins and unions are more than {MOST_RELATIONS}, or more than {MOST_NESTED} deep"
        raise refusal(scope.nowhere, node, reason, "Use fewer.")
    if selection.rows_per_unit > max(MOST_ROWS_PER_UNIT, table_of(relation).max_rows_per_unit):
        reason = f"Joins and unions multiply the rows of a unit beyond {MOST_ROWS_PER_UNIT:,}"
        raise refusal(scope.nowhere, node, reason, "Join on columns whose values are rarer, or fewer tables.")


# ---- what FROM may name ---------------------------------------------------------------------------------------------


def _with(select: exp.Expression, scope: Scope) -> Scope:
    clause = select.args.get("with_")
    if clause is None:
        return scope
    only(scope.nowhere, clause, "expressions")
    for node in clause.expressions:
        only(scope.nowhere, node, "this", "alias")
        alias = node.args["alias"]
        only(scope.nowhere, alias, "this")
        only(scope.nowhere, alias.this, "this", "quoted")
        name = alias.this.name
        if any(name.casefold() == known.casefold() for known in scope.named):
            raise refusal(scope.nowhere, node, f"Two subqueries are called '{name}'", "Rename one.")
        scope = replace(scope, named={**scope.named, name: _subquery(node.this, name, scope)})
    return scope


def _item(node: exp.Expression, scope: Scope) -> Input | PublicInput:
    """Bind a table, a view, a common table expression or a subquery in parentheses."""
    if isinstance(node, exp.Subquery):
        only(scope.nowhere, node, "this", "alias")
        return _subquery(node.this, _alias(node, scope) or "subquery", scope)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refusal(scope.nowhere, node, "FROM takes tables of the catalog and subqueries", scope.tables)
    only(scope.nowhere, node, "this", "alias")
    only(scope.nowhere, node.this, "this", "quoted")
    name = _alias(node, scope)
    for known, bound in scope.named.items():
        if same_name(node.this, known):
            return renamed(bound, name or known)
    for table in scope.catalog.tables:
        if same_name(node.this, table.name):
            return _kept(table, name or table.name)
    for public in scope.catalog.public_tables:
        if same_name(node.this, public.name):
            return _public(public, name or public.name, scope)
    for view in scope.catalog.views:
        if same_name(node.this, view.name):
            return _view(view.name, view.sql, name or view.name, node, scope)
    raise refusal(scope.nowhere, node, f"There is no table '{node.name}'", scope.tables)


def _alias(node: exp.Expression, scope: Scope) -> str | None:
    alias = node.args.get("alias")
    if alias is None:
        return None
    only(scope.nowhere, alias, "this")
    only(scope.nowhere, alias.this, "this", "quoted")
    return str(alias.name)


def _kept(table: Table, name: str) -> Input:
    relation = Kept(table=table)
    unit = None if table.unit_is_row else table.privacy_unit
    columns: dict[str, Expression] = {column.name: column for column in relation.columns}
    return Input(selection=Selection(relation=relation), sources=(Source(name=name, columns=columns, unit=unit),))


def _public(table: PublicTable, name: str, scope: Scope) -> PublicInput:
    columns = scope.facts.columns(table)
    named: dict[str, Expression] = {column.name: column for column in columns}
    return PublicInput(
        rows=PublicRows(table=table, digest=f"{table.digest} {scope.facts.digest(table)}", columns=columns),
        source=Source(name=name, columns=named),
    )


def _view(view: str, sql: str, name: str, node: exp.Expression, scope: Scope) -> Input | PublicInput:
    """Open a view of the catalog: a text of the curator's, with names of its own."""
    if view in scope.within:
        raise refusal(scope.nowhere, node, f"The view '{view}' opens itself", "Let the curator mend the catalog.")
    if len(scope.within) == MOST_VIEWS:
        raise refusal(scope.nowhere, node, f"More than {MOST_VIEWS} views open one another", "Use fewer.")
    inner = replace(scope, text=sql, named={}, within=(*scope.within, view))
    try:
        return _subquery(parse(sql).plain(), name, inner)
    except QueryRefused as refused:
        raise refusal(scope.nowhere, node, f"In the view '{view}': {refused.reason}", refused.remedy) from None


# ---- subqueries -----------------------------------------------------------------------------------------------------


def _unnamed(node: exp.Expression, scope: Scope) -> Input | PublicInput:
    return _subquery(node, "subquery", scope)


def _subquery(node: exp.Expression, name: str, scope: Scope) -> Input | PublicInput:
    """Bind a SELECT, or a UNION ALL of them, inside another."""
    if isinstance(node, exp.Subquery):
        only(scope.nowhere, node, "this")
        return _subquery(node.this, name, scope)
    if isinstance(node, exp.SetOperation):
        parts = parts_of(node, scope)
        scope = _with(node, scope)
        found = united(node, [_subquery(part, name, scope) for part in parts], name, scope)
        return _without_duplicates(node, found, scope) if node.args.get("distinct") else found
    if not isinstance(node, exp.Select):
        what = "A join in parentheses" if isinstance(node, exp.Table) else f"{node.key.upper()} in parentheses"
        raise refusal(scope.nowhere, node, f"{what} is not answered", "Write (SELECT … FROM …).")
    for clause in ("order", "limit", "offset"):
        if node.args.get(clause) is not None:
            raise refusal(
                scope.nowhere,
                node.args[clause],
                f"{clause.upper()} in a subquery would choose among the rows of different units",
                "Leave it out, or rank within the unit: ROW_NUMBER() OVER (PARTITION BY unit ORDER BY …).",
            )
    only(scope.nowhere, node, *_CLAUSES)
    first, inner = _first(node, scope)
    if isinstance(first, PublicInput) and not node.args.get("joins"):
        return _public_subquery(node, first, name, inner)
    return _protected_subquery(node, first, name, inner)


def _without_duplicates(node: exp.Expression, found: Input, scope: Scope) -> Input:
    """Bind UNION, which is UNION ALL made distinct."""
    (source,) = found.sources
    shown = SelectList(columns=source.columns, unit=source.unit, unit_place=found.unit_place)
    bound, shown = _distinct(node, found, shown, rows_of(found, scope), "UNION")
    return replace(bound, sources=(replace(source, columns=shown.columns),))


_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "qualify", "with_")


def _public_subquery(node: exp.Select, bound: PublicInput, name: str, scope: Scope) -> PublicInput:
    """Bind a SELECT over one public table: its columns and a condition."""
    only(scope.nowhere, node, "expressions", "from_", "where", "distinct", "with_")
    rows = rows_of(bound, scope)
    columns: dict[str, Expression] = {}
    for shown, expression in bind_list(node, rows).columns.items():
        if not isinstance(expression, Column):
            raise refusal(rows, node, "A subquery over a public table takes its columns alone", "Name columns.")
        columns[shown] = expression
    where = conjunction(bound.rows.where, condition(node.args.get("where"), rows, "WHERE"))
    if where is not None:
        require_small(where, node, rows)
    chosen = replace(bound.rows, where=where)
    if node.args.get("distinct") is not None:
        only(rows, node.args["distinct"])
        distinct = tuple(column for column in chosen.columns if column in columns.values())
        chosen = replace(chosen, columns=distinct, distinct=True)
    return PublicInput(rows=chosen, source=Source(name=name, columns=columns))


def _protected_subquery(node: exp.Select, first: Input | PublicInput, name: str, scope: Scope) -> Input:
    bound = _from(node, first, scope)
    rows = rows_of(bound, scope)
    if is_aggregated(node):
        selection, rows = bind_aggregates(node, bound.selection, rows)
        having = condition(node.args.get("having"), with_aliases(node.args.get("having"), node, rows), "HAVING")
        bound = Input(selection=filtered(selection, having), sources=())
    elif node.args.get("having") is not None:
        raise refusal(rows, node.args["having"], "HAVING without GROUP BY", "Write WHERE.")
    found = windows_in(node)
    if found:
        selection, rows = bind_windows(found, bound.selection, rows)
        bound = replace(bound, selection=selection)
    qualify = condition(node.args.get("qualify"), with_aliases(node.args.get("qualify"), node, rows), "QUALIFY")
    bound = replace(bound, selection=filtered(bound.selection, qualify))
    shown = bind_list(node, rows)
    if node.args.get("distinct") is not None:
        only(rows, node.args["distinct"])
        bound, shown = _distinct(node, bound, shown, rows)
    _check_size(bound.selection, node, scope)
    source = Source(name=name, columns=shown.columns, unit=shown.unit)
    return Input(selection=bound.selection, sources=(source,), unit_place=shown.unit_place)


def _distinct(
    node: exp.Expression, bound: Input, shown: SelectList, rows: Rows, name: str = "DISTINCT"
) -> tuple[Input, SelectList]:
    if shown.unit is None:
        reason = f"{name} without the privacy unit would merge the rows of different units"
        remedy = "Add the privacy unit to the SELECT list, or ask for COUNT(DISTINCT x)."
        raise refusal(rows, node, reason, remedy)
    expressions = tuple(sorted(dict.fromkeys(shown.columns.values()), key=str))
    named = fresh("d", [expression.type for expression in expressions], bound.selection.relation)
    relation = Distinct(source=bound.selection, columns=named, expressions=expressions)
    places = dict(zip(expressions, named, strict=True))
    columns: dict[str, Expression] = {name: places[value] for name, value in shown.columns.items()}
    return replace(bound, selection=Selection(relation=relation)), replace(shown, columns=columns)
