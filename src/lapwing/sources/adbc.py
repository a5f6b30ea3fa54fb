"""Any database with an ADBC driver: one SELECT a table, which such databases answer from one state.

The driver is a module `adbc_driver_<name>`, which is installed like any other. Its options stand in the address as far
as they are public, and else in the user's file of credentials. Rows are counted by a statement of their own: if the
table changes between the two, that shows, and nothing is taken. Several tables have no state in common.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from adbc_driver_manager import dbapi

from lapwing.catalog.file_columns import FileColumn, columns_of_arrow
from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.adbc_batches import fetched, reader_of, row_of, schema_of
from lapwing.sources.credentials import credentials_of
from lapwing.sources.source import Names, Where

if TYPE_CHECKING:
    from lapwing.sources.source import SourceState


_DAY: Final = timedelta(days=1)


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[SourceState]":
    """Open a connection by the driver that an address names."""
    name = address.place.removeprefix("adbc:")
    options = dict(address.options) | credentials_of(address)
    if not name.isidentifier():
        raise DataFault(
            "The address names no ADBC driver; write its name, like adbc:snowflake for adbc_driver_snowflake"
        )
    try:
        driver = import_module(f"adbc_driver_{name}")
    except ImportError:
        raise DataFault(f"The ADBC driver {name} is not installed: `pip install adbc-driver-{name}`") from None
    with connected(driver._driver_path(), options) as connection:
        yield StatementState(connection, "`" if name == "bigquery" else '"', numbered=name == "postgresql")


@contextmanager
def connected(driver: str, options: dict[str, str]) -> Iterator[dbapi.Connection]:
    """Open a connection by a driver.

    Raises:
        DataFault: If the database cannot be reached or does not let this user in.
    """
    try:
        connection = dbapi.connect(driver=driver, db_kwargs=options, autocommit=True)
    except (dbapi.Error, OSError):
        raise fault() from None
    with closing(connection):
        yield connection


@final
class StatementState:
    """A database, each of whose tables is read by one statement."""

    version = None
    holds_several = False

    def __init__(self, connection: dbapi.Connection, quote: str = '"', *, numbered: bool = False) -> None:
        self._connection, self._quote, self._numbered = connection, quote, numbered
        self._schemas: dict[Names, pa.Schema] = {}

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns that a statement without rows has."""
        return columns_of_arrow(self._schema(table))

    def mark(self, table: Names) -> str | None:
        """Return None: what came since a state is not known."""
        return None

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> pa.RecordBatchReader | None:
        """Return None: what came since a state is not known."""
        return None

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows the table had just now."""
        clause, values = self._clause(table, where)
        with self._connection.cursor() as cursor:
            ((count,),) = fetched(cursor, f"SELECT COUNT(*) FROM {self._name(table)}{clause}", fault, row_of(values))
        return int(count)

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> pa.RecordBatchReader:
        """Return the columns of one statement."""
        chosen = ", ".join(map(self._identifier, columns))
        clause, values = self._clause(table, where)
        query = f"SELECT {chosen} FROM {self._name(table)}{clause}"
        return reader_of(self._connection.cursor(), query, {}, fault, values=row_of(values))

    def _schema(self, table: Names) -> pa.Schema:
        if table not in self._schemas:
            with self._connection.cursor() as cursor:
                self._schemas[table] = schema_of(cursor, f"SELECT * FROM {self._name(table)} WHERE 1 = 0", fault)
        return self._schemas[table]

    def _clause(self, table: Names, where: Where) -> tuple[str, list[pa.Scalar]]:
        """Return the WHERE of conditions, and the values of its parameters.

        Times are compared with a day to spare on either side, as databases differ in whose midnight they mean; and a
        condition on a column of another type than the declared one is left to `restricting`.
        """
        parts, values = list[str](), list[pa.Scalar]()

        def value(content: pa.Scalar) -> str:
            values.append(content)
            return f"${len(values)}" if self._numbered else "?"

        for condition in where:
            (offered,) = columns_of_arrow(pa.schema([self._schema(table).field(condition.column)]))
            if offered.type != condition.type:
                continue
            column = self._identifier(condition.column)
            if condition.values is not None:
                parts.append(f"{column} IN ({', '.join(value(pa.scalar(one)) for one in condition.values)})")
            for end, sign, spare in ((condition.lower, ">=", -_DAY), (condition.upper, "<=", _DAY)):
                if isinstance(end, datetime):
                    widened = end.replace(tzinfo=None)
                    if datetime.min + _DAY <= widened <= datetime.max - _DAY:
                        parts.append(f"{column} {sign} {value(pa.scalar(widened + spare, pa.timestamp('us')))}")
                elif end is not None:
                    parts.append(f"{column} {sign} {value(pa.scalar(end))}")
        return (f" WHERE {' AND '.join(parts)}" if parts else ""), values

    def _name(self, table: Names) -> str:
        return ".".join(map(self._identifier, table))

    def _identifier(self, name: str) -> str:
        return f"{self._quote}{name.replace(self._quote, 2 * self._quote)}{self._quote}"


def fault(code: str = "") -> DataFault:
    """Return the fault of a database that says that something failed."""
    meaning = f" ({code})" if code.strip("\0") else ""
    return DataFault(
        "The database of the data cannot be reached, rejects this user, has no such table, or broke "
        f"off{meaning}; nothing was taken. Check the address, its entry in LAPWING_SOURCES, and its rights"
    )
