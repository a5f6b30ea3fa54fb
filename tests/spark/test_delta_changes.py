"""One Delta table through twenty changes of its rows and columns: on both engines what its own client reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lapwing.engines.spark.cluster import Cluster
from tests.spark.test_iceberg import VALUES, kind_of, require_alike, seen
from tests.support.sources import delta_log

Change = Callable[[Path], Any]
FIRST: Final = pa.schema({"person": pa.int64(), "plan": pa.string(), "floor": pa.int32(), "cost": pa.float32()})


def some(columns: pa.Schema) -> pa.Table:
    values = {
        column.name: pa.array([1, 2, 3, 4] if column.name == "person" else VALUES[kind_of(column)], column.type)
        for column in columns
    }
    return pa.table(values, schema=columns)


def append(lake: Path) -> None:
    write_deltalake(str(lake), some(pa.schema(DeltaTable(str(lake)).schema().to_arrow())), mode="append")


def add_a_column(lake: Path) -> None:
    more = some(FIRST.append(pa.field("note", pa.int64())))
    write_deltalake(str(lake), more, mode="append", schema_mode="merge")


def merge(lake: Path) -> None:
    source = some(FIRST).slice(0, 2)
    merged = DeltaTable(str(lake)).merge(source, "s.person = t.person + 1", source_alias="s", target_alias="t")
    merged.when_matched_update({"plan": "s.plan"}).execute()


def partition(lake: Path) -> None:
    rows = some(FIRST.append(pa.field("note", pa.int64())))
    write_deltalake(str(lake), rows, mode="overwrite", schema_mode="overwrite", partition_by=["plan"], configuration={})


def replace_a_partition(lake: Path) -> None:
    rows = some(FIRST.append(pa.field("note", pa.int64()))).slice(0, 1)
    write_deltalake(str(lake), rows, mode="overwrite", predicate="plan = 'a'")


def map_columns(lake: Path) -> None:
    def mapped(metadata: dict[str, Any], fields: list[dict[str, Any]]) -> None:
        metadata["configuration"] = {**metadata["configuration"], "delta.columnMapping.mode": "name"}
        for number, field in enumerate(fields, 1):
            named = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
            field["metadata"] = {**field["metadata"], **named}

    delta_log.require(lake, "deletionVectors", "columnMapping")
    delta_log.describe_anew(lake, mapped)


def rename(_: Any, fields: list[dict[str, Any]]) -> None:
    next(field for field in fields if field["name"] == "floor")["name"] = "storey"


def drop(_: Any, fields: list[dict[str, Any]]) -> None:
    fields[:] = [field for field in fields if field["name"] != "note"]


def come_back(_: Any, fields: list[dict[str, Any]]) -> None:
    named = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-9"}
    fields.append({"name": "note", "type": "long", "nullable": True, "metadata": named})


def change_places(_: Any, fields: list[dict[str, Any]]) -> None:
    fields.reverse()


CHANGES: Final[dict[str, Change]] = {
    "rows": lambda lake: write_deltalake(str(lake), some(FIRST)),
    "more rows": append,
    "rows with a new column": add_a_column,
    "rows with the new column again": append,
    "rows are deleted, and files written anew": lambda lake: DeltaTable(str(lake)).delete("plan = 'b'"),
    "rows are updated": lambda lake: DeltaTable(str(lake)).update({"floor": "floor + 1"}, predicate="plan = 'a'"),
    "rows are merged": merge,
    "a checkpoint": lambda lake: DeltaTable(str(lake)).create_checkpoint(),
    "rows after the checkpoint": append,
    "files are put together": lambda lake: DeltaTable(str(lake)).optimize.compact(),
    "a former version is restored": lambda lake: DeltaTable(str(lake)).restore(2),
    "partitions": partition,
    "rows in partitions": append,
    "a partition is replaced": replace_a_partition,
    "a partition is deleted": lambda lake: DeltaTable(str(lake)).delete("plan = 'c'"),
    "rows may be deleted by position": lambda lake: delta_log.require(lake, "deletionVectors"),
    "a row is deleted by position": lambda lake: delta_log.delete(lake, {0}),
    "another one, named in a file": lambda lake: delta_log.delete(lake, {0}, beside=True),
    "columns are mapped": map_columns,
    "a column is renamed": lambda lake: delta_log.describe_anew(lake, rename),
    "a column is dropped": lambda lake: delta_log.describe_anew(lake, drop),
    "its name comes back": lambda lake: delta_log.describe_anew(lake, come_back),
    "columns change places": lambda lake: delta_log.describe_anew(lake, change_places),
}
SAME: Final = {
    "a checkpoint",
    "a former version is restored",
    "rows may be deleted by position",
    "columns are mapped",
    "columns change places",
}
"""Changes after which the rows, columns and files are those of a version that was there before."""


@pytest.mark.long
def test_each_of_twenty_changes_is_read_as_the_table_says(cluster: Cluster, tmp_path: Path) -> None:
    lake, digests = tmp_path / "lake", set[str]()
    for name, change in CHANGES.items():
        change(lake)
        table = DeltaTable(str(lake))
        columns = pa.schema(table.schema().to_arrow())
        raw = pa.table(table.scan(columns=columns.names)).cast(columns)
        require_alike(tmp_path, raw, "delta:lake")
        digest = seen(tmp_path, columns, "delta:lake")
        assert digest not in digests or name in SAME, name
        digests.add(digest)
