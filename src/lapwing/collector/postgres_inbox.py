"""The reports that a collector took of one task, in PostgreSQL: what is taken, and what is released.

Theory of operation. All tables are in the schema `lapwing_reports`, which is made when it is not there. A row of
`taken` is a commit, as in the file (`inbox`); of `released_reports` it is what one report says, in random order, with
the number of its release and nothing else. One process holds a task, by an advisory lock of its connection: whoever
appends has it, as both are of one session. What was committed is on the server's disk, whatever the database says of
`synchronous_commit`.

A connection that broke is opened anew by whatever is asked next. If it broke while something was committed, nobody
knows whether that is there: the fault says so, and `taken` tells.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from typing import Any, Final, final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from lapwing.collector.identities import SIZE
from lapwing.collector.released import uniform_order
from lapwing.collector.report_store import DeletedReports, ReportCommit
from lapwing.errors import Fault, InvalidParameter
from lapwing.exact.entropy import SYSTEM

SCHEMA: Final = "lapwing_reports"
MAKING: Final = int.from_bytes(b"LAPR", "big")
"""The advisory lock of who makes the tables; those of tasks have other numbers, of 64 bits and above it."""
AT_ONCE: Final = 1000
"""Commits that are read together."""
_TABLES: Final = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.tasks (digest text PRIMARY KEY, batch integer NOT NULL);
CREATE TABLE IF NOT EXISTS {SCHEMA}.taken (digest text, number bigint, day date NOT NULL, reports integer NOT NULL,
    identities bytea NOT NULL, said text NOT NULL, PRIMARY KEY (digest, number));
CREATE TABLE IF NOT EXISTS {SCHEMA}.rejected (digest text, reason text, count bigint NOT NULL,
    PRIMARY KEY (digest, reason));
CREATE TABLE IF NOT EXISTS {SCHEMA}.releases (digest text, number integer, last bigint NOT NULL, until date NOT NULL,
    reports integer NOT NULL, least integer NOT NULL, PRIMARY KEY (digest, number));
CREATE TABLE IF NOT EXISTS {SCHEMA}.released_reports (digest text NOT NULL, release integer NOT NULL, r jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS {SCHEMA}.kept (digest text PRIMARY KEY, day date NOT NULL, reports bigint NOT NULL,
    rows jsonb NOT NULL)
"""
_SETTINGS: Final = (
    "SET search_path = pg_catalog, pg_temp; SET lock_timeout = '30s'; "
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN "
    "('off', 'local')"
)
_USUAL: Final[Mapping[str, str | int]] = {
    "application_name": "lapwing", "connect_timeout": 10, "keepalives_idle": 15, "keepalives_interval": 5,
    "keepalives_count": 4, "tcp_user_timeout": 30_000,
}  # fmt: skip
Connection = psycopg.Connection[tuple[Any, ...]]


@final
class PostgresInbox:
    """One task's reports in a database: a `ReportStore`.

    Args:
        address: As libpq takes it, without a password; that comes from `~/.pgpass`, a service file, or PGPASSWORD.
        batch: As of the file.

    Raises:
        InvalidParameter: For an address that is none or holds a password.
        Fault: As the file, or if the server does not sync what it commits.
    """

    def __init__(self, address: str, digest: str, batch: int) -> None:
        self._address, self._digest, self._batch = _checked(address), digest, batch
        self._connection: Connection | None = None
        with self._transaction() as connection:
            row = connection.execute(f"SELECT batch FROM {SCHEMA}.tasks WHERE digest = %s", (digest,)).fetchone()
            if row is None:
                connection.execute(f"INSERT INTO {SCHEMA}.tasks VALUES (%s, %s)", (digest, batch))
        if row is not None and row != (batch,):
            self.close()
            raise Fault(f"The database has this task with batches of {row[0]}; nothing was done.")

    def append(
        self, day: date, identities: Sequence[bytes], said: Sequence[object], rejected: Mapping[str, int]
    ) -> int:
        """Keep reports, and count what was rejected, durably, all or nothing; return the commit's number."""
        number = 0
        with self._transaction() as connection:
            for reason, count in rejected.items():
                connection.execute(
                    f"INSERT INTO {SCHEMA}.rejected AS old VALUES (%s, %s, %s) "
                    "ON CONFLICT (digest, reason) DO UPDATE SET count = old.count + excluded.count",
                    (self._digest, reason, count),
                )
            if identities:
                row = connection.execute(
                    f"INSERT INTO {SCHEMA}.taken SELECT %s, COALESCE(MAX(number), 0) + 1, %s, %s, %s, %s "
                    f"FROM {SCHEMA}.taken WHERE digest = %s RETURNING number",
                    (self._digest, day, len(identities), b"".join(identities), _json(said), self._digest),
                ).fetchone()
                number = 0 if row is None else row[0]
        return number

    def taken(self, after: int = 0, until: int | None = None) -> Iterator[ReportCommit]:
        """Yield the commits after one, up to and with another, in order."""
        statement = (
            f"SELECT number, day, identities, said FROM {SCHEMA}.taken WHERE digest = %s AND number > %s AND "
            f"number <= %s ORDER BY number LIMIT {AT_ONCE}"
        )
        while rows := self._rows(statement, (self._digest, after, until or (1 << 62))):
            for number, day, joined, said in rows:
                each = [joined[at : at + SIZE] for at in range(0, len(joined), SIZE)]
                yield ReportCommit(number=number, day=day, identities=each, said=json.loads(said))
            after = rows[-1][0]

    def rejected(self) -> dict[str, int]:
        """Return how many reports were rejected, by reason."""
        rows = self._rows(f"SELECT reason, count FROM {SCHEMA}.rejected WHERE digest = %s", (self._digest,))
        return dict(rows)

    def released(self) -> tuple[int, int]:
        """Return the number of the last release, and of the last commit in it; 0 if there is none."""
        rows = self._rows(
            f"SELECT number, last FROM {SCHEMA}.releases WHERE digest = %s ORDER BY number DESC LIMIT 1",
            (self._digest,),
        )
        return (rows[0][0], rows[0][1]) if rows else (0, 0)

    def release(self, number: int, last: int, said: Sequence[str], until: date) -> str:
        """Write rows in random order and remember, in one transaction, what they are; return the name of the table."""
        order = uniform_order(len(said), SYSTEM)
        with self._transaction() as connection:
            connection.execute(
                f"INSERT INTO {SCHEMA}.releases VALUES (%s, %s, %s, %s, %s, %s)",
                (self._digest, number, last, until, len(said), self._batch),
            )
            with connection.cursor().copy(f"COPY {SCHEMA}.released_reports FROM STDIN") as rows:
                for place in order:
                    rows.write_row((self._digest, number, said[place]))
        return f"{SCHEMA}.released_reports, release {number}"

    def forget_identities(self) -> None:
        """Drop the identities of all reports: once a task is closed, no report can come again."""
        with self._transaction() as connection:
            connection.execute(
                f"UPDATE {SCHEMA}.taken SET identities = '' WHERE digest = %s AND identities <> ''", (self._digest,)
            )
        self._vacuum("taken")

    def delete(self, kept: DeletedReports) -> None:
        """Delete all reports, released ones too, and keep what they added up to."""
        with self._transaction() as connection:
            connection.execute(
                f"INSERT INTO {SCHEMA}.kept VALUES (%s, %s, %s, %s)",
                (self._digest, kept.day, kept.reports, _json(kept.rows)),
            )
            for table in ("taken", "released_reports"):
                connection.execute(f"DELETE FROM {SCHEMA}.{table} WHERE digest = %s", (self._digest,))
        self._vacuum("taken", "released_reports")

    def kept(self) -> DeletedReports | None:
        """Return what was kept of deleted reports; None while they are not deleted."""
        rows = self._rows(f"SELECT day, reports, rows FROM {SCHEMA}.kept WHERE digest = %s", (self._digest,))
        return DeletedReports(day=rows[0][0], reports=rows[0][1], rows=rows[0][2]) if rows else None

    def close(self) -> None:
        """Let go of the task, and close the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                # By word: a connection that ends lets go when the server has noticed it, and somebody may ask before.
                self._connection.execute("SELECT pg_advisory_unlock_all()")
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _rows(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._faults():
            return self._held().execute(statement.encode(), values).fetchall()

    def _vacuum(self, *tables: str) -> None:
        """Take what was deleted out of the tables' files."""
        with self._faults():
            for table in tables:
                self._held().execute(f"VACUUM {SCHEMA}.{table}".encode())

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._faults():
            connection = self._held()
            connection.execute("BEGIN")
            try:
                yield connection
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise Fault("The database took back what was written. Nothing was taken.")
            finally:
                if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")

    def _held(self) -> Connection:
        """Return a connection that holds the task."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        usual = {word: value for word, value in _USUAL.items() if word not in conninfo_to_dict(self._address)}
        connection = psycopg.connect(
            make_conninfo(self._address, **usual), autocommit=True, prepare_threshold=None, client_encoding="UTF8"
        )
        try:
            connection.execute(_SETTINGS)
            if connection.execute("SHOW fsync").fetchone() != ("on",):
                raise Fault("The database has fsync = off, and forgets at a power failure what was acknowledged.")
            number = int(self._digest[:16], 16) >> 1 | 1 << 40
            if connection.execute("SELECT pg_try_advisory_lock(%s::bigint)", (number,)).fetchone() != (True,):
                raise Fault("The reports of this task cannot be used: another collector has them. Nothing was taken.")
            if connection.execute(f"SELECT to_regclass('{SCHEMA}.kept')").fetchone() == (None,):  # the last one
                connection.execute(f"BEGIN; SELECT pg_advisory_xact_lock({MAKING}); {_TABLES}; COMMIT".encode())
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn what PostgreSQL reports into a `Fault`, and give up a connection that is broken."""
        try:
            yield
        except (psycopg.Error, OSError) as error:
            if self._connection is not None and self._connection.broken:
                self.close()
            raise Fault(
                "The database of the reports cannot be used; look after the server, the way to it, and the rights of "
                "its user. Nothing was acknowledged: send it again."
            ) from error


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _checked(address: str) -> str:
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise InvalidParameter("That is not the address of a database, as postgres://user@host/database is.") from None
    if any("password" in name for name in parts):
        raise InvalidParameter(
            "The address of the database holds a password, which others could read. Take it out. Give it to this "
            "program's user by ~/.pgpass, a service file, or PGPASSWORD."
        )
    return address


def released_rows(address: str, digest: str) -> Iterator[tuple[int, str]]:
    """Yield what released reports of a task say, as JSON, each with the number of its release, in their order.

    Raises:
        InvalidParameter: As `PostgresInbox`, or if there are none.
        Fault: If the database cannot be used.
    """
    statement = f"SELECT release, r::text FROM {SCHEMA}.released_reports WHERE digest = %s"
    found = False
    try:
        with psycopg.connect(_checked(address)) as connection, connection.cursor("released") as cursor:
            for row in cursor.execute(statement.encode(), (digest,)):
                found = True
                yield row
    except psycopg.errors.UndefinedTable:
        pass
    except psycopg.Error:
        raise Fault("The database of the reports cannot be used; look after the server, and the way to it.") from None
    if not found:
        raise InvalidParameter("The database has no released reports of this task.")
