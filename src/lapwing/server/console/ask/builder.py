"""The query builder as a form: its fields as choices, and choices as rows of fields, the last of each kind empty.

The state of the builder is in the form; the server keeps none of it. If another column is chosen in a row, the other
fields of the row start again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from lapwing.privacy.figures import clip
from lapwing.server.console.ask.choices import (
    EMPTY,
    PERIODS,
    TIMES,
    Choices,
    GroupingColumn,
    Measure,
    RowCondition,
    columns_for,
    comparisons_of,
    complete,
    names_of,
    usual_step,
    values_of,
    written,
)
from lapwing.server.console.ask.reading import choices_of
from lapwing.server.console.data.columns import NUMBERS, ColumnText, TableText

MOST: Final[Mapping[str, int]] = {"m": 3, "k": 3, "w": 5}
"""Rows of measures, keys and conditions."""
MEASURED: Final[Mapping[str, str]] = {
    "rows": "count of rows",
    "people": "count of people",
    "sum": "sum of",
    "average": "average of",
    "median": "median of",
    "share": "share of rows with",
    "distinct": "number of different values of",
}
COMPARED: Final[Mapping[str, str]] = {
    "=": "is",
    "<>": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
    "missing": "is missing",
    "present": "is not missing",
}
MOST_VALUES: Final = 200
"""Listed values in a picker; of more, one types."""
MOST_COLUMNS: Final = 200
LONGEST: Final = 60
"""Characters of a title or a name in a list."""


def first_choices(tables: Sequence[TableText], table: str = "") -> Choices:
    """Return what the builder begins with: the rows of a table, by the first of its columns whose values are listed."""
    protected = [one for one in tables if one.protected and one.columns] or list(tables)
    of = next((one for one in tables if one.name == table), protected[0] if protected else None)
    listed = [] if of is None else [one for one in columns_for("by", of) if "values" in one.facts]
    keys = tuple(GroupingColumn(column=column.name) for column in listed[:1])
    return Choices(table="" if of is None else of.name, measures=(Measure(what="rows"),), keys=keys)


def read(fields: Mapping[str, str], tables: Sequence[TableText]) -> Choices:
    """Return the choices of a form."""
    known = {table.name: table for table in tables}
    if fields.get("table") not in known or fields["table"] != fields.get("table_was", fields["table"]):
        return first_choices(tables, fields.get("table", ""))
    table = known[fields["table"]]
    return Choices(
        table=table.name,
        measures=[_measure(fields, f"m{place}") for place in range(MOST["m"]) if fields.get(f"m{place}")],
        keys=[_key(fields, f"k{place}", table) for place in range(MOST["k"]) if fields.get(f"k{place}")],
        conditions=[_condition(fields, f"w{place}", table) for place in range(MOST["w"]) if fields.get(f"w{place}")],
        sort=fields.get("sort", ""),
        falling=fields.get("order", "falling") == "falling",
        top=fields.get("top", "").strip(),
    )


def _measure(fields: Mapping[str, str], row: str) -> Measure:
    column, was = fields.get(f"{row}_column", ""), fields.get(f"{row}_was", "")
    same = fields.get(f"{row}_named") == f"{fields[row]} {column}"
    return Measure(
        what=fields[row],
        column=column,
        value=fields.get(f"{row}_value", "") if column == was else "",
        name=fields.get(f"{row}_name", "") if same else "",
    )


def _key(fields: Mapping[str, str], row: str, table: TableText) -> GroupingColumn:
    column = fields[row]
    if column != fields.get(f"{row}_was"):
        return GroupingColumn(
            column=column, step=next((usual_step(one) for one in columns_for("by", table) if one.name == column), "")
        )
    step = fields.get(f"{row}_step", "").strip()
    return GroupingColumn(column=column, step=step, name=fields.get(f"{row}_name", ""))


def _condition(fields: Mapping[str, str], row: str, table: TableText) -> RowCondition:
    column, same = fields[row], fields[row] == fields.get(f"{row}_was")
    of = next((one for one in columns_for("where", table) if one.name == column), None)
    comparison = fields.get(f"{row}_is", "=") if same else "="
    if of is not None and comparison not in comparisons_of(of):
        comparison = "="
    value = fields.get(f"{row}_value", "") if same else ""
    return RowCondition(column=column, comparison=comparison, value=value)


def built(fields: Mapping[str, str], sql: str, tables: Sequence[TableText]) -> tuple[dict[str, Any], str]:
    """Return the facts that the template shows, and the SQL: of the fields if they were changed, else `sql`."""
    if "write" in fields or not sql.strip():
        choices: Choices | None = read(fields, tables) if "table" in fields else first_choices(tables)
        table = next((table for table in tables if choices and table.name == choices.table), None)
        sql = sql if table is None or choices is None else written(complete(choices, table), table)
    else:
        choices = choices_of(sql, tables)
        table = next((table for table in tables if choices and table.name == choices.table), None)
    if choices is None or table is None or _is_long(choices):
        return {"readable": False, "written": sql}, sql
    return {"readable": True, "written": sql, **_rows(choices, table, tables)}, sql


def _is_long(choices: Choices) -> bool:
    counts = {"m": choices.measures, "k": choices.keys, "w": choices.conditions}
    return any(len(rows) > MOST[kind] for kind, rows in counts.items())


def _rows(choices: Choices, table: TableText, tables: Sequence[TableText]) -> dict[str, Any]:
    """Return the rows of the form."""
    used = complete(choices, table)
    measures = [_measure_row(measure, table) for measure in choices.measures]
    keys = [_key_row(key, table) for key in choices.keys]
    conditions = [_condition_row(condition, table) for condition in choices.conditions]
    names = names_of(used, table)
    places = [*(f"k{place}" for place in range(len(used.keys))), *(f"m{place}" for place in range(len(used.measures)))]
    return {
        "table": table.name,
        "tables": [(one.name, described(one.name, one.title)) for one in tables if one.columns],
        "measured": [(what, text) for what, text in MEASURED.items() if what == "rows" or columns_for(what, table)],
        "measures": _with_empty(measures, "m", {"what": ""}),
        "by": _described("by", table),
        "keys": _with_empty(keys, "k", {"column": ""}),
        "where": _described("where", table),
        "conditions": _with_empty(conditions, "w", {"column": ""}),
        "sorts": list(zip(places, names, strict=True)),
        "sort": used.sort,
        "falling": choices.falling,
        "top": choices.top,
    }


def _with_empty(rows: list[dict[str, Any]], kind: str, empty: dict[str, Any]) -> list[dict[str, Any]]:
    return rows if len(rows) >= MOST[kind] else [*rows, empty]


def _described(what: str, table: TableText) -> list[tuple[str, str]]:
    """Return the columns for something: the name of each, and what a list shows."""
    return [(column.name, described(column.name, column.title)) for column in columns_for(what, table)[:MOST_COLUMNS]]


def described(name: str, meaning: str) -> str:
    """Return what a list shows for a name or a value: its title or label first, then what the SQL says.

    A list has no markup. So the first part stands in characters that keep its direction inside (Unicode's UAX 9).

    >>> described("sex", "Sex at birth").strip("\u2068"), described("age", "")
    ('Sex at birth\u2069 (sex)', 'age')
    """
    return f"\u2068{clip(meaning, LONGEST)}\u2069 ({clip(name, LONGEST)})" if meaning else name


def _pickable(column: ColumnText) -> list[tuple[str, str]]:
    """Return the values of a column that can be picked, and what a list shows for each."""
    labels = column.facts.get("labels", {})
    return [(value, described(value, labels.get(value, ""))) for value in values_of(column)]


def _measure_row(measure: Measure, table: TableText) -> dict[str, Any]:
    columns = [] if measure.what in ("rows", "people") else _described(measure.what, table)
    column = _column(measure.column, table)
    shown = column is not None and measure.column in dict(columns)
    return {
        "what": measure.what,
        "columns": columns,
        "column": measure.column if shown else "",
        "values": _pickable(column) if column is not None and shown and measure.what == "share" else [],
        "value": measure.value,
        "name": measure.name,
        "lacking": complete(replace(_only(table), measures=(measure,)), table).measures[0].what != measure.what,
    }


def _key_row(key: GroupingColumn, table: TableText) -> dict[str, Any]:
    column = _column(key.column, table)
    kind = "" if column is None else column.type
    ranged = kind in NUMBERS and column is not None and "values" not in column.facts
    return {
        "column": key.column,
        "step": key.step,
        "name": key.name,
        "periods": PERIODS if kind in TIMES else (),
        "ranged": ranged,
    }


def _condition_row(condition: RowCondition, table: TableText) -> dict[str, Any]:
    column = _column(condition.column, table)
    if column is None:
        return {"column": ""}
    values = _pickable(column)
    lacking = not complete(replace(_only(table), conditions=(condition,)), table).conditions
    return {
        "column": condition.column,
        "comparisons": [(sign, _compared(sign, column)) for sign in comparisons_of(column)],
        "comparison": condition.comparison,
        "values": values if len(values) <= MOST_VALUES else [],
        "value": condition.value,
        "hint": column.public if column.type != "boolean" else "",
        "kind": "date" if column.type == "date" else "text",
        "low": str(column.facts.get("lower", ""))[:10],
        "high": str(column.facts.get("upper", ""))[:10],
        "valued": condition.comparison not in EMPTY,
        "lacking": lacking,
    }


def _compared(sign: str, column: ColumnText) -> str:
    times = {"<": "is before", ">": "is after", "<=": "is on or before", ">=": "is on or after"}
    return times.get(sign, COMPARED[sign]) if column.type in TIMES else COMPARED[sign]


def _only(table: TableText) -> Choices:
    return Choices(table=table.name, measures=())


def _column(name: str, table: TableText) -> ColumnText | None:
    return next((column for column in table.columns if column.name == name), None)
