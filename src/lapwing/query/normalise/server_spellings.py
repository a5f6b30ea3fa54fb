"""Words of SQL Server: SELECT n = COUNT(*), DATENAME(month, t), DATEADD(day, DATEDIFF(day, 0, t), 0), JSON_VALUE.

`other_spellings` applies these rules. Day 0 is 1900-01-01, a Monday and the first of a month, quarter and year.
So the months since then, added to it, give the beginning of the month of t. Days, quarters and years do the same.
"""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from lapwing.query.classify.kinds import items_of, tables_of_with, visible_in
from lapwing.query.expressions.rows import is_column, same_name
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope, protected_table, public_table
from lapwing.query.relations.relation import unit_of

_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("DAY", "DD", "D"), "DAY"),
    **dict.fromkeys(("MONTH", "MM", "M"), "MONTH"),
    **dict.fromkeys(("QUARTER", "QQ", "Q"), "QUARTER"),
    **dict.fromkeys(("YEAR", "YY", "YYYY"), "YEAR"),
}
"""Units that day 0 begins. Weeks begin on Sunday in SQL Server, and day 0 is a Monday."""
_WEEKDAY: Final = ("WEEKDAY", "DW", "W")


def of_server(node: exp.Expression) -> exp.Expression | None:
    """Return a call of SQL Server in other words; None if it is none that is understood."""
    name, parts = str(node.this).upper(), node.expressions
    if not has_only(node, "this", "expressions"):
        return None
    if name == "DATENAME" and len(parts) == 2:
        return _named_part(parts[0], parts[1])
    if name == "DATEADD" and len(parts) == 3:
        return _beginning(parts[0], [part for part in parts[1:] if not _is_zero(part)])
    if name == "JSON_VALUE" and len(parts) == 2 and _is_text(parts[1]):
        return exp.JSONValue(this=parts[0].copy(), path=DuckDB().to_json_path(parts[1]))
    return None


def _named_part(unit: exp.Expression, value: exp.Expression) -> exp.Expression | None:
    """Write MONTHNAME(t), DAYNAME(t), or a part of a time as a text, for DATENAME(unit, t)."""
    name = unit.name.upper() if is_column(unit) or isinstance(unit, exp.Var) else ""
    if name in _WEEKDAY:
        return exp.Dayname(this=value.copy())
    known = _UNITS.get(name)
    if known == "MONTH":
        return exp.Monthname(this=value.copy())
    if known is None:
        return None
    part = exp.Extract(this=exp.Var(this=known), expression=value.copy())
    return exp.Cast(this=part, to=exp.DataType(this=exp.DType.TEXT))


def _beginning(unit: exp.Expression, rest: list[exp.Expression]) -> exp.Expression | None:
    """Write DATE_TRUNC('month', t) for DATEADD(month, DATEDIFF(month, 0, t), 0), in which 0 is day 0."""
    name = _UNITS.get(unit.name.upper()) if is_column(unit) or isinstance(unit, exp.Var) else None
    since = rest[0] if len(rest) == 1 else None
    if name is None or not isinstance(since, exp.DateDiff) or not _is_zero(since.expression):
        return None
    counted = since.args.get("unit")
    if counted is None or _UNITS.get(counted.name.upper()) != name:
        return None
    return exp.TimestampTrunc(this=since.this.copy(), unit=exp.Var(this=name))


def _is_zero(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.this == "0"


def with_named_items(select: exp.Expression, within: Scope) -> exp.Expression | None:
    """Write COUNT(*) AS n for n = COUNT(*) in a SELECT list, where no table of FROM has a column n."""
    if not isinstance(select, exp.Select):
        return None
    places = [place for place, item in enumerate(select.expressions) if _may_name(item)]
    known = _columns_of(select, within) if places else None
    if known is None:
        return None
    items, changed = list(select.expressions), False
    for place in places:
        name, value = items[place].this, items[place].expression
        if not any(same_name(name.this, column) for column in known):
            items[place], changed = exp.Alias(this=value, alias=name.this), True
    select.set("expressions", items)
    return select if changed else None


def _may_name(item: exp.Expression) -> bool:
    plain = isinstance(item, exp.EQ) and has_only(item, "this", "expression")
    return plain and is_column(item.this) and item.this.args.get("table") is None


def _columns_of(select: exp.Select, within: Scope) -> list[str] | None:
    """Return the names of all columns of what FROM names; None if it names more than tables of the catalog."""
    named = [str(table.alias) for table in (*visible_in(select), *tables_of_with(select))]
    found = list[str]()
    for item in items_of(select):
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            return None
        identifier = item.this
        protected = protected_table(identifier, within)
        public = public_table(identifier, within)
        table = protected or public
        if table is None or any(same_name(identifier, name) for name in named):
            return None
        found += [column.name for column in table.columns]
        found += [] if protected is None else [unit_of(protected) or ""]
    return found


def _is_text(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and has_only(node, "this", "is_string") and node.is_string
