"""A column of a file, counted: all that a simulation needs of it."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from lapwing.errors import DataFault, InvalidParameter
from lapwing.local.client import MOST_VALUES

if TYPE_CHECKING:
    import pyarrow

    from lapwing.local.simulation.drawn_counts import Counts

DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCounts:
    """A column, counted; for whoever holds the data, as all of it is true.

    Args: totals: how many rows have each value. rows: of the file. empty: how many of them have no value. absent: the
        listed values that no row has.
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

    Args: values: the list; None for all that the column has.
    Raises: DataFault if the file cannot be read. InvalidParameter if there is no such column, or nothing to compare.
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
    suffix = source.suffix.lower()
    names, read = _text(source, DELIMITERS[suffix]) if suffix in DELIMITERS else _parquet(source)
    if column not in names:
        raise InvalidParameter(f"There is no column {column!r:.60}; there are {', '.join(names[:20])}.")
    return read(column)


def _text(source: Path, delimiter: str) -> tuple[Sequence[str], "Callable[[str], pyarrow.ChunkedArray]"]:
    from pyarrow import csv as table
    from pyarrow import string

    with source.open(encoding="utf-8-sig", newline="") as lines:
        names = next(csv.reader(lines, delimiter=delimiter), [])

    def read(column: str) -> "pyarrow.ChunkedArray":
        options = table.ConvertOptions(
            include_columns=[column], column_types={column: string()}, null_values=[""], strings_can_be_null=True
        )
        shape = table.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        return table.read_csv(source, parse_options=shape, convert_options=options)[column]

    return names, read


def _parquet(source: Path) -> tuple[Sequence[str], "Callable[[str], pyarrow.ChunkedArray]"]:
    from pyarrow import parquet

    return parquet.read_schema(source).names, lambda column: parquet.read_table(source, columns=[column])[column]
