"""The people of a service in PostgreSQL, where services on several machines share them.

Theory of operation. All tables are in a schema of their own, made and grown when a service first comes (`_prepare`). A
transaction that writes takes one advisory lock first, and keeps it until it ends: so there is one writer, as in SQLite,
and what it reads, at READ COMMITTED, is what all before it have committed. One that reads has a snapshot. What was
committed is on the server's disk, whatever the database says of `synchronous_commit`.

The lock of a name is an advisory lock of a connection; the server lets go of it when the connection ends. A machine
that is gone without a word is noticed by keep-alives, in less than a minute.

Connections are made when they are needed, and kept while they are idle (`psycopg_pool`). If one turns out to be broken
as a transaction begins, as all are after a restart of the server, it is replaced once. A connection that breaks later
is a fault, as nobody knows what became of the transaction.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from typing import Any, Final, final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from lapwing.errors import Fault, InvalidParameter
from lapwing.server import store
from lapwing.server.store import StoreCursor

SCHEMA: Final = "lapwing_people"
WRITER: Final = int.from_bytes(b"LAPS", "big")
"""The advisory lock of who writes; those of names have other numbers, of 64 bits and above it."""
PATIENCE: Final = 30
"""Seconds to wait for the server, and for who writes."""
CONNECTING: Final = 5.0
"""Seconds in which a connection must be made."""
MOST: Final = 8
"""Connections for transactions of one process."""
MOST_LOCKS: Final = 120
"""Connections that hold locks of names."""
WRITING: Final = f"BEGIN; SET LOCAL lock_timeout = '{PATIENCE}s'; SELECT pg_advisory_xact_lock({WRITER})"
READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
SETTINGS: Final = (
    f"SET search_path = {SCHEMA}; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5;"
    " SET tcp_keepalives_count = 4; SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)
Opened = psycopg.Connection[tuple[Any, ...]]


@final
class PostgresStore:
    """The store of a service in a database.

    Args:
        address: As libpq takes it, without a password; that comes from `~/.pgpass`, a service file, or PGPASSWORD.
    """

    def __init__(self, address: str) -> None:
        self.name = shown(address)
        # Transactions wait for each other here, and not in the pool, whose time limit is meant for the server alone.
        self._room = threading.BoundedSemaphore(MOST)
        self._pool: ConnectionPool[Opened] = ConnectionPool(
            address,
            kwargs={
                "autocommit": True,
                "prepare_threshold": None,  # poolers between us and the server do not know what was prepared
                "connect_timeout": PATIENCE,
                "fallback_application_name": "lapwing",
                "keepalives_idle": 15,
                "keepalives_interval": 5,
                "keepalives_count": 4,
            },
            min_size=0,
            max_size=MOST + MOST_LOCKS,
            configure=_configure,
            timeout=CONNECTING,
            reconnect_timeout=CONNECTING,
            open=True,
        )
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def is_local(self) -> bool:
        """False: it is asked over a network, which may be slow."""
        return False

    @contextmanager
    def transaction(self) -> Iterator["QmarkConnection"]:
        """Hold the store alone; what was changed is kept, together, if the block ends well."""
        with self._transaction(WRITING) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator["QmarkConnection"]:
        """Look at the store as it is."""
        with self._transaction(READING) as connection:
            yield connection

    def look(self, statement: str, values: Sequence[object] = (), /) -> list[Any]:
        """Return what one statement finds."""
        with self._room, self._faults():
            connection, found = self._begun(_translated(statement), values)
            try:
                return found.fetchall()
            finally:
                self._pool.putconn(connection)

    def add(self, statement: str, values: Sequence[object], /) -> None:
        """Add a row by one statement, twice if nobody knows of the first time; who else writes is not waited for."""
        with self._room, self._faults():
            connection, _ = self._begun(_translated(statement), values)
            self._pool.putconn(connection)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of a name, among all services of this database."""
        digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest[:8], "big", signed=True) | 1 << 40
        with self._faults():
            connection, _ = self._begun(f"SELECT pg_advisory_lock({number})")
        try:
            yield
        finally:
            try:
                connection.execute(f"SELECT pg_advisory_unlock({number})")
            except psycopg.Error:  # to close it is to let go, if it was not broken anyway
                connection.close()
            self._pool.putconn(connection)

    def require_writable(self) -> None:
        """Write a message to the write-ahead log, which nobody reads; who else writes is not waited for."""
        self.look("SELECT pg_logical_emit_message(true, 'lapwing', '')")

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @contextmanager
    def _transaction(self, beginning: str) -> Iterator["QmarkConnection"]:
        with self._room, self._faults():
            connection, _ = self._begun(beginning)
            try:
                yield QmarkConnection(connection)
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise Fault(f"The service's store {self.name} undid a change. Try again.")
            finally:
                if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):  # the pool throws it away then
                        connection.execute("ROLLBACK")
                self._pool.putconn(connection)

    def _begun(
        self, beginning: str, values: Sequence[object] | None = None, *, again: bool = True
    ) -> tuple[Opened, StoreCursor]:
        """Return a connection on which something has begun, with what that found."""
        connection = self._pool.getconn()
        try:
            found = connection.execute(beginning, values)
        except BaseException:
            broken = connection.broken
            connection.close()
            self._pool.putconn(connection)
            if not (broken and again):
                raise
        else:
            return connection, found
        self._pool.check()  # the server was restarted: the idle ones are as broken
        return self._begun(beginning, values, again=False)

    def _prepare(self) -> None:
        """Make the tables, or let them grow to what this Lapwing knows."""
        steps = store.migrations("postgres")
        with self.transaction() as connection:
            if connection.execute("SELECT to_regnamespace(?)::text", (SCHEMA,)).fetchone()[0] is None:
                connection.execute(f"CREATE SCHEMA {SCHEMA}")
            connection.execute("CREATE TABLE IF NOT EXISTS steps (number INTEGER PRIMARY KEY)")
            number = connection.execute("SELECT COALESCE(MAX(number), 0) FROM steps").fetchone()[0]
            if number > len(steps):
                raise InvalidParameter(
                    f"{self.name} was made by a newer Lapwing (schema {number}; this version knows {len(steps)}). Use "
                    f"that version."
                )
            for step in range(number, len(steps)):
                for statement in steps[step].split(";\n"):
                    if statement:
                        connection.execute(statement)
                connection.execute("INSERT INTO steps (number) VALUES (?)", (step + 1,))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn what PostgreSQL reports into a `Fault`."""
        try:
            yield
        except psycopg.IntegrityError:
            raise
        except (psycopg.Error, OSError) as error:
            raise Fault(
                f"The service's store {self.name} cannot be used; check the database, the connection, and the rights "
                f"of its user. Try again later."
            ) from error


@final
class QmarkConnection:
    """A connection that takes statements in the form of `server.store`."""

    def __init__(self, connection: Opened) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = (), /) -> StoreCursor:
        """Carry out one statement."""
        return self._connection.execute(_translated(statement), values)


def _configure(connection: Opened) -> None:
    connection.execute(SETTINGS)


@cache
def _translated(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


def shown(address: str) -> str:
    """Return a database's address for people.

    Raises:
        InvalidParameter: If it is none, or holds a password.
    """
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise InvalidParameter(
            "--people begins as the address of a database does, and is none; write one like postgres://user@host/db."
        ) from None
    if any("password" in name for name in parts):
        raise InvalidParameter(
            "The address of a database holds a password, which others could read. Remove it, and give it to this "
            "program's user by ~/.pgpass, a service file, or PGPASSWORD."
        )
    host, database = parts.get("host", "this machine"), parts.get("dbname", "")
    return f"the database {database} at {host}"
