"""The catalogs that a data set had while it was served, in order: each as the text that was saved, when and by whom.

The catalog's file is what a service opens when it starts. What is kept here tells the other processes of a running
service that a new one is in force, and people what was in force before. The number of a catalog is no version of the
data: these are counted by the ledger.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, final

from lapwing.server.audit_log import note
from lapwing.server.store import ServiceStore, now

_COLUMNS = "dataset, number, created, person, digest, content"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogVersion:
    """A catalog that was in force.

    Args:
        number: From 1 on, in the order in which they were saved.
        created: When and by whom it was saved, empty for the one that there was before the first was.
        person: As `created`.
        digest: Of what the tables mean (`Catalog.digest`).
    """

    dataset: str
    number: int
    created: str
    person: str
    digest: str
    content: str


@final
class CatalogVersions:
    """The catalogs of all data sets that were changed in a running service."""

    def __init__(self, store: ServiceStore) -> None:
        self._store = store

    def newest_number(self, dataset: str) -> int:
        """Return the number of the newest catalog of a data set, 0 if it was never changed."""
        rows = self._store.look("SELECT MAX(number) FROM catalogs WHERE dataset = ?", (dataset,))
        return int(rows[0][0] or 0)

    def newest(self, dataset: str) -> CatalogVersion | None:
        """Return the newest catalog, None if it was never changed."""
        return next(iter(self._found(f"{_OF} ORDER BY number DESC LIMIT 1", (dataset,))), None)

    def all(self, dataset: str) -> list[CatalogVersion]:
        """Return all catalogs of a data set, the oldest first."""
        return self._found(f"{_OF} ORDER BY number", (dataset,))

    def add(self, dataset: str, before: tuple[str, str], after: tuple[str, str], *, by: str, **told: object) -> int:
        """Keep a catalog in the place of the one before, with its line of the audit log; return its number.

        Args:
            before: The digest of what the tables mean, and the text.
            after: The digest of what the tables mean, and the text.
            **told: What the log says of the change.
        """
        with self._store.transaction() as connection:
            row = connection.execute("SELECT MAX(number) FROM catalogs WHERE dataset = ?", (dataset,)).fetchone()
            number = int((row[0] if row else None) or 0)
            if not number:
                number = 1
                connection.execute(_INSERT, (dataset, number, "", "", *before))
            connection.execute(_INSERT, (dataset, number + 1, now(), by, *after))
            note(connection, by, "catalog changed", dataset, number=number + 1, catalog=after[0], **told)
        return number + 1

    def _found(self, statement: str, values: Sequence[Any]) -> list[CatalogVersion]:
        names = _COLUMNS.split(", ")
        return [CatalogVersion(**dict(zip(names, row, strict=True))) for row in self._store.look(statement, values)]


_OF = f"SELECT {_COLUMNS} FROM catalogs WHERE dataset = ?"
_INSERT = f"INSERT INTO catalogs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


def state_of(text: str) -> str:
    """Return what tells a text from any other, for who changes it and wants to have seen it.

    >>> state_of("")[:8]
    'e3b0c442'
    """
    return sha256(text.encode()).hexdigest()
