"""A connection of PEP 249: a session, and what its queries may cost. Nothing is written, so it has no transactions."""

from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self, final

from typing_extensions import Unpack

from lapwing.documents.dbapi import exceptions
from lapwing.documents.dbapi.cursor import Cursor, Result
from lapwing.documents.dbapi.options import Options, QueryOptions
from lapwing.privacy.amounts import Number
from lapwing.query.text.parameters import Parameters

if TYPE_CHECKING:
    from lapwing.tables import Tables


class Queries(Protocol):
    """A session, as far as a connection needs it."""

    @property
    def dataset(self) -> str:
        """The name of the data set."""

    @property
    def tables(self) -> "Tables":
        """The tables that a query may name."""

    def sql(
        self,
        question: str,
        parameters: Parameters = ...,
        *,
        epsilon: Number | None = ...,
        error: Number | None = ...,
        delta: Number | None = ...,
        label: str | None = ...,
        assuming_count: int | None = ...,
    ) -> Result:
        """Answer a query and charge it."""

    def close(self) -> None:
        """Let go of what the session holds."""


@final
class Connection:
    """A session as PEP 249 sees it. Threads may share it; each takes a cursor of its own.

    Args:
        session: The one that is asked, with its own rights.
        options: The cost of its queries, unless a cursor or a query says otherwise.
        owned: Whether closing the connection closes the session.
    """

    Warning: ClassVar = exceptions.Warning
    Error: ClassVar = exceptions.Error
    InterfaceError: ClassVar = exceptions.InterfaceError
    DatabaseError: ClassVar = exceptions.DatabaseError
    DataError: ClassVar = exceptions.DataError
    OperationalError: ClassVar = exceptions.OperationalError
    IntegrityError: ClassVar = exceptions.IntegrityError
    InternalError: ClassVar = exceptions.InternalError
    ProgrammingError: ClassVar = exceptions.ProgrammingError
    NotSupportedError: ClassVar = exceptions.NotSupportedError

    def __init__(self, session: Queries, options: QueryOptions | None = None, *, owned: bool = False) -> None:
        self.session: Final = session
        self.options: Final = options or QueryOptions()
        self._owned, self._closed = owned, False

    def cursor(self, **options: Unpack[Options]) -> Cursor:
        """Return a cursor.

        Args:
            options: Of its queries, in the place of the connection's; see `QueryOptions`.
        """
        self.require_open()
        return Cursor(self, self.options.with_options(**options))

    def commit(self) -> None:
        """Do nothing: nothing is written, and what was charged stays charged."""
        self.require_open()

    def rollback(self) -> None:
        """Do nothing: a charge is never taken back. Tools call it after each error, and when they are done."""
        self.require_open()

    def close(self) -> None:
        """Close the connection, with the session if the connection opened it. Its cursors run nothing any more."""
        if not self._closed and self._owned:
            self.session.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def require_open(self) -> None:
        """Raise an error if the connection is closed."""
        if self._closed:
            raise exceptions.InterfaceError("This connection is closed; open another. Nothing was charged.")
