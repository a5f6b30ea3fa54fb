"""The SQLite file of a ledger: how it is made and opened, and what its errors mean.

Write-ahead log with full sync: SQLite syncs the log at every commit before the commit becomes visible to anyone, so
an entry that any process has seen survives a power failure.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES
from functools import cache
from pathlib import Path
from typing import Any, Final

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import RESTORE
from lapwing.ledger.migrations import Step, steps_of
from lapwing.machine.drafts import sync_folder

APPLICATION: Final = int.from_bytes(b"LAPW", "big")
STEPS: Final = steps_of("sqlite")
_MEANINGS: Final = {
    "SQLITE_BUSY": "was locked by another program for too long. Close that program, or run the query again later",
    "SQLITE_LOCKED": "was locked by another program for too long. Close that program, or run the query again later",
    "SQLITE_FULL": "cannot grow, because the disk or its quota is full. Make room and run the query again",
    "SQLITE_READONLY": "cannot be written. Make the file and its folder writable for this user",
    "SQLITE_CANTOPEN": "cannot be opened. Make the file and its folder readable and writable for this user",
    "SQLITE_PERM": "cannot be opened. Make the file and its folder readable and writable for this user",
    "SQLITE_NOTADB": "is not a database. Give the path of a ledger. " + RESTORE.removesuffix("."),
    "SQLITE_CORRUPT": "is damaged. " + RESTORE.removesuffix("."),
    "SQLITE_IOERR": "could not be read or written. Check the disk and run the query again",
}


@contextmanager
def faults(name: str) -> Iterator[None]:
    """Turn what SQLite and the file system report into a `LedgerFault` that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise fault_of(name, error) from error


def fault_of(name: str, error: sqlite3.Error | OSError) -> LedgerFault:
    """Return the fault of a ledger whose file raised this, saying what to do."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")  # no code: a text that is not UTF-8
        meaning = next((text for prefix, text in _MEANINGS.items() if code.startswith(prefix)), None)
        meaning = meaning or f"failed ({code}). Close every program that uses it, and run the query again"
        return LedgerFault(f"The ledger {name} {meaning}. Nothing was answered.")
    reason = (error.strerror or type(error).__name__).lower()
    return LedgerFault(
        f"The ledger {name} or its mark cannot be used ({reason}). Make the files and their folder readable and "
        "writable for this user. Nothing was answered."
    )


def followed(path: Path) -> Path:
    """Return the path with its links followed, so that all names of a ledger lead to one mark."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise LedgerFault(
            f"The path of the ledger {path.name} is a circle of links. Give the path of a file."
        ) from error


def create_file(path: Path) -> None:
    """Create the empty file with mode 0600, which SQLite copies to the files that it adds (`-wal`, `-shm`)."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    sync_folder(path.parent)


def connect(path: Path, seconds: float, *, virgin: bool) -> sqlite3.Connection:
    """Open the file, which must be a ledger, or empty if `virgin`; then it is made one."""
    effective = os.access in os.supports_effective_ids
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=effective):  # SQLite would open it, to read only
        raise PermissionError(EACCES, "not writable")
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=seconds, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        _require_ledger(connection, path.name, virgin=virgin)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if pragma(connection, "journal_mode") != "wal" or pragma(connection, "synchronous") != 2:
            raise LedgerFault(
                f"The ledger {path.name} lies on a disk without write-ahead logs. Move it to a local disk."
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _require_ledger(connection: sqlite3.Connection, name: str, *, virgin: bool) -> None:
    application, schema = pragma(connection, "application_id"), pragma(connection, "user_version")
    tables = _tables(connection)
    if (application, schema, tables) == (0, 0, ()):
        if virgin:
            _migrate(connection, since=0)
            return
        raise LedgerFault(
            f"The ledger {name} is empty and its mark says that it had entries: it was truncated or replaced. {RESTORE}"
        )
    if application != APPLICATION:
        raise LedgerFault(f"The file {name} is a database but not a Lapwing ledger. Give the path of a ledger.")
    known = len(STEPS)
    if schema > known:
        raise LedgerFault(
            f"The ledger {name} has schema version {schema} and this Lapwing knows version {known}. "
            "Use the release of Lapwing that wrote it, or a newer one."
        )
    if tables != _tables_of(STEPS[:schema]):  # a trigger or a view could change what is written or read
        raise LedgerFault(f"The ledger {name} has other tables than Lapwing made. {RESTORE}")
    _migrate(connection, since=schema)


def _migrate(connection: sqlite3.Connection, *, since: int) -> None:
    """Apply the steps of the schema that the file does not have, each in one transaction with its number."""
    for number, step in enumerate(STEPS[since:], since + 1):
        connection.execute("BEGIN IMMEDIATE")
        for statement in step:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")


@cache
def _tables_of(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """Return the tables and indexes that these steps of the schema make, as SQLite spells them."""
    connection = sqlite3.connect(":memory:")
    try:
        for step in steps:
            for statement in step:
                connection.execute(statement)
        return _tables(connection)
    finally:
        connection.close()


def _tables(connection: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid"))


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """Return a setting of SQLite, or the first line of what it reports."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
