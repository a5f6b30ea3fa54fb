"""What a chain of entries means: the state that they add up to, one entry after another.

Everything here is a pure function. A store (`ledger.store`) keeps entries and makes them durable.

Guarantee: in any chain that `fold` accepts from the first entry on, the charges' losses pass the budget's filter one
after another in exact rational arithmetic, so their sum never exceeds the budget; and their deltas add up to at most
`delta_keys` (`filters`: approx, approx_gdp, approx_zcdp). Where there are parts, this holds for the charges that read a
part, for every part, or under replace_one for every two of them (`ledger.parts`). The budget is the one in force at
the end: it only grows (`ledger.raising`). No charge follows when as many faults stand as stop the data set
(`ledger.faults`), and none after the data set was closed. The chain is not signed: whoever can write the file can
write another chain. It shows accidents, partial restores and hasty edits, not a forger; the high-water mark
(`ledger.mark`) shows a whole older chain.

`fold` takes constant time and `State` has a constant size, whatever the length of the chain, but for what grows with
the number of parts, of names and of charges under way. What needs looking up in the past (the charges by key, the
answer of a charge) is the store's index, and comes in as an argument.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, final

from lapwing.errors import InvalidParameter, LapwingError, LedgerFault
from lapwing.ledger.allowances import NOTHING, Spending, added
from lapwing.ledger.entries import GENESIS, Entry, Kind, broken, subject_of
from lapwing.ledger.faults import COUNTED, FAULTS_ALLOWED
from lapwing.ledger.owners import Owners, owners_from
from lapwing.ledger.parts import Division, Parts
from lapwing.ledger.raising import raised_by
from lapwing.ledger.records import DECLARED, LOST, Charge, Registration
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Account, Granted, Refused
from lapwing.privacy.filters import charge as pay
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the entries up to `sequence` add up to.

    `version` counts the accepted versions of the data (0 before the first); `digests` maps each table to the digest of
    the current one, and `owners` to whose rows it has, if it was accepted since ledgers keep that; `delta_spent` is
    what private keys have taken of the registration's `delta_keys`. Of a data set in parts, `account` and `delta_spent`
    hold the totals, and `division` what is charged to each part. `faults` stand since the curator last looked;
    `under_way` maps each charge whose outcome is open to its asker; `spending` has what was charged by name
    (`ledger.allowances`). `registration` has the budget in force, and `earlier` those before it was raised, the first
    one first (`ledger.raising`). `closed` says that nothing is charged any more. Where entries were lost, what is spent
    is more than what the charges add up to (`ledger.restoring`), and `lost` says so.
    """

    sequence: int
    hash: str
    registration: Registration
    account: Account
    version: int
    digests: Mapping[str, str]
    delta_spent: Fraction = Fraction(0)
    division: Division | None = None
    faults: int = 0
    under_way: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    spending: Spending = field(default_factory=lambda: NOTHING)
    owners: Owners = field(default_factory=lambda: MappingProxyType({}))
    earlier: tuple[Registration, ...] = ()
    closed: bool = False
    lost: bool = False

    @property
    def first(self) -> Registration:
        """The registration with the budget that the ledger was opened with."""
        return self.earlier[0] if self.earlier else self.registration

    @property
    def stopped(self) -> bool:
        """Whether so many faults stand that nothing is charged until the curator has looked."""
        return self.faults >= FAULTS_ALLOWED

    @property
    def delta_remaining(self) -> Fraction:
        """What is left of the delta that is kept for private keys."""
        return self.registration.delta_keys - self.delta_spent

    def room(self, parts: tuple[str, ...] | None = None) -> Loss:
        """Return the largest loss that still fits for a question that reads these parts; None for all."""
        return self.account.remaining if self.division is None else self.division.room(parts)

    def delta_room(self, parts: tuple[str, ...] | None = None) -> Fraction:
        """Return what is left for such a question of the delta that is kept for private keys."""
        if self.division is None:
            return self.delta_remaining
        return self.division.delta_room(parts, self.registration.delta_keys)


# Folding: what an entry does to the state.


def fold(state: State | None, entry: Entry) -> State:
    """Return the state after one more entry; `None` is the state before the first.

    Raises: LedgerFault if the entry cannot follow: another place in the chain, a broken hash, a second opening, a
        version out of turn, an answer to nothing, a charge that the budget does not hold or one while the data set is
            stopped.
    """
    sequence, head = (state.sequence, state.hash) if state else (0, GENESIS)
    if entry.sequence != sequence + 1:
        raise broken(entry.sequence, f"stands where entry {sequence + 1} should")
    if entry.previous != head:
        raise broken(entry.sequence, "does not continue the one before it")
    try:
        body = entry.contents()
        if state is None:
            return _open(entry, body)
        return replace(_FOLDS[entry.kind](state, entry, body), sequence=entry.sequence, hash=entry.hash)
    except LedgerFault:
        raise
    except (LapwingError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        raise broken(entry.sequence, "says what no ledger says") from None


def _open(entry: Entry, body: Mapping[str, Any]) -> State:
    if entry.kind != "open":
        raise broken(entry.sequence, "comes before the ledger is opened")
    registration = Registration.from_record(body)
    return State(
        sequence=entry.sequence,
        hash=entry.hash,
        registration=registration,
        account=Account.opened(registration.budget),
        version=0,
        digests=MappingProxyType({}),
    )


def _fold_open(state: State, entry: Entry, body: object) -> State:
    raise broken(entry.sequence, "opens the ledger a second time")


def _fold_parts(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    if state.division is not None:
        raise broken(entry.sequence, "divides the data a second time")
    parts, spent, delta = Parts.from_record(body), state.account.spent, state.delta_spent
    return replace(state, division=Division.opened(parts, state.registration, spent, delta, state.version))


def _fold_data(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    if body["version"] != state.version + 1:
        raise broken(entry.sequence, "accepts a version of the data out of turn")
    if state.closed:
        raise broken(entry.sequence, "accepts data after the data set was closed")
    owners = MappingProxyType(owners_from(body.get("owners", {})))
    digests = MappingProxyType(dict(body["digests"]))
    after = replace(state, version=body["version"], digests=digests, owners=owners)
    return after if after.division is None else replace(after, division=after.division.for_version(after.version))


def _fold_charge(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    charge = Charge.from_record(body)
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
    outcome = replace(outcome, spending=added(state.spending, charge))
    if charge.asker is None:
        return outcome
    return replace(outcome, under_way=MappingProxyType({**state.under_way, entry.sequence: charge.asker}))


def paid(state: State, charge: Charge) -> State | Refused:
    """Pay a charge's loss and its delta, each from its own part of the budget; one that is short refuses both."""
    if state.division is not None:
        divided = state.division.paid(charge, state.registration.delta_keys)
        if isinstance(divided, Refused):
            return divided
        return replace(state, division=divided, account=divided.account, delta_spent=divided.deltas.total)
    if charge.parts is not None:
        raise InvalidParameter("The charge is for parts of the data, and the ledger has none; charge it to all.")
    outcome = pay(state.account, charge.loss)
    if isinstance(outcome, Granted) and grid_up(charge.delta) > state.delta_remaining:
        return Refused(shortfall=charge.loss.nothing())
    if isinstance(outcome, Refused):
        return outcome
    return replace(state, account=outcome.account, delta_spent=state.delta_spent + grid_up(charge.delta))


def _fold_answer(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    if not 1 < int(entry.subject) < entry.sequence or not isinstance(body["payload"], str):
        raise broken(entry.sequence, "answers a charge that is not there")
    return _ended(state, int(entry.subject))


def _fold_unanswered(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    charges = [int(entry.subject), *body["also"]]
    if len(set(charges)) < len(charges) or not state.under_way.keys() >= set(charges):
        raise broken(entry.sequence, "gives up a charge that is not under way")
    if body["cause"] == "stop" and not state.stopped:
        raise broken(entry.sequence, "says that the data set was stopped, and it was not")
    return replace(_ended(state, *charges), faults=state.faults + COUNTED[body["cause"]])


def _ended(state: State, *charges: int) -> State:
    left = {charge: asker for charge, asker in state.under_way.items() if charge not in charges}
    return replace(state, under_way=MappingProxyType(left))


def _fold_resume(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    if not isinstance(body["faults"], int) or body["faults"] != state.faults:
        raise broken(entry.sequence, "looks at other faults than there were")
    return replace(state, faults=0)


def _fold_raise(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
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


def _fold_close(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    if state.closed:
        raise broken(entry.sequence, "closes the data set a second time")
    return replace(state, closed=True)


def _fold_restored(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    if body["entries"] != state.sequence:
        raise broken(entry.sequence, "restores another number of entries than there are")
    if body["declared"] not in DECLARED:
        raise broken(entry.sequence, "is restored for no known reason")
    return replace(spent_wholly(state), lost=True) if body["declared"] == LOST else state


def spent_wholly(state: State) -> State:
    """Return a state in which nothing is left: of the budget, and of the delta for private keys, in any part."""
    budget, delta = state.registration.budget, state.registration.delta_keys
    division = None if state.division is None else state.division.spent_wholly(delta)
    return replace(state, account=replace(state.account, spent=budget), delta_spent=delta, division=division)


_FOLDS: Final[Mapping[Kind, Callable[[State, Entry, Any], State]]] = {
    "open": _fold_open,
    "parts": _fold_parts,
    "data": _fold_data,
    "charge": _fold_charge,
    "answer": _fold_answer,
    "unanswered": _fold_unanswered,
    "resume": _fold_resume,
    "raise": _fold_raise,
    "close": _fold_close,
    "restored": _fold_restored,
}
