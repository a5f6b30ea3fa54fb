"""What is to be written before anything is charged: who died, what is owed, and what nobody was told of.

Three things may have happened since the last entry that nobody has written down yet.

- A question failed while the ledger could not be written: this open ledger owes the entry.
- An asker died: that is one fault for everything that it had under way.
- A charge of our own was committed, but its caller got an error, because the connection was lost during the commit.
  The charge was never handed out, so no data were read for it and nothing about the data can have ended it. It ends
  like an interrupted one, and does not count (`ledger.faults`).

Until this is written, everybody sees those charges as under way, and whoever asks the same waits (`ledger.waiting`). So
it is written before the next charge, or sooner: when a request has ended in a fault, when the ledger is closed, and by
`Ledger.settle`, which a service calls once a second.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import Entry
from lapwing.ledger.faults import FAULTS_ALLOWED, Cause
from lapwing.ledger.state import LedgerState
from lapwing.ledger.store import Presence
from lapwing.ledger.transitions import fold
from lapwing.ledger.unanswered import leaving

PendingWrite = tuple[tuple[int, ...], Cause]
"""Charges that ended, and why."""


class Settled(NamedTuple):
    """What is to be written before anything else.

    The state after it, its entries, how many debts they pay, and how many askers are missing (`store.Presence`).
    """

    state: LedgerState
    entries: tuple[Entry, ...]
    debts: int
    missing: int

    def require_counted(self) -> None:
        """Refuse to charge while those who are missing could stop the data set, were they known to be dead.

        Raises:
            LedgerFault: If the ledger cannot be trusted or written.
        """
        if self.missing and not self.state.stopped and self.state.faults + self.missing >= FAULTS_ALLOWED:
            raise LedgerFault(
                "Processes with running queries cannot be reached, and Lapwing has to stop the data set if they died. "
                "Nothing was charged. Run the query again in a minute."
            )


def settled(
    state: LedgerState, owed: Sequence[PendingWrite], told: Collection[int], presence: Presence, time: str
) -> Settled:
    """Return what is to be written before a charge.

    Args:
        owed: What could not be written when it happened.
        told: The charges that this open ledger has handed out and that have not ended.
        presence: Who asks.
    """
    asking: dict[str, list[int]] = {}
    for charge, asker in state.under_way.items():
        asking.setdefault(asker, []).append(charge)
    fates = {asker: presence.fate(asker) for asker in asking}
    untold = [charge for charge in asking.get(presence.current or "", ()) if charge not in told]
    ended: list[tuple[Sequence[int], Cause]] = [*owed, (untold, "interrupt")]
    ended += [(charges, "death") for asker, charges in asking.items() if fates[asker] == "dead"]
    missing = sum(fate == "missing" for fate in fates.values())
    entries = []
    # Each is decided on the state after those before it, so that a charge ends once, with the first of its causes.
    for charges, cause in ended:
        entry = leaving(state, charges, cause, time)
        if entry is not None:
            state = fold(state, entry)
            entries.append(entry)
    return Settled(state, tuple(entries), len(owed), missing)
