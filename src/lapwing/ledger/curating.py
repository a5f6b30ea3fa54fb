"""What a curator does to a ledger: the entries that are not of a question, and what each does to the state.

For each kind there is a decision, which returns the entry or why there is none, and a fold, which refuses an entry that
cannot follow. All are pure functions, called by `ledger.transitions.fold` and by `ledger.administration`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from lapwing.errors import InvalidParameter
from lapwing.ledger.entries import GENESIS, Entry, broken
from lapwing.ledger.events import fold_late
from lapwing.ledger.owners import Owners, owners_from
from lapwing.ledger.parts import Division, Parts, require_same_parts
from lapwing.ledger.raising import raised_by, record_of, require_raise
from lapwing.ledger.registration import Registration
from lapwing.ledger.state import LedgerState
from lapwing.privacy.filters import Account

if TYPE_CHECKING:
    from lapwing.ledger.transaction import Transaction

Declared = Literal["marked", "newest", "lost"]
"""Why a copy may stand for the ledger: see `ledger.restoring`."""
LOST: Final = "lost"
MEANING: Final = 3
"""What questions about newly accepted data mean: in 1 conditions saw bounded numbers within bounds, in 2 as read."""
PUBLIC_IN_STEPS: Final = 2
"""The last meaning in which joins and conditions saw floats of public tables rounded to steps."""


def opening(registration: Registration, time: str) -> Entry:
    """Return the first entry of a ledger."""
    return Entry.seal(sequence=1, time=time, kind="open", subject="", body=registration.to_record(), previous=GENESIS)


def opened(entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    """Return the state after the first entry.

    Raises:
        LedgerFault: If it opens no ledger.
    """
    if entry.kind != "open":
        raise broken(entry.sequence, "comes before the ledger is opened")
    registration = Registration.from_record(body)
    return LedgerState(
        sequence=entry.sequence,
        hash=entry.hash,
        registration=registration,
        account=Account.opened(registration.budget),
        version=0,
        digests=MappingProxyType({}),
    )


def _fold_open(state: LedgerState, entry: Entry, body: object) -> LedgerState:
    raise broken(entry.sequence, "opens the ledger a second time")


def dividing(state: LedgerState, parts: Parts | None, time: str) -> Entry | None:
    """Return the entry that divides the data, or None if they are divided, or are not meant to be.

    Parts of another table than the one that is divided change nothing: its questions are charged to all parts.

    Raises:
        CatalogMismatch: If the same table is divided otherwise.
    """
    if parts is None:
        return None
    if state.division is None:
        return state.next_entry(time, "parts", "", parts.to_record())
    require_same_parts(parts, state.division.parts)
    return None


def _fold_parts(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    if state.division is not None:
        raise broken(entry.sequence, "divides the data a second time")
    parts, spent, delta = Parts.from_record(body), state.account.spent, state.delta_spent
    return replace(state, division=Division.opened(parts, state.registration, spent, delta, state.version))


def accepting(
    state: LedgerState, digests: Mapping[str, str], principal: str, time: str, owners: Owners = MappingProxyType({})
) -> Entry | None:
    """Return the entry of a new version of the data, or None if these data are already the current version.

    Args:
        owners: Whose rows the tables have.
    """
    state.require_open()
    if not digests:
        raise InvalidParameter("A version of the data needs the digest of at least one table; none was given.")
    together = {**state.digests, **digests}  # other catalogs that share the ledger keep their tables
    if state.version and together == dict(state.digests):
        return None
    body: dict[str, object] = {"version": state.version + 1, "digests": together, "principal": principal}
    body["meaning"] = MEANING
    body |= {"owners": {**state.owners, **owners}} if owners or state.owners else {}
    return state.next_entry(time, "data", "", body)


def _fold_data(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    if body["version"] != state.version + 1:
        raise broken(entry.sequence, "accepts a version of the data out of turn")
    if state.closed:
        raise broken(entry.sequence, "accepts data after the data set was closed")
    owners = MappingProxyType(owners_from(body.get("owners", {})))
    digests = MappingProxyType(dict(body["digests"]))
    meaning = body.get("meaning", 1)
    after = replace(state, version=body["version"], digests=digests, owners=owners, meaning=meaning)
    return after if after.division is None else replace(after, division=after.division.for_version(after.version))


def resuming(state: LedgerState, principal: str, time: str) -> Entry | None:
    """Return the entry of a curator who has looked at faults and late answers, or None if there are none.

    It refunds nothing.
    """
    if not state.faults and not state.late:
        return None
    body: dict[str, object] = {"faults": state.faults, "principal": principal}
    body |= {"late": len(state.late)} if state.late else {}
    return state.next_entry(time, "resume", "", body)


def resumed(transaction: "Transaction", settled: LedgerState, principal: str, time: str) -> int:
    """Append that entry, if there is anything to look at, and return how many faults and late answers there were."""
    entry = resuming(transaction.state, principal, time)
    if entry is not None:
        transaction.append(entry)
    return settled.faults + len(settled.late)


def _fold_resume(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    seen = body["faults"], body.get("late", 0)
    if not all(isinstance(count, int) for count in seen) or seen != (state.faults, len(state.late)):
        raise broken(entry.sequence, "looks at other faults than there were")
    return replace(state, faults=0, late=())


def raising(state: LedgerState, now: Registration, principal: str, time: str) -> Entry | None:
    """Return the entry that raises the budget to another one, or None if that is the budget already.

    Raises:
        DataStopped: As `ledger.raising`.
        InvalidParameter: As `ledger.raising`.
        CatalogMismatch: ; nothing is changed then.
    """
    if (now.epsilon, now.delta) == (state.registration.epsilon, state.registration.delta):
        return None
    state.require_open()
    require_raise(state.registration, now)
    return state.next_entry(time, "raise", "", record_of(state.registration, now, principal))


def _fold_raise(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    if state.closed:
        raise broken(entry.sequence, "raises the budget after the data set was closed")
    now = raised_by(state.registration, body)
    division = None if state.division is None else state.division.with_budget(now.budget)
    return replace(
        state,
        registration=now,
        earlier=(*state.earlier, state.registration),
        account=replace(state.account, budget=now.budget),
        division=division,
    )


def closing(state: LedgerState, principal: str, time: str) -> Entry | None:
    """Return the entry that closes the data set for ever, or None if it is closed."""
    return None if state.closed else state.next_entry(time, "close", "", {"principal": principal})


def _fold_close(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    if state.closed:
        raise broken(entry.sequence, "closes the data set a second time")
    return replace(state, closed=True)


def restoring(state: LedgerState, declared: Declared, marked: int | None, principal: str, time: str) -> Entry:
    """Return the entry that a restored ledger adds to those of the copy.

    Args:
        declared: Why that may be.
        marked: How many entries the ledger had by its mark, if there is one.
    """
    body = {"entries": state.sequence, "marked": marked, "declared": declared, "principal": principal}
    return state.next_entry(time, "restored", "", body)


def _fold_restored(state: LedgerState, entry: Entry, body: Mapping[str, Any]) -> LedgerState:
    if body["entries"] != state.sequence:
        raise broken(entry.sequence, "restores another number of entries than there are")
    if body["declared"] not in get_args(Declared):
        raise broken(entry.sequence, "is restored for no known reason")
    return replace(spent_wholly(state), lost=True) if body["declared"] == LOST else state


def spent_wholly(state: LedgerState) -> LedgerState:
    """Return a state in which nothing is left: of the budget, and of the delta for private keys, in any part."""
    budget, delta = state.registration.budget, state.registration.delta_keys
    division = None if state.division is None else state.division.spent_wholly(delta)
    return replace(state, account=replace(state.account, spent=budget), delta_spent=delta, division=division)


FOLDS: Final[dict[str, Callable[[LedgerState, Entry, Any], LedgerState]]] = {
    "open": _fold_open,
    "parts": _fold_parts,
    "data": _fold_data,
    "late": fold_late,
    "resume": _fold_resume,
    "raise": _fold_raise,
    "close": _fold_close,
    "restored": _fold_restored,
}
"""What each kind of entry does to the state; `transitions.fold` has checked its place and its hash."""
