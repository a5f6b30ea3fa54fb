"""Delta tables by their features: read as the table says, or refused by the name of the feature.

`deltalake` writes tables with every feature that it has. What it does not write, `tests.support.sources.delta_log` adds
to the log by hand: deletion vectors, renamed and dropped columns, features that it does not know.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from deltalake.exceptions import DeltaError

from lapwing.catalog.source_address import read_address
from lapwing.errors import DataFault
from lapwing.sources import delta
from tests.support.sources import delta_log, rows
from tests.support.sources.rows import fetched, visits

ROWS = visits(60)
ALL = ROWS.schema.names
WITH_VECTORS = {"delta.enableDeletionVectors": "true"}
ODD = ["east's", "50%", "my zone", "a/b", "é=ü", None]


def lake(folder: Path, table: pa.Table = ROWS, **options: Any) -> Path:
    write_deltalake(str(folder), table, **options)
    return folder


def delivered(folder: Path, columns: list[str]) -> list[dict[str, Any]]:
    """Return the rows that the source delivers, which it counts alike."""
    with delta.state(read_address(f"delta:{folder.name}"), folder.parent) as state:
        found = state.batches((), columns).read_all()
        assert state.rows(()) == found.num_rows
        assert {column.name for column in state.columns(())} >= set(columns)
    return list(found.to_pylist())


def in_order(table: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, table))


def digest(folder: Path, source: str) -> str:
    return fetched(folder, source)[1].digests["visits"]


FEATURES = [getattr(TableFeatures, name) for name in dir(TableFeatures) if not name.startswith("_")]


@pytest.mark.parametrize("feature", FEATURES, ids=str)
def test_every_feature_that_deltalake_writes_is_read(feature: TableFeatures, tmp_path: Path) -> None:
    made = lake(tmp_path / "my lake")
    try:
        DeltaTable(str(made)).alter.add_feature(feature, allow_protocol_versions_increase=True)
    except DeltaError:
        pytest.skip("deltalake does not write it")
    if str(feature) == "TableFeatures.TimestampNanos":  # which deltalake writes and does not open
        with pytest.raises(DataFault, match="timestampNanos"):
            delivered(made, ALL)
        return
    assert in_order(delivered(made, ALL)) == in_order(ROWS.to_pylist())


UNREAD = ["fancyRead", "typeWidening", "typeWidening-preview", "vacuumProtocolCheck", "catalogManaged"]


@pytest.mark.parametrize("feature", UNREAD)
def test_a_feature_that_is_not_read_is_refused_by_its_name(feature: str, tmp_path: Path) -> None:
    made = lake(tmp_path / "lake")
    delta_log.require(made, feature)
    with pytest.raises(DataFault, match=feature), delta.state(read_address("delta:lake"), tmp_path):
        pass
    assert len(delivered_of(made, "delta:lake?version=0")) == ROWS.num_rows, "the version before does not use it"


def delivered_of(folder: Path, address: str) -> pa.Table:
    with delta.state(read_address(address), folder.parent) as state:
        return state.batches((), ["person"]).read_all()


@pytest.mark.parametrize("name", ["a%20b", "a[1]"])
def test_a_folder_that_the_client_takes_for_another_is_refused(name: str, tmp_path: Path) -> None:
    lake(tmp_path / "a b")
    lake(tmp_path / "c").rename(tmp_path / name)
    with pytest.raises(DataFault, match="Rename the folder"), delta.state(read_address(f"delta:{name}"), tmp_path):
        pass


def test_a_newer_protocol_is_refused_by_its_version(tmp_path: Path) -> None:
    delta_log.require(lake(tmp_path / "lake"), reader=4)
    with pytest.raises(DataFault, match="reader version 4"), delta.state(read_address("delta:lake"), tmp_path):
        pass


@pytest.mark.parametrize("beside", [False, True], ids=["in the log", "in a file"])
def test_deleted_rows_are_left_out_exactly(beside: bool, tmp_path: Path) -> None:
    made = lake(tmp_path / "my lake", configuration=WITH_VECTORS)
    write_deltalake(str(made), ROWS, mode="append")
    assert len(delivered(made, ["person"])) == 2 * ROWS.num_rows, "nothing is deleted yet"
    first = digest(tmp_path, "delta:my lake")
    deleted = {0, 7, 58, 59}
    delta_log.delete(made, deleted, beside=beside)
    left = pa.concat_tables([ROWS.take([place for place in range(60) if place not in deleted]), ROWS])
    assert in_order(delivered(made, ALL)) == in_order(left.to_pylist())
    pq.write_table(left, tmp_path / "left.parquet")
    second = digest(tmp_path, "delta:my lake")
    assert second == digest(tmp_path, "parquet:left.parquet") != first
    delta_log.delete(made, {*deleted, 8}, file=-1, beside=beside)
    assert digest(tmp_path, "delta:my lake") != second, "a neighbour, which lacks one row more"
    DeltaTable(str(made)).create_checkpoint()
    for log in (made / "_delta_log").glob("*.json"):
        log.unlink()
    assert len(delivered(made, ["person"])) == len(left) - 1, "what a checkpoint says"


@contextmanager
def _vectors_ignored(folder: Path) -> Iterator[Callable[[list[str]], pa.Table]]:
    """Read a table's files whole, as a reader does that passes over deletion vectors."""
    paths = [path.removeprefix("file://") for path in DeltaTable(str(folder)).file_uris()]
    yield lambda columns: ds.dataset(paths, format="parquet").to_table(columns)


def test_twin_a_deletion_vector_that_is_ignored_is_caught(tmp_path: Path) -> None:
    """What is delivered is counted against the log, so that such rows are not taken."""
    made = lake(tmp_path / "lake", configuration=WITH_VECTORS)
    delta_log.delete(made, {3, 4})
    with _vectors_ignored(made) as read, patch.object(DeltaTable, "scan", lambda self, columns: read(columns)):
        with pytest.raises(DataFault):
            fetched(tmp_path, "delta:lake")
        with pytest.raises(AssertionError):
            delivered(made, ["person"])


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_those_of_the_table(mode: str, tmp_path: Path) -> None:
    """Renamed, added and dropped ones, one under the name that another had; and partitions of any letters."""
    table = pa.table({"person": range(6), "plan": list("abcdef"), "zone": ODD, "old": [1] * 6})
    config = {"delta.columnMapping.mode": mode, "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    made = lake(tmp_path / "lake", table, partition_by=["zone"], configuration=config)
    assert in_order(delivered(made, table.column_names)) == in_order(table.to_pylist())

    def renamed(metadata: dict[str, Any], fields: list[dict[str, Any]]) -> None:
        person, plan, zone, _ = fields
        plan["name"], zone["name"] = "tariff", "area"
        added = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-new"}
        fields[:] = [person, plan, zone, {"name": "plan", "type": "long", "nullable": True, "metadata": added}]
        metadata["partitionColumns"] = ["area"]
        metadata["configuration"]["delta.columnMapping.maxColumnId"] = "9"

    delta_log.describe_anew(made, renamed)
    wanted = [
        {"person": row["person"], "tariff": row["plan"], "area": row["zone"], "plan": None} for row in table.to_pylist()
    ]
    assert in_order(delivered(made, ["person", "tariff", "area", "plan"])) == in_order(wanted)
    with delta.state(read_address("delta:lake"), tmp_path) as state:
        assert [column.name for column in state.columns(())] == ["person", "tariff", "area", "plan"]


def test_a_number_of_a_column_with_another_name_in_a_file_is_refused(tmp_path: Path) -> None:
    """`deltalake` looks for the name and reads NULL."""
    config = {"delta.columnMapping.mode": "id", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    made = lake(tmp_path / "my lake", pa.table({"person": [1], "zone": ["50%"]}), configuration=config)

    def moved(_: dict[str, Any], fields: list[dict[str, Any]]) -> None:
        fields[1]["metadata"]["delta.columnMapping.physicalName"] = "elsewhere"

    delta_log.describe_anew(made, moved)
    with pytest.raises(DataFault, match="columnMapping"), delta.state(read_address("delta:my lake"), tmp_path):
        pass


def test_columns_that_were_added_are_null_in_older_files(tmp_path: Path) -> None:
    made = lake(tmp_path / "lake", ROWS.drop_columns(["weight", "day"]))
    write_deltalake(str(made), ROWS, mode="append", schema_mode="merge")
    former = ROWS.set_column(3, ROWS.schema.field("weight"), pa.nulls(60, pa.float64()))
    former = former.set_column(5, ROWS.schema.field("day"), pa.nulls(60, pa.date32()))
    pq.write_table(pa.concat_tables([former, ROWS]), tmp_path / "both.parquet")
    assert digest(tmp_path, "delta:lake") == digest(tmp_path, "parquet:both.parquet")


def test_an_empty_value_of_a_partition_is_null(tmp_path: Path) -> None:
    """Delta's protocol says so of every type; `deltalake` reads it so in one of its two ways alone."""
    table = pa.table({"person": [1, 2, 3], "zone": ["", None, "x"]})
    for number, configuration in enumerate([{}, WITH_VECTORS]):
        made = lake(tmp_path / f"lake{number}", table, partition_by=["zone"], configuration=configuration)
        assert sorted(str(row["zone"]) for row in delivered(made, ["zone"])) == ["None", "None", "x"]


def test_rows_are_counted_where_the_log_has_no_numbers(tmp_path: Path) -> None:
    made = lake(tmp_path / "lake", configuration=WITH_VECTORS)
    (added,) = delta_log.files(made)
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    delta_log.commit(made, {"remove": removed})
    delta_log.commit(made, {"add": {**added, "stats": None}})
    assert len(delivered(made, ["person"])) == rows.visits(60).num_rows
