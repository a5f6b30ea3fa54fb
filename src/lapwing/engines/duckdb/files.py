"""Source files as they are: whether they changed, what they hash to, and what is said of one that cannot be read."""

import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import duckdb

from lapwing.catalog.model import PublicTable, Table
from lapwing.engines.duckdb.cleaned import Location
from lapwing.errors import DataFault

_UNREADABLE: Final = (OSError, UnicodeError, csv.Error, duckdb.Error, StopIteration)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A source file as its metadata describe it: no row is read for this."""

    path: Path
    source: Location
    rows: int


@final
@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file is written: it stands in for the digest while it stays the same."""

    size: int
    modified: int
    changed: int
    inode: int


def stamp_of(path: Path, table: Table | PublicTable) -> Stamp:
    """Return a file's stamp."""
    with readable(path, table):
        status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@final
@dataclass(frozen=True, slots=True)
class readable:  # noqa: N801 - reads as a statement
    """Turn what a file system or a file format may raise into our fault, which names the source and nothing of it."""

    path: Path
    table: Table | PublicTable

    def __enter__(self) -> None:
        what = f"The file {self.table.source} of table {self.table.name}"
        if not self.path.is_file():
            raise DataFault(f"{what} is missing")
        if set(str(self.path)) & set("*?["):
            raise DataFault(f"{what} has *, ? or [ in its path, which the engine reads as a pattern; rename it")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _UNREADABLE):
            raise unreadable(self.table) from None


def hashed(path: Path, table: Table | PublicTable) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with readable(path, table), path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def unreadable(table: Table | PublicTable) -> DataFault:
    """Return the fault of a file that cannot be read to its end."""
    return DataFault(
        f"The file {table.source} of table {table.name} cannot be read to its end; is it complete, and Parquet, or CSV "
        "in UTF-8 (or the encoding that the catalog says) with every quote closed and as many fields in every line?"
    )


def mark(table: Table, digests: Mapping[str, str]) -> tuple[str, ...]:
    """Name a table and the data that its rows that exist follow from."""
    return (table.name, *(digests[above.name] for above in table.lineage))
