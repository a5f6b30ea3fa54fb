"""Lists in FROM: CROSS JOIN UNNEST([1, 2]) AS x, CROSS JOIN (VALUES (1, 'a'), (2, 'b')) AS v (x, y).

Such a join makes as many rows of each row as the list has, and that is what a UNION ALL of as many copies of the table
is, each with its constants. So it needs no proof of its own: a unit has as many more rows, and the values are public
keys, since the union says so.

A list may also compute its values of the row that it is joined to. This turns columns into rows:

    visits AS v CROSS JOIN LATERAL (VALUES ('cost', v.cost), ('pay', v.pay)) AS l (name, amount)

So does CROSS APPLY, and LATERAL (SELECT v.cost + v.pay AS total) has one row. Each copy then computes its own columns
of the row, like a subquery. How many copies there are is a fact of the text.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lapwing.query.from_clause.comma_joins import is_listed
from lapwing.query.text.trees import nodes_of

MOST_LISTED: Final = 50
"""How many rows a list has at most, if there is a copy of the table for each."""
MOST_KEYS: Final = 1_000
"""Rows of a list at most, where each row of the table meets one of them or none."""
Row = tuple[exp.Expression, ...]
Listed = tuple[str, tuple[str, ...], list[Row]]
"""The name of a list, the names of its columns, and its rows."""


def with_listed_values(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT without its first list of constants in FROM; None if there is none that is understood."""
    clause, joins = select.args.get("from_"), select.args.get("joins") or []
    item = getattr(clause, "this", None)
    if not isinstance(item, exp.Table | exp.Subquery) or not item.alias_or_name or not joins:
        return None
    if clause is None or not has_only(clause, "this") or item.args.get("joins"):
        return None
    lists = [_listed(join, item.alias_or_name, alone=len(joins) == 1) for join in joins]
    place = next((i for i, one in enumerate(lists) if one is not None), None)
    listed = None if place is None else lists[place]
    if listed is None or any(join.args.get("side") in ("RIGHT", "FULL") for join in joins[:place]):
        return None  # such a join has rows without these columns, which the list would have as well
    called, names, rows = listed
    copies = [_with_constants(item, names, row) for row in rows]
    alias = item.args.get("alias")
    name = alias.copy() if alias is not None else exp.TableAlias(this=item.this.copy())
    select.set("from_", exp.From(this=exp.Subquery(this=_united(copies), alias=name)))
    select.set("joins", [join for i, join in enumerate(joins) if i != place])
    known = {name.casefold() for name in names}
    for column in nodes_of(select, exp.Column):
        if column.name.casefold() in known and column.table.casefold() == called.casefold():
            column.set("table", None)
    return select


def _listed(join: exp.Expression, beside: str, *, alone: bool) -> Listed | None:
    """Return a list of constants, or of what is computed of the row beside it; None if a join is to anything else.

    Args:
        alone: Whether no other table is in FROM, so that a name without a table is one of these rows.
    """
    item = join.this
    if not isinstance(item, exp.Lateral):
        plain = is_listed(join) and has_only(join, "this", "kind")
        return (list_of(item) or _list_of_row(item, beside, alone=alone)) if plain else None
    inner, alias = item.this, item.args.get("alias")
    if not is_unconditional(item, join) or not isinstance(inner, exp.Subquery) or not has_only(inner, "this"):
        return None
    rows, shown = inner.this, inner.this.expressions
    if isinstance(rows, exp.Select) and has_only(rows, "expressions"):
        named = alias is None or bool(alias.args.get("columns")) or all(type(one) is exp.Alias for one in shown)
        alias = alias.copy() if alias is not None and named else None
        if alias is not None and not alias.args.get("columns"):
            alias.set("columns", [one.args["alias"].copy() for one in shown])
        rows = exp.Values(expressions=[exp.Tuple(expressions=[one.unalias().copy() for one in shown])])
    if not isinstance(rows, exp.Values) or alias is None:
        return None
    rows = rows.copy()
    rows.set("alias", alias.copy())
    return _list_of_row(rows, beside, alone=alone)


def _list_of_row(item: exp.Expression, beside: str, *, alone: bool) -> Listed | None:
    listed = list_of(item, computed=True)
    values = [] if listed is None else [value for row in listed[2] for value in row]
    if any(isinstance(value, exp.Null) for value in values) or not any(value.find(exp.Column) for value in values):
        return list_of(item)
    for node in (part for value in values for part in value.walk()):
        if isinstance(node, exp.Query | exp.AggFunc | exp.Window | exp.Star | exp.Anonymous):
            return None
        own = isinstance(node, exp.Column) and node.table.casefold() in (beside.casefold(), *([""] if alone else []))
        if isinstance(node, exp.Column) and not own:
            return None
    return listed


def is_unconditional(lateral: exp.Expression, join: exp.Expression) -> bool:
    """Tell whether every row beside a LATERAL subquery is joined with all of its rows: ON TRUE, CROSS or a comma."""
    on = join.args.get("on")
    always = on is None or (isinstance(on, exp.Boolean) and on.this)
    sides = str(join.args.get("side") or "").upper() in ("", "LEFT")
    kinds = str(join.args.get("kind") or "").upper() in ("", "CROSS", "INNER", "OUTER")
    own = has_only(lateral, "this", "alias", "cross_apply", "view", "outer") and not lateral.args.get("outer")
    return bool(always and sides and kinds and own and has_only(join, "this", "on", "side", "kind"))


def list_of(
    item: exp.Expression, *, nulls: bool = False, most: int = MOST_LISTED, computed: bool = False
) -> Listed | None:
    """Return what a list of constants is called, the names of its columns, and its rows; NULL in it only if wanted.

    Args:
        computed: Whether anything may stand in it.
    """
    alias, rows = item.args.get("alias"), _rows_of(item)
    if rows is None or alias is None or alias.this is None or not has_only(alias, "this", "columns"):
        return None
    names: tuple[str, ...] = tuple(column.name for column in alias.args.get("columns") or [])
    if not names and isinstance(item, exp.Unnest):
        names = (alias.name,)
    values = [value for row in rows for value in row if not (nulls and isinstance(value, exp.Null))]
    alike = all(len(row) == len(names) for row in rows) and (computed or all(map(_is_constant, values)))
    return (str(alias.name), names, rows) if names and alike and 0 < len(rows) <= most else None


def _rows_of(item: exp.Expression) -> list[Row] | None:
    lists = item.expressions
    if not has_only(item, "expressions", "alias"):
        return None
    if isinstance(item, exp.Values) and all(type(row) is exp.Tuple and has_only(row, "expressions") for row in lists):
        return [tuple(row.expressions) for row in lists]
    if isinstance(item, exp.Unnest) and len(lists) == 1 and values_of_list(lists[0]):
        return [(value,) for value in values_of_list(lists[0])]
    return None


def values_of_list(node: exp.Expression) -> list[exp.Expression]:
    """Return what stands in [1, 2]; nothing if it is no such list."""
    return list(node.expressions) if isinstance(node, exp.Array) and has_only(node, "expressions") else []


def has_only(node: exp.Expression, *names: str) -> bool:
    """Tell whether a node says nothing but what these of its arguments do."""
    return all(name in names or value in (None, False, [], "") for name, value in node.args.items())


def _is_constant(node: exp.Expression) -> bool:
    if isinstance(node, exp.Neg | exp.Cast):  # looked at by whoever binds them
        return _is_constant(node.this)
    return isinstance(node, exp.Literal | exp.Boolean)


def _with_constants(item: exp.Expression, names: Sequence[str], row: Row) -> exp.Select:
    pairs = zip(names, row, strict=True)
    constants = [exp.Alias(this=value.copy(), alias=exp.to_identifier(name, quoted=True)) for name, value in pairs]
    return exp.Select(expressions=[exp.Star(), *constants], from_=exp.From(this=item.copy()))


def _united(copies: Sequence[exp.Expression]) -> exp.Expression:
    """Return the union of copies, no deeper than it need be."""
    if len(copies) == 1:
        return copies[0]
    middle = len(copies) // 2
    return exp.Union(this=_united(copies[:middle]), expression=_united(copies[middle:]), distinct=False)
