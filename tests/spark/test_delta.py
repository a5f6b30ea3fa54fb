"""Delta tables that are more than their files, and folders that name columns: the same rows as on DuckDB.

`deltalake` writes partitions, mapped and added columns, and checkpoints. Deletion vectors, renamed and dropped columns
are added to the log by hand (`tests.support.sources.delta_log`).
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.spark.beside import rows_of as _rows_of
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.delta import fields_of
from lapwing.engines.spark.engine import Spark
from lapwing.engines.spark.listing import listed
from lapwing.errors import DataFault, EngineFault
from lapwing.opening import refresh_data
from lapwing.query.bind.bind import bind
from lapwing.sources import fetch
from tests.support.engines import spark
from tests.support.sources import delta_log, rows

ODD = ["east's", "50%", "my zone", "a/b", "é=ü", None]
TEXT = """
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
"""
COLUMNS = {
    "zone": 'zone = { type = "string", values = ["east\'s", "50%", "my zone", "a/b", "é=ü"] }',
    "plan": 'plan = { type = "string", values = ["a", "b"] }',
    "floor": 'floor = { type = "integer", lower = 0, upper = 9 }',
    "day": 'day = { type = "date", lower = 2024-01-01, upper = 2024-12-31 }',
    "note": 'note = { type = "integer", lower = 0, upper = 9 }',
}


def over(folder: Path, source: str, *columns: str, engine: str = "spark") -> Catalog:
    cluster = 'cluster = "local[2]"' if engine == "spark" else ""
    text = TEXT.format(source=source, engine=engine, cluster=cluster) + "\n".join(COLUMNS[name] for name in columns)
    return loads(text, file="visits", folder=folder)


def on_both(folder: Path, source: str, *columns: str, by: str, where: str = "TRUE") -> dict[Any, int]:
    """Return the numbers of rows by a column, which are the same on Spark and on DuckDB."""
    text = f"SELECT {by}, COUNT(*) FROM visits WHERE {where} GROUP BY {by}"
    on_spark, here = over(folder, source, *columns), over(folder, source, *columns, engine="duckdb")
    with spark.engine(on_spark) as engine:
        engine.digest(on_spark.tables[0])  # as before it is accepted: all rows are read and counted
        found = spark.run(engine, bind(text, on_spark).question).cells
    if source.startswith("delta:"):
        fetch(here)
    there = rows.exact(here, text)
    counts = {key: cell[0] for (key,), cell in found.items() if cell[0]}
    assert counts == {key: cell[0] for (key,), cell in there.items() if cell[0]}
    return counts


def counted(table: pa.Table, name: str) -> dict[Any, int]:
    return dict(Counter(value for value in table.column(name).to_pylist() if value is not None))


def parted(count: int = 60) -> pa.Table:
    return pa.table(
        {
            "person": range(count),
            "zone": [ODD[row % 6] for row in range(count)],
            "plan": ["ab"[row // 6 % 2] for row in range(count)],
            "floor": [row % 6 // 3 for row in range(count)],
            "day": [date(2024, 1, 1 + row % 6 // 3) for row in range(count)],
        }
    )


MODES: dict[str, dict[str, str]] = {
    "none": {},
    "name": {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"},
    "id": {"delta.columnMapping.mode": "id", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"},
}


@pytest.mark.parametrize("mode", MODES)
def test_partitions_mapped_columns_and_deleted_rows(mode: str, cluster: Cluster, tmp_path: Path) -> None:
    """In one table, of any letters, and then behind a checkpoint alone."""
    table, lake = parted(), tmp_path / "my lake"
    write_deltalake(str(lake), table, partition_by=["zone", "floor", "day"], configuration=MODES[mode])
    features = ["deletionVectors"] if mode == "none" else ["columnMapping", "deletionVectors"]
    assert on_both(tmp_path, "delta:my lake", "zone", "plan", by="zone") == counted(table, "zone")
    delta_log.require(lake, *features)
    gone = delta_log.files(lake)[0]
    delta_log.delete(lake, {0, 2, 9}, beside=True)
    left = counted(table, "zone")
    (key,) = [value for value in gone["partitionValues"].values() if value in left] or [None]
    if key is not None:
        left[key] -= 3
    assert on_both(tmp_path, "delta:my lake", "zone", "plan", by="zone") == left
    DeltaTable(str(lake)).create_checkpoint()
    for log in (lake / "_delta_log").glob("*.json"):
        log.unlink()
    assert on_both(tmp_path, "delta:my lake", "zone", "floor", "day", by="zone") == left
    early = on_both(tmp_path, "delta:my lake", "day", "plan", by="plan", where="day = DATE '2024-01-01'")
    assert early == on_both(tmp_path, "delta:my lake", "floor", "plan", by="plan", where="floor = 0")


def test_positions_are_those_in_the_file_whatever_its_row_groups(cluster: Cluster, tmp_path: Path) -> None:
    """Also behind conditions, for which row groups and pages are passed over."""
    table = pa.table({"person": range(3000), "plan": ["a"] * 1500 + ["b"] * 1500})
    lake = tmp_path / "lake"
    write_deltalake(str(lake), table, writer_properties=WriterProperties(max_row_group_size=100))
    delta_log.require(lake, "deletionVectors")
    delta_log.delete(lake, [0, 99, 100, *range(1500, 2100), 2999])
    assert on_both(tmp_path, "delta:lake", "plan", by="plan") == {"a": 1497, "b": 899}
    assert on_both(tmp_path, "delta:lake", "plan", by="plan", where="plan = 'b'") == {"b": 899}


def test_added_renamed_and_dropped_columns(cluster: Cluster, tmp_path: Path) -> None:
    lake, table = tmp_path / "lake", pa.table({"person": [1, 2], "plan": ["a", "b"]})
    write_deltalake(str(lake), table, configuration=MODES["name"])

    def renamed(_: dict[str, Any], fields: list[dict[str, Any]]) -> None:
        fields[1]["name"] = "former"
        added = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-new"}
        fields.append({"name": "plan", "type": "string", "nullable": True, "metadata": added})

    def dropped(_: dict[str, Any], fields: list[dict[str, Any]]) -> None:
        del fields[1:]

    catalog = over(tmp_path, "delta:lake", "plan")
    first = Spark(catalog).digest(catalog.tables[0], {"any": ""})
    delta_log.describe_anew(lake, renamed)
    assert on_both(tmp_path, "delta:lake", "plan", by="plan") == {}, "not what the files have under the former name"
    assert Spark(catalog).digest(catalog.tables[0], {"any": ""}) != first
    delta_log.describe_anew(lake, dropped)
    with pytest.raises(DataFault, match="has no column plan"):
        Spark(catalog).rows(catalog.tables[0])


def test_a_column_that_was_added_is_null_in_older_files(cluster: Cluster, tmp_path: Path) -> None:
    table = pa.table({"person": [1, 2, 3], "plan": ["a", "b", "a"]})
    write_deltalake(str(tmp_path / "lake"), table)
    more = table.append_column("note", pa.array([5, 6, 7]))
    write_deltalake(str(tmp_path / "lake"), more, mode="append", schema_mode="merge")
    assert on_both(tmp_path, "delta:lake", "plan", "note", by="plan") == {"a": 4, "b": 2}
    assert on_both(tmp_path, "delta:lake", "plan", "note", by="plan", where="note IS NULL") == {"a": 2, "b": 1}


def hive(folder: Path) -> str:
    table = parted()
    for number, zone in enumerate(("east%27s", "50%25", "my zone", "a%2Fb", "__HIVE_DEFAULT_PARTITION__")):
        there = folder / "my lake {1}" / f"zone={zone}" / f"floor={number % 2}"
        there.mkdir(parents=True)
        pq.write_table(table.slice(number, number + 1).drop_columns(["zone", "floor"]), there / "f%20.parquet")
    return "my lake {1}/**/*.parquet"


def test_folders_name_columns_and_are_unquoted_once(cluster: Cluster, tmp_path: Path) -> None:
    source = hive(tmp_path)
    assert on_both(tmp_path, source, "zone", "plan", by="zone") == {"east's": 1, "50%": 2, "my zone": 3, "a/b": 4}
    where = "floor = 1"
    assert on_both(tmp_path, source, "zone", "floor", by="zone", where=where) == {"50%": 2, "a/b": 4}
    (tmp_path / "my lake {1}/zone=east%27s/floor=0").rename(tmp_path / "my lake {1}/zone=east%27s/floor=low")
    catalog = over(tmp_path, source, "zone", "floor")
    with pytest.raises(DataFault, match="floor"):
        Spark(catalog).rows(catalog.tables[0])


def test_a_version_differs_by_a_row_that_is_deleted_or_in_another_partition(cluster: Cluster, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_deltalake(str(lake), parted(), partition_by=["zone"])
    delta_log.require(lake, "deletionVectors")
    catalog, digests = over(tmp_path, "delta:lake", "zone", "plan"), list[str]()
    assert refresh_data(catalog) == 1

    def seen() -> str:
        return Spark(catalog).digest(catalog.tables[0], {"any": ""})

    digests.append(seen())
    delta_log.delete(lake, {1})
    digests.append(seen())
    delta_log.delete(lake, {1, 2}, file=-1)
    digests.append(seen())
    added = delta_log.files(lake)[0]
    other = {"zone": "a/b" if added["partitionValues"]["zone"] == "50%" else "50%"}
    delta_log.commit(lake, {"add": {**added, "partitionValues": other}})
    digests.append(seen())
    assert len(set(digests)) == 4
    delta_log.commit(lake)
    assert seen() == digests[-1], "a version of the table with the same rows is the same version of the data"
    assert refresh_data(catalog) == 2


@pytest.mark.parametrize("planted", [False, True])
def test_a_list_that_is_stale_answers_nothing(planted: bool, cluster: Cluster, tmp_path: Path) -> None:
    """Twin: an engine that keeps its first list answers with the row that is deleted since."""
    lake = tmp_path / "lake"
    write_deltalake(str(lake), parted())
    delta_log.require(lake, "deletionVectors")
    catalog = over(tmp_path, "delta:lake", "plan")
    question = bind("SELECT plan, COUNT(*) FROM visits GROUP BY plan", catalog).question
    kept = patch("lapwing.engines.spark.engine.listed", cache(listed)) if planted else nullcontext()
    with kept, spark.engine(catalog) as engine:
        digests = spark.digests(engine, question)
        first = engine.run(question, digests).cells
        delta_log.delete(lake, {1})
        with nullcontext() if planted else pytest.raises(EngineFault):
            assert engine.run(question, digests).cells == first


def test_twin_an_old_schema_is_not_what_duckdb_reads(cluster: Cluster, tmp_path: Path) -> None:
    """A reader with the names of the first version finds the values of a column that has another name since."""
    lake = tmp_path / "lake"
    write_deltalake(str(lake), pa.table({"person": [1, 2], "plan": ["a", "b"]}), configuration=MODES["name"])
    first = DeltaTable(str(lake), version=0)

    def swapped(_: dict[str, Any], fields: list[dict[str, Any]]) -> None:
        added = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-new"}
        fields[1] = {"name": "plan", "type": "string", "nullable": True, "metadata": added}

    delta_log.describe_anew(lake, swapped)
    assert on_both(tmp_path, "delta:lake", "plan", by="plan") == {}
    with (
        patch("lapwing.engines.spark.delta.fields_of", lambda table, mapped: fields_of(first, mapped)),
        pytest.raises(AssertionError),
    ):
        on_both(tmp_path, "delta:lake", "plan", by="plan")


BUGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "deleted rows are not joined": lambda: patch(
        "lapwing.engines.spark.cluster.rows_of",
        lambda session, root, paths, schema, beside: _rows_of(
            session, root, paths, schema, replace(beside, deleted={})
        ),
    ),
    "a path is unquoted twice": lambda: patch(
        "lapwing.engines.spark.delta.unquote", lambda text: unquote(unquote(text))
    ),
    "a row of a file comes twice": lambda: patch(
        "lapwing.engines.spark.cluster.rows_of",
        lambda session, root, paths, schema, beside: (rows := _rows_of(session, root, paths, schema, beside)).unionAll(
            rows
        ),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_twin_a_planted_bug_is_not_accepted(bug: str, cluster: Cluster, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_deltalake(str(lake), parted(), partition_by=["zone"])
    delta_log.require(lake, "deletionVectors")
    delta_log.delete(lake, {1})
    catalog = over(tmp_path, "delta:lake", "zone", "plan")
    with spark.engine(catalog) as engine:
        engine.digest(catalog.tables[0])
    with BUGS[bug](), spark.engine(catalog) as engine, pytest.raises(DataFault):
        engine.digest(catalog.tables[0])
