"""Late answers of a service: how they are counted, and how many stop a data set for those who may not see time.

Theory of operation. A service answers people who are not trusted with time at moments that are fixed before the charge
(`server.deadline`). An answer that does not leave at its first moment is an *event*, whatever caused it, as no cause is
known to be innocent: who shares a machine with the data shares its caches. The ledger has two kinds of events:

- *Late*: from one tick of a public grid on, the clock of the data set stands still until the first of `MOMENTS` later
  moments at which nothing is missing any more. All that was to leave is moved by as much. One stall is one event,
  whoever had questions under way: the entry `late` names the tick, and whose question was the first to be missed. The
  service writes it down before anything leaves at a later moment. What is still missing at the last of them gets an
  entry of its own before it is given up.
- *A fault*, by the entry `unanswered` (`ledger.faults`): what was given up, or failed.

Guarantee:
    What all analysts together learn, between two `resume` entries, from the times and statuses of n charged questions
    is which events there were. A question has at most three moments, and may be a fault. So there are N = 4n names of
    events, with at most MOMENTS outcomes each, and that is at most

    log2 of the sum over j <= EVENTS_ALLOWED of C(N, j) * MOMENTS**j bits,

but for what was under way when the last of them was noted, and for the deaths of processes (`ledger.faults`).
Proof. The service decides about all that leaves by public moments and events alone (`server.deadline.departures`), so
two runs with the same events are alike to whoever asks. An event has a name, which is one of those moments or
questions, and an outcome: which later moment it was. `require_few` refuses to charge once EVENTS_ALLOWED of them stand.
It is asked in the transaction that charges, so after the last of them was noted no question is charged to anybody who
is not trusted with time. ∎ (No case is differentially private. The number says how much can be learned, not that it is
harmless.)

Why these figures. A shared machine stalls for .15 to 1.5 s about once a day, and EVENTS_ALLOWED is two weeks of that.
Of 10,000 questions these are at most 232.4 bits; with three, as for faults alone, it would be 49.3. The last of the
moments is 4 s after the tick, more than twice the longest such stall.

Somebody whose questions are the first to be missed again and again is refused before the data set is stopped for all:
once `ALLOWED_OF_ONE` events bear the name. That follows from the entries alone, as everything here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb, log2
from typing import TYPE_CHECKING, Any, Final

from lapwing.errors import DataStopped
from lapwing.ledger.entries import Charge, Entry, broken
from lapwing.ledger.faults import LateAnswers
from lapwing.ledger.state import LedgerState

if TYPE_CHECKING:
    from lapwing.ledger.transaction import Transaction

LOOK, RESUME = "look at the late results, and then resume", "`lapwing data resume`"
"""The remedy of the curator for a data set that stopped because of time, and its command."""
EVENTS_ALLOWED: Final = 16
"""So many events since the curator last looked stop the data set for whoever is not trusted with time."""
ALLOWED_OF_ONE: Final = 12
"""So many late answers that bear one name refuse its further questions."""
MOMENTS: Final = 4
"""Later moments at which an event may end."""


def most_bits(questions: int, allowed: int = EVENTS_ALLOWED) -> float:
    """Return what the events of so many questions between two `resume` entries tell at most: see the module."""
    return log2(sum(comb(4 * questions, events) * MOMENTS**events for events in range(allowed + 1)))


def events(state: LedgerState) -> int:
    """Return how many events stand: faults and late answers."""
    return state.faults + len(state.late)


def noting(state: LedgerState, tick: str, principal: str, time: str) -> Entry:
    """Return the entry that answers are late from a tick on, that of somebody first."""
    return state.next_entry(time, "late", "", {"tick": tick, "principal": principal})


def noted(transaction: "Transaction", tick: str, principal: str, time: str) -> tuple[str, ...]:
    """Append that entry, and return the ticks of all that stand."""
    state = transaction.append(noting(transaction.state, tick, principal, time))[-1]
    return tuple(late.tick for late in state.late)


def fold_late(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    """Return the state after such an entry.

    Raises:
        LedgerFault: If it says what no service says.
    """
    late = LateAnswers(tick=body["tick"], principal=body["principal"])
    if not all(isinstance(part, str) for part in late):
        raise broken(entry.sequence, "names no moment at which answers were late")
    return replace(state, late=(*state.late, late))


def require_few(state: LedgerState, requests: Sequence[Charge]) -> None:
    """Refuse charges of somebody who is not trusted with time once too many events stand.

    Raises:
        DataStopped: If the data set is stopped. Nothing was charged.
    """
    if events(state) >= EVENTS_ALLOWED:
        raise DataStopped(
            f"{EVENTS_ALLOWED} results of this data set failed or left late since the curator last looked. Until the "
            f"next look, the service answers only people whom the curator trusts with time. Nothing was charged; "
            "earlier results stay free.",
            curator_remedy=LOOK,
            command=RESUME,
        )
    names = {request.principal for request in requests}
    if any([late.principal for late in state.late].count(name) >= ALLOWED_OF_ONE for name in names):
        raise DataStopped(
            f"{ALLOWED_OF_ONE} results of your queries left late since the curator last looked. Nothing was charged; "
            "earlier results stay free.",
            curator_remedy=LOOK,
            command=RESUME,
        )
