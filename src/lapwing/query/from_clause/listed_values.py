"""Lists of constants in FROM: CROSS JOIN UNNEST([1, 2]) AS x, CROSS JOIN (VALUES (1, 'a'), (2, 'b')) AS v (x, y).

Such a join makes as many rows of each row as the list has, and that is what a UNION ALL of as many copies of the table
is, each with its constants. So it needs no proof of its own: a unit has as many more rows, and the values are public
keys, since the union says so.
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


def with_listed_values(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT without its first list of constants in FROM; None if there is none that is understood."""
    clause, joins = select.args.get("from_"), select.args.get("joins") or []
    item = getattr(clause, "this", None)
    place = next((i for i, join in enumerate(joins) if is_listed(join) and list_of(join.this) is not None), None)
    if place is None or not isinstance(item, exp.Table | exp.Subquery) or not item.alias_or_name:
        return None
    if clause is None or not has_only(clause, "this") or not has_only(joins[place], "this", "kind"):
        return None
    listed = list_of(joins[place].this)
    if listed is None or item.args.get("joins"):
        return None
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


def list_of(
    item: exp.Expression, *, nulls: bool = False, most: int = MOST_LISTED
) -> tuple[str, tuple[str, ...], list[Row]] | None:
    """Return what a list of constants is called, the names of its columns, and its rows; NULL in it only if wanted."""
    alias, rows = item.args.get("alias"), _rows_of(item)
    if rows is None or alias is None or alias.this is None or not has_only(alias, "this", "columns"):
        return None
    names: tuple[str, ...] = tuple(column.name for column in alias.args.get("columns") or [])
    if not names and isinstance(item, exp.Unnest):
        names = (alias.name,)
    values = [value for row in rows for value in row if not (nulls and isinstance(value, exp.Null))]
    alike = all(len(row) == len(names) for row in rows) and all(map(_is_constant, values))
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
