"""PEP 249 (DB-API 2.0): Lapwing for programs that speak to any database of Python.

    from lapwing import dbapi

    with dbapi.connect("lapwing.toml", epsilon=0.1) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT plan, COUNT(*) AS n FROM visits WHERE cost > ? GROUP BY plan", (100,))
        print(cursor.fetchall(), cursor.cost, cursor.intervals)

A local connection has the rights of whoever runs the program, which can also read the file: it protects what honest
analysts publish. One to a service has the rights of its token.
"""

from pathlib import Path
from typing import Final, TypeAlias

from typing_extensions import Unpack

from lapwing import opening
from lapwing.documents.dbapi.connection import Connection as Connection
from lapwing.documents.dbapi.connection import Queries
from lapwing.documents.dbapi.cursor import Cursor as Cursor
from lapwing.documents.dbapi.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
    as_database_errors,
)
from lapwing.documents.dbapi.options import Options, QueryOptions
from lapwing.documents.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

Target: TypeAlias = str | Path | Queries
__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Connection", "Cursor", "DataError", "DatabaseError",
    "Date", "DateFromTicks", "Error", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError",
    "OperationalError", "ProgrammingError", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks", "Warning",
    "apilevel", "connect", "paramstyle", "threadsafety",
]  # fmt: skip

apilevel: Final = "2.0"
threadsafety: Final = 2
"""Threads may share the module and connections, not cursors."""
paramstyle: Final = "qmark"
"""`WHERE cost > ?`, with a sequence. With a mapping, `:name` and `$name` work too."""
CATALOG: Final = "lapwing.toml"


def connect(
    target: Target = CATALOG, *, token: str | None = None, dataset: str | None = None, **options: Unpack[Options]
) -> Connection:
    """Open a connection.

    Args:
        target: The path of a catalog, or of a folder with a `lapwing.toml`. With a token it is the address of a
            service. It can also be an open session, which stays open when the connection is closed.
        token: By which a service knows who asks.
        dataset: Of a service; needed if the token may see several.
        options: The cost of queries and the intervals of their results, unless a cursor or a query says otherwise:
            `epsilon`, `error`, `delta`, `label`, `assuming_count`, `intervals`, `confidence`. See `QueryOptions`.

    Raises:
        Error: If the data set cannot be opened.
    """
    wanted = QueryOptions().with_options(**options)
    if not isinstance(target, str | Path):
        return Connection(target, wanted)
    remote = isinstance(target, str) and target.startswith(("http://", "https://"))
    place = target if remote or not Path(target).is_dir() else Path(target) / CATALOG
    with as_database_errors():
        session = opening.connect(place, token=token, dataset=dataset)  # type: ignore[arg-type]  # it checks them
    return Connection(session, wanted, owned=True)
