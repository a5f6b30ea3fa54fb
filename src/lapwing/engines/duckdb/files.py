"""Source files as they are: whether they changed, what they hash to, how the engine is told to read them."""

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import duckdb
import pyarrow.parquet

from lapwing.catalog.model import PublicTable, Table
from lapwing.engines.duckdb.cleaned import Source
from lapwing.engines.duckdb.literals import text
from lapwing.errors import DataFault

_UNREADABLE: Final = (OSError, pyarrow.ArrowException, UnicodeError, csv.Error, duckdb.Error, StopIteration)
TEXT_SUFFIXES: Final = {".csv", ".tsv"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A source file as its metadata describe it: no row is read for this."""

    path: Path
    source: Source
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
        "in UTF-8 with every quote closed and the same number of fields in every line?"
    )


def metadata(path: Path) -> tuple[int, list[str]]:
    """Return the number of rows (used to plan passes, never shown) and the names of the columns."""
    if _is_text(path):
        with path.open(newline="", encoding="utf-8-sig") as file:
            names = next(csv.reader(file, delimiter=_delimiter(path)), [])
        # A row takes at least two bytes a column: an upper bound on their number without reading them.
        return path.stat().st_size // max(2 * len(names), 1), names
    with pyarrow.parquet.ParquetFile(path) as parquet:
        return int(parquet.metadata.num_rows), list(parquet.schema_arrow.names)


def columns(
    connection: duckdb.DuckDBPyConnection, relation: str, names: list[str], table: Table | PublicTable, *further: str
) -> Source:
    """Return a relation with the engine's types of a table's declared columns, and of further ones.

    Raises: DataFault if one is missing, or there several times but for case.
    """
    described = connection.cursor().execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    found = {str(name).casefold(): str(kind) for name, kind, *_ in described}
    wanted = [*(column.name for column in table.columns), *further]
    missing = sorted({name for name in wanted if name.casefold() not in found})
    if missing:
        raise DataFault(f"{table.source} has no column {', '.join(missing)}; it has {', '.join(names)}")
    folded = [name.casefold() for name in names]
    twice = sorted({name for name in wanted if folded.count(name.casefold()) > 1})
    if twice:
        raise DataFault(f"{table.source} has several columns called {', '.join(twice)}, but for case; rename them")
    return Source(relation=relation, types={name: found[name.casefold()] for name in wanted})


def rows_of(path: Path, file: File) -> int:
    """Return how many rows a file should have: of a text, by another reader than the engine's.

    The engine's own does not mind a quote that is never closed: it drops what follows, to the end of the file.
    """
    if not _is_text(path):
        return file.rows
    with path.open(newline="", encoding="utf-8-sig") as content:
        lines = csv.reader(content, delimiter=_delimiter(path), strict=True)
        alone = len(next(lines)) == 1  # then an empty line is a row that is NULL
        return sum(1 for line in lines if line or alone)


def relation(path: Path, names: list[str]) -> str:
    """Return the table function that reads a file, and nothing but the file: no column comes from the path.

    Text is read as text, by the rules of RFC 4180 and by one reader: nothing is guessed, padded or skipped, so that no
    line can swallow its neighbours unseen.
    """
    if not _is_text(path):
        return f"read_parquet({text(str(path))}, hive_partitioning = false)"
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    options = f"auto_detect = false, header = true, delim = {text(_delimiter(path))}, quote = '\"', escape = '\"'"
    strict = "nullstr = '', parallel = false, hive_partitioning = false"
    return f"read_csv({text(str(path))}, {options}, {strict}, columns = {{{columns}}})"


def _is_text(path: Path) -> bool:
    return path.suffix.casefold() in TEXT_SUFFIXES


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.casefold() == ".tsv" else ","
