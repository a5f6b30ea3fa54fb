"""The entries of one ledger in PostgreSQL, to be looked up and appended.

What may be long is read in pages, so that neither memory nor the time of a statement grows with the ledger.
"""

from collections.abc import Collection, Iterator
from typing import Final, final

from lapwing.ledger.entries import Entry, Kind
from lapwing.ledger.mark import Mark
from lapwing.ledger.postgres import tables
from lapwing.ledger.postgres.connection import Connection

_COLUMNS: Final = "sequence, time, kind, subject, body, previous, hash"
_SELECT: Final = f"SELECT {_COLUMNS} FROM lapwing.entries AS entry WHERE ledger = %s AND sequence >= %s"
_PAGE: Final = 1000
_ANSWERED: Final = (
    "EXISTS (SELECT FROM lapwing.entries AS answer WHERE answer.ledger = entry.ledger AND answer.kind = 'answer'"
    " AND answer.subject = entry.sequence::text)"
)


@final
class PostgresLog:
    """The entries of a ledger.

    Args:
        ledger: Its name in the database.
    """

    def __init__(self, connection: Connection, ledger: str) -> None:
        self._connection = connection
        self._ledger = ledger

    def entries(self, *, since: int) -> Iterator[Entry]:
        """Yield the entries from a sequence on, in order."""
        return self._pages("", since=since)

    def entry(self, sequence: int) -> Entry | None:
        """Return one entry, if there is one."""
        return next(self._pages("AND sequence = %s", sequence), None)

    def of_kind(self, kind: Kind, *, since: int = 1) -> Iterator[Entry]:
        """Yield all entries of a kind, from a sequence on, in order."""
        return self._pages("AND kind = %s", kind, since=since)

    def answered(self, charges: Collection[int]) -> frozenset[int]:
        """Return those of the charges that have an answer."""
        statement = "SELECT subject FROM lapwing.entries WHERE ledger = %s AND kind = 'answer' AND subject = ANY(%s)"
        found = self._connection.execute(statement, (self._ledger, list(map(str, charges))))
        return frozenset(int(subject) for (subject,) in found)

    def number_of_charges(self) -> int:
        """Return how many charges there are."""
        statement = "SELECT count(*) FROM lapwing.entries WHERE ledger = %s AND kind = 'charge'"
        found = self._connection.execute(statement, (self._ledger,)).fetchone()
        return 0 if found is None else int(found[0])

    def charges(self, subject: str, *, since: int) -> Iterator[Entry]:
        """Yield the charges that are filed under a subject, from a sequence on, in order."""
        return self._pages("AND kind = 'charge' AND subject = %s", subject, since=since)

    def answered_charges(self, subject: str) -> Iterator[Entry]:
        """Yield the charges that are filed under a subject and have an answer, in order."""
        return self._pages(f"AND kind = 'charge' AND subject = %s AND {_ANSWERED}", subject)

    def answer(self, charge: int) -> Entry | None:
        """Return the answer of a charge, if there is one."""
        return next(self._pages("AND kind = 'answer' AND subject = %s", str(charge)), None)

    def require_sound(self) -> None:
        """Check that the tables are those that Lapwing made."""
        tables.require(self._connection, self._ledger)

    def locked_head(self) -> Mark | None:
        """Return the newest entry, and let nobody else append until the transaction has ended."""
        statement = "SELECT sequence, hash FROM lapwing.ledgers WHERE ledger = %s FOR UPDATE"
        found = self._connection.execute(statement, (self._ledger,)).fetchone()
        return None if found is None else Mark(*found)

    def is_begun(self) -> bool:
        """Tell whether the ledger is there."""
        statement = "SELECT FROM lapwing.ledgers WHERE ledger = %s"
        return self._connection.execute(statement, (self._ledger,)).fetchone() is not None

    def begin(self, head: Mark) -> None:
        """Note a ledger without entries, unless it is there; waits for others who are doing so."""
        statement = "INSERT INTO lapwing.ledgers VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        self._connection.execute(statement, (self._ledger, *head))

    def insert(self, entry: Entry) -> None:
        """Append an entry."""
        row = (entry.sequence, entry.time, entry.kind, entry.subject, entry.body, entry.previous, entry.hash)
        statement = f"INSERT INTO lapwing.entries (ledger, {_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
        self._connection.execute(statement.encode(), (self._ledger, *row))

    def move(self, head: Mark) -> None:
        """Say which entry is the newest."""
        statement = "UPDATE lapwing.ledgers SET sequence = %s, hash = %s WHERE ledger = %s"
        self._connection.execute(statement, (*head, self._ledger))

    def _pages(self, condition: str, *values: object, since: int = 0) -> Iterator[Entry]:
        statement = f"{_SELECT} {condition} ORDER BY sequence LIMIT {_PAGE}".encode()
        while True:
            page = self._connection.execute(statement, (self._ledger, since, *values)).fetchall()
            for sequence, time, kind, subject, body, previous, digest in page:
                yield Entry(
                    sequence=sequence, time=time, kind=kind, subject=subject, body=body, previous=previous, hash=digest
                )
                since = sequence + 1
            if len(page) < _PAGE:
                return
