"""What is to be written before anything is charged: who died, what is owed, and what nobody was told of.

Three things may have ended since the last entry without anybody having written it down. A question failed when the
ledger could not be written: this open ledger owes it. An asker died: one fault for all that it had under way. And a
charge of our own was committed while whoever made it was told that nobody knows, as the connection was lost: it was
never handed out, so nothing was read for it, and nothing about the data can have ended it; it is ended like one that
was interrupted, and counts for nothing (`ledger.faults`).

Until it is written, those charges are under way for everybody, and whoever asks the same waits (`ledger.waiting`). So
it is written before the next charge, and sooner where that can be: when a request has ended in a fault, when the ledger
is closed, and by `Ledger.settle`, which a service calls once a second.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import Entry
from lapwing.ledger.faults import FAULTS_ALLOWED, Cause
from lapwing.ledger.state import State
from lapwing.ledger.store import Presence
from lapwing.ledger.transitions import fold
from lapwing.ledger.unanswered import leaving

Debt = tuple[tuple[int, ...], Cause]
"""Charges that ended, and why."""


class Settled(NamedTuple):
    """What is to be written before anything else.

    The state after it, its entries, how many debts they pay, and how many askers are missing (`store.Presence`).
    """

    state: State
    entries: tuple[Entry, ...]
    debts: int
    missing: int

    def require_counted(self) -> None:
        """Refuse to charge while those who are missing could stop the data set, were they known to be dead.

        Raises: LedgerFault.
        """
        if self.missing and not self.state.stopped and self.state.faults + self.missing >= FAULTS_ALLOWED:
            raise LedgerFault(
                "Processes that have questions under way are out of reach, and if they died the data set is to stop. "
                "Nothing was charged. Ask again in a minute; it is known by then."
            )


def settled(state: State, owed: Sequence[Debt], told: Collection[int], presence: Presence, time: str) -> Settled:
    """Return what is to be written before a charge.

    Args: owed: what could not be written when it happened; told: the charges that this open ledger has handed out, and
        whose end it was not told; presence: who asks.
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
    for charges, cause in ended:
        entry = leaving(state, charges, cause, time)
        if entry is not None:
            state = fold(state, entry)
            entries.append(entry)
    return Settled(state, tuple(entries), len(owed), missing)
