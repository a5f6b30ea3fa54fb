"""DuckDB over Parquet and CSV files, locked down.

Theory of operation. One in-memory database a catalog, configured once and then locked: it may open the catalog's own
source files and nothing else, loads no extension, sees no Python variable, and spills only into a private folder that
goes with the engine. It never sees an analyst's text: `query.render` prints its SQL from a checked plan. That SQL
cannot raise on data by construction; if the engine fails all the same (memory, disk, time, a damaged file), the
caller learns that it failed and nothing else. A query runs in a thread of its own, so that a time limit or Ctrl-C
can interrupt it.

Some faults of a file show only when it is read: a page that is damaged, text that is not UTF-8, a CSV line with a field
too many, a time that overflows. Questions that fail or not, depending on one row, would tell about that row. So the
first digest of a file also reads all of it through, the way questions will: what cannot be read to its end is no data,
and nobody has asked yet. A question runs only on a file that was read through and has not been written since.
"""

import csv
import hashlib
import os
import shutil
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, final
from weakref import finalize

import duckdb
import pyarrow.parquet

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.base import Cells
from lapwing.errors import DataFault, EngineFault
from lapwing.interrupts import deferred
from lapwing.query.cleaned import Pass, Source, read_through
from lapwing.query.expression import Constant
from lapwing.query.plan import Question
from lapwing.query.printers import text
from lapwing.query.render import render
from lapwing.query.types import Fixed, Type

MEMORY = 1_000_000_000  # bytes
SPILL = "32GB"
SECONDS = 600.0
DISABLED_OPTIMIZERS = (
    # It rewrites "the first K rows of each unit" so that all units are in memory at once, and fails at small limits.
    "top_n_window_elimination",
    # They move casts and functions into the reader of the file, where a TRY_CAST of CSV text raises or drops the row.
    "type_pushdown",
    "scalar_fn_pushdown",
    # It reorders arithmetic: from (x * a) * b, which cannot overflow, it makes x * (a * b), which may.
    "expression_rewriter",
)
FAILED = (
    "The engine could not finish the question. The price is paid; ask the curator to look at memory, disk and data."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A source file as its metadata describe it: no row is read for this."""

    path: Path
    source: Source
    rows: int


@final
class DuckDB:
    """An engine over the files of one catalog.

    Args:
        catalog: its tables' sources are paths relative to the catalog's folder.
        memory: the most memory the engine may use, in bytes.
        threads: 0 for one a core.
        seconds: the longest that reading a file through, or a pass of a question, may take.
    """

    def __init__(self, catalog: Catalog, *, memory: int = MEMORY, threads: int = 0, seconds: float = SECONDS) -> None:
        self._folder = catalog.folder
        self._memory = memory
        self._seconds = seconds
        self._digests: dict[tuple[str, Stamp], str] = {}
        self._lock = Lock()
        spill = tempfile.mkdtemp(prefix="lapwing-")
        self._clean_up = finalize(self, shutil.rmtree, spill, ignore_errors=True)
        paths = [str(self._path(table)) for table in catalog.tables]
        self._connection = _locked_down(paths, spill, memory, threads or os.cpu_count() or 1)

    def digest(self, table: Table) -> str:
        """Return the SHA-256 of a table's file, remembered for as long as the file's stamp does not change."""
        path = self._path(table)
        stamp = stamp_of(path, table)
        with self._lock:
            known = self._digests.get((table.name, stamp))
        if known is None:
            file = self._describe(table)
            known = _hashed(path, table)
            with _readable(path, table):
                ((rows, _),) = self._query(read_through(table, file.source))
                if rows != _rows_of(path, file):
                    raise _unreadable(table)
            if stamp_of(path, table) != stamp:
                raise DataFault(f"The file {table.source} of table {table.name} changed while it was read; try again")
            with self._lock:
                self._digests[(table.name, stamp)] = known
        return known

    def run(self, question: Question, digest: str) -> Cells:
        """Run a question in as many passes as keep its sort in memory, and add the passes' cells."""
        cells = self._cells(question, digest)
        if cells is None:  # raised out here, the fault drags no engine's message along
            raise EngineFault(FAILED)
        return cells

    def _cells(self, question: Question, digest: str) -> Cells | None:
        """Return the cells, or None if anything failed: saying what could tell something about the data."""
        table = question.table
        try:
            if self._known(table) != digest:
                return None
            file = self._describe(table)
            passes = self._passes(file, table)
            cells: dict[tuple[Constant, ...], tuple[int, ...]] = {}
            for index in range(passes):
                for row in self._fetch(render(question, file.source, Pass(index=index, of=passes))):
                    key, values = _read(row, question)
                    sums = cells.get(key)
                    cells[key] = values if sums is None else tuple(map(sum, zip(sums, values, strict=True)))
            return cells if self._known(table) == digest else None
        except Exception:
            return None

    def _known(self, table: Table) -> str | None:
        """Return the digest of a file that was read through, or None for one that was not.

        A new link or other rights change a file's stamp and not its content: then the content is hashed again.
        """
        path = self._path(table)
        stamp = stamp_of(path, table)
        with self._lock:
            known = {at: digest for (name, at), digest in self._digests.items() if name == table.name}
        if stamp in known:
            return known[stamp]
        digest = _hashed(path, table)
        if digest not in known.values() or stamp_of(path, table) != stamp:
            return None
        with self._lock:
            self._digests[(table.name, stamp)] = digest
        return digest

    def close(self) -> None:
        """Close the database and remove its folder."""
        self._connection.close()
        self._clean_up()

    def _path(self, table: Table) -> Path:
        return (self._folder / table.source).resolve()

    def _passes(self, file: File, table: Table) -> int:
        """Return how many passes keep the bounding sort inside the memory limit."""
        if table.privacy_unit == "row":
            return 1
        bytes_a_row = 24 + 16 * len(table.columns)
        return max(1, -(-file.rows * bytes_a_row * 10 // (self._memory * 6)))

    def _fetch(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a question's query."""
        return self._query(query)

    def _query(self, query: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        deadline = time.monotonic() + self._seconds
        with deferred() as pressed, ThreadPoolExecutor(max_workers=1) as pool:
            future: Future[list[tuple[Any, ...]]] = pool.submit(lambda: cursor.execute(query).fetchall())
            while not wait([future], timeout=0.05).done:
                if pressed or time.monotonic() > deadline:
                    cursor.interrupt()
            return future.result()

    def _describe(self, table: Table) -> File:
        path = self._path(table)
        with _readable(path, table):
            rows, names = _metadata(path)
            relation = _relation(path, names)
            described = self._connection.cursor().execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        found = {str(name).casefold(): str(kind) for name, kind, *_ in described}
        wanted = [column.name for column in table.columns]
        if table.privacy_unit != "row":
            wanted.append(table.privacy_unit)
        missing = sorted({name for name in wanted if name.casefold() not in found})
        if missing:
            raise DataFault(f"{table.source} has no column {', '.join(missing)}; it has {', '.join(names)}")
        twice = sorted({name for name in wanted if [n.casefold() for n in names].count(name.casefold()) > 1})
        if twice:
            raise DataFault(f"{table.source} has several columns called {', '.join(twice)}, but for case; rename them")
        types = {name: found[name.casefold()] for name in wanted}
        if table.privacy_unit != "row" and types[table.privacy_unit] in {"DOUBLE", "FLOAT", "BOOLEAN"}:
            raise DataFault(
                f"The privacy unit {table.privacy_unit} of {table.name} is a {types[table.privacy_unit].lower()} in "
                f"{table.source}; it must be an integer or a text"
            )
        return File(path=path, source=Source(relation=relation, types=types), rows=rows)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file is written: it stands in for the digest while it stays the same."""

    size: int
    modified: int
    changed: int
    inode: int


def stamp_of(path: Path, table: Table) -> Stamp:
    """Return a file's stamp."""
    with _readable(path, table):
        status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class _readable:  # noqa: N801 - reads as a statement
    """Turn what a file system or a file format may raise into our fault, which names the source and nothing of it."""

    path: Path
    table: Table

    def __enter__(self) -> None:
        what = f"The file {self.table.source} of table {self.table.name}"
        if not self.path.is_file():
            raise DataFault(f"{what} is missing")
        if set(str(self.path)) & set("*?["):
            raise DataFault(f"{what} has *, ? or [ in its path, which the engine reads as a pattern; rename it")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | pyarrow.ArrowException | UnicodeError | csv.Error | duckdb.Error):
            raise _unreadable(self.table) from None


def _hashed(path: Path, table: Table) -> str:
    with _readable(path, table), path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _unreadable(table: Table) -> DataFault:
    return DataFault(
        f"The file {table.source} of table {table.name} cannot be read to its end; is it complete, and Parquet, or CSV "
        "in UTF-8 with every quote closed and the same number of fields in every line?"
    )


def _metadata(path: Path) -> tuple[int, list[str]]:
    """Return the number of rows (used to plan passes, never shown) and the names of the columns."""
    if _is_text(path):
        with path.open(newline="", encoding="utf-8-sig") as file:
            names = next(csv.reader(file, delimiter=_delimiter(path)), [])
        # A row takes at least two bytes a column: an upper bound on their number without reading them.
        return path.stat().st_size // max(2 * len(names), 1), names
    with pyarrow.parquet.ParquetFile(path) as parquet:
        return int(parquet.metadata.num_rows), list(parquet.schema_arrow.names)


def _rows_of(path: Path, file: File) -> int:
    """Return how many rows a file should have: of a text, by another reader than the engine's.

    The engine's own does not mind a quote that is never closed: it drops what follows, to the end of the file.
    """
    if not _is_text(path):
        return file.rows
    with path.open(newline="", encoding="utf-8-sig") as content:
        lines = csv.reader(content, delimiter=_delimiter(path), strict=True)
        alone = len(next(lines)) == 1  # then an empty line is a row that is NULL
        return sum(1 for line in lines if line or alone)


def _is_text(path: Path) -> bool:
    return path.suffix.casefold() in {".csv", ".tsv"}


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.casefold() == ".tsv" else ","


def _relation(path: Path, names: list[str]) -> str:
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


def _locked_down(paths: list[str], spill: str, memory: int, threads: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory}B",
            "threads": threads,
            "temp_directory": spill,
            "max_temp_directory_size": SPILL,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
            # The page cache is enough; DuckDB's own could serve blocks of a file that was since replaced.
            "enable_external_file_cache": False,
        },
    )
    allowed = ", ".join(text(path) for path in paths)
    connection.execute(f"SET GLOBAL allowed_paths = [{allowed}]")
    connection.execute("SET GLOBAL TimeZone = 'UTC'")  # of every cursor, not of this connection alone
    connection.execute(f"SET GLOBAL disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET GLOBAL lock_configuration = true")
    return connection


def _read(row: tuple[Any, ...], question: Question) -> tuple[tuple[Constant, ...], tuple[int, ...]]:
    count = len(question.keys)
    key = tuple(_constant(value, k.column.type) for value, k in zip(row[:count], question.keys, strict=True))
    return key, tuple(int(value) for value in row[count:])


def _constant(value: Any, kind: Type) -> Constant:
    if isinstance(kind, Fixed) and isinstance(value, int):
        return value * kind.step
    if isinstance(value, bool | str | datetime | Fraction):
        return value
    return value  # type: ignore[no-any-return]  # a date
