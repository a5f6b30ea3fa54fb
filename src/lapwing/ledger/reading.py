"""What people read in a ledger: its history, the faults that stand, and whether every entry is what Lapwing wrote."""

import sqlite3
from collections.abc import Mapping

from lapwing.ledger import database
from lapwing.ledger.entries import Entry, broken
from lapwing.ledger.faults import COUNTED, Cause
from lapwing.ledger.folding import State, fold
from lapwing.ledger.records import Charge, FaultRow, HistoryRow


def history(connection: sqlite3.Connection) -> tuple[HistoryRow, ...]:
    """Return all charges, in the order in which they were made."""
    answered = database.answered(connection)
    causes = {
        charge: entry.contents()["cause"]
        for entry in database.of_kind(connection, "unanswered")
        for charge in _charges_of(entry)
    }
    charges = database.of_kind(connection, "charge")
    return tuple(_row(entry, str(entry.sequence) in answered, causes.get(entry.sequence)) for entry in charges)


def faults(connection: sqlite3.Connection) -> tuple[FaultRow, ...]:
    """Return the faults since the curator last looked, in order."""
    looked = max((entry.sequence for entry in database.of_kind(connection, "resume")), default=0)
    counted = [
        entry
        for entry in database.of_kind(connection, "unanswered")
        if entry.sequence > looked and COUNTED[entry.contents()["cause"]]
    ]
    rows = {row.sequence: row for row in history(connection)} if counted else {}
    return tuple(_fault(entry, rows) for entry in counted)


def verified(connection: sqlite3.Connection) -> State | None:
    """Fold the whole chain anew, and hold against it what a state of constant size cannot tell.

    Raises: LedgerFault, naming the first entry that cannot be what Lapwing wrote.
    """
    state: State | None = None
    open_charges: set[int] = set()
    for entry in database.entries(connection, since=1):
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
