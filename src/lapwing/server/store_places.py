"""Where the store of a service is, and how it is opened: a file, or a database."""

from pathlib import Path
from typing import Final

from lapwing.catalog.ledger import POSTGRES, place_of
from lapwing.catalog.model import Catalog
from lapwing.errors import InvalidParameter
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store import ServiceStore

USUAL: Final = "lapwing.people.db"


def people_of(catalog: Catalog) -> str:
    """Return where the people of a service are kept by default: where the ledger of a data set is kept."""
    place = place_of(catalog.ledger)
    return place.address if place.store == "postgres" else str(catalog.ledger_path.parent / USUAL)


def open_store(place: str | Path) -> ServiceStore:
    """Open a store, making it if there is none.

    Args:
        place: The path of a file, or the address of a database, beginning with postgres:// or postgresql://.

    Raises:
        InvalidParameter: If a value is not allowed.
        Fault: If something outside fails.
    """
    if not str(place).startswith(POSTGRES):
        return SqliteStore(Path(place))
    try:
        from lapwing.server.postgres_store import PostgresStore  # here: it needs the extra `postgres`
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"PostgreSQL needs {missing.name}, which is not installed. Run `pip install 'lapwing-dp[postgres]'`."
        ) from None
    return PostgresStore(str(place))
