"""SQLite: one read transaction, which sees the file as it was when its first statement began.

SQLite's columns have no types but what their declaration suggests; any value may be of any kind. So all values are
looked over first, in the same transaction: a column that holds integers alone is read as such, numbers as doubles, and
everything else as text, which is then read by the catalog's types, as a CSV file is.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date
from fractions import Fraction
from pathlib import Path
from re import IGNORECASE, match
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote

import adbc_driver_sqlite.dbapi
import pyarrow as pa
from adbc_driver_manager import dbapi

from lapwing.catalog.condition import Compared
from lapwing.catalog.file_columns import FileColumn
from lapwing.catalog.source_address import KEY, SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.adbc_batches import fetched, reader_of, row_of
from lapwing.sources.source import Names, Where

if TYPE_CHECKING:
    from lapwing.sources.source import SourceState

KINDS = {"integer": ("0", pa.int64()), "real": ("0.0", pa.float64()), "text": ("''", pa.large_string())}
"""How a column is read, with a value and the type of it: the driver guesses types from the first rows that it sees."""


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[SourceState]":
    """Open a state of a database file, which starts from the catalog's folder."""
    file = (folder / address.place.removeprefix("sqlite:")).absolute()
    if not file.is_file():
        raise DataFault(f"There is no database {file.name}; the path starts from the catalog's folder")
    try:
        connection = adbc_driver_sqlite.dbapi.connect(f"file:{quote(str(file))}?mode=ro", autocommit=True)
    except dbapi.Error:
        raise _fault() from None
    with closing(connection):
        with connection.cursor() as cursor:
            fetched(cursor, "BEGIN", _fault)
        yield SqliteState(connection, address.option(KEY))


@final
class SqliteState:
    """A database file as it was when its transaction began."""

    version = None
    holds_several = True

    def __init__(self, connection: dbapi.Connection, key: str | None = None) -> None:
        self._connection, self._key = connection, key

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns of a table or view, with the types that their declarations suggest."""
        rows = self._ask(f"SELECT name, type FROM pragma_table_info({_text(table[-1])}{_schema(table)})")
        if not rows:
            raise DataFault(f"The database has no table {'.'.join(table)}")
        return [_column(str(name), str(kind)) for name, kind in rows]

    def mark(self, table: Names) -> str | None:
        """Return the greatest value of the key that only grows, if the address names one."""
        if self._key is None:
            return None
        ((greatest,),) = self._ask(f"SELECT MAX({_identifier(self._key)}) FROM {_name(table)}")
        return None if greatest is None else json.dumps([self._key, int(greatest)])

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> pa.RecordBatchReader | None:
        """Return the rows whose key is above the greatest of a former state, if it was the same key."""
        key, greatest = json.loads(mark)
        if key != self._key or self._kind(table, key) != "integer":
            return None
        return self._read(table, columns, where, [f"{_identifier(key)} > {int(greatest)}"])

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows the transaction sees."""
        clause, values = where_clause(where)
        ((count,),) = self._ask(f"SELECT COUNT(*) FROM {_name(table)}{clause}", values)
        return int(count)

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> pa.RecordBatchReader:
        """Return the columns, each as what all of its values are."""
        return self._read(table, columns, where)

    def keys(self, table: Names, key: str, where: str, most: int) -> Sequence[int]:
        """Return the least keys of the rows that meet a condition, in order."""
        column = _identifier(key)
        rows = self._ask(f"SELECT {column} FROM {_name(table)} WHERE {where} ORDER BY {column} LIMIT {most}")
        if not all(isinstance(number, int) for (number,) in rows):
            raise DataFault(f"The key {key} of the table of events is not an integer in every row")
        return [number for (number,) in rows]

    def selected(self, table: Names, columns: Sequence[str], where: str) -> pa.RecordBatchReader:
        """Return these columns of the rows that meet a condition, each as what all of its values in them are."""
        return self._read(table, columns, (), [where], looked=[where])

    def writers(self, table: Names) -> frozenset[str]:
        """Return nobody: SQLite's writers follow each other, so that no row comes with a smaller key."""
        return frozenset()

    def _read(
        self,
        table: Names,
        columns: Sequence[str],
        where: Where,
        further: Sequence[str] = (),
        looked: Sequence[str] = (),
    ) -> pa.RecordBatchReader:
        kinds = [self._kind(table, name, where, looked) for name in columns] or ["integer"]
        names = [_identifier(name) for name in columns] or ["1"]
        first = ", ".join(f"{KINDS[kind][0]} AS {name}" for kind, name in zip(kinds, names, strict=True))
        rows = ", ".join(f"CAST({name} AS {kind.upper()})" for kind, name in zip(kinds, names, strict=True))
        clause, values = where_clause(where, further)
        query = f"SELECT {first} UNION ALL SELECT {rows} FROM {_name(table)}{clause}"
        types = {name: KINDS[kind][1] for kind, name in zip(kinds, columns, strict=False)}
        return reader_of(self._connection.cursor(), query, types, _fault, skip=1, values=row_of(values))

    def _kind(self, table: Names, column: str, where: Where = (), further: Sequence[str] = ()) -> str:
        clause, values = where_clause(where, further)
        found = self._ask(f"SELECT DISTINCT typeof({_identifier(column)}) FROM {_name(table)}{clause}", values)
        kinds = {str(kind) for (kind,) in found} - {"null"}
        if kinds <= {"integer"}:
            return "integer"
        return "real" if kinds == {"real"} else "text"

    def _ask(self, query: str, values: Sequence[pa.Scalar] = ()) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            return fetched(cursor, query, _fault, row_of(values))


def where_clause(where: Where, further: Sequence[str] = ()) -> tuple[str, list[pa.Scalar]]:
    """Return the WHERE of conditions, and the values of its parameters.

    It keeps each value that is read as one that fulfils them. An integer may stand there as text, a date or a time
    does. A time may have a T or a space before the hour, so only its day is compared. `restricting` does the rest, and
    says why a double fulfils nothing.
    """
    parts, values = list(further), list[pa.Scalar]()
    for condition in where:
        column = _identifier(condition.column)
        if condition.type == "integer":
            compared = f"CAST({column} AS INTEGER)"
        elif condition.type == "timestamp":
            compared = f"substr(CAST({column} AS TEXT), 1, 10)"
        else:
            compared = f"CAST({column} AS TEXT)"
        parts.append(f"typeof({column}) IN ('integer', 'text')")
        if condition.values is not None:
            told = [spelling for value in condition.values for spelling in _spellings(value)]
            parts.append(f"{compared} COLLATE BINARY IN ({', '.join('?' * len(told))})")
            values += map(pa.scalar, told)
        for end, sign in ((condition.lower, ">="), (condition.upper, "<=")):
            if end is not None:
                parts.append(f"{compared} COLLATE BINARY {sign} ?")
                values += map(pa.scalar, _spellings(end))
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


def _spellings(value: Compared) -> Sequence[int | str]:
    """Return what SQLite has for a value, in each way in which it may be written there."""
    if isinstance(value, bool):
        return [["0", "false"], ["1", "true"]][value]
    if isinstance(value, date):  # of which a datetime is one
        return [value.isoformat()[:10]]
    return [value]


def _column(name: str, declared: str) -> FileColumn:
    """Return a column with the catalog's type that its declaration suggests: text where it suggests none."""
    step = None
    if (
        of_decimals := match(r"(?:decimal|numeric)\s*\(\s*\d+\s*(?:,\s*(\d+)\s*)?\)", declared, IGNORECASE)
    ) is not None:
        kind, step = "decimal", Fraction(1, 10 ** int(of_decimals[1] or 0))
    else:
        lower = declared.casefold()
        suggested = (
            ("bool", "boolean"), ("timestamp", "timestamp"), ("datetime", "timestamp"), ("date", "date"),
            ("int", "integer"), ("real", "float"), ("floa", "float"), ("doub", "float"),
        )  # fmt: skip
        kind = next((kind for part, kind in suggested if part in lower), "string")
    blob = "blob" in declared.casefold()
    return FileColumn(name=name, type=None if blob else kind, step=step, stored_as=declared or "undeclared")


def _fault(_: str = "") -> DataFault:
    return DataFault(
        "The SQLite database of the data cannot be read. The file may not be a database, may be cut off, or another "
        "program may hold it. "
        "Nothing was taken"
    )


def _name(table: Names) -> str:
    return ".".join(map(_identifier, table))


def _schema(table: Names) -> str:
    return f", {_text(table[0])}" if len(table) > 1 else ""


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
