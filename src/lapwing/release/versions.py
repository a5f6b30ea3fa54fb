"""Compare the data with the version that the ledger knows, before anything is charged."""

from collections.abc import Mapping, Sequence

from lapwing.catalog.model import Table
from lapwing.engines import Engine
from lapwing.errors import DataFault
from lapwing.ledger.state import LedgerState
from lapwing.release.refusals import changed_data, missing_data


def current_digests(tables: Sequence[Table], engine: Engine, state: LedgerState) -> Mapping[str, str]:
    """Return the digests of tables by name, if the data of all are those of the ledger's current version.

    Raises:
        DataChanged: Otherwise, or DataFault if there are none.
        LapwingError: What is said follows from catalog and ledger alone.
    """
    digests = {table.name: _digest(table, engine, state) for table in tables}
    for table in tables:
        if digests[table.name] is None:
            raise missing_data(table)
    for table in tables:
        if state.digests.get(table.name) != digests[table.name]:
            raise changed_data(table, state)
    return {name: digest for name, digest in digests.items() if digest is not None}


def _digest(table: Table, engine: Engine, state: LedgerState) -> str | None:
    # None, and not the engine's own error, so that what the analyst sees drags no other message along.
    try:
        return engine.digest(table, state.digests)
    except DataFault:
        return None
