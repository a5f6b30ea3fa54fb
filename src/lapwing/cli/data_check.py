"""What `lapwing data check` has found, as a page and as a document."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from rich.text import Text

from lapwing.catalog.condition import in_words
from lapwing.cli.console import Fitted, labelled, new_table, text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from lapwing.catalog.model import Column
    from lapwing.engines.data_check import ColumnCheck, TableCheck, UnitCheck

PRIVATE: Final = (
    "Exact figures of the data, without noise: for the curator, not for publication. Nothing that is known from here "
    "alone may go into the catalog."
)
NOUNS: Final = {
    "integer": "an integer",
    "decimal": "a number",
    "float": "a number",
    "boolean": "true or false",
    "date": "a date like 2024-12-31",
    "timestamp": "a timestamp like 2024-12-31 23:59:59",
}


def as_document(check: "TableCheck") -> dict[str, object]:
    """Return what was found of a table, as JSON has it."""
    units = check.units
    return {
        "table": check.table.name,
        "source": check.table.source,
        "where": in_words(check.table.where) or None,
        "passes": check.passes,
        "rows": check.rows,
        "columns": [
            {**asdict(column), "examples": [{"value": value, "times": times} for value, times in column.examples]}
            for column in check.columns
        ],
        "units": None
        if units is None
        else {
            "column": units.column,
            "units": units.units,
            "rows_without_unit": units.without,
            "most_rows_of_one": units.greatest,
            "limits": [
                {"max_rows_per_unit": most, "rows_left_out": rows, "units_cut": cut, "declared": most == units.most}
                for most in units.choices()
                for rows, cut in [units.beyond(most)]
            ],
        },
        "repeated_keys": [{"columns": list(key), "values": values} for key, values in check.repeated],
    }


def as_page(checks: "Sequence[TableCheck]") -> "list[RenderableType]":
    """Return what was found of tables, as people read it."""
    parts: list[RenderableType] = []
    for check in checks:
        parts += [text(_headline(check), "bold"), Text(), Fitted(_columns(check)), Text()]
        found = list(_findings(check))
        if found:
            parts += [labelled(*found), Text()]
        if check.units is not None and check.units.units:
            parts += [Fitted(_limits(check.units, check.rows)), Text()]
    return [*parts, labelled(("private", PRIVATE))]


def _headline(check: "TableCheck") -> str:
    among = f", of which {in_words(check.table.where)}" if check.table.where else ""
    rows = f"{check.table.name} ({check.table.source}{among}): {_counted(check.rows, 'row')}"
    if check.units is None:
        return f"{rows}, each a unit of its own"
    whose = "" if check.units.column is None else f" of {check.units.column}"
    return f"{rows}, {_counted(check.units.units, 'unit')}{whose}, the largest with {check.units.greatest:,}"


def _columns(check: "TableCheck") -> "Table":
    numbers = ("different", "NULL", "not of the type", "outside")
    table = new_table("column", "type", *numbers, "range", numbers=numbers)
    for column in check.columns:
        unfit = column.unreadable + column.fractions
        outside = sum(count or 0 for count in (column.below, column.above, column.unlisted, column.too_long))
        cells = [f"{count:,}" for count in (column.distinct, column.nulls, unfit, outside)]
        table.add_row(*map(text, (column.name, column.type, *cells, _range(column))))
    return table


def _range(column: "ColumnCheck") -> str:
    if column.longest is not None:
        return f"up to {_counted(column.longest, 'byte')}"
    return "" if column.least is None else f"{column.least} to {column.greatest}"


def _findings(check: "TableCheck") -> Iterator[tuple[str, str]]:
    """Yield what is worth a word of each column, and of the rows, with its name."""
    declared = {column.name: column for column in check.table.columns}
    for column in check.columns:
        for said in _said(column, declared[column.name], check.rows):
            yield column.name, said
    for key, values in check.repeated:
        said = f"in several rows, so that whose a row is that leads there is not clear: {_counted(values, 'value')}"
        yield ", ".join(key), said
    units = check.units
    if units is not None and units.without:
        why = "whose key leads nowhere" if units.column is None else "without a unit that can be read"
        yield check.table.name, f"{why}, and so for no question: {_counted(units.without, 'row')}"


def _said(column: "ColumnCheck", declared: "Column", rows: int) -> Iterator[str]:
    examples = ", ".join(f"{value!r} ({times:,})" for value, times in column.examples)
    if column.unreadable:
        values = _counted(column.unreadable, "value")
        said = f"not {NOUNS.get(column.type, column.type)}, counted as NULL: {values}, like {examples}"
        yield said + _way_of_writing([str(value) for value, _ in column.examples])
    if column.fractions:
        yield f"not whole, and rounded: {_counted(column.fractions, 'value')}, like {examples}"
    for count, side, bound in ((column.below, "below", declared.lower), (column.above, "above", declared.upper)):
        if count:
            yield f"{side} {bound}, counted as {bound}: {_counted(count, 'value')}"
    if column.unlisted:
        counted = "left out of GROUP BY" if declared.other is None else f"counted as {declared.other}"
        every = ", which is all: none is spelled as in the catalog" if column.unlisted == rows - column.nulls else ""
        yield f"not listed in the catalog, {counted}: {_counted(column.unlisted, 'value')}{every}"
    if column.too_long:
        yield f"longer than {declared.max_length} bytes, counted as NULL: {_counted(column.too_long, 'text')}"


def _way_of_writing(examples: Sequence[str]) -> str:
    """Say of values that are all written in one known way how they can be read."""
    ways = {
        "commas before the decimals": r"[-+]?[\d.]*\d,\d+",
        "the day or the month first": r"\d\d?[./-]\d\d?[./-]\d{4}.*",
    }
    for way, shape in ways.items():
        if examples and all(re.fullmatch(shape, example.strip()) for example in examples):
            return f"; written with {way}: declare text, and read it in a view"
    return ""


def _limits(units: "UnitCheck", rows: int) -> "Table":
    numbers = ("max_rows_per_unit", "rows left out", "of units")
    table = new_table(*numbers, "", numbers=numbers)
    for most in units.choices():
        left_out, cut = units.beyond(most)
        note = "as declared" if most == units.most else ""
        table.add_row(*map(text, (f"{most:,}", f"{left_out:,} ({left_out / rows:.1%})", f"{cut:,}", note)))
    return table


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
