"""The people of a service in PostgreSQL, where services on several machines share them.

Theory of operation. All tables are in a schema of their own, made and grown when a service first comes (`_prepare`). A
transaction that writes takes one advisory lock first, and keeps it until it ends: so there is one writer, as in SQLite,
and what it reads, at READ COMMITTED, is what all before it have committed. One that reads has a snapshot. What was
committed is on the server's disk, whatever the database says of `synchronous_commit`.

A turn is an advisory lock of a connection; the server lets go of it when the connection ends. A machine that is gone
without a word is noticed by keep-alives, in less than a minute.

Connections are made when they are needed, and kept when they are idle. One that turns out to be broken as a transaction
begins, as all are when the server was restarted, is made anew, once; later it is a fault, as nobody knows what became
of the transaction.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import Any, Final, final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from lapwing.errors import Fault, InvalidParameter
from lapwing.server import store
from lapwing.server.store import Rows

SCHEMA: Final = "lapwing_people"
WRITER: Final = int.from_bytes(b"LAPS", "big")
"""The advisory lock of who writes; turns have other numbers, as theirs are of 64 bits and above it."""
PATIENCE: Final = 30
"""Seconds to wait for the server, and for who writes."""
MOST: Final = 8
"""Connections for transactions of one process; turns have others."""
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

    Args: address: as libpq takes it, without a password; that comes from `~/.pgpass`, a service file, or PGPASSWORD.
    """

    def __init__(self, address: str) -> None:
        self.name = shown(address)
        self._address = address
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST)
        self._idle: list[Opened] = []
        self._open = True
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def near(self) -> bool:
        """False: it is asked over a network, which may be slow."""
        return False

    @contextmanager
    def transaction(self) -> Iterator["Translated"]:
        """Hold the store alone; what was changed is kept, together, if the block ends well."""
        with self._begun(WRITING) as connection:
            yield Translated(connection)

    @contextmanager
    def reading(self) -> Iterator["Translated"]:
        """Look at the store as it is."""
        with self._begun(READING) as connection:
            yield Translated(connection)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Hold the lock of a name, among all services of this database."""
        digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest[:8], "big", signed=True) | 1 << 40
        with self._faults():
            connection = self._taken(f"SELECT pg_advisory_lock({number})")
        try:
            yield
        finally:
            try:
                connection.execute(f"SELECT pg_advisory_unlock({number})")
            except psycopg.Error:  # to close it is to let go, if it was not broken anyway
                connection.close()
            self._give_back(connection)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._open = False
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _begun(self, beginning: str) -> Iterator[Opened]:
        with self._room, self._faults():
            connection = self._taken(beginning)
            try:
                yield connection
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise Fault(f"The service's store {self.name} took something back. Ask again.")
            finally:
                self._give_back(connection)

    def _taken(self, beginning: str) -> Opened:
        """Return a connection on which something has begun."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                connection.execute(beginning)
                return connection
            except psycopg.OperationalError:
                broken = connection.broken
                connection.close()
                if not broken:
                    raise
                self._forget_idle()
        connection = self._connected()
        try:
            connection.execute(beginning)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected(self) -> Opened:
        connection = psycopg.connect(
            self._address,
            autocommit=True,
            prepare_threshold=None,  # poolers between us and the server do not know what was prepared
            connect_timeout=PATIENCE,
            fallback_application_name="lapwing",
            keepalives_idle=15,
            keepalives_interval=5,
            keepalives_count=4,
        )
        try:
            connection.execute(SETTINGS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: Opened) -> None:
        """Keep a connection for the next, unless it is broken; what is not committed on it is rolled back."""
        try:
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        with self._lock:
            keeping = self._open and not connection.closed and len(self._idle) < MOST
            if keeping:
                self._idle.append(connection)
        if not keeping:
            connection.close()

    def _forget_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

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
                    f"{self.name} was made by a newer Lapwing (schema {number}, known are {len(steps)}); use that one."
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
                f"The service's store {self.name} cannot be used; look after the database, the way to it, and the "
                "rights of its user. Ask again later."
            ) from error


@final
class Translated:
    """A connection that takes statements in the form of `server.store`."""

    def __init__(self, connection: Opened) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = (), /) -> Rows:
        """Carry out one statement."""
        return self._connection.execute(_translated(statement), values)


@cache
def _translated(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


def shown(address: str) -> str:
    """Return a database's address for people.

    Raises: InvalidParameter if it is none, or holds a password.
    """
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise InvalidParameter(
            "--people begins as the address of a database does, and is none; write one like postgres://user@host/db."
        ) from None
    if any("password" in name for name in parts):
        raise InvalidParameter(
            "The address of a database holds a password, which others could read; take it out, and give it to this "
            "program's user by ~/.pgpass, a service file, or PGPASSWORD."
        )
    host, database = parts.get("host", "this machine"), parts.get("dbname", "")
    return f"the database {database} at {host}"
