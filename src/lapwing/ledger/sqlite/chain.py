"""A chain of entries made durable: the file, the mark and the lock, in the order that survives a crash.

Theory of operation
-------------------
Three things hold the truth. The *file* holds the chain of entries (`ledger.entries`), in SQLite's write-ahead log with
full sync. The *mark* (`ledger.mark`) holds the newest entry's sequence and hash, and is the lock. This *object* holds
the state folded so far, a cache: before each decision it reads the entries after its head (usually none, or those of
other processes) and folds them, so a decision always rests on the newest entry, in constant time.

Each operation takes the lock, reads the mark, begins a transaction (`BEGIN IMMEDIATE`, so programs that bypass the
lock cannot interleave), checks that the head it remembers and the mark are both in the chain, folds what is new, and
decides. A decision that adds an entry then goes: **insert, commit, advance the mark, return**. Hence, if the process
or the machine dies

- *before the commit*: SQLite rolls back; there is no entry and nobody was told that there is.
- *after the commit, before the mark moves*: the entry counts. The mark is behind, but in the chain: it is caught up.
- *after the mark moved, before the caller acted*: the entry counts: budget is wasted, nothing leaks.
- *between a charge and its answer*: the charge counts and has no answer; asking again pays again. Nothing is refunded,
  and the death is a fault (`ledger.faults`).
- *at a power failure*: the synced entries survive; the unsynced mark may show an older entry and is caught up.

No order of deaths shows a charge as made that is not in the file, or moves the mark beyond the file.

Creation goes: mark at sequence 0 (linked into place whole and synced), empty file, tables (one transaction), opening
entry and that of the parts if there are any (one transaction), mark at the newest. A death leaves a prefix of that
list. Each prefix is continued by the next `open`, and as nobody can have charged before the list was complete, no
spending is lost. Anything else (a file without mark, an empty file or none with a mark above 0) is no such prefix: it
is a fault.

Threads share one connection under a lock. Before a fork every ledger of the process is made to rest (no operation
under way, its connection closed), so a child inherits only values and opens its own connection when it needs one.
"""

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

from lapwing.errors import LedgerFault
from lapwing.ledger import mark as marks
from lapwing.ledger import new_mark
from lapwing.ledger.entries import RESTORE, Entry, Kind
from lapwing.ledger.forks import rests_first
from lapwing.ledger.group_commit import Turn
from lapwing.ledger.kept_state import StateFile
from lapwing.ledger.mark import Mark
from lapwing.ledger.sqlite import file
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transaction import Transaction, advance, caught_up

_COLUMNS: Final = "sequence, time, kind, subject, body, previous, hash"
_INSERT: Final = f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_SELECT: Final = f"SELECT {_COLUMNS} FROM entries"
_SELECT_ANSWERED: Final = (
    f"{_SELECT} AS charge WHERE kind = 'charge' AND subject = ? AND EXISTS (SELECT 1 FROM entries AS answer"
    " WHERE answer.kind = 'answer' AND answer.subject = CAST(charge.sequence AS TEXT)) ORDER BY sequence"
)


def begin(connection: sqlite3.Connection) -> None:
    """Start a transaction that no other writer can interleave with."""
    connection.execute("BEGIN IMMEDIATE")


def commit(connection: sqlite3.Connection) -> None:
    """Make the transaction's entries durable."""
    connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, entry: Entry) -> None:
    """Append an entry."""
    row = (entry.sequence, entry.time, entry.kind, entry.subject, entry.body, entry.previous, entry.hash)
    connection.execute(_INSERT, row)


@final
class SqliteLog:
    """The entries of the file, to be looked up."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def entries(self, *, since: int) -> Iterator[Entry]:
        """Yield the entries from a sequence on, in order."""
        return self._read(f"{_SELECT} WHERE sequence >= ? ORDER BY sequence", since)

    def entry(self, sequence: int) -> Entry | None:
        """Return one entry, if there is one."""
        return next(self._read(f"{_SELECT} WHERE sequence = ?", sequence), None)

    def of_kind(self, kind: Kind, *, since: int = 1) -> Iterator[Entry]:
        """Yield all entries of a kind, from a sequence on, in order."""
        return self._read(f"{_SELECT} WHERE kind = ? AND sequence >= ? ORDER BY sequence", kind, since)

    def answered(self, charges: Collection[int]) -> frozenset[int]:
        """Return those of the charges that have an answer."""
        places = ", ".join("?" * len(charges))
        statement = f"SELECT subject FROM entries WHERE kind = 'answer' AND subject IN ({places})"
        return frozenset(int(subject) for (subject,) in self._connection.execute(statement, list(map(str, charges))))

    def number_of_charges(self) -> int:
        """Return how many charges there are."""
        return int(self._connection.execute("SELECT count(*) FROM entries WHERE kind = 'charge'").fetchone()[0])

    def charges(self, subject: str, *, since: int) -> Iterator[Entry]:
        """Yield the charges that are filed under a subject, from a sequence on, in order."""
        condition = "kind = 'charge' AND subject = ? AND sequence >= ?"
        return self._read(f"{_SELECT} WHERE {condition} ORDER BY sequence", subject, since)

    def answered_charges(self, subject: str) -> Iterator[Entry]:
        """Yield the charges that are filed under a subject and have an answer, in order."""
        return self._read(_SELECT_ANSWERED, subject)

    def answer(self, charge: int) -> Entry | None:
        """Return the answer of a charge, if there is one."""
        return next(self._read(f"{_SELECT} WHERE kind = 'answer' AND subject = ?", str(charge)), None)

    def require_sound(self) -> None:
        """Check every page and index of the file.

        Raises:
            LedgerFault: If SQLite finds anything wrong.
        """
        if file.pragma(self._connection, "integrity_check") != "ok":
            raise LedgerFault(f"The ledger {self._name} is damaged. {RESTORE}")

    def _read(self, statement: str, *values: int | str) -> Iterator[Entry]:
        for sequence, time, kind, subject, body, previous, digest in self._connection.execute(statement, values):
            yield Entry(
                sequence=sequence, time=time, kind=kind, subject=subject, body=body, previous=previous, hash=digest
            )


@final
class SqliteChain:
    """The durable chain of one ledger, for any number of threads and processes.

    Args:
        patience: Seconds to wait for other users before that is a fault.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self.name = path.name
        self._path = path
        self.patience = patience
        self.turn = Turn(self.name, patience)
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode that the connection has open
        self._state: LedgerState | None = None
        self._kept = StateFile(path)
        rests_first(self)

    def prepare(self) -> None:
        """Create the mark of a ledger that does not exist yet.

        The file is looked for first: whoever creates it has created the mark before, so a file without mark is a fault
        and never two creators at once.
        """
        with file.faults(self.name):
            if not self._path.exists():
                new_mark.create(self._path)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Hold the ledger alone, at its newest state; what is not committed inside is rolled back."""
        try:
            with self.turn.taken(), marks.hold(self._path, self.patience) as mark:
                high = mark.read()
                connection = self._connect(high)
                try:
                    begin(connection)
                    log = SqliteLog(connection, self.name)
                    if self._state is None:
                        self._state = self._kept.read(log)
                    # The remembered state and the mark must both be in the chain before anything rests on it.
                    state = caught_up(self._state, log, self.name)
                    advance(mark, high, state, log, self.name)
                    self._state = state
                    if state is not None and state.sequence >= self._kept.due:
                        self._kept.keep(state)

                    def add(entry: Entry) -> None:
                        insert(connection, entry)

                    def keep(_head: Mark) -> None:
                        commit(connection)

                    transaction = Transaction(log, mark, state, self.name, add, keep)
                    yield transaction
                    self._state = transaction.newest
                except sqlite3.Error:
                    self._disconnect()  # rolls back; the next operation starts afresh
                    raise
                finally:
                    if self._connection is not None and self._connection.in_transaction:
                        self._connection.rollback()
        except (sqlite3.Error, OSError) as error:
            raise file.fault_of(self.name, error) from error

    def close(self) -> None:
        """Close the file. A later operation opens it again."""
        with self.closed():
            pass

    @contextmanager
    def closed(self) -> Iterator[frozenset[str]]:
        """Close the file, and let no other thread begin before the block has ended.

        Gives who has a charge under way, as far as this object knows: so of its own ones, all.
        """
        with self.turn.waited():
            self._disconnect()
            yield frozenset() if self._state is None else frozenset(self._state.under_way.values())

    def _connect(self, high: Mark) -> sqlite3.Connection:
        """Return the connection, opened anew if there is none or another file has taken the path."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            if high.sequence > 0:
                raise LedgerFault(
                    f"The ledger {self.name} is missing and its mark says that it had {high.sequence} entries. "
                    f"{RESTORE}"
                ) from None
            file.create_file(self._path)
            status = os.stat(self._path)
        opened = status.st_dev, status.st_ino
        if self._connection is None or self._file != opened:
            self._disconnect()
            self._connection = file.connect(self._path, self.patience, virgin=high.sequence == 0)
            self._file = opened
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def rest(self) -> None:
        """Wait until no operation is under way, and close the file: a child opens it itself."""
        self.turn.wait()
        self._disconnect()

    def resume(self, *, in_child: bool) -> None:
        """Let threads in again."""
        self.turn.end()
