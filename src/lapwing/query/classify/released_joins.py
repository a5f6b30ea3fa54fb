"""Joins of rows to the groups of a result, of which conditions and aggregates read columns.

    employees AS e JOIN (SELECT department, AVG(salary) AS a … GROUP BY department) AS d USING (department)
    WHERE e.salary > d.a

The result is grouped by only the joined column. So at most one row of it has a value of that column, and a row meets
that one or none. The result is asked for first (`bind.released_columns`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, tables_of_with
from lapwing.query.expressions.rows import is_column, same_name
from lapwing.query.from_clause.common_tables import bare, named_before, tables_of, with_named
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope, protected_table, public_table
from lapwing.query.from_clause.select_list import placed


@dataclass(frozen=True, slots=True)
class ReleasedJoin:
    """A join to a result.

    Args:
        join: The join in the tree.
        query: The query of the result.
        key: The name of its only key.
        outer: The column of the rows that equals the key.
        keys: The places that name the key.
        columns: The places that name other columns of the result.
    """

    join: exp.Join
    query: exp.Select
    key: str
    outer: exp.Expression
    keys: tuple[exp.Column, ...]
    columns: tuple[exp.Column, ...]

    @property
    def is_left(self) -> bool:
        """Tell whether rows without a group stay."""
        return bool(self.join.args.get("side"))


def released_joins(select: exp.Select, kinds: Kinds, within: Scope) -> list[ReleasedJoin]:
    """Return the joins of rows to results, in order."""
    joins: list[exp.Join] = select.args.get("joins") or []
    if not joins or not all(map(commutes, joins)) or RelationKind.PROTECTED not in kinds.in_from(select):
        return []
    return [found for join in joins if (found := _released(join, select, kinds, within)) is not None]


def commutes(join: exp.Join) -> bool:
    """Tell whether a condition on the rows of the left side may come before or after a join."""
    kind, side = (str(join.args.get(name) or "").upper() for name in ("kind", "side"))
    return not join.args.get("method") and side in ("", "LEFT") and kind in ("", "INNER", "OUTER")


def _released(join: exp.Join, select: exp.Select, kinds: Kinds, within: Scope) -> ReleasedJoin | None:
    item, alias = join.this, join.this.args.get("alias")
    if not isinstance(item, exp.Subquery | exp.Table) or not has_only(item, "this", "alias"):  # TABLESAMPLE
        return None
    if alias is not None and not has_only(alias, "this"):
        return None
    if isinstance(item, exp.Table):
        query, before = named_before(item, select)
    else:
        query, before = bare(item.this), tables_of_with(select)
    if not isinstance(query, exp.Select) or not item.alias_or_name:
        return None
    key = only_key(query)
    if key is None or kinds.of(query, before) is not RelationKind.RELEASED:
        return None
    outer = compared(join, item.alias_or_name, key)
    named = None if outer is None else _named(item.alias_or_name, query, join, select, within)
    if outer is None or named is None:
        return None
    keys = tuple(column for column in named if same_name(column.this, key))
    columns = tuple(column for column in named if not same_name(column.this, key))
    if not all(map(_is_over_rows, columns)) or (keys and join.args.get("side")):
        return None
    return ReleasedJoin(join, with_named(query, before), key, outer, keys, columns)


def _named(name: str, query: exp.Select, join: exp.Join, select: exp.Select, within: Scope) -> list[exp.Column] | None:
    """Return where a SELECT names columns of a result; None where a name may mean something else, or is a star."""
    if any(shown.is_star for shown in select.expressions):
        return None
    shared = {column.name.casefold() for column in join.args.get("using") or ()}
    names, found = {column.alias_or_name.casefold() for column in query.expressions}, list[exp.Column]()
    for column in _columns(select, join):
        if column.table.casefold() == name.casefold():
            found.append(column)
        elif not column.table and column.name.casefold() in names - shared:
            if _may_be_of_others(column, join, select, within):
                return None
            found.append(column)
    return found if all(is_column(column) and column.parent_select is select for column in found) else None


def _columns(select: exp.Select, join: exp.Join) -> Iterator[exp.Column]:
    """Yield the columns that may be of a result that is joined: none of another table or subquery in FROM is."""
    for name, value in select.args.items():
        for node in value if isinstance(value, list) else [value]:
            if name in ("with_", "from_") or node is join or not isinstance(node, exp.Expression):
                continue
            inside = node.this if isinstance(node, exp.Join) and isinstance(node.this, exp.Subquery) else None
            here = [part for part in node.iter_expressions() if part is not inside] if inside is not None else [node]
            for part in here:
                yield from part.find_all(exp.Column)


def _may_be_of_others(column: exp.Column, join: exp.Join, select: exp.Select, within: Scope) -> bool:
    """Tell whether a name without a table may be that of another column of FROM, or of the SELECT list."""
    if any(type(item) is exp.Alias and same_name(column.this, item.alias) for item in select.expressions):
        return True
    others = [item for item in tables_of(select) if item is not join.this]
    return any(_may_have(item, column, select, within) for item in others)


def _may_have(item: exp.Expression, column: exp.Column, select: exp.Select, within: Scope) -> bool:
    """Tell whether something in FROM may have a column: what is no table of the catalog may have any."""
    if not isinstance(item, exp.Table) or named_before(item, select)[0] is not None:
        return True
    protected, public = protected_table(item.this, within), public_table(item.this, within)
    names = [own.name for table in (protected, public) if table is not None for own in table.columns]
    names += [] if protected is None or protected.unit_is_row else [str(protected.privacy_unit)]
    return not names or any(same_name(column.this, name) for name in names)


def _is_over_rows(column: exp.Column) -> bool:
    """Tell whether a column stands in WHERE, or in an aggregate that is no window over a result."""
    around = column.find_ancestor(exp.Where, exp.AggFunc, exp.Filter, exp.Join, exp.Window)
    return isinstance(around, exp.Where | exp.AggFunc | exp.Filter) and column.find_ancestor(exp.Window) is None


def only_key(query: exp.Expression) -> str | None:
    """Return what the one column is called by which a SELECT groups; None if it shows no such column."""
    group = query.args.get("group") if isinstance(query, exp.Select) else None
    if group is None and isinstance(query, exp.Select):
        return _handed_on(query)
    if group is None or len(group.expressions) != 1 or any(v for k, v in group.args.items() if k != "expressions"):
        return None
    items, first = list(query.expressions), group.expressions[0]
    item = placed(first, items)
    by: exp.Expression = first if item is None else item.this if type(item) is exp.Alias else item
    found = [item.alias_or_name for item in items if is_column(by) and item.unalias() == by]
    return found[0] if len(found) == 1 else None


def _handed_on(query: exp.Select) -> str | None:
    """Return what a SELECT calls the only key of a result that it computes row by row; None if it is none."""
    clause = query.args.get("from_")
    inner = bare(clause.this.this) if clause is not None and isinstance(clause.this, exp.Subquery) else None
    if inner is None or not has_only(query, "expressions", "from_") or is_aggregated(query):
        return None
    key = only_key(inner)
    found = [item.alias_or_name for item in query.expressions if is_column(item.unalias())]
    named = [item.unalias().name for item in query.expressions if is_column(item.unalias())]
    places = [place for place, name in enumerate(named) if key is not None and name.casefold() == key.casefold()]
    return found[places[0]] if len(places) == 1 else None


def compared(join: exp.Join, name: str, key: str) -> exp.Expression | None:
    """Return the column of the rows that a join compares with the key, if that is all that it compares.

    Args:
        name: The name of the result in FROM.
    """
    using: list[exp.Expression] = join.args.get("using") or []
    on = join.args.get("on")
    if len(using) == 1 and on is None and same_name(using[0], key):
        return exp.Column(this=using[0].copy())
    while isinstance(on, exp.Paren):
        on = on.this
    if using or not isinstance(on, exp.EQ) or not (is_column(on.this) and is_column(on.expression)):
        return None
    sides: list[exp.Expression] = [on.args["this"], on.args["expression"]]
    for own, other in (sides, sides[::-1]):
        place, beside = own.text("table").casefold(), other.text("table").casefold()
        is_key = same_name(own.this, key) and place in ("", name.casefold())
        if is_key and beside != name.casefold() and (place or not same_name(other.this, key)):
            return other
    return None
