"""A copy put into a PostgreSQL database, in the place of a ledger that was lost there or anywhere else.

What may be restored, and what is added to it, is decided as for a file (`ledger.restoring`), by the mark of this host.

Theory of operation
-------------------
The place must be empty: no head row of this name, or one of no entry, and no entry. One transaction makes the head row
if there is none and locks it, so that nobody can begin a ledger of this name meanwhile; inserts all entries; moves the
head row; reads all of it back, folds it anew and compares; and commits. Until then nobody sees anything of it, and a
death leaves nothing. The mark of this host is held throughout, and written after the commit. If the death comes
between the two, the mark is as it was. If it names an entry of the copy, it is caught up by the next who opens the
ledger. If it was ahead (`lost`), the ledger is at odds with it, which is a fault, and nothing is given back: then
remove it from the database, and restore again.

Each other host has a mark of its own. Whichever has seen an entry that the restored ledger has not, or another one in
its place, refuses it from then on; its mark has to be removed by hand, as whoever does so knows what was declared.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lapwing.errors import LedgerFault
from lapwing.ledger import mark as marks
from lapwing.ledger import new_mark, reading
from lapwing.ledger.curating import Declared
from lapwing.ledger.entries import Entry
from lapwing.ledger.mark import Mark
from lapwing.ledger.postgres import tables
from lapwing.ledger.postgres.chain import begin, commit
from lapwing.ledger.postgres.connection import Connection, connect, faults
from lapwing.ledger.postgres.log import PostgresLog
from lapwing.ledger.registration import Registration
from lapwing.ledger.restoring import PATIENCE, mark_of, planned
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transaction import head_of

EMPTY: Final = head_of(None)


def restore(
    entries: Sequence[Entry],
    address: str,
    name: str,
    host_file: Path,
    registration: Registration,
    declared: Declared | None,
    principal: str,
) -> LedgerState:
    """Make a ledger in a database from the entries of a copy; return its state.

    Args:
        address: Of the database.
        name: Of the ledger in it.
        host_file: What the mark of this host is named after.
        registration: What the catalog says.
        declared: By the curator, None for nothing.

    Raises:
        LedgerFault: If the ledger cannot be trusted or written.
        CatalogMismatch: If the catalog contradicts the ledger. Nothing is changed then, unless it says that nobody
            knows.
    """
    with faults(name):
        known = mark_of(host_file)
        wanted = planned(entries, known, registration, declared, principal, name)
        connection = connect(address, name, PATIENCE)  # first: what cannot be reached leaves no mark behind
        try:
            tables.prepare(connection, name)
            new_mark.create(host_file)  # unless there is one
            with marks.hold(host_file, PATIENCE) as mark:
                # Read again now that it is held: the entries were planned for the mark as it was before.
                if mark.read() != (known or EMPTY):
                    raise LedgerFault(
                        f"The ledger {name} is in use. Nothing was changed. Stop the programs that use it first."
                    )
                begin(connection, PATIENCE)
                state = _filled(connection, name, wanted)
                commit(connection, name)
                # After the commit: a mark must never show an entry that the ledger does not have.
                mark.advance(head_of(state))
                return state
        finally:
            connection.close()  # what is not committed is rolled back


def _filled(connection: Connection, name: str, wanted: Sequence[Entry]) -> LedgerState:
    """Fill an empty place inside a transaction, and return what it holds then."""
    log = PostgresLog(connection, name)
    # The head row is made before the place is looked at: of two who restore at once, one waits for the other's row.
    log.begin(EMPTY)
    _require_empty(log, name)
    for entry in wanted:
        log.insert(entry)
    newest = Mark(wanted[-1].sequence, wanted[-1].hash)
    log.move(newest)
    return _read_back(log, newest, name)


def _require_empty(log: PostgresLog, name: str) -> None:
    if log.locked_head() != EMPTY or next(log.entries(since=0), None) is not None:
        raise LedgerFault(
            f"There is already a ledger {name} in the database. Nothing was changed. If it is beyond repair, give "
            f"another name in the catalog, or ask the database's administrator to rename it. Leave the mark in place: "
            f"it proves the ledger's last entry."
        )


def _read_back(log: PostgresLog, newest: Mark, name: str) -> LedgerState:
    """Return what the database holds now, folded anew; not what was meant to be there."""
    state = reading.verified(log.entries(since=0))
    if state is None or head_of(state) != newest or log.locked_head() != newest:
        raise LedgerFault(f"The database does not hold what was written to the ledger {name}. Nothing was changed.")
    return state
