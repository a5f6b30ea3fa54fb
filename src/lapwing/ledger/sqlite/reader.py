"""Looking at the file of a ledger without holding it up.

In a write-ahead log a reader sees the file as it was when it began, while others write. The connection is one of its
own, and closed before a fork like the chain's. Threads take turns, a page or a sum at a time.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import final

from lapwing.ledger.forks import rests_first
from lapwing.ledger.group_commit import Turn
from lapwing.ledger.sqlite import file
from lapwing.ledger.sqlite.chain import SqliteLog


@final
class SqliteReader:
    """A connection that looks.

    Args:
        patience: Seconds to wait for other threads before that is a fault.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._turn = Turn(path.name, patience)
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode that the connection has open
        rests_first(self)

    @contextmanager
    def log(self) -> Iterator[SqliteLog]:
        """Give the entries as they are when the first of them is read."""
        with self._turn.taken(), file.faults(self._path.name):
            connection = self._opened()
            try:
                connection.execute("BEGIN")
                yield SqliteLog(connection, self._path.name)
            except sqlite3.Error:
                self._disconnect()
                raise
            finally:
                if connection is self._connection and connection.in_transaction:
                    connection.rollback()

    def stamp(self) -> object | None:
        """Return what the system says of the file and of its write-ahead log; None if one is not there."""
        try:
            found = [os.stat(path) for path in (self._path, f"{self._path}-wal")]
        except OSError:
            return None
        return [(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found]

    def close(self) -> None:
        """Close the file."""
        with self._turn.waited():
            self._disconnect()

    def rest(self) -> None:
        """Wait until no thread looks, and close the file: a child opens it itself."""
        self._turn.wait()
        self._disconnect()

    def resume(self, *, in_child: bool) -> None:
        """Let threads in again."""
        self._turn.end()

    def _opened(self) -> sqlite3.Connection:
        """Return the connection, opened anew if there is none or another file has taken the path."""
        status = os.stat(self._path)
        opened = status.st_dev, status.st_ino
        if self._connection is None or self._file != opened:
            self._disconnect()
            self._connection = file.connect(self._path, self._patience, virgin=False)
            self._file = opened
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
