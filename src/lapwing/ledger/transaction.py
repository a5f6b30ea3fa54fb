"""A transaction of a ledger that one process holds: it reads up to the newest entry and appends, all or nothing.

A store takes a `Turn` among its own threads (`group_commit`) and `hold`s the mark among processes. Then it comes to
the newest entry: `caught_up` folds what this object has not seen and compares it with the state that it folded before;
`advance` compares it with the mark. Both must still be in the chain. What a `Transaction` does then is the same for
every store, but for how entries become durable.
"""

from collections.abc import Callable
from typing import final

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import GENESIS, RESTORE, Entry, StoredAnswer, broken, subject_of
from lapwing.ledger.mark import HeldMark, Mark
from lapwing.ledger.state import LedgerState
from lapwing.ledger.store import Log
from lapwing.ledger.transitions import fold


def caught_up(state: LedgerState | None, log: Log, name: str) -> LedgerState | None:
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


def head_of(state: LedgerState | None) -> Mark:
    """Return the newest entry of a state."""
    return Mark(state.sequence, state.hash) if state else Mark(0, GENESIS)


def advance(mark: HeldMark, high: Mark, state: LedgerState | None, log: Log, name: str) -> None:
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


def payload(log: Log, charge: int) -> str:
    """Return the payload of a charge's answer, which is there."""
    answer = log.answer(charge)
    if answer is None:
        raise broken(charge, "has lost its answer")
    return str(answer.contents()["payload"])


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
        newest: LedgerState | None,
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
    def state(self) -> LedgerState:
        """The state after the newest entry, kept or only appended.

        Raises:
            LedgerFault: If there is none.
        """
        if self._after is None:
            raise rolled_back(self._name, 1)
        return self._after

    def answers(self, key: str) -> tuple[StoredAnswer, ...]:
        """Return the answers to a key about the current data, the dearest first; see `Ledger.look_up`."""
        found = []
        for entry in self.log.answered_charges(subject_of(key)):
            charge = entry.charge()
            if charge.key == key and charge.version == self.state.version:
                text = payload(self.log, entry.sequence)
                found.append(StoredAnswer(sequence=entry.sequence, loss=charge.loss, payload=text))
        return tuple(sorted(found, key=lambda answer: (-answer.loss.amount, answer.sequence)))

    def append(self, *entries: Entry) -> list[LedgerState]:
        """Append entries that `commit` makes durable, and return the state after each.

        Raises:
            LedgerFault: If an entry may not follow. Then none is appended.
        """
        states: list[LedgerState] = []
        for entry in entries:  # all of them first: one that may not follow leaves nothing behind
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
            # Keep, then move the mark. After a crash in between the mark is behind, and the next transaction moves it.
            self._keep(head_of(self._after))
            self.newest, self.appended = self._after, []
            self._mark.advance(head_of(self._after))
        for note in self._notes:  # last: nobody acts on what may not be kept
            note()
