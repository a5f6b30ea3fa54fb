"""The rows that exist in linked tables, as the SQL finds them, beside those of the definition."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import duckdb

from lapwing.catalog import Table
from lapwing.engines.duckdb.cleaned import WHOLE, Location, Pass, layer
from lapwing.engines.duckdb.literals import kept_name, unit_name
from tests.support.catalog.existing import Data, Row, bag, existing

Bag = Counter[Hashable]


def put(connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], data: Data, kind: str = "BIGINT") -> None:
    """Make tables of integers of the data, each under the name of its source."""
    for table in tables:
        names = [column.name for column in table.columns]
        listed = ", ".join(f'"{name}" {kind}' for name in names)
        connection.execute(f'CREATE OR REPLACE TABLE "{table.source}" ({listed})')
        rows = [[row[name] for name in names] for row in data[table.name]]
        if rows:
            marks = ", ".join("?" for _ in names)
            connection.executemany(f'INSERT INTO "{table.source}" VALUES ({marks})', rows)


def source_of(table: Table, kind: str = "BIGINT") -> Location:
    """Return one of these tables as a source."""
    return Location(relation=f'"{table.source}"', types={column.name: kind for column in table.columns})


def found(
    connection: duckdb.DuckDBPyConnection, table: Table, part: Pass = WHOLE, kind: str = "BIGINT", last: str = ""
) -> Bag:
    """Return the rows that exist by the SQL, each with its unit. Args: last: layers in the place of the table's own."""
    above = [layer(one, source_of(one, kind), True, part) for one in reversed(table.lineage[1:])]
    layers = ", ".join([*above, last or layer(table, source_of(table, kind), True, part)])
    cursor = connection.execute(f"WITH {layers} SELECT * FROM {kept_name(table)}")
    names = [str(name) for name, *_ in cursor.description or []]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return bag((row.pop(unit_name(table)), row) for row in rows)


def defined(connection: duckdb.DuckDBPyConnection, table: Table, data: Data) -> Bag:
    """Return the rows that exist by the definition, in the order in which an engine keeps them.

    Columns that are not declared are no part of a row: nobody can ask for them, and no order looks at them.
    """
    declared = {
        one.name: [{column.name: row[column.name] for column in one.columns} for row in data[one.name]]
        for one in table.lineage
    }
    return bag(existing(table, declared, order_of(connection, table.lineage)))


def order_of(connection: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> Callable[[Hashable, Row], object]:
    """Return the order of a unit's rows: a hash of table, unit and values, then the values."""
    named: Mapping[frozenset[str], Table] = {frozenset(c.name for c in table.columns): table for table in tables}
    known: dict[tuple[object, ...], int] = {}

    def order(unit: Hashable, row: Row) -> object:
        table = named[frozenset(row)]
        values = [row[column.name] for column in table.columns]
        key = (table.name, unit, *values)
        if key not in known:
            marks = ", ".join("?::BIGINT" for _ in range(1 + len(values)))
            ((known[key],),) = connection.execute(f"SELECT hash(?, {marks})", list(key)).fetchall()
        return known[key], [(value is None, value or 0) for value in values]

    return order
