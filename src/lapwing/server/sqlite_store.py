"""The SQLite file of a service.

Two connections of a process, each under a lock, one that writes and one that only looks: with the write-ahead log, who
looks does not wait for a commit to reach the disk. Full sync, mode 0600. The schema grows by numbered files
of SQL; each is applied once, together with its number, in one transaction, so that a crash leaves the schema of one
number or the next. Several processes of one machine may share the file.

Rows that wait to be added while another commit reaches the disk are added together, by one commit. If that fails, each
is added by itself, in its own thread, and only then is an error raised. So nobody hears of somebody else's error. A row
may be added twice (`store.ServiceStore.add`), so it does not matter whether the failed commit took effect.

A lock of a name is one of the operating system (`flock`) on one of some empty files beside it; the kernel lets go of it
when its process dies. Two names may share a file: then one waits without need, and nothing else.
"""

import fcntl
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, final

from lapwing.errors import Fault, InvalidParameter
from lapwing.server import store

APPLICATION: Final = int.from_bytes(b"LAPS", "big")
PATIENCE: Final = 30.0
"""Seconds to wait for other processes that hold the file."""
LOCKS: Final = ".turns"


@dataclass(slots=True, eq=False)
class _Row:
    """A row that is to be added by a statement, and whether it is in the file."""

    statement: str
    values: tuple[object, ...]
    kept: bool = False


@final
class SqliteStore:
    """The store of a service in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing, self._looking = threading.RLock(), threading.RLock()
        self._waiting: deque[_Row] = deque()
        with _faults(path):
            with suppress(FileExistsError):  # made for its owner only
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            if path.stat().st_mode & 0o077:
                raise InvalidParameter(
                    f"Other users can read {path.name}, which has people and results. Run `chmod 600` on it."
                )
            self._locks = path.with_name(path.name + LOCKS)
            self._locks.mkdir(mode=0o700, exist_ok=True)
            self._writer = _connected(path)
            try:
                self._prepare()
                self._reader = _connected(path)
            except BaseException:
                self._writer.close()
                raise
            self._reader.execute("PRAGMA trusted_schema = OFF")
            self._reader.execute("PRAGMA query_only = ON")

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def is_local(self) -> bool:
        """True: who looks waits for no writer."""
        return True

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the file alone; what was changed is kept, together, if the block ends well."""
        with self._writing, self._begun(self._writer, "BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Look at the file as it is."""
        with self._looking, self._begun(self._reader, "BEGIN") as connection:
            yield connection

    def look(self, statement: str, values: Sequence[object] = (), /) -> list[Any]:
        """Return what one statement finds."""
        with self._looking, _faults(self.path):
            return self._reader.execute(statement, tuple(values)).fetchall()

    def add(self, statement: str, values: Sequence[object], /) -> None:
        """Add a row by one statement, with the rows of other threads that wait."""
        row = _Row(statement, tuple(values))
        self._waiting.append(row)
        with self._writing:
            self._add_together([self._waiting.popleft() for _ in range(len(self._waiting))])
            if not row.kept:
                with _faults(self.path):
                    self._writer.execute(row.statement, row.values)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of a name, among all processes of this machine."""
        slot = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:2]
        with _faults(self.path):
            held = os.open(self._locks / slot, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            with _faults(self.path):
                fcntl.flock(held, fcntl.LOCK_EX)
            yield
        finally:
            os.close(held)

    def require_writable(self) -> None:
        """Write some bytes beside the file, where its write-ahead log would grow."""
        with _faults(self.path):
            store.write_probe(self.path.parent)

    def close(self) -> None:
        """Close the file."""
        with self._writing:
            self._writer.close()
        with self._looking:
            self._reader.close()

    def _add_together(self, rows: Sequence[_Row]) -> None:
        """Add several rows by one commit; none if any of them cannot be added."""
        if len(rows) < 2 or self._writer.in_transaction:
            return
        try:
            with self._begun(self._writer, "BEGIN IMMEDIATE") as connection:
                for row in rows:
                    connection.execute(row.statement, row.values)
        except (Fault, sqlite3.Error):
            return
        for row in rows:
            row.kept = True

    @contextmanager
    def _begun(self, connection: sqlite3.Connection, beginning: str) -> Iterator[sqlite3.Connection]:
        with _faults(self.path):
            connection.execute(beginning)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _prepare(self) -> None:
        connection = self._writer
        connection.execute("PRAGMA trusted_schema = OFF")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION and connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise InvalidParameter(f"{self.path.name} is a database of another program; name another file by --people.")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        steps = store.migrations("sqlite")
        with self.transaction():
            number = connection.execute("PRAGMA user_version").fetchone()[0]
        if number > len(steps):
            raise InvalidParameter(
                f"{self.path.name} was made by a newer Lapwing (schema {number}; this version knows {len(steps)}). "
                f"Use that version."
            )
        for step in range(number, len(steps)):
            with self.transaction():
                if connection.execute("PRAGMA user_version").fetchone()[0] > step:  # another process was quicker
                    continue
                for statement in steps[step].split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {step + 1}")


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system report into a `Fault`."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise Fault(f"The service's file {path.name} cannot be used; check its disk and its permissions.") from error
