"""How a ledger is opened: where the catalog says that it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lapwing.catalog.ledger import place_of
from lapwing.errors import LedgerFault
from lapwing.ledger.ledger import NOBODY, Ledger
from lapwing.ledger.mark import path_of as mark_of
from lapwing.ledger.owners import Owners
from lapwing.ledger.parts import Parts
from lapwing.ledger.registration import Registration
from lapwing.ledger.snapshots import LedgerSnapshots
from lapwing.ledger.sqlite.chain import SqliteChain
from lapwing.ledger.sqlite.file import followed
from lapwing.ledger.sqlite.presence import FilePresence
from lapwing.ledger.sqlite.reader import SqliteReader
from lapwing.ledger.store import Chain, LedgerReader, Presence

PATIENCE: Final = 10.0
"""Seconds to wait for other users of the ledger before that is a fault."""


def open_ledger(
    name: str,
    folder: Path,
    registration: Registration,
    *,
    parts: Parts | None = None,
    owners: Owners = NOBODY,
    patience: float = PATIENCE,
) -> Ledger:
    """Open the ledger that a catalog names, creating and registering it if there is none.

    Args:
        name: As in the catalog.
        folder: That of the catalog, where this host keeps the ledger's file, or its mark of a ledger in PostgreSQL.
        patience: Seconds to wait for other users of the ledger, or for a server that restarts.

    Raises:
        LapwingError: As `Ledger.opened`.
        LedgerFault: If the ledger cannot be trusted or written.
    """
    place = place_of(name)
    file = followed(folder / place.file)
    chain: Chain
    presence: Presence
    reader: LedgerReader
    if place.store == "postgres":
        with client_of(place.ledger):
            from lapwing.ledger.postgres.chain import PostgresChain  # an optional extra
            from lapwing.ledger.postgres.presence import PostgresPresence
            from lapwing.ledger.postgres.reader import PostgresReader
        chain = PostgresChain(place.address, place.ledger, file, patience)
        presence = PostgresPresence(place.address, place.ledger, patience)
        reader = PostgresReader(place.address, place.ledger, patience)
    else:
        chain, presence, reader = SqliteChain(file, patience), FilePresence(file), SqliteReader(file, patience)
    chain.prepare()
    snapshots = LedgerSnapshots(chain, file, reader)
    return Ledger.opened(chain, presence, registration, parts=parts, owners=owners, snapshots=snapshots)


def is_begun(name: str, folder: Path) -> bool:
    """Tell whether the ledger that a catalog names is there, or its mark is.

    Raises:
        LedgerFault: If that cannot be known.
    """
    place = place_of(name)
    if mark_of(folder / place.file).exists():
        return True
    if place.store == "postgres":
        with client_of(place.ledger):
            from lapwing.ledger.postgres import chain  # an optional extra
        return chain.is_begun(place.address, place.ledger, PATIENCE)
    return (folder / place.file).exists()


@contextmanager
def client_of(name: str) -> Iterator[None]:
    """Say what to install where PostgreSQL's client is missing."""
    try:
        yield
    except ImportError as error:
        raise LedgerFault(
            f"The ledger {name} is in PostgreSQL, whose client is not installed: `pip install 'lapwing-dp[postgres]'`."
        ) from error
