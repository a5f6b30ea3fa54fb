"""Answers as workbooks for Excel, in which no text is a formula; it takes the `xlsx` extra."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from lapwing.server.console.answer.files import FORMULAS
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.problems import problem

if TYPE_CHECKING:
    import pyarrow as pa

KIND: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 1_048_575, 16_384, 32_767
"""Of a sheet, without its header, and characters of a cell."""
EXACT: Final = 2**53
"""Up to here Excel, whose numbers are doubles, holds each whole number."""
FIRST_DAY: Final = date(1900, 3, 1).toordinal()
"""Excel counts a 29 February 1900 that never was: days before are one off."""
NOISE: Final = "These results contain noise. Columns whose names end in _low and _high are the ends of the intervals."


def can_write() -> bool:
    """Tell whether this server can write workbooks."""
    return find_spec("xlsxwriter") is not None


def workbook_of(table: "pa.Table", document: Mapping[str, Any]) -> bytes:
    """Return a table as a workbook of two sheets: the answer, and its notes.

    Texts are written as texts, which Excel does not run. One that looks like a formula also has the mark by which it
    stays a text when somebody edits it. Numbers that Excel cannot hold exactly are texts.

    Args:
        document: Of the answer, whose notes it has.

    Raises:
        ApiRefusal: If this server or Excel cannot do it.
    """
    if not can_write():
        raise ApiRefusal(problem("not_found", 404, "This server cannot make Excel files. Download the result as CSV."))
    if table.num_rows > MOST_ROWS or table.num_columns > MOST_COLUMNS:
        text = f"Excel has at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns. Download the result as CSV."
        raise ApiRefusal(problem("not_found", 404, text))
    sink, options = BytesIO(), {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with import_module("xlsxwriter").Workbook(sink, options) as book:
        formats = {
            "head": book.add_format({"bold": True, "quote_prefix": True}),
            "text": book.add_format({"quote_prefix": True}),
            "day": book.add_format({"num_format": "yyyy-mm-dd"}),
            "moment": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        sheet = book.add_worksheet("answer")
        for place, name in enumerate(table.column_names):
            sheet.write_string(0, place, _cut(name), formats["head"])
            for row, value in enumerate(table.column(place).to_pylist(), start=1):
                _write(sheet, row, place, value, formats)
        sheet.freeze_panes(1, 0)
        sheet.autofit()
        notes = book.add_worksheet("notes")
        lines = (NOISE, f"Result {document['id']}, released {document['created']}", *document.get("notes", ()))
        for row, line in enumerate(lines):
            notes.write_string(row, 0, _cut(str(line)), formats["text"])
    return sink.getvalue()


def _write(sheet: Any, row: int, place: int, value: Any, formats: Mapping[str, Any]) -> None:
    """Write a value as what it is; as a text where Excel has no such value."""
    if value is None:
        return
    if isinstance(value, datetime) and value.toordinal() >= FIRST_DAY:
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        sheet.write_datetime(row, place, moment, formats["moment"])
    elif isinstance(value, date) and not isinstance(value, datetime) and value.toordinal() >= FIRST_DAY:
        sheet.write_datetime(row, place, value, formats["day"])
    elif isinstance(value, bool):
        sheet.write_boolean(row, place, value)
    elif isinstance(value, int | float | Decimal) and -EXACT <= value <= EXACT:
        sheet.write_number(row, place, value)
    else:
        text = str(value)
        sheet.write_string(row, place, _cut(text), formats["text"] if text.startswith(FORMULAS) else None)


def _cut(text: str) -> str:
    """Return a text as long as a cell can hold it, with a mark where it was longer."""
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
