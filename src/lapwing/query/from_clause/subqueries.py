"""Bind a FROM clause with joins, subqueries, views or WITH, as a relation over rows that carry the privacy unit.

A subquery that only chooses and computes columns leaves no trace: its expressions are put where its columns are named.
One that groups by the privacy unit, removes duplicates, unites, joins or looks around in windows becomes a relation.
What would mix the rows of different units (GROUP BY without the unit, LIMIT, a window over all) is refused.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, cast

from sqlglot import exp

from lapwing.catalog.protection import noun_of, rows_of_several, units_of
from lapwing.catalog.public import PublicTable
from lapwing.catalog.suggestions import meant
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.attempts import MEETINGS
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal
from lapwing.query.expressions.rows import RowScope, TableReference, attempted, same_name
from lapwing.query.expressions.unknown_names import suggesting
from lapwing.query.expressions.weight import require_small
from lapwing.query.from_clause.comma_joins import bind_listed, is_inner, is_listed
from lapwing.query.from_clause.conditions import condition, conjunction, conjuncts, filtered
from lapwing.query.from_clause.groupings import bind_aggregates, is_aggregated
from lapwing.query.from_clause.memberships import bind_where
from lapwing.query.from_clause.outer_joins import check_aggregates
from lapwing.query.from_clause.public_joins import bind_join
from lapwing.query.from_clause.row_identifiers import with_row_numbers, with_units_as_they_are
from lapwing.query.from_clause.scope import (
    Input,
    KnownSelect,
    PublicInput,
    Scope,
    kept,
    protected_table,
    public_table,
    renamed,
    rows_of,
)
from lapwing.query.from_clause.select_list import SelectList, bind_list, with_aliases
from lapwing.query.from_clause.unions import aligned, parts_of, united, units_alike
from lapwing.query.from_clause.unit_joins import compared
from lapwing.query.from_clause.unit_windows import bind_windows, definitions_in, windows_in
from lapwing.query.relations.fresh_columns import fresh, with_read
from lapwing.query.relations.node import Relation
from lapwing.query.relations.once_a_unit import once_a_unit
from lapwing.query.relations.public_rows import PublicRows
from lapwing.query.relations.relation import FilteredRows, tables_of, units_of_row
from lapwing.query.relations.set_operations import DistinctRows
from lapwing.query.relations.size import MOST_NESTED, MOST_VIEWS, require_bounded_size
from lapwing.query.text.parse import parse
from lapwing.query.text.plain import plain
from lapwing.query.text.trees import nodes_of

CORRECT_VIEW: Final = "correct the view in the catalog"


def bind_composed(select: exp.Select, scope: Scope, *, sharing: bool) -> tuple[Input, Scope]:
    """Bind the WITH, FROM, JOIN and WHERE clauses of a question, whatever they have.

    Args:
        sharing: Whether rows of different units may meet where they cannot be kept apart.
    """
    if not sharing:
        return _composed(select, scope)
    apart = attempted(MEETINGS, _composed, select, scope)
    return _composed(select, replace(scope, sharing=True)) if isinstance(apart, QueryRefused) else apart


def _composed(select: exp.Select, scope: Scope) -> tuple[Input, Scope]:
    first, scope = _first(select, scope)
    input_ = _from(select, first, _conditions(select, scope), scope)
    if input_.dark is not None:
        check_aggregates(select, rows_of(input_, scope), input_.dark)
    return input_, scope


def _first(select: exp.Select, scope: Scope) -> tuple[Input | PublicInput, Scope]:
    """Bind the WITH clause of a SELECT, and what FROM begins with."""
    scope = _with(select, scope)
    clause = select.args.get("from_")
    if clause is None:
        raise scope.nowhere.refusal(select, RefusalCause.NO_FROM, "The query has no FROM", _tables(scope))
    scope.nowhere.only(clause, "this")
    return _item(clause.this, scope), scope


def _conditions(select: exp.Select, scope: Scope) -> Sequence[exp.Expression]:
    """Return what stands in WHERE, joined by AND."""
    clause = select.args.get("where")
    if clause is None:
        return []
    scope.nowhere.only(clause, "this")
    return conjuncts(clause.this, scope.nowhere)


def _joined_rows(select: exp.Select, where: Sequence[exp.Expression], scope: Scope) -> Input:
    """Bind what an EXISTS has in FROM, and those of its conditions that are about that alone."""
    first, scope = _first(select, scope)
    return _from(select, first, where, scope)


def _from(select: exp.Select, first: Input | PublicInput, where: Sequence[exp.Expression], scope: Scope) -> Input:
    """Bind the JOIN clauses of a SELECT, and conditions: once, though it is asked before whose rows these are."""
    if not select.args.get("joins"):
        return _joined_from(select, first, where, scope)
    place = (id(select), *where, scope.sharing)
    input_ = _once(select, place, scope, lambda: _joined_from(select, first, where, scope))
    return cast(Input, input_)


def _joined_from(
    select: exp.Select, first: Input | PublicInput, where: Sequence[exp.Expression], scope: Scope
) -> Input:
    """Bind them now."""
    joins = list(select.args.get("joins") or [])
    if len(joins) >= MOST_NESTED:
        raise scope.nowhere.refusal(
            select, RefusalCause.TOO_MANY_TABLES, f"FROM has more than {MOST_NESTED} tables", "Use fewer."
        )
    inner = bool(joins) and all(map(is_inner, joins))
    if any(map(is_listed, joins)) or (inner and (scope.sharing or _begins_with_public(first, joins, scope))):

        def asked(part: exp.Expression, rows: Input) -> Input:
            return bind_where([part], rows, scope, subquery=unnamed, item=_item, several=_joined_rows)

        input_, where = bind_listed(select, first, joins, where, scope, _item, asked)
    else:
        place = (id(select), "joins", scope.sharing)
        input_ = cast(Input, _once(select, place, scope, lambda: _joined(select, first, joins, scope)))
    input_ = bind_where(where, input_, scope, subquery=unnamed, item=_item, several=_joined_rows)
    require_bounded_size(input_.selection, select, scope.nowhere)
    return input_


def _begins_with_public(first: Input | PublicInput, joins: Sequence[exp.Expression], scope: Scope) -> bool:
    """Tell whether FROM joins public tables first, and something else after them."""
    return isinstance(first, PublicInput) and len(joins) > 1 and isinstance(_item(joins[0].this, scope), PublicInput)


def _joined(select: exp.Select, first: Input | PublicInput, joins: list[exp.Expression], scope: Scope) -> Input:
    """Bind joins that say what they join on, one after the other."""
    input_ = (
        _mirrored(select, first, joins.pop(0) if joins else None, scope) if isinstance(first, PublicInput) else first
    )
    for join in joins:
        input_ = bind_join(join, input_, _item(join.this, scope), scope)
    return input_


def _mirrored(select: exp.Select, first: PublicInput, join: exp.Expression | None, scope: Scope) -> Input:
    """Bind FROM public JOIN protected, which is the other way round what a protected table joins."""
    place = select.args["from_"].this
    name = place.name or first.source.name  # of the table, whatever it is called here
    second = None if join is None else _item(join.this, scope)
    if second is None:
        reason = f"'{name}' is a public table: no answer about it alone needs protection"
        remedy = "Begin FROM with a protected table and join the public one, or read the file and write a constant."
        raise scope.nowhere.refusal(place, RefusalCause.ONLY_PUBLIC_TABLES, reason, remedy)
    if join is None or isinstance(second, PublicInput):
        reason = f"'{name}' and what is joined to it first are public tables"
        raise scope.nowhere.refusal(
            place,
            RefusalCause.ONLY_PUBLIC_TABLES,
            reason,
            "Begin FROM with the protected table and join the public ones.",
        )
    return bind_join(join, second, first, scope, mirrored=True)


def rows_in_from(
    select: exp.Select, named: Sequence[exp.Expression], where: Sequence[exp.Expression], scope: Scope
) -> Input | PublicInput:
    """Bind what FROM of a SELECT gives, whatever is done with it.

    Args:
        named: Common table expressions that it may name.
        where: Conditions that compare its tables.
    """
    for table in named:
        scope = replace(scope, named={**scope.named, str(table.alias): _subquery(table.this, str(table.alias), scope)})
    first = _item(select.args["from_"].this, scope)
    return _from(select, first, where, scope) if isinstance(first, Input) or select.args.get("joins") else first


# ---- what FROM may name ---------------------------------------------------------------------------------------------


def _with(select: exp.Expression, scope: Scope) -> Scope:
    clause = select.args.get("with_")
    if clause is None:
        return scope
    scope.nowhere.only(clause, "expressions")
    for node in clause.expressions:
        scope.nowhere.only(node, "this", "alias")
        alias = node.args["alias"]
        scope.nowhere.only(alias, "this")
        scope.nowhere.only(alias.this, "this", "quoted")
        name = alias.this.name
        if any(name.casefold() == known.casefold() for known in scope.named):
            raise scope.nowhere.refusal(
                node, RefusalCause.DUPLICATE_NAME, f"Two subqueries are called '{name}'", "Rename one."
            )
        scope = replace(scope, named={**scope.named, name: _subquery(node.this, name, scope)})
    return scope


def _item(node: exp.Expression, scope: Scope) -> Input | PublicInput:
    """Bind a table, a view, a common table expression or a subquery in parentheses."""
    if isinstance(node, exp.Subquery):
        scope.nowhere.only(node, "this", "alias")
        alias = node.args.get("alias")
        named = alias.args.get("columns") if alias is not None else None
        further = ["columns"] if isinstance(named, list) else []
        found = _subquery(node.this, scope.nowhere.alias_of(node, *further) or "subquery", scope)
        return _with_names(node, found, named, scope) if isinstance(named, list) and named else found
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise scope.nowhere.refusal(
            node, RefusalCause.SUBQUERY_NOT_SUPPORTED, "FROM takes tables of the catalog and subqueries", _tables(scope)
        )
    scope.nowhere.only(node, "this", "alias")
    scope.nowhere.only(node.this, "this", "quoted")
    name = scope.nowhere.alias_of(node)
    for known, input_ in scope.named.items():
        if same_name(node.this, known):
            return renamed(input_, name or known)
    table = protected_table(node.this, scope)
    if table is not None:
        return kept(table, name or table.name, scope)
    public = public_table(node.this, scope)
    if public is not None:
        return _public(public, name or public.name, scope)
    for view in scope.catalog.views:
        if same_name(node.this, view.name):
            return _view(view.name, view.sql, name or view.name, node, scope)
    refused = scope.nowhere.refusal(
        node, RefusalCause.UNKNOWN_TABLE, f"There is no table '{node.name[:60]}'", _tables(scope, node.name)
    )
    raise suggesting(refused, node.name, _names_in_from(scope))


def _tables(scope: Scope, name: str = "") -> str:
    """Say what FROM may name, first what resembles a name that nothing has."""
    return meant("Tables", name, _names_in_from(scope))


def _names_in_from(scope: Scope) -> list[str]:
    catalog = scope.catalog
    protected, public = [table.name for table in catalog.tables], [table.name for table in catalog.public_tables]
    return [*protected, *public, *(view.name for view in catalog.views), *scope.named]


def _with_names(
    node: exp.Expression, input_: Input | PublicInput, names: Sequence[exp.Expression], scope: Scope
) -> Input | PublicInput:
    """Rename the columns of a subquery: (SELECT …) AS s (a, b)."""
    source = input_.source if isinstance(input_, PublicInput) else input_.sources[0]
    old = list(source.columns)
    if isinstance(input_, Input) and source.unit is not None and source.unit not in source.columns:
        if input_.unit_place is None:
            reason = f"The subquery shows all columns, {source.unit} somewhere among them"
            raise scope.nowhere.refusal(
                node, RefusalCause.STAR_NOT_SUPPORTED, reason, "Name the columns in its SELECT list."
            )
        old.insert(input_.unit_place, source.unit)
    for name in names:
        scope.nowhere.only(name, "this", "quoted")
    new = [str(name.name) for name in names]
    if len(new) != len(old) or len({name.casefold() for name in new}) < len(new):
        raise scope.nowhere.refusal(
            node,
            RefusalCause.COLUMN_LIST_MISMATCH,
            f"The subquery has {len(old)} columns",
            "Name each of them, all different.",
        )
    called = dict(zip(old, new, strict=True))
    columns = {called[name]: value for name, value in source.columns.items()}
    shown = replace(source, columns=columns, unit=called.get(source.unit or ""))
    return replace(input_, source=shown) if isinstance(input_, PublicInput) else replace(input_, sources=(shown,))


def _public(table: PublicTable, name: str, scope: Scope) -> PublicInput:
    columns = scope.facts.columns(table)
    named: dict[str, Expression] = {column.name: column for column in columns if column.cleaned is None}
    return PublicInput(
        rows=PublicRows(table=table, digest=f"{table.digest} {scope.facts.digest(table)}", columns=columns),
        source=TableReference(name=name, columns=named),
    )


def _view(view: str, sql: str, name: str, node: exp.Expression, scope: Scope) -> Input | PublicInput:
    """Open a view of the catalog: a text of the curator's, with names of its own."""
    if view in scope.within:
        reason = f"The view '{view}' opens itself"
        raise scope.nowhere.refusal(node, RefusalCause.INVALID_VIEW, reason, curator_remedy=CORRECT_VIEW)
    if len(scope.within) == MOST_VIEWS:
        raise scope.nowhere.refusal(
            node, RefusalCause.TOO_MANY_TABLES, f"More than {MOST_VIEWS} views open one another", "Use fewer."
        )
    inner = replace(scope, text=sql, named={}, within=(*scope.within, view))
    with scope.nowhere.pointing(node, lambda reason: f"In the view '{view}': {reason}"):
        return _subquery(query_of_view(sql, inner), name, inner)


def query_of_view(sql: str, scope: Scope) -> exp.Expression:
    """Return what a view's text says in parentheses, which is what it means; so it may also be a UNION ALL."""
    whole = plain(parse(f"SELECT * FROM (\n{sql.rstrip().rstrip(';')}\n)"))
    scope.nowhere.only(whole, "expressions", "from_")
    inner = whole.args["from_"].this
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select | exp.SetOperation):
        reason = "It is not a subquery"
        raise scope.nowhere.refusal(whole, RefusalCause.INVALID_VIEW, reason, curator_remedy=CORRECT_VIEW)
    scope.nowhere.only(inner, "this")
    return inner.this


# ---- subqueries -----------------------------------------------------------------------------------------------------


def unnamed(node: exp.Expression, scope: Scope) -> Input | PublicInput:
    """Bind a subquery that stands in a condition."""
    return _subquery(node, "subquery", scope)


def _subquery(node: exp.Expression, name: str, scope: Scope) -> Input | PublicInput:
    """Bind a SELECT, or a UNION, INTERSECT or EXCEPT of them, inside another: each once."""
    if isinstance(node, exp.Subquery):
        scope.nowhere.only(node, "this")
        return _subquery(node.this, name, scope)
    return _once(node, (id(node), name, scope.sharing), scope, lambda: _select_inside(node, name, scope))


def _once(
    node: exp.Expression, place: object, scope: Scope, bind: Callable[[], Input | PublicInput]
) -> Input | PublicInput:
    """Return what a SELECT, or a part of it, was bound to: bound now, unless it was before, with names of this meaning.

    Args:
        place: Which part of the node. Its identity tells it from others, because the node is held.
    """
    tables = {table.name.casefold() for table in nodes_of(node, exp.Table)} if scope.named else set[str]()
    named = {known: input_ for known, input_ in scope.named.items() if known.casefold() in tables}
    known = scope.known.get(place)
    if known is None or not known.is_of(node, named):
        known = scope.known[place] = KnownSelect(node=node, digest=hash(node), named=named, bound=bind())
    return known.bound


def _select_inside(node: exp.Expression, name: str, scope: Scope) -> Input | PublicInput:
    if isinstance(node, exp.SetOperation):
        parts = parts_of(node, scope)
        scope = _with(node, scope)
        sides = units_alike([_subquery(part, name, scope) for part in parts])
        for side in sides:
            if isinstance(side, Input):
                require_bounded_size(side.selection, node, scope.nowhere)
        if not isinstance(node, exp.Union):
            left, right = aligned(node, sides, scope)
            return compared(node, _without_duplicates(node, left, scope), right, scope)
        union = united(node, sides, name, scope)
        return _without_duplicates(node, union, scope) if node.args.get("distinct") else union
    if not isinstance(node, exp.Select):
        what = "A join in parentheses" if isinstance(node, exp.Table) else f"{node.key.upper()} in parentheses"
        raise scope.nowhere.refusal(
            node, RefusalCause.CLAUSE_NOT_SUPPORTED, f"{what} is not supported", "Write (SELECT … FROM …)."
        )
    first, inner = _first(node, scope)
    _refuse_order(node, first, scope)
    scope.nowhere.only(node, *_CLAUSES)
    if isinstance(first, PublicInput) and not node.args.get("joins"):
        return _public_subquery(node, first, name, inner)
    return _protected_subquery(node, first, name, inner)


def _without_duplicates(node: exp.Expression, union: Input, scope: Scope) -> Input:
    """Bind UNION, which is UNION ALL made distinct."""
    (source,) = union.sources
    shown = SelectList(columns=source.columns, unit=source.unit, unit_place=union.unit_place)
    input_, shown = _distinct(node, union, shown, rows_of(union, scope), "UNION")
    return replace(input_, sources=(replace(source, columns=shown.columns),))


_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "qualify", "windows", "with_")


def _public_subquery(node: exp.Select, input_: PublicInput, name: str, scope: Scope) -> PublicInput:
    """Bind a SELECT over one public table: columns, what is computed of them, and a condition."""
    beyond = node.args.get("group") or next(
        (part for item in node.expressions if (part := item.find(exp.AggFunc, exp.Window)) is not None), None
    )
    if beyond is not None:
        reason = "A subquery over a public table shows its rows here, without aggregates and windows"
        remedy = "Ask for it alone, which is free, and join its rows as a list: JOIN (VALUES ('a', 2), …) AS f (k, n)."
        raise scope.nowhere.refusal(beyond, RefusalCause.CLAUSE_NOT_SUPPORTED, reason, remedy)
    scope.nowhere.only(node, "expressions", "from_", "where", "distinct", "with_")
    rows = rows_of(input_, scope)
    columns: dict[str, Expression] = {}
    for shown, expression in bind_list(node, rows).columns.items():
        if node.args.get("distinct") is not None and not isinstance(expression, ColumnReference):
            reason = "DISTINCT in a subquery over a public table takes only its columns"
            raise rows.refusal(node, RefusalCause.DISTINCT_NOT_SUPPORTED, reason, "Leave it out, or name columns.")
        columns[shown] = expression
    where = conjunction(input_.rows.where, condition(node.args.get("where"), rows, "WHERE"))
    if where is not None:
        with rows.pointing(node):
            require_small(where)
    chosen = replace(input_.rows, where=where)
    if node.args.get("distinct") is not None:
        rows.only(node.args["distinct"])
        named = {*columns.values()}
        distinct = tuple(column for column in chosen.columns if column in named or column.cleaned in named)
        chosen = replace(chosen, columns=distinct, distinct=True)
    return PublicInput(rows=chosen, source=TableReference(name=name, columns=columns))


def _protected_subquery(node: exp.Select, first: Input | PublicInput, name: str, scope: Scope) -> Input:
    input_ = _from(node, first, _conditions(node, scope), scope)
    rows = rows_of(input_, scope)
    node = with_units_as_they_are(with_row_numbers(node, rows), rows)
    if is_aggregated(node):
        selection, rows = bind_aggregates(node, input_.selection, rows, scope.catalog)
        having = condition(node.args.get("having"), with_aliases(node.args.get("having"), node, rows), "HAVING")
        input_ = Input(selection=filtered(selection, having), sources=())
    elif node.args.get("having") is not None:
        raise rows.refusal(
            node.args["having"], RefusalCause.HAVING_WITHOUT_GROUP_BY, "HAVING without GROUP BY", "Write WHERE."
        )
    windows, definitions = windows_in(node), definitions_in(node, rows)
    if windows:
        selection, rows = bind_windows(windows, definitions, input_.selection, rows)
        input_ = replace(input_, selection=selection)
    qualify = condition(node.args.get("qualify"), with_aliases(node.args.get("qualify"), node, rows), "QUALIFY")
    input_ = replace(input_, selection=filtered(input_.selection, qualify))
    shown = bind_list(node, rows)
    if node.args.get("distinct") is not None:
        rows.only(node.args["distinct"])
        input_, shown = _distinct(node, input_, shown, rows)
    require_bounded_size(input_.selection, node, scope.nowhere)
    if units_of_row(input_.selection.relation) > 1:  # none of them is the unit
        shown = replace(shown, unit=None, unit_place=None)
    source = TableReference(name=name, columns=shown.columns, unit=shown.unit)
    return Input(selection=input_.selection, sources=(source,), unit_place=shown.unit_place)


def _refuse_order(node: exp.Select, first: Input | PublicInput, scope: Scope) -> None:
    """Refuse ORDER BY, LIMIT and OFFSET over protected rows, which would choose among those of several people."""
    tables = tables_of(first.selection.relation) if isinstance(first, Input) else ()
    several, noun = rows_of_several(tables) if tables else "rows of several people", noun_of(tables)
    ranked = f", or rank the rows of {units_of(tables)}: ROW_NUMBER() OVER (PARTITION BY {noun} ORDER BY …)"
    for clause, named in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if node.args.get(clause) is not None:
            raise scope.nowhere.refusal(
                node.args[clause],
                RefusalCause.MIXES_UNITS,
                f"{named} in a subquery would choose among {several}",
                f"Leave it out{ranked if noun not in ('', 'row') else ''}.",
            )


def _distinct(
    node: exp.Expression, input_: Input, shown: SelectList, rows: RowScope, name: str = "DISTINCT"
) -> tuple[Input, SelectList]:
    if shown.unit is None:
        tables = tables_of(input_.selection.relation)
        whose = rows.unit or noun_of(tables)
        reason = f"{name} here would merge {rows_of_several(tables)}"
        add = f"Add {whose} to the SELECT list, or ask" if whose != "row" else "Ask"
        remedy = f"{add} for COUNT(DISTINCT x)."
        if any(join.args.get("side") == "LEFT" for join in node.args.get("joins") or ()):
            first = node.args["from_"].this.alias_or_name
            remedy = f"Add {first}.{whose} to the SELECT list, which a LEFT JOIN keeps, or ask for COUNT(DISTINCT x)."
        raise rows.refusal(node, RefusalCause.MIXES_UNITS, reason, remedy)
    expressions = tuple(sorted(dict.fromkeys(shown.columns.values()), key=str))
    named = fresh("d", [expression.type for expression in expressions], input_.selection.relation)
    named, further = with_read(named, expressions)
    every, values = (*named, *further), (*expressions, *further.values())
    key = shown.columns.get(shown.unit)
    distinct = DistinctRows(source=input_.selection, columns=every, expressions=values)
    units = bool(values) and all(value == key or isinstance(value, Literal) for value in expressions)
    relation: Relation = once_a_unit(distinct) if units else distinct
    places = dict(zip(expressions, named, strict=True))
    columns: dict[str, Expression] = {name: places[value] for name, value in shown.columns.items()}
    return replace(input_, selection=FilteredRows(relation=relation)), replace(shown, columns=columns)
