"""A DuckDB database in memory that may read the files of one catalog and nothing else.

Theory of operation. It is configured once and then locked (`lockdown`), and spills only into a private folder that goes
with it. A query runs in a thread of its own, so that a time limit or Ctrl-C can interrupt it; where only the clock can,
in that which asks (`overdue`). The threads stay: starting one takes as long as a small query does.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast, final
from weakref import finalize

import duckdb

from lapwing.engines.duckdb import statements
from lapwing.engines.duckdb.lockdown import configured, lock_down
from lapwing.engines.duckdb.overdue import interrupted_after
from lapwing.machine import progress, scratch
from lapwing.machine.interrupts import deferred, may_be_stopped

if TYPE_CHECKING:
    import pyarrow as pa

SPILL_PREFIX: Final = "lapwing-spill-"
Rows = list[tuple[Any, ...]]
Taken = TypeVar("Taken")
BATCH: Final = 1 << 21
"""Rows that are handed over at a time where columns are asked for."""


class ColumnReader(Protocol):
    """Runs a query, and returns what a function makes of its columns."""

    def __call__(self, query: str, take: "Callable[[pa.RecordBatchReader], Taken]", /) -> Taken:
        """Return what was taken."""
        ...


@final
@dataclass(frozen=True, slots=True)
class QueryRunner:
    """Runs queries that see the same temporary tables."""

    _run: Callable[[str, Callable[[duckdb.DuckDBPyConnection, str], Any]], Any]

    def __call__(self, query: str) -> Rows:
        """Return the rows of a query, in which numbers are written with their types."""
        take = statements.rows if "::" in query else lambda cursor, text: cursor.execute(text).fetchall()
        return cast(Rows, self._run(query, take))

    def columns(self, query: str, take: "Callable[[pa.RecordBatchReader], Taken]") -> Taken:
        """Return what a function makes of the columns of a query, which come in pieces."""

        def taken(cursor: duckdb.DuckDBPyConnection, text: str) -> Taken:
            # Closed whatever happens: a reader that stays open refuses the cursor's next query, which may be another's.
            with cursor.sql(text).to_arrow_reader(BATCH) as reader:
                return take(reader)

        return cast(Taken, self._run(query, taken))


@final
class Database:
    """A locked-down database.

    Args:
        paths: the only files that it may open. folders: the only folders in which it may make files.
        memory: the most memory it may use, in bytes.
        threads: 0 for one a core.
        seconds: the longest that a query may take.
    """

    def __init__(
        self, *, paths: Sequence[str], folders: Sequence[str], memory: int, threads: int, seconds: float
    ) -> None:
        self._seconds = seconds
        spill = scratch.fresh(Path(tempfile.gettempdir()), SPILL_PREFIX)
        self.scratch, self._clean_up = spill.path, finalize(self, spill.remove)
        self.connection = configured(str(spill.path), memory, threads or os.cpu_count() or 1)
        self._reporting, self._cursors = [_reporting(self.connection)], list[duckdb.DuckDBPyConnection]()
        self._idle: list[ThreadPoolExecutor] = []  # the threads of queries that have ended
        lock_down(self.connection, paths, [*folders, f"{spill.path}/"])

    def query(self, query: str) -> Rows:
        """Return the rows of a query."""
        with self.session() as ask:
            return ask(query)

    def columns(self, query: str, take: "Callable[[pa.RecordBatchReader], Taken]") -> Taken:
        """Return what a function makes of the columns of a query."""
        with self.session() as ask:
            return ask.columns(query, take)

    @contextmanager
    def session(self) -> Iterator[QueryRunner]:
        """Run several queries that see the same temporary tables."""
        # Only one cursor knows how far it is, which takes time, too, and cannot be switched on once all is locked.
        idle = self._reporting if self._reporting and progress.watcher.get() is not None else self._cursors
        try:
            cursor = idle.pop()
        except IndexError:
            cursor = self.connection.cursor()
        try:
            yield QueryRunner(partial(self._run, cursor))
        except BaseException:  # whatever it still has open goes with it, so that no later question finds any of it
            cursor.close()
            raise
        idle.append(cursor)

    def _run(
        self, cursor: duckdb.DuckDBPyConnection, query: str, take: Callable[[duckdb.DuckDBPyConnection, str], Taken]
    ) -> Taken:
        if progress.watcher.get() is None and not may_be_stopped():
            with interrupted_after(self._seconds, cursor):
                return take(cursor, query)
        deadline = time.monotonic() + self._seconds
        with deferred() as pressed, self._worker() as worker:
            future: Future[Taken] = worker.submit(take, cursor, query)
            while not wait([future], timeout=0.05).done:
                progress.report(cursor.query_progress() / 100)
                if pressed or time.monotonic() > deadline:
                    cursor.interrupt()
            try:
                return future.result()
            finally:
                del future  # its error holds this frame: with it, what the query had open would stay until a collection

    @contextmanager
    def _worker(self) -> Iterator[ThreadPoolExecutor]:
        """Take one thread for one query, which ends before the block does."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine")
        try:
            yield worker
        finally:
            self._idle.append(worker)

    def close(self) -> None:
        """Close the database and remove its folder."""
        for cursor in (*self._reporting, *self._cursors):
            cursor.close()
        self.connection.close()
        for worker in self._idle:
            worker.shutdown(wait=False)
        self._clean_up()


def _reporting(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    cursor = connection.cursor()
    cursor.execute("SET enable_progress_bar = true")
    cursor.execute("SET enable_progress_bar_print = false")
    return cursor
