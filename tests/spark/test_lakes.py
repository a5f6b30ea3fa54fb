"""Tables of Delta Lake and Iceberg on Spark: lists of files. What stands beside these has tests of its own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lapwing.catalog.condition import Condition
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.engine import Spark
from lapwing.errors import CatalogError, DataFault
from lapwing.opening import refresh_data
from lapwing.query.bind.bind import bind
from tests.support.cli.command import Run
from tests.support.cli.command import run as run
from tests.support.engines import spark
from tests.support.sources import delta_log, rows

TEXT = """
[dataset]
name = "visits"
engine = "spark"
cluster = "local[2]"
ledger = "sqlite:visits.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "{source}"
privacy_unit = "person"
max_rows_per_unit = 99
[tables.visits.columns]
plan = {{ type = "string", values = ["a", "b"] }}
"""
SOME = pa.table({"person": [1, 1, 2], "plan": ["a", "b", "a"]})
MORE = pa.table({"person": [3, 4], "plan": ["b", "b"]})


def over(folder: Path, source: str) -> Catalog:
    return loads(TEXT.format(source=source), file="visits", folder=folder)


def counted(catalog: Catalog) -> dict[Any, tuple[int, ...]]:
    question = bind("SELECT plan, COUNT(*) FROM visits GROUP BY plan", catalog).question
    with spark.engine(catalog) as engine:
        return dict(spark.run(engine, question).cells)


def test_a_version_of_a_delta_table_is_its_files(cluster: Cluster, tmp_path: Path) -> None:
    address = rows.fill_delta(tmp_path / "lake", SOME)
    first = Spark(over(tmp_path, address)).digest(over(tmp_path, address).tables[0], {"any": ""})
    rows.fill_delta(tmp_path / "lake", MORE)
    newest, pinned = (over(tmp_path, f"{address}{version}") for version in ("", "?version=0"))
    assert counted(newest) == {("a",): (2,), ("b",): (3,)}
    assert counted(pinned) == {("a",): (2,), ("b",): (1,)}
    assert Spark(pinned).digest(pinned.tables[0], {"any": ""}) == first
    assert Spark(newest).digest(newest.tables[0], {"any": ""}) != first
    assert refresh_data(newest) == refresh_data(newest) == 1  # nothing is fetched, and nothing is new
    rows.fill_delta(tmp_path / "lake", MORE)
    assert refresh_data(newest) == 2
    assert not list(tmp_path.glob("*snapshot*"))


def test_data_refresh_fetches_nothing_for_spark(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """It reads the newest version of the table where it is."""
    monkeypatch.chdir(tmp_path)
    address = rows.fill_delta(tmp_path / "lake", SOME)
    (tmp_path / "lapwing.toml").write_text(TEXT.format(source=address))
    found = [run("data", "refresh")]
    rows.fill_delta(tmp_path / "lake", MORE)
    found.append(run("data", "refresh"))
    assert [(one.out, one.err) for one in found] == [
        (f"Version {version} is current from now on.\n", "") for version in (1, 2)
    ]
    assert not list(tmp_path.glob("*snapshot*"))


@pytest.mark.parametrize("last", ["vacuumProtocolCheck", "deletionVectors"])
def test_features_that_hide_nothing_are_read_in_a_folder_of_any_name(
    cluster: Cluster, last: str, tmp_path: Path
) -> None:
    address = rows.fill_delta(tmp_path / "my é 50% lake", SOME)
    delta_log.require(tmp_path / "my é 50% lake", "timestampNtz", "variantType", "v2Checkpoint", last)
    assert counted(over(tmp_path, address)) == {("a",): (2,), ("b",): (1,)}


@pytest.mark.parametrize("feature", ["typeWidening", "fancyRead", "reader 4"])
def test_a_feature_that_hides_something_is_refused_by_its_name(feature: str, tmp_path: Path) -> None:
    address = rows.fill_delta(tmp_path / "lake", SOME)
    catalog = over(tmp_path, address)
    if feature == "reader 4":
        delta_log.require(tmp_path / "lake", reader=4)
    else:
        delta_log.require(tmp_path / "lake", feature)
    with pytest.raises(DataFault, match=feature.replace("reader", "reader version")):
        Spark(catalog).rows(catalog.tables[0])


def test_a_snapshot_of_an_iceberg_table_is_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.know_iceberg(tmp_path, monkeypatch)
    address = rows.fill_iceberg(tmp_path, SOME)
    rows.fill_iceberg(tmp_path, MORE)
    catalog = over(tmp_path, address)
    engine = Spark(catalog)
    assert engine.rows(catalog.tables[0]) == 5
    assert len(engine._describe(catalog.tables[0]).paths) == 2
    from pyiceberg.catalog import load_catalog

    lake = load_catalog("lake", **rows.iceberg_catalog(tmp_path))
    with lake.load_table("clinic.visits").update_schema() as update:
        update.rename_column("plan", "tariff")
    lake.close()
    with pytest.raises(DataFault, match="has no column plan"):
        engine.rows(catalog.tables[0])


def test_what_is_no_list_of_files_here_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="Parquet"):
        Spark(over(tmp_path, "postgresql://reader@db/clinic#visits"))
    (table,) = over(tmp_path, "delta:lake").tables
    with pytest.raises(CatalogError, match="has no where"):
        Spark(
            replace(
                over(tmp_path, "delta:lake"), tables=(replace(table, where=(Condition(column="plan", values=("a",)),)),)
            )
        )
    catalog = over(tmp_path, "delta:nowhere")
    with pytest.raises(DataFault, match="cannot be opened"):
        Spark(catalog).rows(catalog.tables[0])
