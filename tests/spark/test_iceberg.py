"""Iceberg tables whose columns and rows change: on Spark and on DuckDB the same as the table itself says.

PyIceberg writes the tables. Delete files, which it does not write, are added by hand (`tests.support.sources.iceberg`).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, StringType

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.spark.beside import rows_of as _rows_of
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.engine import Spark
from lapwing.errors import DataFault
from lapwing.query.bind.bind import bind
from lapwing.sources import fetch
from lapwing.sources.iceberg_table import opened
from tests.support.engines import spark
from tests.support.sources import iceberg, rows

TEXT: Final = """
[dataset]
name = "visits"
engine = "{engine}"
ledger = "sqlite:{engine}.db"
{cluster}
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "{source}"
privacy_unit = "person"
max_rows_per_unit = 99
[tables.visits.columns]
{columns}
"""
SOURCE: Final = "iceberg:lake#clinic.visits"
KINDS: Final = {
    "string": '{ type = "string", values = ["a", "b", "c"] }',
    "integer": '{ type = "integer", values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }',
    "float": '{ type = "float", lower = 0, upper = 9, step = 0.5 }',
}


VALUES: Final[dict[str, list[Any]]] = {
    "string": ["a", "b", "c", None],
    "integer": [1, 2, 3, None],
    "float": [0.5, 2.5, None, 8.0],
}


def kind_of(column: pa.Field) -> str:
    """Return the type that a catalog declares for a column."""
    if pa.types.is_floating(column.type):
        return "float"
    return "integer" if pa.types.is_integer(column.type) else "string"


def over(folder: Path, columns: pa.Schema, engine: str, source: str = SOURCE) -> Catalog:
    """Return the catalog of the columns that the table has now."""
    lines = [f"{column.name} = {KINDS[kind_of(column)]}" for column in columns if column.name != "person"]
    cluster = 'cluster = "local[2]"' if engine == "spark" else ""
    text = TEXT.format(engine=engine, cluster=cluster, source=source, columns="\n".join(lines))
    return loads(text, file="visits", folder=folder)


def require_alike(folder: Path, raw: pa.Table, source: str = SOURCE) -> None:
    """Compare every column on both engines with the table as its own client reads it."""
    on_spark, here = (over(folder, raw.schema, engine, source) for engine in ("spark", "duckdb"))
    fetch(here)
    with spark.engine(on_spark) as engine:
        engine.digest(on_spark.tables[0])  # as before it is accepted: all rows are read and counted
        assert engine.rows(on_spark.tables[0]) == raw.num_rows
        found = dict(spark.run(engine, bind(asked(raw.schema), on_spark).question).cells)
    assert found == rows.exact(here, asked(raw.schema)) == stored(folder, raw)


def asked(columns: pa.Schema) -> str:
    """Return a question about the values of every column."""
    wanted = ["COUNT(*)", "COUNT(DISTINCT person)"]
    for column in columns:
        if column.name != "person":
            known = [value for value in VALUES[kind_of(column)] if value is not None]
            wanted += [f"COUNT({column.name})", *(f"COUNT_IF({column.name} = {value!r})" for value in known)]
    return f"SELECT {', '.join(wanted)} FROM visits"


def stored(folder: Path, raw: pa.Table) -> dict[Any, Any]:
    """Return what DuckDB finds in a file of the rows that the table's own client reads."""
    pq.write_table(raw, folder / "raw.parquet")
    catalog = over(folder, raw.schema, "duckdb")
    (table,) = catalog.tables
    return rows.exact(replace(catalog, tables=(replace(table, source="raw.parquet"),)), asked(raw.schema))


def seen(folder: Path, columns: pa.Schema, source: str = SOURCE) -> str:
    """Return the digest of the table as it is, on Spark."""
    catalog = over(folder, columns, "spark", source)
    return Spark(catalog).digest(catalog.tables[0], {"any": ""})


def some() -> Callable[[Table], None]:
    """Return what appends rows of the columns that the table has now."""

    def append(table: Table) -> None:
        schema = table.schema().as_arrow()
        values = {
            column.name: pa.array([1, 2, 3, 4] if column.name == "person" else VALUES[kind_of(column)], column.type)
            for column in schema
        }
        table.append(pa.table(values, schema=schema))

    return append


def schema(change: Callable[[Any], Any]) -> Callable[[Table], None]:
    def evolve(table: Table) -> None:
        with table.update_schema(allow_incompatible_changes=True) as update:
            change(update)

    return evolve


def partitions(change: Callable[[Any], Any]) -> Callable[[Table], None]:
    def evolve(table: Table) -> None:
        with table.update_spec() as update:
            change(update)

    return evolve


def swap(update: Any) -> None:
    update.rename_column("note", "floor")
    update.rename_column("floor", "note")


UNCHANGED: Final = ("partitions", "partitions end", "the same row is deleted twice")
CHANGES: Final[dict[str, Callable[[Table], None]]] = {
    "rows": some(),
    "a column is added": schema(lambda update: update.add_column("note", LongType())),
    "rows with the new column": some(),
    "a column is renamed": schema(lambda update: update.rename_column("plan", "tariff")),
    "rows under the new name": some(),
    "columns change places": schema(lambda update: update.move_first("note")),
    "rows in the new order": some(),
    "a column is dropped": schema(lambda update: update.delete_column("tariff")),
    "its name comes back": schema(lambda update: update.add_column("plan", StringType())),
    "rows of the name that came back": some(),
    "integers become wider": schema(lambda update: update.update_column("floor", LongType())),
    "wider rows": some(),
    "floats become wider": schema(lambda update: update.update_column("cost", DoubleType())),
    "wider floats": some(),
    "two columns exchange their names": schema(swap),
    "rows are deleted, and files written anew": lambda table: table.delete("plan = 'b'"),
    "rows are deleted by position": lambda table: iceberg.delete(table, [1, 3]),
    "more rows are deleted by position": lambda table: iceberg.delete(table, [0], file=2),
    "the same row is deleted twice": lambda table: iceberg.delete(table, [0, 1], file=2),
    "partitions": partitions(lambda update: update.add_field("plan", IdentityTransform(), "plan_part")),
    "rows in partitions": some(),
    "a partition is deleted": lambda table: table.delete("plan = 'c'"),
    "a row of a partition is deleted": lambda table: iceberg.delete(table, [0], file=-1),
    "partitions end": partitions(lambda update: update.remove_field("plan_part")),
    "rows are overwritten": lambda table: table.overwrite(table.scan().to_arrow().slice(3)),
}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty table, whose catalog the environment knows."""
    rows.know_iceberg(tmp_path, monkeypatch)
    catalog = iceberg.lake(tmp_path)
    catalog.create_namespace("clinic")
    first = pa.schema({"person": pa.int64(), "plan": pa.string(), "floor": pa.int32(), "cost": pa.float32()})
    yield catalog.create_table("clinic.visits", schema=first, properties={"format-version": "2"})
    catalog.close()


@pytest.mark.long
def test_each_of_twenty_changes_is_read_as_the_table_says(cluster: Cluster, table: Table, tmp_path: Path) -> None:
    """Each makes another version of the data, unless it changes neither rows nor columns."""
    digests = set[str]()
    for name, change in CHANGES.items():
        change(table)
        raw = table.refresh().scan().to_arrow()
        require_alike(tmp_path, raw)
        digest = seen(tmp_path, raw.schema)
        assert digest not in digests or name in UNCHANGED, name
        digests.add(digest)
    first = table.history()[0].snapshot_id
    require_alike(tmp_path, table.scan(snapshot_id=first).to_arrow(), SOURCE.replace("#", f"?snapshot={first}#"))


@pytest.mark.long
def test_equality_deletes_are_refused_by_their_name(table: Table, tmp_path: Path) -> None:
    some()(table)
    iceberg.delete_values(table, "person", pa.array([1]))
    for engine in ("spark", "duckdb"):
        catalog = over(tmp_path, table.schema().as_arrow(), engine)
        with pytest.raises(DataFault, match="equality deletes"):
            fetch(catalog) if engine == "duckdb" else Spark(catalog).rows(catalog.tables[0])


def deleted_rows_come_back() -> AbstractContextManager[Any]:
    def read(session: Any, root: str, paths: Any, schema: str, beside: Any) -> Any:
        return _rows_of(session, root, paths, schema, replace(beside, deleted={}))

    return patch("lapwing.engines.spark.cluster.rows_of", read)


def old_schema() -> AbstractContextManager[Any]:
    def read(address: Any) -> Any:
        return replace(opened(address), pinned=True)  # a pinned snapshot has the columns of its own time

    return patch("lapwing.engines.spark.iceberg.opened", read)


BUGS: Final = {"deleted rows come back": deleted_rows_come_back, "old schema": old_schema}


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_twin_a_planted_bug_is_found(bug: str, cluster: Cluster, table: Table, tmp_path: Path) -> None:
    for change in (
        some(),
        CHANGES["a column is added"],
        some(),
        lambda table: iceberg.delete(table, [0]),
        schema(swap),
    ):
        change(table)
    raw = table.refresh().scan().to_arrow()
    with BUGS[bug](), pytest.raises((AssertionError, DataFault)):
        require_alike(tmp_path, raw)


@pytest.mark.long
def test_rows_of_a_column_whose_name_came_back_are_read_anew(table: Table, tmp_path: Path) -> None:
    """A snapshot that adds to a former one keeps no value of the column that had the name before."""
    some()(table)
    fetch(over(tmp_path, table.schema().as_arrow(), "duckdb"))
    for name in ("a column is dropped", "its name comes back", "rows"):
        CHANGES["a column is renamed"](table) if name == "a column is dropped" else None
        CHANGES[name](table)
    raw = table.refresh().scan().to_arrow()
    here = over(tmp_path, raw.schema, "duckdb")
    fetch(here)
    assert rows.exact(here, asked(raw.schema)) == stored(tmp_path, raw)
