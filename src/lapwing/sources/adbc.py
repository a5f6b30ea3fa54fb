"""Any database with an ADBC driver: one SELECT a table, which such databases answer from one state.

The driver is a module `adbc_driver_<name>`, which is installed like any other. Its options stand in the address as far
as they are public, and else in the user's file of credentials. Rows are counted by a statement of their own: if the
table changes between the two, that shows, and nothing is taken. Several tables have no state in common.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, final

import pyarrow as pa
from adbc_driver_manager import dbapi

from lapwing.catalog.file_columns import FileColumn, columns_of_arrow
from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.adbc_batches import fetched, reader_of, schema_of
from lapwing.sources.credentials import credentials_of
from lapwing.sources.source import Names

if TYPE_CHECKING:
    from lapwing.sources.source import State


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[State]":
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
        yield StatementState(connection, "`" if name == "bigquery" else '"')


@contextmanager
def connected(driver: str, options: dict[str, str]) -> Iterator[dbapi.Connection]:
    """Open a connection by a driver.

    Raises: DataFault if the database cannot be reached or does not let this user in.
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

    def __init__(self, connection: dbapi.Connection, quote: str = '"') -> None:
        self._connection, self._quote = connection, quote

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns that a statement without rows has."""
        with self._connection.cursor() as cursor:
            return columns_of_arrow(schema_of(cursor, f"SELECT * FROM {self._name(table)} WHERE 1 = 0", fault))

    def mark(self, table: Names) -> str | None:
        """Return None: what came since a state is not known."""
        return None

    def added(self, table: Names, columns: Sequence[str], mark: str) -> pa.RecordBatchReader | None:
        """Return None: what came since a state is not known."""
        return None

    def rows(self, table: Names) -> int | None:
        """Return how many rows the table had just now."""
        with self._connection.cursor() as cursor:
            ((count,),) = fetched(cursor, f"SELECT COUNT(*) FROM {self._name(table)}", fault)
        return int(count)

    def batches(self, table: Names, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Return the columns of one statement."""
        chosen = ", ".join(map(self._identifier, columns))
        return reader_of(self._connection.cursor(), f"SELECT {chosen} FROM {self._name(table)}", {}, fault)

    def _name(self, table: Names) -> str:
        return ".".join(map(self._identifier, table))

    def _identifier(self, name: str) -> str:
        return f"{self._quote}{name.replace(self._quote, 2 * self._quote)}{self._quote}"


def fault(code: str = "") -> DataFault:
    """Return the fault of a database that says that something failed."""
    meaning = f" ({code})" if code.strip("\0") else ""
    return DataFault(
        "The database of the data cannot be reached, does not let this user in, has no such table, or broke "
        f"off{meaning}; nothing was taken. Look after the address, what LAPWING_SOURCES holds for it, and its rights"
    )
