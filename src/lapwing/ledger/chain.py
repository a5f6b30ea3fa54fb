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
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final
from weakref import WeakSet

from lapwing.errors import LedgerFault
from lapwing.ledger import database
from lapwing.ledger import mark as marks
from lapwing.ledger.entries import GENESIS, RESTORE, Entry
from lapwing.ledger.folding import State, fold
from lapwing.ledger.mark import HeldMark, Mark


@final
class Transaction:
    """The ledger at its newest state, held alone; `connection` is for looking things up."""

    def __init__(self, connection: sqlite3.Connection, mark: HeldMark, state: State | None, name: str) -> None:
        self.connection = connection
        self.newest = state
        self._mark = mark
        self._name = name

    @property
    def state(self) -> State:
        """The state after the newest entry."""
        if self.newest is None:
            raise _rolled_back(self._name, 1)
        return self.newest

    def commit(self, *entries: Entry) -> None:
        """Append entries durably, all or none, and end the transaction.

        The order of the lines is the safety argument above.
        """
        after = self.newest
        for entry in entries:
            after = fold(after, entry)
            database.insert(self.connection, entry)
        if after is None:
            return
        database.commit(self.connection)
        self.newest = after
        self._mark.advance(Mark(after.sequence, after.hash))


@final
class Chain:
    """The durable chain of one ledger, for any number of threads and processes.

    Args: patience: seconds to wait for other users before that is a fault.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self.name = path.name
        self._path = path
        self._patience = patience
        self._lock = threading.RLock()  # one that knows its owner: see `_alone`
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode that the connection has open
        self._state: State | None = None
        with _REGISTRY:
            _CHAINS.add(self)

    def prepare(self) -> None:
        """Create the mark of a ledger that does not exist yet.

        The file is looked for first: whoever creates it has created the mark before, so a file without mark is a fault
        and never two creators at once.
        """
        with database.faults(self.name):
            if not self._path.exists():
                marks.create(self._path)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Hold the ledger alone, at its newest state; what is not committed inside is rolled back."""
        with self._alone(), database.faults(self.name), marks.hold(self._path, self._patience) as mark:
            high = mark.read()
            connection = self._connect(high)
            try:
                database.begin(connection)
                self._catch_up(connection, mark, high)
                transaction = Transaction(connection, mark, self._state, self.name)
                yield transaction
                self._state = transaction.newest
            except sqlite3.Error:
                self._disconnect()  # rolls back; the next operation starts afresh
                raise
            finally:
                if self._connection is not None and self._connection.in_transaction:
                    self._connection.rollback()

    def close(self) -> None:
        """Close the file. A later operation opens it again."""
        with self.closed():
            pass

    @contextmanager
    def closed(self) -> Iterator[frozenset[str]]:
        """Close the file, and let no other thread begin before the block has ended.

        Gives who has a charge under way, as far as this object knows: so of its own ones, all.
        """
        with self._lock:
            self._disconnect()
            yield frozenset() if self._state is None else frozenset(self._state.under_way.values())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # Ctrl-C may come after the lock was taken and before Python knows that it was, so it is released in any case.
        # Releasing a lock that this thread does not own is an error without effect.
        try:
            if not self._lock.acquire(timeout=self._patience):
                raise LedgerFault(
                    f"Other threads held the ledger {self.name} for more than {self._patience:g} seconds. "
                    "Nothing was charged. Ask again later."
                )
            yield
        finally:
            try:  # noqa: SIM105 - `suppress` is a call, and Ctrl-C could come after it instead
                self._lock.release()
            except RuntimeError:
                pass

    def _catch_up(self, connection: sqlite3.Connection, mark: HeldMark, high: Mark) -> None:
        """Fold the entries that this object has not seen, and hold them against what it and the mark remember."""
        state = self._state
        entries = database.entries(connection, since=state.sequence if state else 1)
        if state is not None:
            remembered = next(entries, None)
            if remembered is None or remembered.hash != state.hash:
                raise _rolled_back(self.name, state.sequence)
        else:
            database.require_sound(connection, self.name)  # once: the chain does not cover SQLite's own indexes
        for entry in entries:
            state = fold(state, entry)
        head = Mark(state.sequence, state.hash) if state else Mark(0, GENESIS)
        if high != head:
            if high.sequence > head.sequence or high.hash != _hash_at(connection, high.sequence):
                raise _rolled_back(self.name, high.sequence)
            mark.advance(head)
        self._state = state

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
            database.create_file(self._path)
            status = os.stat(self._path)
        file = status.st_dev, status.st_ino
        if self._connection is None or self._file != file:
            self._disconnect()
            self._connection = database.connect(self._path, self._patience, virgin=high.sequence == 0)
            self._file = file
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _hash_at(connection: sqlite3.Connection, sequence: int) -> str | None:
    if sequence == 0:
        return GENESIS
    entry = database.entry(connection, sequence)
    return entry.hash if entry else None


def _rolled_back(name: str, sequence: int) -> LedgerFault:
    return LedgerFault(
        f"The ledger {name} no longer holds its entry {sequence}: an older copy was put in its place, or its newest "
        f"part was lost. Nothing is answered. {RESTORE}"
    )


# Forks: every ledger rests while the process is copied.

_CHAINS: Final[WeakSet[Chain]] = WeakSet()
_REGISTRY: Final = threading.Lock()
_RESTING: Final[list[Chain]] = []


def _rest() -> None:
    _REGISTRY.acquire()
    _RESTING.extend(_CHAINS)
    for chain in _RESTING:
        chain._lock.acquire()
        chain._disconnect()


def _resume() -> None:
    for chain in _RESTING:
        chain._lock.release()
    _RESTING.clear()
    _REGISTRY.release()


os.register_at_fork(before=_rest, after_in_parent=_resume, after_in_child=_resume)
