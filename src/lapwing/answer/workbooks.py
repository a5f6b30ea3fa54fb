"""Tables as workbooks for Excel, in which no text is a formula; it takes the `xlsx` extra."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, final

from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Spreadsheets may run a text that begins so; the last four are full-width signs."""
MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 1_048_575, 16_384, 32_767
"""Of a sheet, without its header, and characters of a cell."""
EXACT: Final = 2**53
"""Up to here Excel, whose numbers are doubles, holds each whole number."""
FIRST_DAY: Final = date(1900, 3, 1).toordinal()
"""Excel counts a 29 February 1900 that never was: days before are one off."""
A4: Final = 9
"""As Excel numbers paper."""
WRITTEN: Final = datetime(2000, 1, 1)
"""The date of every workbook, so that the same tables are the same file."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A sheet: a table, or lines of cells.

    Args:
        number_formats: Of columns of a table, as Excel writes them, such as `#,##0`.
        widths: Of the columns of lines, in characters.
        heads: The lines that are bold, by their place.
    """

    name: str
    content: "pa.Table | Sequence[Sequence[Any]]"
    number_formats: Mapping[str, str] = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    heads: frozenset[int] = frozenset()


def can_write_workbooks() -> bool:
    """Tell whether the library that writes workbooks is there."""
    return find_spec("xlsxwriter") is not None


def fits_a_sheet(table: "pa.Table") -> bool:
    """Tell whether a sheet has room for a table."""
    return bool(table.num_rows <= MOST_ROWS and table.num_columns <= MOST_COLUMNS)


def workbook(sheets: Iterable[Sheet]) -> bytes:
    """Return sheets as a workbook, the same bytes each time.

    Texts are written as texts, which Excel does not run. One that looks like a formula also has the mark by which it
    stays a text when somebody edits it. Numbers that Excel cannot hold exactly are texts.

    Raises:
        InvalidParameter: Without the extra `xlsx`.
    """
    if not can_write_workbooks():
        raise InvalidParameter("A workbook needs an extra: pip install 'lapwing-dp[xlsx]'; .csv needs none.")
    sink, options = BytesIO(), {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with import_module("xlsxwriter").Workbook(sink, options) as book:
        book.set_properties({"created": WRITTEN})
        formats = {
            None: None,
            "bold": book.add_format({"bold": True}),
            "head": book.add_format({"bold": True, "quote_prefix": True}),
            "text": book.add_format({"quote_prefix": True}),
            "day": book.add_format({"num_format": "yyyy-mm-dd"}),
            "moment": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        for one in sheets:
            sheet = book.add_worksheet(one.name)
            sheet.set_landscape()
            sheet.set_paper(A4)
            sheet.fit_to_pages(1, 0)
            if isinstance(one.content, Sequence):
                for place, width in enumerate(one.widths):
                    sheet.set_column(place, place, width)
                for row, line in enumerate(one.content):
                    own = {**formats, None: formats["bold"]} if row in one.heads else formats
                    for place, value in enumerate(line):
                        _write(sheet, row, place, value, own)
                continue
            for place, name in enumerate(one.content.column_names):
                sheet.write_string(0, place, _cut(name), formats["head"])
                pattern = one.number_formats.get(name)
                own = formats if pattern is None else {**formats, None: book.add_format({"num_format": pattern})}
                for row, value in enumerate(one.content.column(place).to_pylist(), start=1):
                    _write(sheet, row, place, value, own)
            sheet.freeze_panes(1, 0)
            sheet.repeat_rows(0)
            sheet.autofit()
    return sink.getvalue()


def _write(sheet: Any, row: int, place: int, value: Any, formats: Mapping[str | None, Any]) -> None:
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
    elif isinstance(value, int | float | Decimal) and isfinite(value) and -EXACT <= value <= EXACT:
        sheet.write_number(row, place, value, formats[None])
    else:
        text = str(value)
        sheet.write_string(row, place, _cut(text), formats["text"] if text.startswith(FORMULAS) else formats[None])


def _cut(text: str) -> str:
    """Return a text as long as a cell can hold it, with a mark where it was longer."""
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
