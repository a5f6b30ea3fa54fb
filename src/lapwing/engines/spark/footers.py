"""Footers of Parquet files: how many rows a file has, and which columns, in which types. No row is read for this.

They are at the end of a file. Of an object in a store only the end is fetched.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from lapwing.catalog.model import Table
from lapwing.engines.duckdb.unreadable import unreadable
from lapwing.engines.spark.columns import Columns
from lapwing.engines.spark.listing import Listing

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
_USUAL: Final = 1 << 16
"""Bytes at the end of a file that hold most footers."""
_LONGEST: Final = 1 << 28
"""Bytes of a footer. More is no footer, and is not fetched."""
_MARK: Final = b"PAR1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The content of a footer.

    Args:
        digest: Of its bytes.
        types: Of the columns, as Spark reads them. None for one that no declared type is read from.
        numbers: Of the outermost columns, if the table finds them by these.
    """

    digest: str
    rows: int
    types: Mapping[str, str | None]
    numbers: Mapping[str, int | None]


def footers_of(listing: Listing, table: Table, wanted: Columns) -> list[Footer]:
    """Return the footers of a table's files.

    Raises:
        DataFault: If one cannot be read.
    """
    store = listing.store
    if store is None:
        readers: list[Callable[[int], bytes]] = [partial(_end_of, file) for file in listing.files]
    else:
        readers = [partial(store.end_of, stored) for stored in listing.objects]
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(lambda read: _footer(read, table, wanted), readers))


def _end_of(file: Path, size: int) -> bytes:
    with file.open("rb") as content:
        content.seek(-min(size, content.seek(0, 2)), 2)
        return content.read(size)


def _footer(read: Callable[[int], bytes], table: Table, wanted: Columns) -> Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = _content(read)
        metadata = pq.read_metadata(pa.BufferReader(_MARK + content))
    except (pa.ArrowException, OSError, struct.error):
        raise unreadable(table) from None
    columns, names = [metadata.schema.column(place) for place in range(len(metadata.schema))], wanted.names.values()
    wanted_here = (column for column in columns if wanted.have_layouts or column.path in names)
    types = {column.path: _type_of(column) for column in wanted_here}
    fields = metadata.schema.to_arrow_schema() if wanted.are_numbered else ()
    numbers = {field.name: _number(field) for field in fields}
    return Footer(digest=hashlib.sha256(content[:-8]).hexdigest(), rows=metadata.num_rows, types=types, numbers=numbers)


def _content(read: Callable[[int], bytes]) -> bytes:
    """Return a footer, with its length and the mark that follow it."""
    end = read(_USUAL)
    length, mark = struct.unpack("<I4s", end[-8:])
    if mark != _MARK or length > _LONGEST:
        raise OSError
    if len(end) < length + 8:
        end = read(length + 8)
    if len(end) < length + 8:
        raise OSError
    return end[-8 - length :]


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
