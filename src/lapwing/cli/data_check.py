"""What `lapwing data check` has found, as a page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from lapwing.catalog.condition import in_words
from lapwing.catalog.protection import noun_of
from lapwing.cli.console import Fitted, labelled, new_table, text
from lapwing.cli.figures import share
from lapwing.documents.check_document import PRIVATE, counted, findings

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from lapwing.engines.data_check import ColumnCheck, TableCheck, UnitCheck


def as_page(checks: "Sequence[TableCheck]", warnings: Sequence[str] = ()) -> "list[RenderableType]":
    """Return what was found of tables, and what the catalog makes worth a warning, as people read it."""
    parts: list[RenderableType] = []
    for check in checks:
        parts += [text(_headline(check), "bold"), Text(), Fitted(_columns(check)), Text()]
        said = list(findings(check))
        if said:
            parts += [labelled(*said), Text()]
        if check.units is not None and check.units.units:
            parts += [Fitted(_limits(check, check.units)), Text()]
    if warnings:
        parts += [labelled(*(("warning", warning) for warning in warnings)), Text()]
    return [*parts, labelled(("private", PRIVATE))]


def _headline(check: "TableCheck") -> str:
    among = f", of which {in_words(check.table.where)}" if check.table.where else ""
    rows = f"{check.table.name} ({check.table.source}{among}): {counted(check.rows, 'row')}"
    if check.units is None:
        return f"{rows}, each protected by itself"
    units, most = check.units, f"at most {counted(check.units.greatest, 'row')} each"
    return f"{rows}, {counted(units.units, 'different value')} of {_whose(check, units)}, {most}"


def _whose(check: "TableCheck", units: "UnitCheck") -> str:
    """Name the column that says whose row it is, which a linked table has from another one."""
    return units.column or noun_of([check.table])


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
        return f"up to {counted(column.longest, 'byte')}"
    return "" if column.least is None else f"{column.least} to {column.greatest}"


def _limits(check: "TableCheck", units: "UnitCheck") -> "Table":
    numbers = ("max_rows_per_unit", "rows left out", f"values of {_whose(check, units)} that lose rows")
    table = new_table(*numbers, "", numbers=numbers)
    for most in units.choices():
        left_out, cut = units.beyond(most)
        note = "as declared" if most == units.most else ""
        table.add_row(*map(text, (f"{most:,}", f"{left_out:,} ({share(left_out / check.rows)})", f"{cut:,}", note)))
    return table
