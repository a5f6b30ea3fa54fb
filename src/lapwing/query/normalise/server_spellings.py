"""Words of SQL Server: SELECT n = COUNT(*), DATENAME(month, t), DATEADD(day, DATEDIFF(day, 0, t), 0), JSON_VALUE.

`other_spellings` applies these rules. Day 0 is 1900-01-01, a Monday and the first of a month, quarter and year.
So the months since then, added to it, give the beginning of the month of t. Days, quarters and years do the same.
Weeks begin on Sunday: those since day 0 are the Mondays up to the day after t. DATEPART counts weekdays from Sunday,
which is 1. The first of January begins its first week.
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
"""Units that day 0 begins, but for weeks."""
_WEEKDAY: Final = ("WEEKDAY", "DW", "W")
_TIMES: Final = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME)
_TEXTS: Final = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.NVARCHAR, exp.DType.CHAR, exp.DType.NCHAR)
_WEEK: Final = ("WEEK", "WK", "WW")
_BEGUN: Final[Mapping[str, str]] = {**_UNITS, **dict.fromkeys(_WEEK, "WEEK")}
"""Units whose beginning is found by what was counted since day 0."""


def of_server(node: exp.Expression) -> exp.Expression | None:
    """Return a call of SQL Server in other words; None if it is none that is understood."""
    name, parts = str(node.this).upper(), node.expressions
    if not has_only(node, "this", "expressions"):
        return None
    if name == "DATENAME" and len(parts) == 2:
        return _named_part(parts[0], parts[1])
    if name == "DATEPART" and len(parts) == 2 and is_column(parts[0]):
        return _numbered_part(parts[0].name.upper(), parts[1])
    if name == "DATEADD" and len(parts) == 3:
        begun = _beginning(parts[0], [part for part in parts[1:] if not _is_zero(part)])
        if begun is None and _is_zero(parts[2]) and not _is_zero(parts[1]):
            begun = exp.Anonymous(this=node.this, expressions=[*(part.copy() for part in parts[:2]), _day_zero()])
        return begun
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


def _numbered_part(name: str, value: exp.Expression) -> exp.Expression | None:
    """Write DAYOFWEEK(t) + 1 for DATEPART(weekday, t), and the week of DATEPART(week, t) by the first of January."""
    one = exp.Literal.number(1)
    if name in _WEEKDAY[:2]:
        return exp.Paren(this=exp.Add(this=exp.DayOfWeek(this=value.copy()), expression=one))
    if name not in _WEEK:
        return None
    january = exp.DateFromParts(year=exp.Year(this=value.copy()), month=one, day=one.copy())
    days = exp.Add(this=exp.DayOfYear(this=value.copy()), expression=exp.DayOfWeek(this=january))
    weeks = exp.IntDiv(this=exp.Paren(this=exp.Sub(this=days, expression=one.copy())), expression=exp.Literal.number(7))
    return exp.Paren(this=exp.Add(this=weeks, expression=one.copy()))


def since_day_zero(node: exp.Expression) -> exp.Expression | None:
    """Write DATE_DIFF('month', DATE '1900-01-01', t) for DATEDIFF(month, 0, t)."""
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var) or not _is_zero(node.args.get("expression")):
        return None
    later = _next_day(node.this) if unit.name.upper() in _WEEK else node.this.copy()
    return exp.DateDiff(this=later, expression=_day_zero(), unit=unit.copy())


def beginning_of_month(node: exp.Expression) -> exp.Expression | None:
    """Write DATE_TRUNC('month', t) for CAST(CAST(YEAR(t) AS VARCHAR) + '-' + … + '-01' AS DATE)."""
    if not has_only(node, "this", "to") or node.args["to"].this not in _TIMES:
        return None
    joined, parts = node.this, list[exp.Expression]()
    while type(joined) in (exp.Add, exp.DPipe) and len(parts) < 4:
        parts.append(joined.expression)
        joined = joined.this
    year, *others = [joined, *reversed(parts)]
    if len(others) != 3 or [other.name for other in (others[0], others[2])] not in (["-", "-01"], ["-", "-1"]):
        return None
    time, other = _part_as_text(year, "YEAR"), _part_as_text(others[1], "MONTH")
    if not (_is_text(others[0]) and _is_text(others[2])) or time is None or time != other:
        return None
    begun = exp.TimestampTrunc(this=time.copy(), unit=exp.Var(this="MONTH"))
    return exp.Cast(this=begun, to=node.args["to"].copy())


def _part_as_text(node: exp.Expression, unit: str) -> exp.Expression | None:
    """Return t of CAST(YEAR(t) AS VARCHAR) or CAST(DATEPART(year, t) AS VARCHAR); None of anything else."""
    part = node.this if type(node) is exp.Cast and node.args["to"].this in _TEXTS else None
    if isinstance(part, exp.Year | exp.Month) and has_only(part, "this"):
        return part.this if type(part).__name__.upper() == unit else None
    if not isinstance(part, exp.Anonymous) or part.name.upper() != "DATEPART" or len(part.expressions) != 2:
        return None
    named, time = part.expressions
    return time if _UNITS.get(named.name.upper()) == unit else None


def _next_day(value: exp.Expression) -> exp.Expression:
    one = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="DAY"))
    return exp.Add(this=exp.Paren(this=value.copy()), expression=one)


def _day_zero() -> exp.Expression:
    return exp.Cast(this=exp.Literal.string("1900-01-01"), to=exp.DataType(this=exp.DType.DATE))


def _beginning(unit: exp.Expression, rest: list[exp.Expression]) -> exp.Expression | None:
    """Write DATE_TRUNC('month', t) for DATEADD(month, DATEDIFF(month, 0, t), 0), in which 0 is day 0."""
    name = _BEGUN.get(unit.name.upper()) if is_column(unit) or isinstance(unit, exp.Var) else None
    since = rest[0] if len(rest) == 1 else None
    if name is None or not isinstance(since, exp.DateDiff) or not _is_zero(since.args.get("expression")):
        return None
    counted = since.args.get("unit")
    if counted is None or _BEGUN.get(counted.name.upper()) != name:
        return None
    time = _next_day(since.this) if name == "WEEK" else since.this.copy()
    return exp.TimestampTrunc(this=time, unit=exp.Var(this=name))


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
