"""Compare the data with the version that the ledger knows, before anything is charged."""

from collections.abc import Mapping, Sequence

from lapwing.catalog.model import Table
from lapwing.catalog.source_address import renewal
from lapwing.engines import Engine
from lapwing.errors import DataChanged, DataFault
from lapwing.ledger.state import State


def current_digests(tables: Sequence[Table], engine: Engine, state: State) -> Mapping[str, str]:
    """Return the digests of tables by name, if the data of all are those of the ledger's current version.

    Raises:
        DataChanged: Otherwise, or DataFault if there are none.
        LapwingError: What is said follows from catalog and ledger alone.
    """
    digests = {table.name: _digest(table, engine, state) for table in tables}
    for table in tables:
        if digests[table.name] is None:
            raise DataFault(
                f"The data of {table.name} are missing, or cannot be read as the catalog describes them. Nothing was "
                f"charged. To the curator, {renewal(table.source)} says what is wrong with them."
            )
    for table in tables:
        if state.digests.get(table.name) != digests[table.name]:
            raise DataChanged(
                f"The data of {table.name} have changed since version {state.version}. Nothing was charged. "
                f"If the change is meant, let the curator run {renewal(table.source)}. The spent budget stays spent."
            )
    return {name: digest for name, digest in digests.items() if digest is not None}


def _digest(table: Table, engine: Engine, state: State) -> str | None:
    # None, and not the engine's own error, so that what the analyst sees drags no other message along.
    try:
        return engine.digest(table, state.digests)
    except DataFault:
        return None
