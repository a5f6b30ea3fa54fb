"""Choices of the query builder, and the SQL that they mean. `reading` is the inverse.

`sql_of` is total: what is not complete yet, such as a condition without its value, is left out of the SQL. It decides
nothing about privacy, as its text goes where every text goes. Names and values are quoted, so none becomes SQL.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Final, TypeVar, final

from lapwing.catalog.suggestions import name_in_sql
from lapwing.server.console.data.columns import NUMBERS, ColumnText, TableText

NUMBER: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")
WIDTH: Final = re.compile(r"(?=.*[1-9])[0-9]{1,15}(\.[0-9]{1,15})?")
TOP: Final = re.compile("[1-9][0-9]{0,5}")
TIMES: Final = ("date", "timestamp")
PERIODS: Final = ("day", "week", "month", "quarter", "year")
EQUAL: Final = ("=", "<>")
COMPARISONS: Final = (*EQUAL, "<", "<=", ">", ">=")
EMPTY: Final[Mapping[str, str]] = {"missing": "IS NULL", "present": "IS NOT NULL"}
MEASURES: Final[Mapping[str, tuple[str, str]]] = {
    "rows": ("COUNT(*)", "n"),
    "people": ("COUNT(DISTINCT {})", "people"),
    "sum": ("SUM({})", "sum_{}"),
    "average": ("AVG({})", "average_{}"),
    "median": ("MEDIAN({})", "median_{}"),
    "share": ("AVG(CASE WHEN {} = {} THEN 1 ELSE 0 END)", "share_{}"),
    "distinct": ("COUNT(DISTINCT {})", "distinct_{}"),
}
"""Each measure in SQL, and the usual name of its column."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure of a column, or a count of rows or people.

    Args:
        value: Of a share: which value's.
        name: Of its column in the result; empty for the usual one.
    """

    what: str
    column: str = ""
    value: str = ""
    name: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingColumn:
    """A column that makes groups.

    Args:
        step: The width of ranges of a number, empty for each value; a period of a date.
        name: Of its column in the result; empty for the usual one.
    """

    column: str
    step: str = ""
    name: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowCondition:
    """A condition on the rows that count."""

    column: str
    comparison: str = "="
    value: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """A query as choices.

    Args:
        sort: By which column of the result: "k" or "m" with its place among the keys or measures; empty for none.
        top: How many rows, empty for all.
    """

    table: str
    measures: Sequence[Measure]
    keys: Sequence[GroupingColumn] = ()
    conditions: Sequence[RowCondition] = ()
    sort: str = ""
    falling: bool = False
    top: str = ""


_Shown = TypeVar("_Shown", GroupingColumn, Measure)


# ---- what a column can be used for ----


def columns_for(what: str, table: TableText) -> list[ColumnText]:
    """Return the columns that a measure, "by" or "where" may name."""
    return [column for column in table.columns if may_use(what, column)]


def may_use(what: str, column: ColumnText) -> bool:
    """Tell whether a column can be chosen for something, by what is public of it."""
    facts, bounded = column.facts, "lower" in column.facts
    listed = "values" in facts or column.type == "boolean"
    if what == "people" or column.is_unit:
        return what == "people" and column.is_unit
    if what in ("sum", "average", "median"):
        return column.type in NUMBERS and bounded
    if what == "share":
        return listed
    if what == "by":
        return listed or (bounded and column.type in (*NUMBERS, *TIMES))
    return what in ("distinct", "where") and bool(column.type)


def values_of(column: ColumnText) -> list[str]:
    """Return the values of a column that can be picked, none if they are not listed."""
    if column.type == "boolean":
        return ["true", "false"]
    return [str(value) for value in column.facts.get("values", ())]


def comparisons_of(column: ColumnText) -> tuple[str, ...]:
    """Return how a column can be compared."""
    return (*(COMPARISONS if column.type in (*NUMBERS, *TIMES) else EQUAL), *EMPTY)


def literal(column: ColumnText, value: str) -> str | None:
    """Write a value as a column's, in SQL; None if it cannot be one."""
    if column.type in NUMBERS:
        return value if NUMBER.fullmatch(value) else None
    if column.type == "boolean":
        return value.upper() if value in ("true", "false") else None
    if column.type in TIMES:
        return f"{column.type.upper()} '{value}'" if is_time(column.type, value) else None
    return "'" + value.replace("'", "''") + "'" if value or "" in values_of(column) else None


def is_time(kind: str, value: str) -> bool:
    """Tell whether a text is a date, or a moment with or without its time of day."""
    form = r"[0-9]{4}-[0-9]{2}-[0-9]{2}" + (r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?" if kind == "timestamp" else "")
    try:
        return bool(re.fullmatch(form, value)) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def usual_step(column: ColumnText) -> str:
    """Return the step by which groups of a column are proposed: few enough to be read."""
    if column.type in TIMES:
        ends = [date.fromisoformat(str(column.facts[end])[:10]) for end in ("lower", "upper")]
        days = (ends[1] - ends[0]).days
        return "day" if days <= 31 else "month" if days <= 1500 else "year"
    if column.type not in NUMBERS or "values" in column.facts:
        return ""
    lower, upper, step = (Fraction(str(column.facts.get(end, 1))) for end in ("lower", "upper", "step"))
    if (upper - lower) / step <= 20:
        return ""
    width = 1
    while (upper - lower) / width > 20:
        width *= 10
    return str(width)


# ---- choices, as far as they are complete ----


def complete(choices: Choices, table: TableText) -> Choices:
    """Return the choices that mean something of a table; counts of rows if nothing is measured."""
    columns = {column.name: column for column in table.columns}
    found = [one for one in (_key(one, columns) for one in choices.keys) if one is not None]
    keys = tuple({(key.column, key.step): key for key in found}.values())
    measured = [one for one in (_measure(one, columns, table) for one in choices.measures) if one is not None]
    measures = tuple(dict.fromkeys(measured)) or (Measure(what="rows"),)
    usual = usual_names(keys, measures, table)
    keys = tuple(_unless(key, name) for key, name in zip(keys, usual, strict=False))
    measures = tuple(_unless(measure, name) for measure, name in zip(measures, usual[len(keys) :], strict=True))
    keys, measures = _apart(keys, measures, table)
    known = {*(f"k{place}" for place in range(len(keys))), *(f"m{place}" for place in range(len(measures)))}
    sort = choices.sort if choices.sort in known else ""
    return Choices(
        table=table.name,
        measures=measures,
        keys=keys,
        conditions=tuple(one for one in (_condition(one, columns) for one in choices.conditions) if one is not None),
        sort=sort,
        falling=choices.falling and bool(sort),
        top=choices.top if TOP.fullmatch(choices.top) else "",
    )


def _measure(measure: Measure, columns: Mapping[str, ColumnText], table: TableText) -> Measure | None:
    if measure.what == "rows":
        return replace(measure, column="", value="")
    if measure.what == "people":
        units = columns_for("people", table)
        return replace(measure, column=units[0].name, value="") if units else None
    column = columns.get(measure.column)
    if measure.what not in MEASURES or column is None or not may_use(measure.what, column):
        return None
    if measure.what != "share":
        return replace(measure, value="")
    return measure if literal(column, measure.value) is not None else None


def _key(key: GroupingColumn, columns: Mapping[str, ColumnText]) -> GroupingColumn | None:
    column = columns.get(key.column)
    if column is None or not may_use("by", column):
        return None
    if column.type in TIMES:
        return replace(key, step=key.step if key.step in PERIODS else "day")
    return replace(key, step=key.step if column.type in NUMBERS and WIDTH.fullmatch(key.step) else "")


def _condition(condition: RowCondition, columns: Mapping[str, ColumnText]) -> RowCondition | None:
    column = columns.get(condition.column)
    if column is None or not may_use("where", column) or condition.comparison not in comparisons_of(column):
        return None
    if condition.comparison in EMPTY:
        return replace(condition, value="")
    return condition if literal(column, condition.value) is not None else None


# ---- the SQL ----


def sql_of(choices: Choices, table: TableText) -> str:
    """Write the SQL that choices mean."""
    return written(complete(choices, table), table)


def written(choices: Choices, table: TableText) -> str:
    """Write the SQL of complete choices."""
    columns = {column.name: column for column in table.columns}
    names = names_of(choices, table)
    keys = [key_in_sql(key, columns[key.column]) for key in choices.keys]
    measures = [measure_in_sql(measure, columns) for measure in choices.measures]
    shown = [
        expression if expression == name_in_sql(name) else f"{expression} AS {name_in_sql(name)}"
        for expression, name in zip((*keys, *measures), names, strict=True)
    ]
    lines = [f"SELECT {', '.join(shown)}", f"FROM {table.written}"]
    if choices.conditions:
        said = [condition_in_sql(condition, columns[condition.column]) for condition in choices.conditions]
        lines.append(f"WHERE {' AND '.join(said)}")
    if keys:
        lines.append(f"GROUP BY {', '.join(keys)}")
    if choices.sort:
        place = int(choices.sort[1:]) + (len(keys) if choices.sort[0] == "m" else 0)
        lines.append(f"ORDER BY {name_in_sql(names[place])}{' DESC' if choices.falling else ''}")
    if choices.top:
        lines.append(f"LIMIT {choices.top}")
    return "\n".join(lines)


def names_of(choices: Choices, table: TableText) -> list[str]:
    """Return the names of the columns of the result: keys, then measures."""
    return _names(choices.keys, choices.measures, table)


def _names(keys: Sequence[GroupingColumn], measures: Sequence[Measure], table: TableText) -> list[str]:
    shown: list[GroupingColumn | Measure] = [*keys, *measures]
    return [one.name or name for one, name in zip(shown, usual_names(keys, measures, table), strict=True)]


def usual_names(keys: Sequence[GroupingColumn], measures: Sequence[Measure], table: TableText) -> list[str]:
    """Return what the columns of a result are called if nobody says it: no two the same, and none a column's name."""
    kinds = {column.name: column.type for column in table.columns}
    taken, names = {name.casefold() for name in kinds}, list[str]()
    shown: list[GroupingColumn | Measure] = [*keys, *measures]
    for one in shown:
        if isinstance(one, GroupingColumn):
            usual, own = _name_of_key(one, kinds[one.column]), one.column
        else:
            usual, own = MEASURES[one.what][1].replace("{}", one.column), None
        name, count = usual, 1
        while name.casefold() in taken and name != own:
            count += 1
            name = f"{usual}_{count}"
        taken.add(name.casefold())
        names.append(name)
    return names


def _unless(one: _Shown, usual: str) -> _Shown:
    """Return a key or measure without its name, if it is the usual one."""
    return replace(one, name="") if one.name == usual else one


def _apart(
    keys: tuple[GroupingColumn, ...], measures: tuple[Measure, ...], table: TableText
) -> tuple[tuple[GroupingColumn, ...], tuple[Measure, ...]]:
    """Return keys and measures of which no two have one name; usual names are in the place of those that repeat."""
    folded = [name.casefold() for name in _names(keys, measures, table)]
    if len(set(folded)) == len(folded):
        return keys, measures
    bare = dict.fromkeys(replace(measure, name="") for measure in measures)
    return tuple(replace(key, name="") for key in keys), tuple(bare)


def _name_of_key(key: GroupingColumn, kind: str) -> str:
    if kind in NUMBERS:
        return f"{key.column}_from" if key.step else key.column
    plain = not key.step or (key.step == "day" and kind == "date")
    return key.column if plain else f"{key.column}_{key.step}"


def key_in_sql(key: GroupingColumn, column: ColumnText) -> str:
    """Write the expression that makes groups."""
    if not key.step or (key.step == "day" and column.type == "date"):
        return column.written
    if column.type in NUMBERS:
        return f"FLOOR({column.written} / {key.step}) * {key.step}"
    if key.step == "day":
        return f"CAST({column.written} AS DATE)"
    return f"DATE_TRUNC('{key.step}', {column.written})"


def measure_in_sql(measure: Measure, columns: Mapping[str, ColumnText]) -> str:
    """Write a measure."""
    form = MEASURES[measure.what][0]
    if measure.what == "rows":
        return form
    column = columns[measure.column]
    return form.format(column.written, literal(column, measure.value) if measure.what == "share" else "")


def condition_in_sql(condition: RowCondition, column: ColumnText) -> str:
    """Write a condition."""
    if condition.comparison in EMPTY:
        return f"{column.written} {EMPTY[condition.comparison]}"
    return f"{column.written} {condition.comparison} {literal(column, condition.value)}"
