"""The ledger as a state machine: what each entry does to the state, and which entry a question adds to it.

Everything here is a pure function of the request and the state that the entries before it add up to. So a decision
rests only on public facts. A store (`ledger.store`) keeps entries and makes them durable. Here are the entries that
questions add: `charge` and `answer`. `ledger.unanswered` has the entries that end without an answer, and
`ledger.curating` the curator's.

Guarantee:
    In any chain that `fold` accepts from the first entry on, the charges' losses pass the budget's filter one after
    another in exact rational arithmetic. So their sum never exceeds the budget. Their deltas add up to at most
    `delta_keys` (`filters`: approx, approx_gdp, approx_zcdp). Where there are parts, this holds for the charges that
    read a part, for every part, or under replace_one for every two of them (`ledger.parts`). The budget is the one in
    force at the end: it only grows (`ledger.raising`). No charge follows when as many faults stand as stop the data set
    (`ledger.faults`), and none after the data set was closed. The chain is not signed: whoever can write the file can
    write another chain. It shows accidents, partial restores and hasty edits, not a forger; the high-water mark
    (`ledger.mark`) shows a whole older chain.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from lapwing.errors import DataChanged, InvalidParameter, LapwingError, LedgerFault
from lapwing.ledger import curating
from lapwing.ledger.entries import GENESIS, Charge, Entry, broken, subject_of
from lapwing.ledger.faults import given_up, stopped
from lapwing.ledger.state import LedgerState, Spent, price_of
from lapwing.ledger.unanswered import fold_unanswered
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Refused
from lapwing.privacy.filters import charge as pay

# What an entry does to the state.


def fold(state: LedgerState | None, entry: Entry) -> LedgerState:
    """Return the state after one more entry, in constant time; `None` is the state before the first.

    Raises:
        LedgerFault: If the entry cannot follow: another place in the chain, a broken hash, a second opening, a version
            out of turn, an answer to nothing, a charge that the budget does not hold or one while the data set is
            stopped.
    """
    sequence, head = (state.sequence, state.hash) if state else (0, GENESIS)
    if entry.sequence != sequence + 1:
        raise broken(entry.sequence, f"stands where entry {sequence + 1} should")
    if entry.previous != head:
        raise broken(entry.sequence, "does not continue the one before it")
    try:
        if state is None:
            return curating.opened(entry, entry.contents())
        body = entry.charge() if entry.kind == "charge" else entry.contents()
        return replace(FOLDS[entry.kind](state, entry, body), sequence=entry.sequence, hash=entry.hash)
    except LedgerFault:
        raise
    except (LapwingError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        raise broken(entry.sequence, "says what no ledger says") from None


def _fold_charge(state: LedgerState, entry: Entry, charge: Charge) -> LedgerState:
    if charge.version != state.version:
        raise broken(entry.sequence, "charges for a version of the data that was not current")
    if entry.subject != subject_of(charge.key):
        raise broken(entry.sequence, "is filed under another question than its own")
    if state.stopped:
        raise broken(entry.sequence, "charges while the data set was stopped")
    if state.closed:
        raise broken(entry.sequence, "charges after the data set was closed")
    outcome = paid(state, charge)
    if isinstance(outcome, Refused):
        raise broken(entry.sequence, "spends more than the budget had left")
    name, under_way = charge.principal, state.under_way
    spending = {**state.spending, name: state.spending.get(name, Spent()) + price_of(charge)}
    if charge.asker is not None:
        under_way = MappingProxyType({**under_way, entry.sequence: charge.asker})
    return replace(outcome, spending=MappingProxyType(spending), under_way=under_way)


def _fold_answer(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    if not 1 < int(entry.subject) < entry.sequence or not isinstance(body["payload"], str):
        raise broken(entry.sequence, "answers a charge that is not there")
    return state.ended(int(entry.subject))


def paid(state: LedgerState, charge: Charge) -> LedgerState | Refused:
    """Pay a charge's loss and its delta, each from its own part of the budget; one that is short refuses both."""
    if state.division is not None:
        divided = state.division.paid(charge, state.registration.delta_keys)
        if isinstance(divided, Refused):
            return divided
        return replace(state, division=divided, account=divided.account, delta_spent=divided.deltas.total)
    if charge.parts is not None:
        raise InvalidParameter("The charge is for parts of the data, and the ledger has none; charge it to all.")
    outcome = pay(state.account, charge.loss)
    if isinstance(outcome, Refused):
        return outcome
    delta = grid_up(charge.delta)
    if delta > state.delta_remaining:
        return Refused(shortfall=charge.loss.nothing())
    return replace(state, account=outcome.account, delta_spent=state.delta_spent + delta)


FOLDS: Final[dict[str, Callable[[LedgerState, Entry, Any], LedgerState]]] = {
    "charge": _fold_charge,
    "answer": _fold_answer,
    "unanswered": fold_unanswered,
    **curating.FOLDS,
}


# The entry that a request adds, or why there is none.


def charging(state: LedgerState, charge: Charge, time: str) -> Entry | Refused:
    """Return the entry of a charge, or the refusal of one that the budget does not hold.

    The outcome depends on the request and on earlier entries only, never on data, but for the faults among them, which
    had been seen (`ledger.faults`): it may be shown to anybody.

    Raises:
        DataStopped: If the data set was closed, or as many faults stand as stop it.
        DataChanged: If no version of the data was accepted, or a newer one than the asker's.
        InvalidParameter: If the loss is not of the ledger's measure.
    """
    state.require_open()
    if state.stopped:
        raise stopped()
    if state.version == 0:
        raise DataChanged(
            "No version of the data was accepted, so Lapwing cannot answer queries. Ask the curator to "
            "accept one first."
        )
    if charge.version != state.version:
        raise DataChanged(
            f"The query is about version {charge.version} of the data, and the current version is {state.version}. "
            f"Nothing was charged. Run the query again."
        )
    if charge.delta < 0:
        raise InvalidParameter(f"The charge has delta = {charge.delta}; it must not be negative.")
    outcome = paid(state, charge)
    if isinstance(outcome, Refused):
        return outcome
    return state.next_entry(time, "charge", subject_of(charge.key), charge.to_record())


def answering(state: LedgerState, charge: int, payload: str, time: str) -> Entry:
    """Return the entry that keeps what a charge bought, which is under way (or `reading.is_answered`).

    Raises:
        EngineFault: If the data set is stopped: then nothing of it may be released.
    """
    if state.stopped:
        raise given_up()
    return state.next_entry(time, "answer", str(charge), {"payload": payload})
