"""The least and the greatest of different values, which are the least and the greatest of the rows.

    SELECT MIN(m) AS a, MAX(m) AS b FROM (SELECT DATE_TRUNC('month', day) AS m FROM visits GROUP BY 1) AS q

The groups of a result are all public values of its keys, with rows or without. So the least of these would be a bound
of the catalog. MIN and MAX are the same however often a value is there, and pass over NULL: they are asked of the rows.
"""

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, visible_in
from lapwing.query.expressions.rows import is_column
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope
from lapwing.query.from_clause.select_list import placed
from lapwing.query.text.trees import nodes_of


def with_extremes_of_rows(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return MIN and MAX of the keys of a result as MIN and MAX of its rows; None if a SELECT is anything else."""
    clause = select.args.get("from_")
    if clause is None or not has_only(clause, "this"):
        return None
    item = clause.this
    if not isinstance(item, exp.Subquery) or not has_only(item, "this", "alias"):
        return None
    if item.alias and not has_only(item.args["alias"], "this"):  # names of its own for columns
        return None
    inner = item.this
    columns = [column for column in nodes_of(select, exp.Column) if column.parent_select is select]
    if not has_only(select, "expressions", "from_", "with_") or not columns or not isinstance(inner, exp.Select):
        return None
    if not all(isinstance(column.parent, exp.Min | exp.Max) and has_only(column.parent, "this") for column in columns):
        return None
    inside = {id(node) for node in nodes_of(inner)}
    others = [node for node in nodes_of(select, exp.AggFunc, exp.Window, exp.Filter) if id(node) not in inside]
    if not all(isinstance(node, exp.Min | exp.Max) for node in others):
        return None
    values = _keys(inner)
    names = ("", str(item.alias).casefold())
    known = all(is_column(c) and c.table.casefold() in names and c.name.casefold() in values for c in columns)
    if not known or Kinds(within).of(inner, visible_in(inner)) is not RelationKind.RELEASED:
        return None
    return _of_rows(select, values)


def _of_rows(select: exp.Select, values: dict[str, exp.Expression]) -> exp.Select:
    new = select.copy()
    inner = new.args["from_"].this.this
    for column in [column for column in nodes_of(new, exp.Column) if column.parent_select is new]:
        column.replace(values[column.name.casefold()].copy())
    for part in ("joins", "where", "from_"):
        new.set(part, inner.args.get(part))
    return new


def _keys(inner: exp.Select) -> dict[str, exp.Expression]:
    """Return the columns of a SELECT of different values; none of any other."""
    if not has_only(inner, "expressions", "from_", "joins", "where", "group"):
        return {}
    group, items = inner.args.get("group"), inner.expressions
    if group is None or not has_only(group, "expressions"):
        return {}
    values = {item.alias_or_name.casefold(): item.unalias() for item in items}
    keys = list[exp.Expr]()
    for key in group.expressions:
        item = placed(key, items)
        keys.append(key if item is None else item.unalias())
        if is_column(key) and not key.args.get("table"):
            keys.append(values.get(key.name.casefold(), key))  # an item's name
    shown = all(value in keys for value in values.values())
    plain = not any(value.find(exp.Query, exp.AggFunc, exp.Window, exp.Star) for value in values.values())
    return values if shown and plain and "" not in values and len(values) == len(items) else {}
