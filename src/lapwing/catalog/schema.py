"""Names and types of the columns in a data file.

From a Parquet file only the footer's schema is read: neither rows nor the footer's statistics are looked at. A CSV
file holds no types, so they are guessed from its first block of rows, and a note says so. Messages never carry what
Arrow says about a broken file, because that may quote a row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from lapwing.catalog import spelling
from lapwing.errors import DataFault


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """A column as a file declares it; `type` is None if the catalog has no such type."""

    name: str
    type: str | None
    step: Fraction | None
    stored_as: str


def read_columns(source: Path) -> tuple[tuple[FileColumn, ...], tuple[str, ...]]:
    """Return the columns of a Parquet or CSV file, and notes on how they were found.

    Raises: DataFault if the file is missing, unreadable, or of another kind.
    """
    readers = {".parquet": _parquet_schema, ".csv": _csv_schema, ".tsv": _csv_schema}
    reader = readers.get(source.suffix.lower())
    if reader is None:
        raise DataFault(f"{source.name} is not of a known kind; give a file whose name ends in .parquet, .csv or .tsv.")
    if not source.is_file():
        raise DataFault(f"There is no file {source}; check the path.")
    try:
        schema, notes = reader(source)
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        kind = source.suffix.lower().removeprefix(".")
        raise DataFault(
            f"{source.name} cannot be read as {kind}: it is damaged, cut off, of another kind, or not yours to read; "
            "check the file."
        ) from None
    return tuple(_column(field) for field in schema), notes


def _parquet_schema(source: Path) -> tuple[pa.Schema, tuple[str, ...]]:
    return pa.parquet.read_schema(source), ()


def _csv_schema(source: Path) -> tuple[pa.Schema, tuple[str, ...]]:
    delimiter = "\t" if source.suffix.lower() == ".tsv" else ","
    with pa.csv.open_csv(source, parse_options=pa.csv.ParseOptions(delimiter=delimiter)) as reader:
        return reader.schema, (
            f"{source.name}: a CSV file holds no types; they were guessed from the first rows, check them.",
        )


def _column(field: pa.Field) -> FileColumn:
    usable = bool(field.name) and spelling.storable(field.name)
    kind = next((kind for is_of, kind in _TYPES if is_of(field.type)), None) if usable else None
    step = Fraction(10) ** -field.type.scale if kind == "decimal" else None
    return FileColumn(name=field.name, type=kind, step=step, stored_as=str(field.type) if usable else "unnamed")


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


_TYPES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_integer, "integer"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_floating, "float"),
    (pa.types.is_boolean, "boolean"),
    (_is_text, "string"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
)
