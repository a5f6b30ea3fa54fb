"""What people read in a ledger: its history, the faults that stand, and whether every entry is what Lapwing wrote."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Final, final

from lapwing.ledger.entries import Charge, Entry, broken
from lapwing.ledger.faults import COUNTED, Cause
from lapwing.ledger.state import State
from lapwing.ledger.store import Chain, Log
from lapwing.ledger.transitions import fold
from lapwing.privacy.measures import Loss

PAGE: Final = 500
"""Entries that are read while nobody else has the ledger."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One charge, for people to read; `unanswered` says why it bought nothing, once that is known."""

    sequence: int
    time: str
    principal: str
    question: str
    loss: Loss
    version: int
    answered: bool
    delta: Fraction = Fraction(0)
    parts: tuple[str, ...] | None = None
    unanswered: Cause | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One fault that stands, for the curator: when it was noticed, why, and the charges that ended by it.

    The question of the first of them is the one that failed, where the cause is a fault; after a death it may have been
    any.
    """

    sequence: int
    time: str
    cause: Cause
    charges: tuple[HistoryRow, ...]


def entries(chain: Chain) -> Iterator[Entry]:
    """Yield the entries that there are now, in order; others go on meanwhile, as no entry ever changes.

    Raises: LedgerFault if the ledger is another one on the way.
    """
    with chain.transaction() as transaction:
        since, last = 1, transaction.state.sequence
    while since <= last:
        with chain.transaction() as transaction:
            page = tuple(islice(transaction.log.entries(since=since), min(PAGE, last + 1 - since)))
        yield from page
        since += len(page)


def history(log: Log) -> tuple[HistoryRow, ...]:
    """Return all charges, in the order in which they were made."""
    answered = log.answered()
    causes = {charge: entry.contents()["cause"] for entry in log.of_kind("unanswered") for charge in _charges_of(entry)}
    charges = log.of_kind("charge")
    return tuple(_row(entry, str(entry.sequence) in answered, causes.get(entry.sequence)) for entry in charges)


def faults(log: Log) -> tuple[FaultRow, ...]:
    """Return the faults since the curator last looked, in order."""
    looked = max((entry.sequence for entry in log.of_kind("resume")), default=0)
    counted = [
        entry for entry in log.of_kind("unanswered") if entry.sequence > looked and COUNTED[entry.contents()["cause"]]
    ]
    rows = {row.sequence: row for row in history(log)} if counted else {}
    return tuple(_fault(entry, rows) for entry in counted)


def verify(chain: Chain) -> int:
    """Walk the whole chain anew, check the store page by page, and return the number of entries.

    Raises: LedgerFault, naming the first entry that cannot be what Lapwing wrote.
    """
    with chain.transaction() as transaction:
        state = verified(transaction.log.entries(since=1))
        if state is None or state.hash != transaction.state.hash:
            raise broken(transaction.state.sequence, "is not the one that was read before")
        transaction.log.require_sound()
        return state.sequence


def verified(entries: Iterable[Entry]) -> State | None:
    """Fold a whole chain anew, and hold against it what a state of constant size cannot tell.

    Raises: LedgerFault, naming the first entry that cannot be what Lapwing wrote.
    """
    state: State | None = None
    open_charges: set[int] = set()
    for entry in entries:
        state = fold(state, entry)
        if entry.kind == "charge":
            open_charges.add(entry.sequence)
        if entry.kind == "answer" and int(entry.subject) not in open_charges:
            raise broken(entry.sequence, "answers no charge, or one that has an answer or was given up")
        if entry.kind in ("answer", "unanswered"):
            open_charges.difference_update(_charges_of(entry))
    return state


def _charges_of(entry: Entry) -> tuple[int, ...]:
    """Return the charges that an entry ends."""
    return (int(entry.subject), *entry.contents().get("also", ()))


def _fault(entry: Entry, rows: Mapping[int, HistoryRow]) -> FaultRow:
    cause: Cause = entry.contents()["cause"]
    charges = tuple(rows[charge] for charge in _charges_of(entry))
    return FaultRow(sequence=entry.sequence, time=entry.time, cause=cause, charges=charges)


def _row(entry: Entry, answered: bool, unanswered: Cause | None) -> HistoryRow:
    charge = Charge.from_record(entry.contents())
    return HistoryRow(
        sequence=entry.sequence,
        time=entry.time,
        principal=charge.principal,
        question=charge.question,
        loss=charge.loss,
        version=charge.version,
        answered=answered,
        delta=charge.delta,
        parts=charge.parts,
        unanswered=unanswered,
    )
