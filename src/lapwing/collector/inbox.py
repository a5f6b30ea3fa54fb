"""The reports that a collector took of one task, in a SQLite file, and released ones in Parquet files beside it.

Theory of operation. A row of `taken` is a commit: the identities of its reports, one after another, and what they say,
as a JSON list in the same order. Rows are only appended, so a commit writes little more than the reports and waits once
for the disk. What is kept is enough to estimate again. Nothing tells who sent a report, and of the time there is the
day. Reports that were rejected are counted by their reason alone. What is deleted is overwritten with zeros, and the
file is written anew without it.

One process holds the file, and takes it for itself.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Final, final

from lapwing.collector.identities import SIZE
from lapwing.collector.released import write_released
from lapwing.collector.report_store import DeletedReports, ReportCommit
from lapwing.errors import Fault
from lapwing.local import client

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS task (digest TEXT NOT NULL, batch INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS taken (number INTEGER PRIMARY KEY, day TEXT NOT NULL, reports INTEGER NOT NULL,
                                  identities BLOB NOT NULL, said TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rejected (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS released (file INTEGER PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS kept (day TEXT NOT NULL, reports INTEGER NOT NULL, rows TEXT NOT NULL);
"""
_PRAGMAS: Final = ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON")


@final
class ReportInbox:
    """The file of one task's reports: a `ReportStore`.

    Args:
        folder: In which it is begun if there is none.
        batch: The least number of reports that are released together, fixed when the file is begun.

    Raises:
        Fault: If another process has the file, it is of another task or another batch, or it cannot be used.
    """

    def __init__(self, folder: Path, task: client.Task, batch: int) -> None:
        self._folder, self._id, self._digest, self._batch = folder, task.id, task.digest, batch
        path, digest = folder / f"{task.id}.reports.db", task.digest
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with self._faults():
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
            for pragma in _PRAGMAS:
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

    def taken(self, after: int = 0, until: int | None = None) -> Iterator[ReportCommit]:
        """Yield the commits after one, up to and with another, in order."""
        rows = "SELECT number, day, identities, said FROM taken WHERE number > ? AND number <= ? ORDER BY number"
        with self._faults():
            for number, day, joined, said in self._connection.execute(rows, (after, until or 1 << 62)):
                each = [joined[at : at + SIZE] for at in range(0, len(joined), SIZE)]
                yield ReportCommit(number=number, day=date.fromisoformat(day), identities=each, said=json.loads(said))

    def rejected(self) -> dict[str, int]:
        """Return how many reports were rejected, by reason."""
        with self._faults():
            return dict(self._connection.execute("SELECT reason, count FROM rejected").fetchall())

    def released(self) -> tuple[int, int]:
        """Return the number of the last file of released reports, and of the last commit in it; 0 if there is none."""
        with self._faults():
            row = self._connection.execute("SELECT file, last FROM released ORDER BY file DESC LIMIT 1").fetchone()
        return row or (0, 0)

    def release(self, number: int, last: int, said: Sequence[str], until: date) -> str:
        """Write a file, and remember durably what is in files; return its path."""
        path = self._folder / f"{self._id}-{number:06d}.parquet"
        write_released(path, said, digest=self._digest, until=until, least=self._batch)
        with self._faults():
            self._connection.execute("INSERT INTO released VALUES (?, ?)", (number, last))
        return str(path)

    def forget_identities(self) -> None:
        """Drop the identities of all reports: once a task is closed, no report can come again."""
        with self._faults():
            self._connection.execute("UPDATE taken SET identities = x'' WHERE identities != x''")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def delete(self, kept: DeletedReports) -> None:
        """Delete all reports and the released files, and keep what they added up to.

        Files go first: a crash in between leaves the rows, and the next start begins again.
        """
        for path in self._folder.glob(f"{self._id}-*.parquet"):
            path.unlink()
        with self._faults():
            with self._transaction():
                self._connection.execute("DELETE FROM taken")
                row = (kept.day.isoformat(), kept.reports, json.dumps(kept.rows))
                self._connection.execute("INSERT INTO kept VALUES (?, ?, ?)", row)
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def kept(self) -> DeletedReports | None:
        """Return what was kept of deleted reports; None while they are not deleted."""
        with self._faults():
            row = self._connection.execute("SELECT day, reports, rows FROM kept").fetchone()
        return row and DeletedReports(day=date.fromisoformat(row[0]), reports=row[1], rows=json.loads(row[2]))

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
            held = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            why = "another collector has it" if held else "it cannot be read or written"
            raise Fault(f"The file of reports cannot be used: {why}. Nothing was taken.") from None
