"""Where a ledger of the tests is: the table of stores, over which every law of a ledger runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, final

import psycopg
import pytest

from lapwing.catalog.ledger import LedgerPlace, place_of
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.mark import path_of
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.postgres.presence import PostgresPresence
from lapwing.ledger.registration import Registration
from lapwing.ledger.sqlite import presence as files
from tests.support.effort import only

STORES: Final = ("sqlite", "postgres")
NAME: Final = "visits.lapwing.db"
IN_A_FILE: Final = pytest.mark.parametrize("place", only([0], STORES), indirect=True)
IN_A_DATABASE: Final = pytest.mark.parametrize("place", only([1], STORES), indirect=True)
"""Tests that start processes and run over one store in the short run, over each in the long one."""
GRACE: Final = "lapwing.ledger.postgres.presence.GRACE_SECONDS"
PATIENCE: Final = 300.0
"""Seconds to wait for what a server does by itself, on a machine that is busy with something else."""


@final
@dataclass(frozen=True)
class Place:
    """A ledger as a catalog names it, seen from a host that keeps its files in a folder."""

    name: str
    folder: Path

    @classmethod
    def of_file(cls, path: Path) -> Self:
        return cls(f"sqlite:{path.name}", path.parent)

    @classmethod
    def of_database(cls, address: str, folder: Path) -> Self:
        return cls(f"{address}{'&' if '?' in address else '?'}ledger=visits", folder)

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `str` wrote, as for the arguments of another process."""
        name, folder = text.split(" ", 1)
        return cls(name, Path(folder))

    def __str__(self) -> str:
        return f"{self.name} {self.folder}"

    def open(self, registration: Registration, *, patience: float = 10, **more: Any) -> Ledger:
        return open_ledger(self.name, self.folder, registration, patience=patience, **more)

    @property
    def at(self) -> LedgerPlace:
        return place_of(self.name)

    @property
    def mark(self) -> Path:
        return path_of(self.folder / self.at.file)

    def seen_from(self, host: str) -> "Place":
        """Return the same ledger, as another host sees it that shares no files; a file has one host."""
        if self.at.store == "sqlite":
            return self
        folder = self.folder / host
        folder.mkdir(exist_ok=True)
        return replace(self, folder=folder)

    @property
    def presences(self) -> type[Any]:
        """The class of the store's presence."""
        return files.FilePresence if self.at.store == "sqlite" else PostgresPresence

    def askers(self) -> list[str]:
        """Return who asks, or has left something behind."""
        if self.at.store == "sqlite":
            start = files.path_of(self.folder / self.at.file, "").name
            return [path.name.removeprefix(start) for path in self.folder.glob(f"{start}*")]
        with self.connection() as connection:
            return [name for (name,) in connection.execute("SELECT asker FROM lapwing.askers")]

    def forget_askers(self) -> None:
        """Let everybody who asks look dead."""
        if self.at.store == "sqlite":
            for name in self.askers():
                files.path_of(self.folder / self.at.file, name).unlink()
            return
        with self.connection() as connection:
            connection.execute("DELETE FROM lapwing.askers")
            connection.execute(
                "SELECT pg_terminate_backend(pid, 300000) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )

    def bury(self) -> None:
        """Wait until the store has noticed that processes are gone."""
        if self.at.store == "sqlite":
            return
        deadline = time.monotonic() + PATIENCE
        statement = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        with self.connection() as connection:
            while connection.execute(statement).fetchone() != (0,):
                assert time.monotonic() < deadline, "sessions of the dead stay"
                time.sleep(0.01)

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.at.address, autocommit=True) as connection:
            yield connection


def place_in(store: str, folder: Path, request: pytest.FixtureRequest) -> Place:
    """Return a place for a new ledger."""
    if store == "sqlite":
        return Place.of_file(folder / NAME)
    address: str = request.getfixturevalue("postgres")
    request.getfixturevalue("monkeypatch").setattr(GRACE, 0.0)
    return Place.of_database(address, folder)
