"""The store of a service: people, tokens, grants, policies, kept answers and the audit log, in SQLite or PostgreSQL.

The statements are the same for both: the common part of their languages, with `?` for values and numbers for truths. A
transaction that writes holds the store alone, among all processes and hosts, so what it reads stays true until it ends;
one that only reads sees what was committed before it began, and waits for nobody.

The ledger is held while a policy is read (`ledger.allowances`), so nothing here may ask a ledger for anything.
"""

import errno
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, Literal, Protocol

Kind = Literal["sqlite", "postgres"]
PROBE: Final = 64 << 10
"""Bytes that a disk has to take to count as writable: more than a charge and its answer need."""


class StoreCursor(Protocol):
    """What a statement found, or how many rows it changed."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class StoreConnection(Protocol):
    """Carries out statements, inside of a transaction."""

    def execute(self, statement: str, values: Sequence[object] = (), /) -> StoreCursor:
        """Carry out one statement, with a value for each `?`."""


class ServiceStore(Protocol):
    """The store of a service, for any number of threads and processes.

    Raises:
        Fault: In every method, if it cannot be reached, read or written.
    """

    @property
    def name(self) -> str:
        """Where it is, for people; without a password."""

    @property
    def is_local(self) -> bool:
        """Whether reading is as quick as reading a file: nothing is asked over a network, and nobody is waited for."""

    def transaction(self) -> AbstractContextManager[StoreConnection]:
        """Hold the store alone; what was changed is kept, together and durably, if the block ends well."""

    def reading(self) -> AbstractContextManager[StoreConnection]:
        """Look at the store as it is when the block begins; nothing may be changed."""

    def look(self, statement: str, values: Sequence[object] = (), /) -> list[Any]:
        """Return what one statement finds, which is all of one moment; nothing may be changed."""

    def add(self, statement: str, values: Sequence[object], /) -> None:
        """Add a row, durably, by one statement, which rests on nothing that was read and may be carried out twice."""

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Hold the lock of a name, among all processes; whoever dies lets go of it.

        In one process, only one thread may want a name at a time. If a connection breaks, another may come to hold it
        too, so nothing may rest on it but who waits for whom.
        """

    def require_writable(self) -> None:
        """Write something that leaves nothing behind, durably.

        Raises:
            Fault: If that cannot be done.
        """

    def close(self) -> None:
        """Let go of file or connections."""


def write_probe(folder: Path) -> None:
    """Write `PROBE` bytes to a file of a folder that has no name, durably; nothing is left of them.

    Raises:
        OSError: As if the disk is full.
    """
    with TemporaryFile(dir=folder, buffering=0) as file:
        if file.write(bytes(PROBE)) != PROBE:
            raise OSError(errno.ENOSPC, "only a part was written")
        os.fsync(file.fileno())


def migrations(kind: Kind) -> list[str]:
    """Return the steps of the schema, in order: each is applied once, with its number, in one transaction."""
    folder = files("lapwing.server") / "schema" / kind
    steps = sorted((entry.name, entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [text for _, text in steps]


def now() -> str:
    """Return the time in UTC, for people."""
    return time_text(time.time())


def time_text(seconds: float) -> str:
    """Return a time, in seconds since 1970, as the store has it: in UTC, for people; a later one is a greater text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def time_or_none(seconds: float | None) -> str | None:
    """Return a time as `time_text`, if there is one."""
    return None if seconds is None else time_text(seconds)
