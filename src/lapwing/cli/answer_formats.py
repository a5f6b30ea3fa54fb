"""An answer as a table for people, or as CSV, JSON or Arrow for programs.

Programs get `<column>_low` and `<column>_high` beside every noisy column; people get a ±.
"""

import csv
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from enum import StrEnum
from fractions import Fraction
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, final

from rich.text import Text

from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import Fitted, new_table, text
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import level, plain, with_margins

if TYPE_CHECKING:
    from lapwing.answer.presentation import EndArray
    from lapwing.answer.python_values import Cell
    from lapwing.documents.answer_document import AnswerShown


class Format(StrEnum):
    """How an answer is written."""

    table = "table"
    csv = "csv"
    json = "json"
    arrow = "arrow"
    parquet = "parquet"
    markdown = "markdown"
    xlsx = "xlsx"
    html = "html"


BINARY: Final = (Format.arrow, Format.parquet, Format.xlsx)
BY_SUFFIX: Final = {
    ".arrow": Format.arrow,
    ".arrows": Format.arrow,
    ".csv": Format.csv,
    ".html": Format.html,
    ".json": Format.json,
    ".md": Format.markdown,
    ".parquet": Format.parquet,
    ".xlsx": Format.xlsx,
}


def as_table(answer: "AnswerShown", confidence: Fraction) -> Fitted:
    """Return the answer with a ± behind every noisy number, and the ends of its interval behind a date or time."""
    from lapwing.answer.truncated_times import rows_to_read  # here, as below

    intervals, rows = answer.interval(confidence), rows_to_read(answer)
    columns = [
        coloured_margins([row[name] for row in rows], *intervals[name])
        if name in intervals
        else [text(plain(row[name])) for row in rows]
        for name in answer.columns
    ]
    table = new_table(*answer.columns, numbers=intervals)
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return Fitted(table)


def coloured_margins(values: Sequence["Cell"], low: "EndArray", high: "EndArray") -> list[Text]:
    """Return noisy values with what follows of their errors, in a colour of its own."""
    return [Text.assemble(visible(value), (margin, "cyan")) for value, margin in with_margins(values, low, high)]


def as_csv(answer: "AnswerShown", confidence: Fraction, written: Callable[[str], str] = str) -> str:
    """Return the answer as CSV with a header; NULL and an interval that does not follow are empty.

    Args:
        written: How a text is written; as it is, unless a terminal is to show it.
    """
    intervals = answer.interval(confidence)
    names = answer.columns
    lines = _Lines()
    writer = csv.writer(lines, lineterminator="\r\n")
    labels = [(name, f"{name}_low", f"{name}_high") if name in intervals else (name,) for name in names]
    writer.writerow([written(label) for several in labels for label in several])
    for index, row in enumerate(answer.rows()):
        cells: list[str] = []
        for name in names:
            cells.append(written(_text(row[name])))
            cells += [_end(ends[index].item()) for ends in intervals.get(name, ())]
        writer.writerow(cells)
    return "".join(lines.written)


@final
class _Lines:
    """Collects lines that end in LF; the writer itself ends them in CR LF, so that it quotes values with either."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        """Take a line."""
        self.written.append(line.removesuffix("\r\n") + "\n")


def _text(value: "Cell") -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else plain(value)


def _end(value: float | date | None) -> str:
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float):
        return plain(value) if value else ""
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else repr(value)


def as_json(answer: "AnswerShown", confidence: Fraction) -> str:
    """Return the answer with its intervals, cost and notes as one JSON document."""
    from lapwing.documents.answer_document import answer_document  # here, so that `lapwing --help` loads no engine

    return to_json(answer_document(answer, confidence))


def as_markdown(answer: "AnswerShown", confidence: Fraction) -> str:
    """Return the answer as a Markdown table, with a ± behind every noisy number."""
    from lapwing.answer.truncated_times import rows_to_read  # here, as below

    intervals, rows = answer.interval(confidence), rows_to_read(answer)
    columns = [
        [visible(value) + margin for value, margin in with_margins([row[name] for row in rows], *intervals[name])]
        if name in intervals
        else [visible(plain(row[name])) for row in rows]
        for name in answer.columns
    ]
    rule = ["---:" if name in intervals else "---" for name in answer.columns]
    lines = [[visible(name) for name in answer.columns], rule, *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def as_parquet(answer: "AnswerShown", confidence: Fraction) -> bytes:
    """Return the answer as a Parquet file."""
    import pyarrow as pa  # here, as above
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(answer.to_arrow(confidence), sink)
    return bytes(sink.getvalue())


def as_xlsx(answer: "AnswerShown", confidence: Fraction) -> bytes:
    """Return the answer as an Excel workbook: a sheet with its columns and the ends of their intervals, one with notes.

    Raises:
        InvalidParameter: Without the extra `xlsx`.
    """
    xlsxwriter = require_xlsx()
    sink = BytesIO()
    # A text that begins with = is a text, whoever wrote it.
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with xlsxwriter.Workbook(sink, options) as book:
        bold = book.add_format({"bold": True})
        day, moment = (book.add_format({"num_format": f"yyyy-mm-dd{time}"}) for time in ("", " hh:mm:ss"))
        sheet = book.add_worksheet("answer")
        for column, (name, values) in enumerate(_with_ends(answer, confidence).items()):
            sheet.write_string(0, column, name, bold)
            for row, value in enumerate(values, start=1):
                if isinstance(value, datetime):
                    sheet.write_datetime(row, column, value, moment)
                elif isinstance(value, date):
                    sheet.write_datetime(row, column, value, day)
                elif value is not None:
                    sheet.write(row, column, value)
        sheet.freeze_panes(1, 0)
        sheet.autofit()
        notes = book.add_worksheet("notes")
        lines = (f"{name}_low and {name}_high: {level(confidence)} interval" for name in answer.interval(confidence))
        for row, line in enumerate([*lines, *answer.notes]):
            notes.write_string(row, 0, line)
    return sink.getvalue()


def require_xlsx() -> Any:
    """Return the library that writes workbooks.

    Raises:
        InvalidParameter: If it is not installed.
    """
    try:
        return import_module("xlsxwriter")
    except ModuleNotFoundError:
        raise InvalidParameter("A workbook needs an extra: pip install 'lapwing-dp[xlsx]'; .csv needs none.") from None


def _with_ends(answer: "AnswerShown", confidence: Fraction) -> dict[str, Sequence["Cell"]]:
    """Return the columns, and after each noisy one the ends of its intervals."""
    intervals, rows = answer.interval(confidence), answer.rows()
    columns: dict[str, Sequence[Cell]] = {}
    for name in answer.columns:
        columns[name] = [row[name] for row in rows]
        for end, values in zip(("low", "high"), intervals.get(name, ()), strict=False):
            columns[f"{name}_{end}"] = [
                None if isinstance(value, float) and not math.isfinite(value) else value for value in values.tolist()
            ]
    return columns


def as_arrow(answer: "AnswerShown", confidence: Fraction) -> bytes:
    """Return the answer as an Arrow IPC stream."""
    from lapwing.documents.answer_document import arrow_stream  # here, as above

    return arrow_stream(answer.to_arrow(confidence))
