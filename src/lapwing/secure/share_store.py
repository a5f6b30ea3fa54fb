"""The parts that one server holds of one task's answers, in a SQLite file: kept before they are acknowledged.

Theory of operation. A client's id has one row, whatever was sent again; the first cells stay. Freezing is a row, too:
it is decided in the same transaction as every insertion, so the list of clients that is handed out once is the list for
ever. The file is as secret as the server's key: with the parts of all other servers it is the answers.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, final

from lapwing.errors import Fault, InvalidParameter, LapwingError, QueryRefused, RefusalCause
from lapwing.secure.durable_file import DurableFile

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS task (digest TEXT NOT NULL, width INTEGER NOT NULL, frozen INTEGER NOT NULL,
                                 released TEXT);
CREATE TABLE IF NOT EXISTS nonce (bytes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS message (clients BLOB NOT NULL, round INTEGER NOT NULL, digest BLOB NOT NULL,
                                    PRIMARY KEY (clients, round)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS part (client BLOB PRIMARY KEY, cells BLOB NOT NULL) WITHOUT ROWID;
"""
MOST_CLIENTS: Final = 10_000_000


@final
class ShareStore:
    """The parts of one task's answers at one server, for any number of threads.

    Args:
        path: Of the file, begun if there is none.
        task: Its digest.
        width: How many cells an answer has.
        most: How many clients are taken.

    Raises:
        Fault: If the file is of another task, or cannot be used.
    """

    def __init__(self, path: Path, task: str, width: int, most: int = MOST_CLIENTS) -> None:
        self._most = most
        self._file = DurableFile(path, _SCHEMA, _fault)
        with self._file.transaction() as cursor:
            row = cursor.execute("SELECT digest, width FROM task").fetchone()
            if row is None:
                cursor.execute("INSERT INTO task VALUES (?, ?, 0, NULL)", (task, width))
            elif row != (task, width):
                raise Fault(f"The file {path} holds parts of another task; nothing was taken.")

    def take(self, records: Mapping[bytes, bytes]) -> int:
        """Keep records durably, all or none, and return how many were new.

        Raises:
            QueryRefused: If the set of clients is frozen, or full.
            InvalidParameter: If a client's record is not the one that is held. What was held stays.
        """
        with self._file.transaction() as cursor:
            new, conflicts = self._take(cursor, records)
            if conflicts:
                raise InvalidParameter("A client's record differs from the stored one; the first one stays.")
        return new

    def take_each(self, records: Mapping[bytes, bytes]) -> tuple[int, int]:
        """Keep records durably; return how many were new, and of how many clients another one is held, which stays.

        Raises:
            QueryRefused: As `take`.
        """
        with self._file.transaction() as cursor:
            return self._take(cursor, records)

    def _take(self, cursor: sqlite3.Cursor, records: Mapping[bytes, bytes]) -> tuple[int, int]:
        if cursor.execute("SELECT frozen FROM task").fetchone()[0]:
            raise QueryRefused("The task is closed", cause=RefusalCause.TASK_CLOSED, remedy="Nothing was taken.")
        new = conflicts = 0
        for client, cells in records.items():
            held = cursor.execute("SELECT cells FROM part WHERE client = ?", (client,)).fetchone()
            if held is None:
                cursor.execute("INSERT INTO part VALUES (?, ?)", (client, cells))
                new += 1
            elif held[0] != cells:
                conflicts += 1
        if new and cursor.execute("SELECT COUNT(*) FROM part").fetchone()[0] > self._most:
            raise QueryRefused(
                "The task has no room for more clients", cause=RefusalCause.TASK_FULL, remedy="Nothing was taken."
            )
        return new, conflicts

    def freeze(self) -> bytes:
        """Take nothing from now on, durably, and return the ids of all clients, ascending."""
        with self._file.transaction() as cursor:
            cursor.execute("UPDATE task SET frozen = 1")
            return b"".join(client for (client,) in cursor.execute("SELECT client FROM part ORDER BY client"))

    def nonce(self, fresh: bytes) -> bytes:
        """Return the nonce of the frozen set: the fresh one if there is none yet, durably.

        Raises:
            InvalidParameter: If the set is not frozen.
        """
        with self._file.transaction() as cursor:
            if not cursor.execute("SELECT frozen FROM task").fetchone()[0]:
                raise InvalidParameter("The set of clients is not frozen yet; there is no challenge before that.")
            held = cursor.execute("SELECT bytes FROM nonce").fetchone()
            if held is None:
                cursor.execute("INSERT INTO nonce VALUES (?)", (fresh,))
            return fresh if held is None else bytes(held[0])

    def hold_to(self, clients: bytes, round_: int, message: bytes) -> None:
        """Remember, durably, what another server said in a round of drawing the noise of a set.

        Raises:
            InvalidParameter: If it said something else there before.
        """
        digest = sha256(message).digest()
        with self._file.transaction() as cursor:
            cursor.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?)", (clients, round_, digest))
            query = "SELECT digest FROM message WHERE clients = ? AND round = ?"
            (held,) = cursor.execute(query, (clients, round_)).fetchone()
        if held != digest:
            raise InvalidParameter("A server sent a different message in this round before; nothing was released.")

    def is_frozen(self) -> bool:
        """Tell whether nothing is taken any more."""
        with self._file.transaction() as cursor:
            return bool(cursor.execute("SELECT frozen FROM task").fetchone()[0])

    def count(self) -> int:
        """Return how many clients there are."""
        with self._file.transaction() as cursor:
            return int(cursor.execute("SELECT COUNT(*) FROM part").fetchone()[0])

    def parts(self, clients: Sequence[bytes]) -> bytes:
        """Return the cells of these clients, one after another.

        Raises:
            InvalidParameter: If one of them is not held, or the set is not frozen.
        """
        with self._file.transaction() as cursor:
            if not cursor.execute("SELECT frozen FROM task").fetchone()[0]:
                raise InvalidParameter("The set of clients is not frozen yet; nothing was added up.")
            wanted, cells = set(clients), {}
            for client, held in cursor.execute("SELECT client, cells FROM part ORDER BY client"):
                if client in wanted:
                    cells[client] = held
        if len(cells) != len(clients):
            raise InvalidParameter(
                f"{len(clients) - len(cells)} clients of the set sent nothing here; nothing was added up."
            )
        return b"".join(cells[client] for client in clients)

    def note_released(self, digest: str) -> None:
        """Remember which set was released last."""
        with self._file.transaction() as cursor:
            cursor.execute("UPDATE task SET released = ?", (digest,))

    def released(self) -> str | None:
        """Return the digest of the set that was released last, if one was."""
        with self._file.transaction() as cursor:
            found: str | None = cursor.execute("SELECT released FROM task").fetchone()[0]
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _fault() -> LapwingError:
    return Fault("The server's file of parts cannot be read or written; nothing was taken or released.")
