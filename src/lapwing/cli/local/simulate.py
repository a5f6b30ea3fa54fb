"""`lapwing local simulate`: what each way of collecting the same data would cost in accuracy."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer
from rich.table import Table

import lapwing as lw
from lapwing.catalog.source_names import is_text
from lapwing.catalog.text_files import format_of, header
from lapwing.cli.answer_formats import Format
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import new_table, note, text
from lapwing.cli.local.output import show_as, written_as
from lapwing.cli.local.task_options import check_whole
from lapwing.cli.options import AS_USUAL, above_zero, amount, between
from lapwing.errors import DataFault, InvalidParameter
from lapwing.local.client import MOST_VALUES
from lapwing.plots import SCHEMA, Plot

if TYPE_CHECKING:
    import pyarrow

    from lapwing.local import Simulated
    from lapwing.local.simulation.drawn_counts import Counts

EXAMPLE: Final = """\b
Examples:
  lapwing local simulate visits.parquet --column plan --epsilon 1 --epsilon 4
  lapwing local simulate visits.csv --column plan --values a,b,c
    --respondents 1000 --respondents 10000 --plot errors.html"""
EPSILONS: Final = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
DELTA: Final = Fraction(1, 10**6)
LEAST_SAMPLE: Final = 100
MOST_REPEATS: Final = 1000
MOST_NAMED: Final = 20
"""Values that a note names."""


def simulate(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A Parquet or CSV file.", show_default=False)],
    column: Annotated[str, typer.Option(metavar="COLUMN", help="The column to ask about.", show_default=False)],
    epsilon: Annotated[
        list[Fraction] | None,
        amount(above_zero("--epsilon"), "A privacy loss to try; repeat. By default 0.5, 1, 2, 4."),
    ] = None,
    respondents: Annotated[
        list[int] | None,
        typer.Option(
            metavar="COUNT",
            help="How many answer; repeat. By default all rows, a tenth and a hundredth.",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[
        Fraction | None, amount(between("--delta"), "The delta of shuffled and Gaussian noise; default 1e-6.")
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="COUNT", help="How many simulations of each.")] = 20,
    values: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="The possible answers, such as a,b,c; otherwise the column's values.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[Format | None, AS_USUAL] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
) -> None:
    """Compare the error of a share without noise, with central noise, with shuffled and with local reports.

    The error is the root of the mean squared error of a share, over all values. The command shows the error that
    formulas predict and the error in simulations on your data. It never shows shares. The output depends on the true
    data and is not private, so do not publish it.
    """
    require_chart(plot)
    public = _values_of(values)
    form = written_as(form)
    check_whole("--repeats", repeats, 1, MOST_REPEATS)
    counted = read_column(source, column, public)
    people = counted.people
    for size in respondents or ():
        check_whole("--respondents", size, 1, people)
    sizes = respondents or [size for size in _parts(people) if size >= LEAST_SAMPLE] + [people]
    errors = lw.local.simulate(
        counted.totals, epsilons=epsilon or EPSILONS, respondents=sizes, delta=delta or DELTA, repeats=repeats
    )
    rows = [error.row() for error in errors]
    show_as(form, table=lambda: _table(errors), rows=rows, document=lambda: rows)
    _note_left_out(counted)
    if respondents is None and (small := [size for size in _parts(people) if size < LEAST_SAMPLE]):
        said = " and ".join(f"{size:,}" for size in small)
        note("sizes", f"samples of {said} of {people:,} rows are fewer than {LEAST_SAMPLE}, and left out.")
    if public is None:
        note("values", "taken from the column; a real question needs a public list, so give --values.")
    note("private", "no: these errors come of the true data. They are for you, not for publication.")
    if plot is not None:
        write_chart(chart_of(errors, f"Error of a share of {column}"), plot)


def _parts(people: int) -> tuple[int, int]:
    """Return a hundredth and a tenth."""
    return people // 100, people // 10


def _note_left_out(counted: "ColumnCounts") -> None:
    """Say how many rows do not count, and which values nobody has."""
    if counted.others:
        note("left out", f"{counted.others:,} of {counted.rows:,} rows have another value and are left out.")
    if counted.empty:
        note("empty", f"{counted.empty:,} of {counted.rows:,} rows have no value and are left out.")
    if counted.absent:
        note("absent", f"no row has {', '.join(repr(value) for value in counted.absent[:MOST_NAMED])}.")


def _values_of(values: str | None) -> list[str] | None:
    """Return the values of a list with commas; one with a comma in it stands in quotes."""
    if values is None:
        return None
    names = [value.strip() for value in next(csv.reader([values], skipinitialspace=True), [])]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidParameter("--values must be two different values or more, such as a,b,c.")
    return names


def _table(errors: Sequence["Simulated"]) -> Table:
    numbers = ("respondents", "epsilon", "local ε", "predicted", "observed")
    table = new_table(*numbers[:2], "collected", "mechanism", *numbers[2:], numbers=numbers)
    for error in errors:
        local = error.local_epsilon if error.road == "shuffled" else None
        cells = (
            f"{error.respondents:,}", _short(error.epsilon), error.road, error.mechanism, _short(local),
            _short(error.predicted), _short(error.observed),
        )  # fmt: skip
        table.add_row(*map(text, cells))
    return table


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.3g}"


def chart_of(errors: Sequence["Simulated"], title: str) -> Plot:
    """Return lines of predicted errors and points of observed ones: over ε for all respondents, and over respondents.

    An error of 0, that of all people without noise, has no place on a logarithmic axis and is left out.
    """
    rows = [_row(error) for error in errors if error.predicted > 0]
    names = list(dict.fromkeys(row["collected"] for row in rows))
    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    sizes = sorted({row["respondents"] for row in rows})
    middle = epsilons[len(epsilons) // 2]
    panels = []
    if len(epsilons) > 1 or len(sizes) == 1:
        chosen = [row for row in rows if row["respondents"] == sizes[-1] and row["epsilon"] is not None]
        panels.append(_panel(chosen, names, "epsilon", f"{sizes[-1]:,} respondents"))
    if len(sizes) > 1:
        chosen = [row for row in rows if row["epsilon"] in (middle, None)]
        panels.append(_panel(chosen, names, "respondents", f"epsilon {middle:g}"))
    return Plot({"$schema": SCHEMA, "title": title, "hconcat": panels})


def _row(one: "Simulated") -> dict[str, Any]:
    """Return the record with the name of its line: shuffled ones are one line, by whichever mechanism."""
    name = one.road if one.road in ("plain", "shuffled") else f"{one.road}: {one.mechanism}"
    return {**one.row(), "collected": name}


def _panel(rows: Sequence[dict[str, Any]], names: Sequence[str], x: str, title: str) -> dict[str, Any]:
    """Return one panel; of both the colours are the same, in the order of the records."""

    def y(field: str) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "scale": {"type": "log"}, "title": "error of a share"}

    colour = {"field": "collected", "type": "nominal", "sort": list(names), "title": "collected"}
    return {
        "title": title,
        "width": 360,
        "height": 320,
        "data": {"values": list(rows)},
        "encoding": {
            "x": {
                "field": x,
                "type": "quantitative",
                "scale": {"type": "log", "nice": False, "padding": 10},
                "title": x,
                "axis": {"format": "~g" if x == "epsilon" else "~s"},
            },
            "color": colour,
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": y("predicted")}},
            {
                "transform": [{"filter": "datum.observed > 0"}],
                "mark": {"type": "point", "filled": True, "size": 40},
                "encoding": {"y": y("observed")},
            },
        ],
    }


# A column of a file, counted: all that a simulation needs of it.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCounts:
    """A column, counted; for whoever holds the data, as all of it is true.

    Args:
        totals: How many rows have each value.
        rows: Of the file.
        empty: How many of them have no value.
        absent: The listed values that no row has.
    """

    totals: "Counts"
    rows: int
    empty: int
    absent: tuple[str, ...]

    @property
    def people(self) -> int:
        """The rows with a value of the list: each is a respondent."""
        return int(self.totals.sum())

    @property
    def others(self) -> int:
        """The rows with a value that is not listed."""
        return self.rows - self.empty - self.people


def read_column(source: Path, column: str, values: Sequence[str] | None) -> ColumnCounts:
    """Return how many rows have each value of a column, written as text; rows without a listed value are left out.

    Args:
        values: The list; None for all that the column has.

    Raises:
        DataFault: If the file cannot be read.
        InvalidParameter: If there is no such column, or nothing to compare.
    """
    import numpy as np  # here, so that `lapwing --help` loads neither
    import pyarrow
    import pyarrow.compute

    if not source.is_file():
        raise DataFault(f"There is no file {source}.")
    try:
        counted = pyarrow.compute.value_counts(_read(source, column).cast(pyarrow.string())).to_pylist()
    except (OSError, UnicodeError, csv.Error, pyarrow.ArrowException):
        raise DataFault(f"The column {column} of {source} cannot be read as text.") from None
    counts = {row["values"]: row["counts"] for row in counted if row["values"] is not None}
    names = list(counts) if values is None else values
    totals = np.array([counts.get(value, 0) for value in names], dtype=np.int64)
    if not 2 <= len(names) <= MOST_VALUES or totals.sum() < 2:
        raise InvalidParameter(f"The column needs two rows, and from 2 to {MOST_VALUES:,} values; give --values.")
    rows = sum(row["counts"] for row in counted)
    empty = sum(row["counts"] for row in counted if row["values"] is None)
    absent = tuple(value for value in names if value not in counts)
    return ColumnCounts(totals=totals, rows=rows, empty=empty, absent=absent)


def _read(source: Path, column: str) -> "pyarrow.ChunkedArray":
    names, read = _text(source) if is_text(source) else _parquet(source)
    if column not in names:
        raise InvalidParameter(f"There is no column {column!r:.60}; there are {', '.join(names[:20])}.")
    return read(column)


def _text(source: Path) -> tuple[Sequence[str], "Callable[[str], pyarrow.ChunkedArray]"]:
    from pyarrow import csv as table
    from pyarrow import string

    written = format_of(source)

    def read(column: str) -> "pyarrow.ChunkedArray":
        options = table.ConvertOptions(
            include_columns=[column], column_types={column: string()}, null_values=[""], strings_can_be_null=True
        )
        shape = table.ParseOptions(delimiter=written.delimiter, newlines_in_values=True)
        return table.read_csv(source, parse_options=shape, convert_options=options)[column]

    return header(source, written), read


def _parquet(source: Path) -> tuple[Sequence[str], "Callable[[str], pyarrow.ChunkedArray]"]:
    from pyarrow import parquet

    return parquet.read_schema(source).names, lambda column: parquet.read_table(source, columns=[column])[column]
