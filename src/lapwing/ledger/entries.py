"""The ledger as values: entries in a hash chain, the state they add up to, and the decisions that extend it.

Everything here is a pure function. A store (`ledger.sqlite`) keeps entries and makes them durable; what an entry means
and whether one may follow another is decided only here, so that a decision is a function of public facts: the request
and the entries before it.

An entry is one of five kinds. `open` registers the data set and its budget, and is always the first. `parts` says into
which disjoint parts its units fall, once, if they do. `data` accepts a new version of the data. `charge` pays for one
question, about all parts or some. `answer` keeps what a charge bought.

Guarantee: in any chain that `fold` accepts from the first entry on, the charges' losses pass the budget's filter one
after another in exact rational arithmetic, so their sum never exceeds the budget; and their deltas add up to at most
`delta_keys` (`filters`: approx, approx_gdp, approx_zcdp). Where there are parts, this holds for the charges that read a
part, for every part, or under replace_one for every two of them (`ledger.parts`). The chain is not signed: whoever can
write the file can write another chain. It shows accidents, partial restores and hasty edits, not a forger; the
high-water mark (`ledger.mark`) shows a whole older chain.

`State` has a constant size and `fold` takes constant time, whatever the length of the chain; where there are parts,
both grow with their number. What needs looking up in
the past (the charges by key, the answer of a charge) is the store's index, and comes in as an argument.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, Literal, Self, final, get_args

from lapwing.errors import DataChanged, InvalidParameter, LapwingError, LedgerFault
from lapwing.ledger.parts import Division, Parts, require_same_parts
from lapwing.ledger.records import Charge, Charged, HistoryRow, Registration, StoredAnswer
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Account, Granted, Refused
from lapwing.privacy.filters import charge as pay
from lapwing.privacy.measures import Loss

__all__ = [
    "GENESIS",
    "RESTORE",
    "Charge",
    "Charged",
    "Entry",
    "HistoryRow",
    "Kind",
    "Registration",
    "State",
    "StoredAnswer",
    "accepting",
    "answering",
    "broken",
    "charging",
    "dividing",
    "fold",
    "opening",
    "subject_of",
]

Kind = Literal["open", "parts", "data", "charge", "answer"]
GENESIS: Final = "0" * 64  # stands for the hash of what comes before the first entry
RESTORE: Final = "Restore the newest copy of the ledger together with its mark."
_DOMAIN: Final = "lapwing ledger entry 1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger, sealed by its hash.

    `subject` is what a store looks entries up by: the digest of a charge's key, the sequence of the charge that is
    answered, else empty. `body` is canonical JSON (sorted keys, no spaces, ASCII). `time` is UTC in ISO 8601 and
    informs people only: order is by `sequence`, so a clock that runs backwards changes nothing.
    """

    sequence: int
    time: str
    kind: Kind
    subject: str
    body: str
    previous: str
    hash: str

    @classmethod
    def seal(
        cls, *, sequence: int, time: str, kind: Kind, subject: str, body: Mapping[str, object], previous: str
    ) -> Self:
        """Return the entry with its hash computed."""
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        digest = digest_of(str(sequence), time, kind, subject, text, previous)
        return cls(sequence=sequence, time=time, kind=kind, subject=subject, body=text, previous=previous, hash=digest)

    def contents(self) -> Any:
        """Return the body as a value, after checking that it is the one that was sealed.

        Raises: LedgerFault if any field is not what the hash was made of.
        """
        parts = (self.time, self.kind, self.subject, self.body, self.previous)
        if not all(isinstance(part, str) for part in parts):
            raise broken(self.sequence, "has a field of the wrong type")
        if digest_of(str(self.sequence), *parts) != self.hash:
            raise broken(self.sequence, "does not match its own hash")
        if self.kind not in get_args(Kind):
            raise broken(self.sequence, "is of an unknown kind")
        return json.loads(self.body)


def digest_of(*parts: str) -> str:
    """Return SHA-256 over the texts, each preceded by its length, so that no two lists hash the same bytes."""
    hasher = sha256()
    for part in (_DOMAIN, *parts):
        encoded = part.encode("utf-8", "surrogatepass")
        hasher.update(len(encoded).to_bytes(8, "big"))
        hasher.update(encoded)
    return hasher.hexdigest()


def subject_of(key: str) -> str:
    """Return what charges for this key are filed under: short, and plain text whatever the key holds."""
    return digest_of(key)


def broken(sequence: int, how: str) -> LedgerFault:
    """Return the fault of an entry that cannot be what Lapwing wrote."""
    return LedgerFault(
        f"Entry {sequence} of the ledger {how}: the file was damaged or edited. Nothing is answered from it. {RESTORE}"
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the entries up to `sequence` add up to.

    `version` counts the accepted versions of the data (0 before the first); `digests` maps each table to the digest of
    the current one; `delta_spent` is what private keys have taken of the registration's `delta_keys`. Of a data set in
    parts, `account` and `delta_spent` hold the totals, and `division` what is charged to each part.
    """

    sequence: int
    hash: str
    registration: Registration
    account: Account
    version: int
    digests: Mapping[str, str]
    delta_spent: Fraction = Fraction(0)
    division: Division | None = None

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
        version out of turn, an answer to nothing, or a charge that the budget does not hold.
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
    after = replace(state, version=body["version"], digests=MappingProxyType(dict(body["digests"])))
    return after if after.division is None else replace(after, division=after.division.for_version(after.version))


def _fold_charge(state: State, entry: Entry, body: Mapping[str, Any]) -> State:
    charge = Charge.from_record(body)
    if charge.version != state.version:
        raise broken(entry.sequence, "charges for a version of the data that was not current")
    if entry.subject != subject_of(charge.key):
        raise broken(entry.sequence, "is filed under another question than its own")
    outcome = _paid(state, charge)
    if isinstance(outcome, Refused):
        raise broken(entry.sequence, "spends more than the budget had left")
    return outcome


def _paid(state: State, charge: Charge) -> State | Refused:
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
    return state


_FOLDS: Final[Mapping[Kind, Callable[[State, Entry, Any], State]]] = {
    "open": _fold_open,
    "parts": _fold_parts,
    "data": _fold_data,
    "charge": _fold_charge,
    "answer": _fold_answer,
}


# Deciding: the entry that a request adds, or why there is none.


def opening(registration: Registration, time: str) -> Entry:
    """Return the first entry of a ledger."""
    return Entry.seal(sequence=1, time=time, kind="open", subject="", body=registration.to_record(), previous=GENESIS)


def dividing(state: State, parts: Parts | None, time: str) -> Entry | None:
    """Return the entry that divides the data, or None if they are divided, or are not meant to be.

    Parts of another table than the one that is divided change nothing: its questions are charged to all parts.

    Raises: CatalogMismatch if the same table is divided otherwise.
    """
    if parts is None:
        return None
    if state.division is None:
        return _next(state, time, "parts", "", parts.to_record())
    require_same_parts(parts, state.division.parts)
    return None


def accepting(state: State, digests: Mapping[str, str], principal: str, time: str) -> Entry | None:
    """Return the entry of a new version of the data, or None if these data are already the current version."""
    if not digests:
        raise InvalidParameter("A version of the data needs the digest of at least one table; none was given.")
    together = {**state.digests, **digests}  # other catalogs that share the ledger keep their tables
    if state.version and together == dict(state.digests):
        return None
    body = {"version": state.version + 1, "digests": together, "principal": principal}
    return _next(state, time, "data", "", body)


def charging(state: State, charge: Charge, time: str) -> Entry | Refused:
    """Return the entry of a charge, or the refusal of one that the budget does not hold.

    The outcome depends on the request and on earlier requests only, never on data: it may be shown to anybody.

    Raises: DataChanged if no version of the data was accepted, or a newer one than the asker's; InvalidParameter if the
        loss is not of the ledger's measure.
    """
    if state.version == 0:
        raise DataChanged("No version of the data was accepted, so nothing can be asked of them. Accept one first.")
    if charge.version != state.version:
        raise DataChanged(
            f"The question is about version {charge.version} of the data and the current version is {state.version}. "
            "Nothing was charged. Ask again."
        )
    if charge.delta < 0:
        raise InvalidParameter(f"The charge has delta = {charge.delta}; it must not be negative.")
    outcome = _paid(state, charge)
    if isinstance(outcome, Refused):
        return outcome
    return _next(state, time, "charge", subject_of(charge.key), charge.to_record())


def answering(state: State, charge: Entry, payload: str, time: str) -> Entry:
    """Return the entry that keeps what a charge bought.

    Raises: InvalidParameter if the entry to be answered is not a charge.
    """
    if charge.kind != "charge":
        raise InvalidParameter(f"Entry {charge.sequence} of the ledger is not a charge, so it has no answer.")
    return _next(state, time, "answer", str(charge.sequence), {"payload": payload})


def _next(state: State, time: str, kind: Kind, subject: str, body: Mapping[str, object]) -> Entry:
    return Entry.seal(
        sequence=state.sequence + 1, time=time, kind=kind, subject=subject, body=body, previous=state.hash
    )
