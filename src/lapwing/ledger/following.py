"""How an open ledger comes to the newest entry: it folds what it has not seen, and holds that against what it knows.

What it knows is the state that it folded before, which must still be in the chain, and the mark (`ledger.mark`), which
must be in it too.
"""

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import GENESIS, RESTORE
from lapwing.ledger.folding import State, fold
from lapwing.ledger.mark import HeldMark, Mark
from lapwing.ledger.store import Log


def caught_up(state: State | None, log: Log, name: str) -> State | None:
    """Return the state after the newest entry.

    Args: state: what this object has folded before, or None.
    Raises: LedgerFault if the entries do not continue it.
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

    Raises: LedgerFault if what it shows is not in the chain.
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
        f"The ledger {name} no longer holds its entry {sequence}: an older copy was put in its place, or its newest "
        f"part was lost. Nothing is answered. {RESTORE}"
    )
