"""The high-water mark of a ledger, a small file that remembers how far it had come; and how a ledger is held alone.

The hash chain shows that no entry was altered; it cannot show that the newest ones are gone, because every prefix of a
chain is a chain. The mark `<ledger>.mark` holds the sequence and hash of the newest entry. A ledger that is behind its
mark, or disagrees with it, was rolled back; a ledger without mark may have been.

The mark is also the lock among processes: it is held (`flock`) through each transaction and while the mark advances,
so the mark never moves backwards, and writers queue here instead of in SQLite's slower retries. The lock belongs to an
open file, and the file is opened for each transaction, so neither a fork nor a second thread can share it by accident,
and the kernel drops it when a process dies.

The mark is written in place, in one write of less than a disk sector, and not synced: after a power failure it may
show an older entry of the same chain, which is caught up from the ledger (whose entries are synced before the mark
moves); it can never show an entry that the ledger lost. A mark is created before the ledger's file (`new_mark`), so a
ledger with any entry has a mark, and a missing one is a fault.

A store's transaction takes a `Turn` among its own threads and `hold`s the mark among processes; then it comes to the
newest entry: `caught_up` folds what this object has not seen, and holds it against the state that it folded before,
`advance` holds it against the mark. Both must still be in the chain. What then happens in a `Transaction` is the same
for every store but for how it makes entries durable.
"""

import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, final

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import GENESIS, RESTORE, Entry
from lapwing.ledger.state import State
from lapwing.ledger.store import Log
from lapwing.ledger.transitions import fold

_FORM: Final = re.compile(rb"lapwing mark 1 ([0-9]{20}) ([0-9a-f]{64})\n")
_FIRST_RETRY_SECONDS: Final = 0.00005
_LAST_RETRY_SECONDS: Final = 0.001


class Mark(NamedTuple):
    """The newest entry that the ledger is known to have had; sequence 0 before the first."""

    sequence: int
    hash: str


def path_of(ledger: Path) -> Path:
    """Return where the mark of a ledger lies."""
    return ledger.with_name(ledger.name + ".mark")


@final
class HeldMark:
    """The mark while this thread alone holds it."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def read(self) -> Mark:
        """Return the mark.

        Raises:
            LedgerFault: If it is not in its one form.
        """
        mark = read_text(os.pread(self._descriptor, 4096, 0))
        if mark is None:
            raise LedgerFault(
                f"The mark {self._name} is damaged, so the ledger may have been rolled back. Lapwing answers no query. "
                f"{RESTORE}"
            )
        return mark

    def advance(self, mark: Mark) -> None:
        """Move the mark to a committed entry; the caller has read it and moves it only forwards."""
        os.pwrite(self._descriptor, text_of(mark), 0)


@contextmanager
def hold(ledger: Path, seconds: float) -> Iterator[HeldMark]:
    """Hold the mark alone, among all threads and processes.

    Raises:
        LedgerFault: If the mark is missing or others held it for `seconds`.
    """
    path = path_of(ledger)
    try:
        # A file object, so that it is closed wherever Ctrl-C comes.
        file = open(path, "r+b", buffering=0)  # noqa: SIM115 - entered below, where a missing file is told apart
    except FileNotFoundError:
        raise LedgerFault(
            f"The mark {path.name} is missing, so the ledger {ledger.name} may have been rolled back. Lapwing answers "
            f"no query. {RESTORE}"
        ) from None
    with file:  # closing it drops the lock
        _lock(file.fileno(), path.name, seconds)
        yield HeldMark(file.fileno(), path.name)


def _lock(descriptor: int, name: str, seconds: float) -> None:
    deadline, pause = time.monotonic() + seconds, _FIRST_RETRY_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LedgerFault(
                    f"Another process held {name} for more than {seconds:g} seconds. Nothing was charged. Stop that "
                    f"process, or run the query again later."
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, _LAST_RETRY_SECONDS)


def text_of(mark: Mark) -> bytes:
    """Return the mark in its one form."""
    return b"lapwing mark 1 %020d %s\n" % (mark.sequence, mark.hash.encode())


def read_text(text: bytes) -> Mark | None:
    """Return the mark that `text_of` wrote, None if it is not in that form."""
    found = _FORM.fullmatch(text)
    return Mark(int(found[1]), found[2].decode()) if found else None


@final
class Turn:
    """The turn of one thread; others wait for it.

    Args:
        name: Of the ledger, for people.
        patience: Seconds that a thread waits before that is a fault.
    """

    def __init__(self, name: str, patience: float) -> None:
        self._name = name
        self.patience = patience
        self._lock = threading.RLock()  # one that knows its owner: see `taken`

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the turn through the block.

        Raises:
            LedgerFault: If others held it for too long.
        """
        # Ctrl-C may come after the lock was taken and before Python knows that it was, so it is released in any case.
        # Releasing a lock that this thread does not own is an error without effect.
        try:
            if not self._lock.acquire(timeout=self.patience):
                raise LedgerFault(
                    f"Other threads held the ledger {self._name} for more than {self.patience:g} seconds. "
                    "Nothing was charged. Run the query again later."
                )
            yield
        finally:
            try:  # noqa: SIM105 - `suppress` is a call, and Ctrl-C could come after it instead
                self._lock.release()
            except RuntimeError:
                pass

    @contextmanager
    def waited(self) -> Iterator[None]:
        """Hold the turn through the block, however long it takes to come."""
        with self._lock:
            yield

    def wait(self) -> None:
        """Take the turn, however long it takes."""
        self._lock.acquire()

    def end(self) -> None:
        """Give up the turn that `wait` took."""
        self._lock.release()


@final
class Transaction:
    """The ledger at its newest state, held alone.

    `appended` are the entries that are not kept yet.

    Args:
        log: The entries, to be looked up.
        mark: Held by this thread.
        newest: The state after the newest entry that is kept, None before the first.
        name: Of the ledger, for people.
        insert: Adds an entry to what is to be kept.
        keep: Makes what was added durable, all or none, the last of which becomes the newest.
    """

    def __init__(
        self,
        log: Log,
        mark: HeldMark,
        newest: State | None,
        name: str,
        insert: Callable[[Entry], None],
        keep: Callable[[Mark], None],
    ) -> None:
        self.log = log
        self.newest = newest
        self.appended: list[Entry] = []
        self._after = newest
        self._mark = mark
        self._name = name
        self._insert = insert
        self._keep = keep
        self._notes: list[Callable[[], None]] = []

    @property
    def state(self) -> State:
        """The state after the newest entry, kept or only appended.

        Raises:
            LedgerFault: If there is none.
        """
        if self._after is None:
            raise rolled_back(self._name, 1)
        return self._after

    def append(self, *entries: Entry) -> list[State]:
        """Append entries that `commit` makes durable, and return the state after each.

        Raises:
            LedgerFault: If an entry may not follow, whatever made it; then none is appended.
        """
        states: list[State] = []
        for entry in entries:
            states.append(fold(states[-1] if states else self._after, entry))
        for entry in entries:
            self._insert(entry)
        self.appended += entries
        self._after = states[-1] if states else self._after
        return states

    def once_kept(self, note: Callable[[], None]) -> None:
        """Call something when what was appended is kept, still with the ledger held; if that fails, do not."""
        self._notes.append(note)

    def commit(self, *entries: Entry) -> None:
        """Append entries, and make all that was appended durable, all or none.

        The order of the lines is the safety argument of the store's chain.

        Guarantee:
            When this returns, they survive the death of every machine that is involved. When it raises, nobody may act
            as if they were made, and nobody as if they were not.

        Raises:
            LedgerFault: If the ledger cannot be trusted or written, or an entry may not follow.
        """
        for entry in entries:
            self.append(entry)
        if self.appended:
            self._keep(head_of(self._after))
            self.newest, self.appended = self._after, []
            self._mark.advance(head_of(self._after))
        for note in self._notes:
            note()


def caught_up(state: State | None, log: Log, name: str) -> State | None:
    """Return the state after the newest entry.

    Args:
        state: What this object has folded before, or None.

    Raises:
        LedgerFault: If the entries do not continue it.
    """
    entries = log.entries(since=state.sequence if state else 1)
    if state is not None:
        remembered = next(entries, None)
        if remembered is None or remembered.hash != state.hash:
            raise rolled_back(name, state.sequence)
    else:
        log.require_sound()  # once: the chain of hashes does not cover the store's own indexes
    for entry in entries:
        state = fold(state, entry)
    return state


def head_of(state: State | None) -> Mark:
    """Return the newest entry of a state."""
    return Mark(state.sequence, state.hash) if state else Mark(0, GENESIS)


def advance(mark: HeldMark, high: Mark, state: State | None, log: Log, name: str) -> None:
    """Move the mark, which shows `high`, to the newest entry.

    Raises:
        LedgerFault: If what it shows is not in the chain.
    """
    head = head_of(state)
    if high == head:
        return
    if high.sequence > head.sequence or high.hash != _hash_at(log, high.sequence):
        raise rolled_back(name, high.sequence)
    mark.advance(head)


def _hash_at(log: Log, sequence: int) -> str | None:
    if sequence == 0:
        return GENESIS
    entry = log.entry(sequence)
    return entry.hash if entry else None


def rolled_back(name: str, sequence: int) -> LedgerFault:
    """Return the fault of a ledger that lacks an entry which it had."""
    return LedgerFault(
        f"The ledger {name} no longer holds its entry {sequence}: an older copy replaced it, or its newest part was "
        f"lost. Lapwing answers no query. {RESTORE}"
    )
