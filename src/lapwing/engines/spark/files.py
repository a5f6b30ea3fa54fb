"""The Parquet files of a table, as their listing and footers describe them: no row is read for this, and no JVM runs.

A version of the data is the list of its files: their names, sizes, times of last change, and the digests of their
footers, in which Parquet keeps the schema, where every column lies, how long it is, and between which values. Terabytes
are not hashed for every session, as DuckDB does with a file. So a file that is written anew in place, with the same
size, the same footer and the old time put back, is not seen to have changed; writers of tables never do that.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from lapwing.catalog.model import Table
from lapwing.engines.duckdb.stamps import Stamp
from lapwing.engines.duckdb.unreadable import unreadable
from lapwing.engines.spark.beside import FileMetadata
from lapwing.engines.spark.cleaned import INTEGERS, READABLE, readable
from lapwing.engines.spark.columns import Columns, columns_of, needed
from lapwing.engines.spark.listing import Listing
from lapwing.errors import DataFault

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_READERS: Final = 16
_INTEGERS: Final = {
    (8, True): "TINYINT",
    (16, True): "SMALLINT",
    (32, True): "INT",
    (64, True): "BIGINT",
    (8, False): "SMALLINT",
    (16, False): "INT",
    (32, False): "BIGINT",
    (64, False): "DECIMAL(20,0)",
}
_PHYSICAL: Final = {"BOOLEAN": "BOOLEAN", "INT32": "INT", "INT64": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a table.

    Args:
        paths: Absolute.
        rows: Of all together, by their footers.
        types: Of the columns that are needed, as Spark reads them.
        digest: Of the version that they are.
        mark: Of the version of their lake.
        stored: The types of the columns that are read from the files, by their names there.
        beside: Values and deleted rows that stand beside them, if there are any.
    """

    stamp: Stamp
    mark: str
    paths: tuple[str, ...]
    rows: int
    types: Mapping[str, str]
    digest: str
    stored: Mapping[str, str]
    beside: FileMetadata | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Footer:
    digest: str
    rows: int
    types: Mapping[str, str | None]
    numbers: Mapping[str, int | None]


def stamp_of(listing: Listing, table: Table) -> Stamp:
    """Return the stamp of a table's files.

    Raises:
        DataFault: If there are none, or one is missing.
    """
    try:
        return Stamp.of({file: file.stat() for file in _some(listing, table)})
    except OSError:
        raise _missing(table) from None


def described(listing: Listing, table: Table) -> Files:
    """Return what the files of a table are.

    Raises:
        DataFault: If they are missing, are not Parquet, or have not the declared columns, in types that Spark reads as
            they are declared; or not all the same types of these.
    """
    stamp, files, columns = stamp_of(listing, table), listing.files, columns_of(listing, table)
    with ThreadPoolExecutor(_READERS) as pool:
        footers = list(pool.map(lambda file: _footer(file, table, columns), files))
    deleted = columns.deleted()
    if stamp_of(listing, table) != stamp:
        raise DataFault(f"The files {table.source} of table {table.name} changed while they were read; try again")
    types = columns.types([footer.types for footer in footers], [footer.numbers for footer in footers], table)
    _require_readable(table, types)
    read = {name: kind for name, kind in types.items() if kind is not None}
    beside = FileMetadata(
        names={name: stored for name, stored in columns.names.items() if name in read},
        kinds={name: read[name] for name in columns.parts},
        values=columns.values(files, table),
        deleted=deleted,
        layouts=columns.layouts(files, footers, table),
    )
    known = [
        [_name(file, listing.folder), size, changed, footer.digest]
        for file, (_, size, changed, *_), footer in zip(files, stamp.files, footers, strict=True)
    ]
    said = {"beside": beside.described(files)} if beside.is_needed else {}
    return Files(
        stamp=stamp,
        mark=listing.mark,
        paths=tuple(str(file) for file in files),
        rows=sum(footer.rows for footer in footers) - sum(map(len, deleted.values())),
        types=read,
        digest=hashlib.sha256(json.dumps([*known, said] if said else known).encode()).hexdigest(),
        stored={stored: read[name] for name, stored in columns.names.items() if name in read},
        beside=beside if said else None,
    )


def _name(file: Path, folder: Path) -> str:
    """Return how a file is called in its folder. A shallow copy of a Delta table has files elsewhere."""
    return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()


def _some(listing: Listing, table: Table) -> tuple[Path, ...]:
    if not listing.files:
        raise _missing(table)
    return listing.files


def _missing(table: Table) -> DataFault:
    return DataFault(f"The file {table.source} of table {table.name} is missing")


def _footer(file: Path, table: Table, wanted: Columns) -> _Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with file.open("rb") as content:
            content.seek(-8, 2)
            (length,) = struct.unpack("<I", content.read(4))
            content.seek(-8 - length, 2)
            digest = hashlib.sha256(content.read(length)).hexdigest()
        metadata = pq.read_metadata(file)
    except (pa.ArrowException, OSError, struct.error):
        raise unreadable(table) from None
    columns, names = [metadata.schema.column(place) for place in range(len(metadata.schema))], wanted.names.values()
    wanted_here = (column for column in columns if wanted.have_layouts or column.path in names)
    types = {column.path: _type_of(column) for column in wanted_here}
    fields = metadata.schema.to_arrow_schema() if wanted.are_numbered else ()
    numbers = {field.name: _number(field) for field in fields}
    return _Footer(digest=digest, rows=metadata.num_rows, types=types, numbers=numbers)


def _number(field: Any) -> int | None:
    number = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if number is None else int(number)


def _type_of(column: "pq.ColumnSchema") -> str | None:
    """Return the type as which Spark reads a column, None for one that no declared type is read from."""
    if column.max_repetition_level:
        return None
    logical: dict[str, Any] = json.loads(column.logical_type.to_json())
    match logical.get("Type"):
        case "String":
            return "STRING"
        case "Int":
            return _INTEGERS.get((logical["bitWidth"], logical["isSigned"]))
        case "Decimal" if column.precision <= 38:
            return f"DECIMAL({column.precision},{column.scale})"
        case "Date":
            return "DATE"
        case "Timestamp" if logical["timeUnit"] in ("milliseconds", "microseconds"):
            return "TIMESTAMP" if logical["isAdjustedToUTC"] else "TIMESTAMP_NTZ"
        case None | "None":
            return _PHYSICAL.get(column.physical_type)
    return None


def _require_readable(table: Table, types: Mapping[str, str | None]) -> None:
    """Refuse columns that are missing, or that Spark would have to convert in a way that is not proven."""
    absent = [name for name in needed(table) if name not in types]
    if absent:
        raise DataFault(f"{table.source} has no column {', '.join(absent)}, which table {table.name} declares")
    declared = {column.name: column for column in table.columns}
    for name in needed(table):
        kind = types[name]
        wanted = [(declared[name].type, readable(declared[name]))] if name in declared else []
        if table.link is None and name == table.privacy_unit:
            if kind not in INTEGERS | {"STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}:
                raise DataFault(
                    f"The privacy unit {name} of {table.name} must be an integer or a text in {table.source}"
                )
            wanted.append((table.unit_type, READABLE[table.unit_type]))
        for one, kinds in wanted:
            if kind is None or (kind.partition("(")[0] if kind not in INTEGERS else kind) not in kinds:
                raise DataFault(
                    f"Spark does not read column {name} of {table.source} as {one}, as table {table.name} declares "
                    f"it, in a way that Lapwing can prove exact. Declare the type that it has, or fetch the files as "
                    f"a snapshot for DuckDB"
                )
