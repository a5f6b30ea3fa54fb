"""How results are written: a table for people, CSV, JSON or Arrow for programs."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from lapwing.cli.answer_formats import Format
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, on_terminal, print_bytes, print_text, show
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow

Row = Mapping[str, Any]
DIGITS: Final = 3
"""Of the smallest number of a column."""
MOST_PLACES: Final = 12


def written_as(form: StrEnum | None) -> Format:
    """Return how to write something: as asked for, else a table on a terminal and CSV in a pipe.

    Raises:
        InvalidParameter: For what is binary on a terminal.
    """
    if form is Format.arrow and on_terminal():
        raise InvalidParameter("Arrow is binary, and this is a terminal; pipe it into a program or a file.")
    return Format(form.value) if form else (Format.table if on_terminal() else Format.csv)


def show_as(
    form: Format,
    *,
    table: Callable[[], Table],
    rows: Sequence[Row],
    document: Callable[[], object],
    columns: Sequence[str] | None = None,
    arrow: "Callable[[], pyarrow.Table] | None" = None,
) -> None:
    """Write a result in one form, without computing what only the others need.

    Args:
        rows: The records of CSV and, unless it is made otherwise, of Arrow.
        columns: Of CSV, if not all in order.
    """
    match form:
        case Format.table:
            show(Fitted(table()))
        case Format.csv:
            print_text(as_csv(rows, columns))
        case Format.json:
            print_text(to_json(document()))
        case Format.arrow:
            from lapwing.documents.answer_document import arrow_stream  # here, so that `lapwing --help` loads no engine

            print_bytes(arrow_stream(arrow() if arrow else _as_arrow(rows)))


def as_csv(rows: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Return records as CSV with a header; yes and no are true and false."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(columns or rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: str(cell).lower() if isinstance(cell, bool) else cell for name, cell in row.items()})
    return out.getvalue()


def _as_arrow(rows: Sequence[Row]) -> "pyarrow.Table":
    import pyarrow  # here, so that `lapwing --help` loads no engine

    return pyarrow.Table.from_pylist([dict(row) for row in rows])


def aligned(values: Sequence[float], direction: str = ROUND_HALF_EVEN) -> list[str]:
    """Return non-negative numbers with the places that the smallest needs for three digits; common final zeros are cut.

    >>> aligned([0.0136, 0.5, 12.0]), aligned([4.0, 28.0]), aligned([0.25, 0.5])
    (['0.0136', '0.5000', '12.0000'], ['4', '28'], ['0.25', '0.50'])
    """
    least = min((value for value in values if value > 0 and isfinite(value)), default=1.0)
    places = min(max(DIGITS - 1 - floor(log10(least)), 0), MOST_PLACES)
    rounded = [Decimal(value).quantize(_step(places), rounding=direction) for value in values if isfinite(value)]
    while places and all(value == value.quantize(_step(places - 1)) for value in rounded):
        places -= 1
    texts = (f"{value:,.{places}f}" for value in rounded)
    return [next(texts) if isfinite(value) else "∞" for value in values]


def _step(places: int) -> Decimal:
    return Decimal(1).scaleb(-places)
