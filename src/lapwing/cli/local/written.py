"""How a result is written: a table for people, CSV, JSON or Arrow for programs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from lapwing.cli.console import on_terminal, print_bytes, print_text, show
from lapwing.cli.fitting import Fitted
from lapwing.cli.formats import Format, to_json
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow


def written_as(form: Format | None) -> Format:
    """Return how to write something: as asked for, else a table on a terminal and CSV in a pipe.

    Raises: InvalidParameter for what is binary on a terminal.
    """
    if form is Format.arrow and on_terminal():
        raise InvalidParameter("Arrow is binary, and this is a terminal; pipe it into a program or a file.")
    return form or (Format.table if on_terminal() else Format.csv)


def show_as(
    form: Format,
    *,
    table: Callable[[], Table],
    csv: Callable[[], str],
    document: Callable[[], object],
    arrow: Callable[[], "pyarrow.Table"],
) -> None:
    """Write a result in a form; what the other forms would take is not made."""
    match form:
        case Format.table:
            show(Fitted(table()))
        case Format.csv:
            print_text(csv())
        case Format.json:
            print_text(to_json(document()))
        case Format.arrow:
            from lapwing.documents.answer_document import arrow_stream  # here, so that `lapwing --help` loads no engine

            print_bytes(arrow_stream(arrow()))


def as_arrow(rows: Sequence[Mapping[str, object]]) -> "pyarrow.Table":
    """Return rows as an Arrow table."""
    import pyarrow  # here, so that `lapwing --help` loads no engine

    return pyarrow.Table.from_pylist([dict(row) for row in rows])
