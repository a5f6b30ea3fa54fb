"""Charges that end without an answer: the entry that says why, and what it does to the state.

Both are pure functions, as in `ledger.transitions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lapwing.ledger.entries import Entry, broken
from lapwing.ledger.faults import COUNTED, Cause
from lapwing.ledger.state import LedgerState


def fold_unanswered(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    """Return the state after such an entry.

    Raises:
        LedgerFault: If it cannot follow.
    """
    charges = [int(entry.subject), *body["also"]]
    if len(set(charges)) < len(charges) or not state.under_way.keys() >= set(charges):
        raise broken(entry.sequence, "gives up a charge that is not under way")
    if body["cause"] == "stop" and not state.stopped:
        raise broken(entry.sequence, "says that the data set was stopped, and it was not")
    return replace(state.ended(*charges), faults=state.faults + COUNTED[body["cause"]])


def leaving(state: LedgerState, charges: Sequence[int], cause: Cause, time: str) -> Entry | None:
    """Return the entry of charges that end without answer, of the first of them on, or None if none is under way.

    While the data set is stopped the cause is that, whatever it was: what came of them must not show.
    """
    open_charges = [charge for charge in charges if charge in state.under_way]
    if not open_charges:
        return None
    body = {"cause": "stop" if state.stopped else cause, "also": open_charges[1:]}
    return state.next_entry(time, "unanswered", str(open_charges[0]), body)
