"""The entry that a request adds to the ledger, or why there is none.

Everything here is a pure function of the request and the state that the entries before it add up to (`ledger.folding`),
so that a decision rests on public facts alone.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lapwing.errors import DataChanged, DataStopped, InvalidParameter
from lapwing.ledger.entries import GENESIS, Entry, Kind, subject_of
from lapwing.ledger.faults import Cause, given_up, stopped
from lapwing.ledger.folding import State, paid
from lapwing.ledger.owners import Owners
from lapwing.ledger.parts import Parts, require_same_parts
from lapwing.ledger.raising import record_of, require_raise
from lapwing.ledger.records import Charge, Declared, Registration
from lapwing.privacy.filters import Refused


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


def accepting(
    state: State, digests: Mapping[str, str], principal: str, time: str, owners: Owners = MappingProxyType({})
) -> Entry | None:
    """Return the entry of a new version of the data, or None if these data are already the current version.

    Args: owners: whose rows the tables have.
    """
    require_open(state)
    if not digests:
        raise InvalidParameter("A version of the data needs the digest of at least one table; none was given.")
    together = {**state.digests, **digests}  # other catalogs that share the ledger keep their tables
    if state.version and together == dict(state.digests):
        return None
    body: dict[str, object] = {"version": state.version + 1, "digests": together, "principal": principal}
    body |= {"owners": {**state.owners, **owners}} if owners or state.owners else {}
    return _next(state, time, "data", "", body)


def charging(state: State, charge: Charge, time: str) -> Entry | Refused:
    """Return the entry of a charge, or the refusal of one that the budget does not hold.

    The outcome depends on the request and on earlier entries only, never on data, but for the faults among them, which
    had been seen (`ledger.faults`): it may be shown to anybody.

    Raises: DataStopped if the data set was closed, or as many faults stand as stop it; DataChanged if no version of
        the data was accepted, or a newer one than the asker's; InvalidParameter if the loss is not of the ledger's
        measure.
    """
    require_open(state)
    if state.stopped:
        raise stopped()
    if state.version == 0:
        raise DataChanged("No version of the data was accepted, so nothing can be asked of them. Accept one first.")
    if charge.version != state.version:
        raise DataChanged(
            f"The question is about version {charge.version} of the data and the current version is {state.version}. "
            "Nothing was charged. Ask again."
        )
    if charge.delta < 0:
        raise InvalidParameter(f"The charge has delta = {charge.delta}; it must not be negative.")
    outcome = paid(state, charge)
    if isinstance(outcome, Refused):
        return outcome
    return _next(state, time, "charge", subject_of(charge.key), charge.to_record())


def answering(state: State, charge: Entry, payload: str, time: str) -> Entry:
    """Return the entry that keeps what a charge bought.

    Raises: InvalidParameter if the entry to be answered is not a charge; EngineFault if it is no longer under way, or
        the data set is stopped: then nothing of it may be released.
    """
    if charge.kind != "charge":
        raise InvalidParameter(f"Entry {charge.sequence} of the ledger is not a charge, so it has no answer.")
    asker = Charge.from_record(charge.contents()).asker
    if state.stopped or (asker is not None and charge.sequence not in state.under_way):
        raise given_up()
    return _next(state, time, "answer", str(charge.sequence), {"payload": payload})


def leaving(state: State, charges: Sequence[int], cause: Cause, time: str) -> Entry | None:
    """Return the entry of charges that end without answer, of the first of them on, or None if none is under way.

    While the data set is stopped the cause is that, whatever it was: what came of them must not show.
    """
    open_charges = [charge for charge in charges if charge in state.under_way]
    if not open_charges:
        return None
    body = {"cause": "stop" if state.stopped else cause, "also": open_charges[1:]}
    return _next(state, time, "unanswered", str(open_charges[0]), body)


def resuming(state: State, principal: str, time: str) -> Entry | None:
    """Return the entry of a curator who has looked at the faults, or None if there are none. It refunds nothing."""
    if not state.faults:
        return None
    return _next(state, time, "resume", "", {"faults": state.faults, "principal": principal})


def raising(state: State, now: Registration, principal: str, time: str) -> Entry | None:
    """Return the entry that raises the budget to another one, or None if that is the budget already.

    Raises: DataStopped, InvalidParameter, CatalogMismatch (`ledger.raising`); nothing is changed then.
    """
    if (now.epsilon, now.delta) == (state.registration.epsilon, state.registration.delta):
        return None
    require_open(state)
    require_raise(state.registration, now)
    return _next(state, time, "raise", "", record_of(state.registration, now, principal))


def closing(state: State, principal: str, time: str) -> Entry | None:
    """Return the entry that closes the data set for ever, or None if it is closed."""
    return None if state.closed else _next(state, time, "close", "", {"principal": principal})


def restoring(state: State, declared: Declared, marked: int | None, principal: str, time: str) -> Entry:
    """Return the entry that follows those of a copy that was put in a ledger's place.

    Args: declared: why that may be; marked: how many entries the ledger had by its mark, if there is one.
    """
    body = {"entries": state.sequence, "marked": marked, "declared": declared, "principal": principal}
    return _next(state, time, "restored", "", body)


def require_open(state: State) -> None:
    """Refuse what would go on with a data set that was closed.

    Raises: DataStopped.
    """
    if state.closed:
        raise DataStopped(
            "The curator has closed this data set for ever. Nothing was charged; answers that were bought before stay "
            "free."
        )


def _next(state: State, time: str, kind: Kind, subject: str, body: Mapping[str, object]) -> Entry:
    return Entry.seal(
        sequence=state.sequence + 1, time=time, kind=kind, subject=subject, body=body, previous=state.hash
    )
