"""PostgreSQL: one read-only transaction of repeatable read, from which declared columns are copied.

The transaction sees the database as it was when its first statement began, for all tables alike. Its role needs to read
these tables and nothing else. How to connect is libpq's: the address, which holds no password, and beside it the
user's password file, service file and environment. Over a network the server must prove who it is, unless the address
says otherwise.

What the server says when something fails may quote a row, and is not passed on; its code is.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote, urlencode, urlsplit

import adbc_driver_postgresql.dbapi
import pyarrow as pa
from adbc_driver_manager import dbapi

from lapwing.catalog import spelling
from lapwing.catalog.condition import Compared
from lapwing.catalog.file_columns import FileColumn
from lapwing.catalog.source_address import KEY, SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.adbc_batches import fetched, reader_of, row_of
from lapwing.sources.source import Names, Where

if TYPE_CHECKING:
    from lapwing.sources.source import SourceState

BATCH_BYTES: Final = 1 << 21
BEGIN: Final = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
SETTINGS: Final = (
    "SET search_path = pg_catalog",  # nobody's casts and operators in place of PostgreSQL's
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO'",
    "SET row_security = off",  # rows that this role may not see are an error, and not missing
    "SET standard_conforming_strings = on",
    "SET extra_float_digits = 1",
)
_LOCAL: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})
_MEANINGS: Final = (
    ("28", "rejects this user; check user and password (~/.pgpass, a service file or PGPASSWORD)"),
    ("42501", "does not let this user read the table; grant USAGE of its schema and SELECT on the table, without "
     "row-level security that hides rows from it"),
    ("42P01", "has no such table"),
    ("3D000", "has no such database"),
    ("42703", "no longer has the columns that it had a moment ago; try again"),
    ("53", "has no memory, disk or connection left"),
    ("57014", "ended the reading, because it took longer than the server's statement_timeout"),
    ("57P", "was shut down while it was read; nothing was taken. Try again"),
    ("08", "was lost while it was read; nothing was taken. Try again"),
)  # fmt: skip
"""What the beginnings of PostgreSQL's codes mean, the first that fits."""

_GROWING: Final = """
SELECT relkind::text, pg_is_in_recovery(), (
  SELECT MAX(seqcache)::int8 FROM pg_depend JOIN pg_sequence ON seqrelid = objid
  JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
  WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = {oid} AND attname = {key}
) FROM pg_class WHERE oid = {oid}
"""
"""What a table is, whether the server only repeats what another one writes, and how many keys a session takes ahead."""

_WRITERS: Final = """
WITH RECURSIVE parts AS (
  SELECT {oid}::oid AS part UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = part
)
SELECT DISTINCT virtualtransaction::text FROM pg_locks JOIN pg_database ON datname = current_database()
WHERE locktype = 'relation' AND pg_locks.database = pg_database.oid AND mode = 'RowExclusiveLock' AND granted
AND relation IN (SELECT part FROM parts)
"""

_COLUMNS: Final = """
WITH RECURSIVE base AS (
  SELECT attnum, attname, atttypid AS type, atttypmod AS modifier FROM pg_attribute
  WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT attnum, attname, typbasetype, CASE WHEN typtypmod <> -1 THEN typtypmod ELSE modifier END
  FROM base JOIN pg_type ON pg_type.oid = base.type WHERE typtype = 'd'
)
SELECT attname::text, typname::text, typtype::text, modifier::int8, format_type(type, modifier)::text
FROM base JOIN pg_type ON pg_type.oid = base.type WHERE typtype <> 'd' ORDER BY attnum
"""


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[SourceState]":
    """Open a state of a database."""
    connection = None
    try:
        connection = adbc_driver_postgresql.dbapi.connect(_uri(address), autocommit=True)
        for statement in (*SETTINGS, BEGIN):
            _run(connection, statement)
    except dbapi.Error as error:
        if connection is not None:
            connection.close()
        raise _fault(error.sqlstate or "", reached=False) from None
    with closing(connection):
        yield PostgresState(connection, address.option(KEY))


def _uri(address: SourceAddress) -> str:
    """Return the address for libpq, with what is left open set so that a dead network is noticed and a server known."""
    usual = {
        "application_name": "lapwing",
        "connect_timeout": "10",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "client_encoding": "UTF8",
    }
    given = {name: value for name, value in address.options if name != KEY}
    parts = urlsplit(address.place)
    host = given.get("host", parts.hostname or os.environ.get("PGHOST", ""))
    local = host in _LOCAL or host.startswith(("/", "@"))
    said = "sslmode" in given or "PGSSLMODE" in os.environ or "service" in given or "PGSERVICE" in os.environ
    if not local and not said:
        usual["sslmode"] = "verify-full"
    options = urlencode(usual | given, quote_via=quote)
    return f"postgresql://{parts.netloc}{parts.path}?{options}"


@final
class PostgresState:
    """A database as it was when its transaction began."""

    version = None
    holds_several = True

    def __init__(self, connection: dbapi.Connection, key: str | None = None) -> None:
        self._connection, self._key = connection, key
        self._columns: dict[Names, dict[str, _Described]] = {}
        self._handed: dict[str, str] = {}

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns of a table or view, domains by what they are made of."""
        return [column.column for column in self._described(table).values()]

    def mark(self, table: Names) -> str | None:
        """Return the greatest value of the key that only grows, if the address names one."""
        if self._key is None:
            return None
        ((greatest,),) = self._ask(f"SELECT MAX({_identifier(self._key)})::int8 FROM {_name(table)}")
        return None if greatest is None else json.dumps([self._key, int(greatest)])

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> pa.RecordBatchReader | None:
        """Return the rows whose key is above the greatest of a former state, if it was the same key."""
        key, greatest = json.loads(mark)
        if key != self._key or self._described(table)[key].column.type != "integer":
            return None
        return self._read(table, columns, where, [f"{_identifier(key)} > {int(greatest)}"])

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows the transaction sees."""
        ((count,),) = self._ask(f"SELECT count(*)::int8 FROM {_name(table)}{self._clause(table, where)}")
        return int(count)

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> pa.RecordBatchReader:
        """Return the columns as they are copied; decimals come as texts."""
        return self._read(table, columns, where)

    def keys(self, table: Names, key: str, where: str, most: int) -> Sequence[int]:
        """Return the least keys of the rows that meet a condition, in order.

        Raises:
            DataFault: If rows with smaller keys than those that are there may come from others than `writers`.
        """
        oid = self._oid(table)
        ((kind, repeats, ahead),) = self._ask(_GROWING.format(oid=oid, key=_text(key)))
        if kind not in ("r", "p"):
            raise _unfit("is not a table, and Lapwing cannot follow the new rows of a view. Name the table itself")
        if repeats:
            raise _unfit("is on a replica; name the primary server")
        if ahead is not None and ahead > 1:
            raise _unfit(f"has a sequence that gives each session {ahead} keys ahead; run ALTER SEQUENCE … CACHE 1")
        column = _identifier(key)
        rows = self._ask(f"SELECT {column}::int8 FROM {_name(table)} WHERE {where} ORDER BY {column} LIMIT {most}")
        return [int(number) for (number,) in rows]

    def selected(self, table: Names, columns: Sequence[str], where: str) -> pa.RecordBatchReader:
        """Return these columns of the rows that meet a condition."""
        return self._read(table, columns, (), [where])

    def writers(self, table: Names) -> frozenset[str]:
        """Return the transactions that have the table's lock of writers.

        Proof of what `Growing` wants. Who inserts takes this lock of the table, or of its part, before the row's key is
        drawn from the sequence, and keeps it until its transaction has ended and others see what it did. So whoever
        drew a key before that of some row of this state had the lock before this state began. If the lock is gone now,
        the transaction has ended, and states that are opened from now on have its row, or it never will be there.
        """
        return frozenset(str(one) for (one,) in self._ask(_WRITERS.format(oid=self._oid(table))))

    def _read(
        self, table: Names, columns: Sequence[str], where: Where, further: Sequence[str] = ()
    ) -> pa.RecordBatchReader:
        described = self._described(table)
        chosen = ", ".join(f"{described[name].copied} AS {_identifier(name)}" for name in columns)
        cursor = self._connection.cursor()
        cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
        kinds = {name: _decimal_type(described[name].column) for name in columns}
        query = f"SELECT {chosen or '1'} FROM {_name(table)}{self._clause(table, where, further)}"
        return reader_of(cursor, query, {name: kind for name, kind in kinds.items() if kind}, _fault)

    def _clause(self, table: Names, where: Where, further: Sequence[str] = ()) -> str:
        """Return the WHERE of conditions, by which PostgreSQL finds partitions and indexes.

        A condition on a column of another type than the declared one is left to `restricting`.
        """
        parts = list(further)
        for condition in where:
            described = self._described(table)[condition.column]
            if described.column.type != condition.type:
                continue
            column, kind = described.compared
            if condition.values is not None:
                listed = ", ".join(f"{self._value(value)}::{kind}" for value in condition.values)
                parts.append(f"{column} IN ({listed})")
            for end, sign in ((condition.lower, ">="), (condition.upper, "<=")):
                if end is not None:
                    parts.append(f"{column} {sign} {self._value(end)}::{kind}")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _value(self, value: Compared) -> str:
        """Hand over a value by a setting of the transaction, as COPY has no parameters; return what reads it there."""
        text = value if isinstance(value, str) else spelling.value(value)
        if text not in self._handed:
            setting = f"lapwing.value_{len(self._handed) + 1}"
            row = row_of([pa.scalar(setting), pa.scalar(text)])
            with self._connection.cursor() as cursor:
                fetched(cursor, "SELECT set_config($1, $2, true)", _fault, row)
            self._handed[text] = setting
        return f"current_setting('{self._handed[text]}')"

    def _described(self, table: Names) -> "dict[str, _Described]":
        """Return the columns of a table with the expressions that copy them, by name."""
        if table not in self._columns:
            rows = self._ask(_COLUMNS.format(oid=self._oid(table)))
            self._columns[table] = {str(row[0]): _described(*row) for row in rows}
        return self._columns[table]

    def _oid(self, table: Names) -> int:
        ((oid,),) = self._ask(f"SELECT to_regclass({_text(_name(table))})::oid::int8")
        if oid is None:
            raise DataFault(
                f"The database has no table {'.'.join(table)}; write it with its schema, like #public.visits"
            )
        return int(oid)

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            return fetched(cursor, query, _fault)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """A column, the expression that copies it, and the one that is compared with values of a type."""

    column: FileColumn
    copied: str
    compared: tuple[str, str]


def _described(name: str, kind: str, sort: str, modifier: int, stored_as: str) -> _Described:
    """Return a column, and its expressions.

    A `numeric` that is NaN counts as NULL, as it does everywhere. Infinite dates and times become the last ones that
    there are, so that they lie outside of any bounds, as infinite numbers do.
    """
    column, step, declared = _identifier(name), None, None
    copied = f"{column}::text"
    if kind in ("int2", "int4", "int8"):
        declared, copied = "integer", column
    elif kind == "numeric":
        declared, scale = "decimal", _scale(modifier)
        step = None if scale is None else Fraction(1, 10**scale)
        copied = copied if scale is None else f"NULLIF({column}, 'NaN')::text"
    elif kind in ("float4", "float8"):
        declared, copied = "float", column
    elif kind == "bool":
        declared, copied = "boolean", column
    elif kind in ("text", "varchar", "bpchar", "name", "uuid", "citext") or sort == "e":
        declared = "string"
    elif kind == "date":
        declared, copied = "date", _between(column, "DATE '4713-01-01 BC'", "DATE '5874897-12-31'")
    elif kind in ("timestamp", "timestamptz"):
        declared, value = "timestamp", column if kind == "timestamp" else f"({column} AT TIME ZONE 'UTC')"
        copied = _between(value, "TIMESTAMP '4713-01-01 BC'", "TIMESTAMP '294246-01-01'")
    if kind in ("int2", "int4", "int8", "bool", "date", "timestamp", "timestamptz"):
        compared = (column, "int8" if declared == "integer" else kind)
    else:  # an enum, as any other type that is a text, has no operators with texts
        compared = (column if kind in ("text", "varchar") else f"{column}::text", "text")
    described = FileColumn(name=name, type=declared, step=step, stored_as=stored_as)
    return _Described(column=described, copied=copied, compared=compared)


def _between(value: str, low: str, high: str) -> str:
    # Not by GREATEST and LEAST, which pass over NULL.
    return f"CASE WHEN {value} > {high} THEN {high} WHEN {value} < {low} THEN {low} ELSE {value} END"


def _scale(modifier: int) -> int | None:
    """Return the decimal places of a `numeric`, or None if it has no fixed number of them, or too many digits."""
    if modifier < 4:
        return None
    digits, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    scale = scale - 0x800 if scale >= 0x400 else scale  # of eleven bits, the first its sign
    return scale if scale >= 0 and max(digits, scale) <= 38 else None


def _decimal_type(column: FileColumn) -> pa.DataType | None:
    """Return as what a column is delivered that comes as text, if it is a decimal."""
    if column.type != "decimal" or column.step is None:
        return None
    return pa.decimal128(38, len(str(column.step.denominator)) - 1)


def _run(connection: dbapi.Connection, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _fault(code: str, *, reached: bool = True) -> DataFault:
    meaning = next((text for beginning, text in _MEANINGS if code and code.startswith(beginning)), None)
    if meaning is None and not reached:
        meaning = (
            "cannot be reached, rejects this user, or cannot prove its identity. Check address, user, password "
            "(~/.pgpass, a service file or PGPASSWORD) and the server's certificate (sslrootcert=, or sslmode=require)"
        )
    elif meaning is None:
        meaning = f"broke off{f' ({code})' if code else ''} while it was read; nothing was taken. Try again"
    return DataFault(f"The PostgreSQL database of the data {meaning}")


def _unfit(why: str) -> DataFault:
    return DataFault(f"The table of events {why}")


def _name(table: Names) -> str:
    return ".".join(map(_identifier, table if len(table) > 1 else ("public", *table)))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
