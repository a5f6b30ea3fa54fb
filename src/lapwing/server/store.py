"""The SQLite file of a service: people, tokens, grants, policies, kept answers, the audit log.

One connection under a lock, write-ahead log with full sync, mode 0600. The schema grows by numbered files of SQL; each
is applied once, together with its number, in one transaction, so that a crash leaves the schema of one number or the
next. What only reads takes the same lock: the file is small and its transactions short.

The ledger is held while a policy is read (`ledger.allowances`), so nothing here may ask a ledger for anything.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Final, final

from lapwing.errors import Fault, InvalidParameter

APPLICATION: Final = int.from_bytes(b"LAPS", "big")
PATIENCE: Final = 10.0
"""Seconds to wait for another program that holds the file."""


@final
class Store:
    """The file of a service, for any number of threads.

    Raises: in every method, Fault if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        with _faults(path):
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            if path.stat().st_mode & 0o077:
                raise InvalidParameter(f"Others may read {path.name}, which holds people and answers: `chmod 600` it.")
            self._connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the file alone; what was changed is kept, together, if the block ends well."""
        with self._lock, _faults(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA trusted_schema = OFF")
        known = connection.execute("PRAGMA application_id").fetchone()[0]
        if known != APPLICATION and connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise InvalidParameter(f"{self.path.name} is a database of another program; name another file by --people.")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        number = connection.execute("PRAGMA user_version").fetchone()[0]
        steps = migrations()
        if number > len(steps):
            raise InvalidParameter(
                f"{self.path.name} was made by a newer Lapwing (schema {number}, known are {len(steps)}); use that one."
            )
        for step in range(number, len(steps)):
            with self.transaction():
                for statement in steps[step].split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {step + 1}")


def migrations() -> list[str]:
    """Return the steps of the schema, in order."""
    folder = files("lapwing.server") / "schema"
    found = sorted((entry.name, entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [text for _, text in found]


def now() -> str:
    """Return the time in UTC, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system report into a `Fault`."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise Fault(f"The service's file {path.name} cannot be used; look after its disk and its rights.") from error
