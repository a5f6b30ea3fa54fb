"""A SQLite file of one process and any number of threads, in which what is written is on the disk when it is there."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from lapwing.errors import LapwingError


@final
class DurableFile:
    """A file that is readable by its owner alone, begun if there is none.

    Args:
        schema: SQL that makes what is not there yet.
        fault: What is raised where SQLite fails.
        forgets: Whether what is deleted is overwritten.
    """

    def __init__(self, path: Path, schema: str, fault: Callable[[], LapwingError], *, forgets: bool = False) -> None:
        self._fault, self._lock = fault, threading.Lock()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with self._faults():
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", *(("secure_delete = ON",) if forgets else ())):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.executescript(schema)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Do all of it or nothing, one thread at a time."""
        with self._lock, self._faults():
            cursor = self._connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error:
            raise self._fault() from None
