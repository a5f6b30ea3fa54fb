"""The reports that a collector took of one task, in a SQLite file: durable before they are acknowledged.

Theory of operation. A row of `taken` is a commit: the identities of its reports, one after another, and what they say,
as a JSON list in the same order. Rows are only appended, so a commit writes little more than the reports and waits once
for the disk. What is kept is enough to estimate again. Nothing tells who sent a report, and of the time there is the
day. Reports that were rejected are counted by their reason alone.

One process holds the file, and takes it for itself.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, final

from lapwing.collector.identities import SIZE
from lapwing.errors import Fault

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS task (digest TEXT NOT NULL, batch INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS taken (number INTEGER PRIMARY KEY, day TEXT NOT NULL, reports INTEGER NOT NULL,
                                  identities BLOB NOT NULL, said TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rejected (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS released (file INTEGER PRIMARY KEY, last INTEGER NOT NULL);
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One commit: its number, its day, the identities of its reports, and what they say."""

    number: int
    day: date
    identities: list[bytes]
    said: list[object]


@final
class Inbox:
    """The file of one task's reports, for one thread at a time.

    Args: path: begun if there is none. digest: of the task. batch: the least number of reports that are released
        together, fixed when the file is begun.
    Raises: Fault if another process has the file, it is of another task or another batch, or it cannot be used.
    """

    def __init__(self, path: Path, digest: str, batch: int) -> None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with self._faults():
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
            for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.executescript(_SCHEMA)
            row = self._connection.execute("SELECT digest, batch FROM task").fetchone()
            if row is None:
                self._connection.execute("INSERT INTO task VALUES (?, ?)", (digest, batch))
        if row is not None and row != (digest, batch):
            self.close()
            raise Fault(
                f"{path} holds reports of another task, or was begun with batches of {row[1]}; nothing was done."
            )

    def append(
        self, day: date, identities: Sequence[bytes], said: Sequence[object], rejected: Mapping[str, int]
    ) -> int:
        """Keep reports, and count what was rejected, durably, all or nothing; return the commit's number."""
        with self._faults(), self._transaction():
            for reason, count in rejected.items():
                self._connection.execute(
                    "INSERT INTO rejected VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                    (reason, count),
                )
            if not identities:
                return 0
            text = json.dumps(said, separators=(",", ":"))
            row = (day.isoformat(), len(identities), b"".join(identities), text)
            cursor = self._connection.execute("INSERT INTO taken VALUES (NULL, ?, ?, ?, ?)", row)
            return cursor.lastrowid or 0

    def taken(self, after: int = 0, until: int | None = None) -> Iterator[Taken]:
        """Yield the commits after one, up to and with another, in order."""
        rows = "SELECT number, day, identities, said FROM taken WHERE number > ? AND number <= ? ORDER BY number"
        with self._faults():
            for number, day, joined, said in self._connection.execute(rows, (after, until or 1 << 62)):
                each = [joined[at : at + SIZE] for at in range(0, len(joined), SIZE)]
                yield Taken(number=number, day=date.fromisoformat(day), identities=each, said=json.loads(said))

    def rejected(self) -> dict[str, int]:
        """Return how many reports were rejected, by reason."""
        with self._faults():
            return dict(self._connection.execute("SELECT reason, count FROM rejected").fetchall())

    def released(self) -> tuple[int, int]:
        """Return the number of the last file of released reports, and of the last commit in it; 0 if there is none."""
        with self._faults():
            row = self._connection.execute("SELECT file, last FROM released ORDER BY file DESC LIMIT 1").fetchone()
        return row or (0, 0)

    def note_released(self, file: int, last: int) -> None:
        """Remember durably that all reports up to a commit are in files."""
        with self._faults():
            self._connection.execute("INSERT INTO released VALUES (?, ?)", (file, last))

    def forget_identities(self) -> None:
        """Drop the identities of all reports: once a task is closed, no report can come again."""
        with self._faults():
            self._connection.execute("UPDATE taken SET identities = x''")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @staticmethod
    @contextmanager
    def _faults() -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            held = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            why = "another collector has it" if held else "it cannot be read or written"
            raise Fault(f"The file of reports cannot be used: {why}. Nothing was taken.") from None
