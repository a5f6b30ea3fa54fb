"""Connections to the PostgreSQL database of a ledger, and what its errors mean.

How to connect is libpq's: the address of the catalog, which holds no password, and beside it the user's password file,
service file and environment. What an address says itself is never changed; what it leaves open is set so that a dead
network is noticed. Nothing that is shown to anybody holds more than the ledger's name and PostgreSQL's error code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, Final

import psycopg
from psycopg import conninfo, errors

from lapwing.errors import LedgerFault

Connection = psycopg.Connection[tuple[Any, ...]]

_MEANINGS: Final[tuple[tuple[type[psycopg.Error], str], ...]] = (
    (errors.LockNotAvailable, "was locked by others for too long. Run the query again later"),
    (errors.QueryCanceled, "took too long to answer. Run the query again later"),
    (errors.DeadlockDetected, "was locked by another program. Run the query again later"),
    (errors.InsufficientPrivilege, "may not be used by this user. Grant it the schema lapwing and all of its tables"),
    (errors.ReadOnlySqlTransaction, "cannot be written: its server is a standby, or set to be read only. Connect to "
     "the primary server"),
    (errors.DiskFull, "cannot grow, because the disk of its server is full. Make room and run the query again"),
    (errors.DuplicateTable, "cannot be made: the schema lapwing has tables of another program. Give another database"),
    (errors.UndefinedTable, "has lost tables. Restore the newest copy of the database"),
    (errors.ProgrammingError, "is not understood by its server, or its address not by PostgreSQL's client. Correct "
     "the address in the catalog"),
    (errors.OperationalError, "cannot be reached, or rejects this user. Check that PostgreSQL runs, and check "
                              "address, user and password (~/.pgpass, a service file or PGPASSWORD)"),
)  # fmt: skip
"""What errors mean, the first that fits."""


@contextmanager
def faults(name: str) -> Iterator[None]:
    """Turn what PostgreSQL and the file system report into a `LedgerFault` that says what to do."""
    try:
        yield
    except psycopg.Error as error:
        meaning = next((text for kind, text in _MEANINGS if isinstance(error, kind)), None)
        code = error.sqlstate or "no code"
        meaning = meaning or f"failed ({code}). Ask the database's administrator"
        raise LedgerFault(f"The ledger {name} in PostgreSQL {meaning}. Nothing was answered.") from error
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise LedgerFault(
            f"The mark of the ledger {name} cannot be used ({reason}). Make the catalog's folder readable and writable "
            "for this user. Nothing was answered."
        ) from error


def connect(address: str, name: str, seconds: float) -> Connection:
    """Open a connection whose transactions begin and end by our own words.

    Raises:
        LedgerFault: If the server does not sync what it commits.
    """
    usual: dict[str, str | int] = {
        "application_name": "lapwing",
        "connect_timeout": max(2, ceil(seconds)),
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": ceil(1000 * max(seconds, 1)),
    }
    given = conninfo.conninfo_to_dict(address)
    wanted = {word: value for word, value in usual.items() if word not in given}
    # Statements are not prepared, so that connections may be shared out by a program in between.
    connection = psycopg.connect(
        conninfo.make_conninfo(address, **wanted), autocommit=True, prepare_threshold=None, client_encoding="UTF8"
    )
    try:
        connection.execute("SET search_path = pg_catalog, pg_temp")  # nobody's functions in place of PostgreSQL's
        _require_sync(connection, name)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_sync(connection: Connection, name: str) -> None:
    if connection.execute("SHOW fsync").fetchone() != ("on",):
        raise LedgerFault(
            f"The ledger {name} in PostgreSQL is on a server with fsync = off, which forgets at a power failure what "
            "was charged before. Nothing was answered. Set fsync = on there."
        )
