"""Data that are taken anew from their sources, and accepted: what a schedule runs.

Fetching comes first and changes nothing. Only what was delivered whole, and passes the checks of every version, becomes
the current one; until the moment of acceptance questions are answered from the version before, and if anything fails
they still are.
"""

from pathlib import Path

from lapwing.catalog.model import SPARK, Catalog
from lapwing.catalog.toml import load
from lapwing.opening import open_session
from lapwing.sources import fetch, tables_of


def refresh_data(catalog: str | Path | Catalog = "lapwing.toml", *, unreadable: str | None = None) -> int:
    """Fetch what the sources of a catalog hold now, and make it the current version; return its number.

    The curator's act. The number stays as it is if the rows are the same, or no protected table comes from a source.
    Public tables have no versions, and later sessions read the new ones. Spending stays with the people.

    Args:
        catalog: The path of a catalog, or one that was read.
        unreadable: "null" accepts values that are not of their declared type, which count as NULL or are rounded.

    Guarantee:
        Nothing is charged; on any error the version before stays the current one, and answers.

    Raises:
        DataFault: For a source that does not deliver, or rows that are not accepted: `lapwing data check` says which
            values they are.
        InvalidParameter: If no table comes from a source.
    """
    described = catalog if isinstance(catalog, Catalog) else load(Path(catalog))
    if described.engine != SPARK:  # which reads files where they are
        fetch(described)
    with open_session(described) as session:
        if not tables_of(described):
            return session.budget(history=False).version
        return session.accept_data(unreadable=unreadable)
