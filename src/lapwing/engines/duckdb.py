"""DuckDB over Parquet and CSV files, locked down.

Theory of operation. One in-memory database a catalog, configured once and then locked: it may open the catalog's own
source files and nothing else, loads no extension, sees no Python variable, and spills only into a private folder that
goes with the engine. It never sees an analyst's text: `query.render` prints its SQL from a checked plan. That SQL
cannot raise on data by construction; if the engine fails all the same (memory, disk, time, a damaged file), the
caller learns that it failed and nothing else. A question runs in a thread of its own, so that a time limit or Ctrl-C
can interrupt it.
"""

import csv
import hashlib
import os
import shutil
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
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
from lapwing.query.expression import Constant
from lapwing.query.plan import Question
from lapwing.query.render import Pass, Source, render, text
from lapwing.query.types import Fixed, Type

MEMORY = 1_000_000_000  # bytes
SPILL = "32GB"
SECONDS = 600.0
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
        seconds: the longest a question may run.
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
            self._describe(table)
            with _readable(path, table), path.open("rb") as file:
                known = hashlib.file_digest(file, "sha256").hexdigest()
            with self._lock:
                self._digests[(table.name, stamp)] = known
        return known

    def run(self, question: Question) -> Cells:
        """Run a question in as many passes as keep its sort in memory, and add the passes' cells."""
        table = question.table
        try:
            before = stamp_of(self._path(table), table)
            file = self._describe(table)
            passes = self._passes(file, table)
            cells: dict[tuple[Constant, ...], tuple[int, ...]] = {}
            for index in range(passes):
                for row in self._fetch(render(question, file.source, Pass(index=index, of=passes))):
                    key, values = _read(row, question)
                    known = cells.get(key)
                    cells[key] = values if known is None else tuple(map(sum, zip(known, values, strict=True)))
            unchanged = stamp_of(self._path(table), table) == before
        except Exception:  # whatever it was, saying which could tell something about the data
            raise EngineFault(FAILED) from None
        if not unchanged:
            raise EngineFault(FAILED)
        return cells

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
        cursor = self._connection.cursor()
        with ThreadPoolExecutor(max_workers=1) as pool:
            future: Future[list[tuple[Any, ...]]] = pool.submit(lambda: cursor.execute(query).fetchall())
            try:
                return future.result(timeout=self._seconds)
            except (TimeoutError, KeyboardInterrupt):
                while not future.done():
                    cursor.interrupt()
                    try:
                        future.exception(timeout=0.2)
                    except TimeoutError:
                        continue
                raise

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
            present = ", ".join(str(row[0]) for row in described)
            raise DataFault(f"{table.source} has no column {', '.join(missing)}; it has {present}")
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
        if not self.path.is_file():
            raise DataFault(f"The file {self.table.source} of table {self.table.name} is missing")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | pyarrow.ArrowException | UnicodeError | csv.Error):
            what = f"The file {self.table.source} of table {self.table.name}"
            raise DataFault(f"{what} cannot be read; is it complete, and Parquet or CSV?") from None


def _metadata(path: Path) -> tuple[int, list[str]]:
    """Return the number of rows (used to plan passes, never shown) and, for text files, the header's names."""
    if path.suffix.casefold() in {".csv", ".tsv"}:
        with path.open(newline="", encoding="utf-8-sig") as file:
            names = next(csv.reader(file, delimiter=_delimiter(path)), [])
        # A row takes at least two bytes a column: an upper bound on their number without reading them.
        return path.stat().st_size // max(2 * len(names), 1), names
    return int(pyarrow.parquet.read_metadata(path).num_rows), []


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.casefold() == ".tsv" else ","


def _relation(path: Path, names: list[str]) -> str:
    """Return the table function that reads a file; text is read as text, nothing is guessed from its rows."""
    if path.suffix.casefold() not in {".csv", ".tsv"}:
        return f"read_parquet({text(str(path))})"
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    options = f"auto_detect = false, header = true, delim = {text(_delimiter(path))}, quote = '\"', escape = '\"'"
    tolerant = "nullstr = '', null_padding = true, ignore_errors = true"
    return f"read_csv({text(str(path))}, {options}, {tolerant}, columns = {{{columns}}})"


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
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET TimeZone = 'UTC'")
    # This rewrite of "the first K rows of each unit" keeps all units in memory at once and fails at small limits.
    connection.execute("SET disabled_optimizers = 'top_n_window_elimination'")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
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
