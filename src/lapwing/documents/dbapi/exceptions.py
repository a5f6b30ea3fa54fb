"""The exceptions of PEP 249, and which of them an error of Lapwing becomes.

A program that knows DB-API catches these. Each one made from an error of Lapwing has its code and its facts, and the
error itself as `__cause__`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from lapwing import errors
from lapwing.errors import LapwingError, QueryRefused, RefusalCause


class Warning(Exception):
    """An important warning. Lapwing raises none: a cursor has `notes`."""


class Error(Exception):
    """Root of the exceptions of PEP 249.

    Args:
        code: Of the error of Lapwing, as "budget_exhausted"; empty if there is none.
        cause: Of a refusal, its kind (`docs/reference/refusals.md`); else None.
        charged: Whether the query was charged; None if nobody knows.
        position: The (line, column) in the query, both from 1, if it is known.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        cause: RefusalCause | None = None,
        charged: bool | None = False,
        position: tuple[int, int] | None = None,
    ) -> None:
        self.code, self.cause, self.charged, self.position = code, cause, charged, position
        super().__init__(message)


class InterfaceError(Error):
    """A connection or a cursor is used in a way that it does not allow, such as after its end."""


class DatabaseError(Error):
    """Lapwing, or the way to it, raised an error."""


class DataError(DatabaseError):
    """A value does not fit. Lapwing raises none: it checks values before it reads rows."""


class OperationalError(DatabaseError):
    """The state of a data set or a service stands against it: budget, limits, rights, data, files, network."""


class IntegrityError(DatabaseError):
    """A row would contradict others. Lapwing raises none, because nothing is written."""


class InternalError(DatabaseError):
    """Lapwing contradicts itself, which is a bug, or could not show a result."""


class ProgrammingError(DatabaseError):
    """The query, a parameter or an option is wrong."""


class NotSupportedError(DatabaseError):
    """The query asks for what Lapwing does not support."""


_KINDS: Final[Mapping[type[LapwingError], type[DatabaseError]]] = {
    errors.InvalidParameter: ProgrammingError,
    errors.AnswerFault: InternalError,
    LapwingError: OperationalError,
}
"""The kind of an error; an error that is not here has the kind of its nearest class."""
_NOT_SUPPORTED: Final = frozenset(
    {cause for cause in RefusalCause if cause.value.endswith("_not_supported")}
    | {RefusalCause.NOT_SUPPORTED_BY_ENGINE, RefusalCause.MISSING_EXTRA, RefusalCause.NOT_A_QUERY}
)


def translated(error: LapwingError) -> DatabaseError:
    """Return an error of Lapwing as one of PEP 249."""
    refused = error if isinstance(error, QueryRefused) else None
    kind = _kind_of_refusal(refused.cause) if refused else _kind_of(type(error))
    return kind(
        str(error),
        code=error.code,
        cause=refused.cause if refused else None,
        charged=errors.was_charged(error),
        position=refused.position if refused else None,
    )


def _kind_of_refusal(cause: RefusalCause) -> type[DatabaseError]:
    if cause is RefusalCause.INTERNAL:
        return InternalError
    return NotSupportedError if cause in _NOT_SUPPORTED else ProgrammingError


def _kind_of(error: type[LapwingError]) -> type[DatabaseError]:
    return next(_KINDS[kind] for kind in error.__mro__ if kind in _KINDS)


@contextmanager
def as_database_errors() -> Iterator[None]:
    """Raise what Lapwing raises as exceptions of PEP 249."""
    try:
        yield
    except LapwingError as error:
        raise translated(error) from error
