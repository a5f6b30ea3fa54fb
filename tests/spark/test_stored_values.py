"""How a catalog says that stored values are read, on Spark: what DuckDB and Python read."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog, Column
from lapwing.catalog.toml import loads
from lapwing.engines.spark import cleaned
from lapwing.engines.spark.cluster import Cluster
from tests.engines.test_stored_values import CODES, kept_by_conditions
from tests.engines.test_stored_values import read as on_duckdb
from tests.support.engines import spark
from tests.support.engines.stored_values import CASES, CATALOG, awkward_texts, plain


def catalog_of(entry: str, folder: Path) -> Catalog:
    return spark.on_spark(loads(f"{CATALOG}x = {{ {entry} }}\n", file="any.toml", folder=folder))


def read(column: Column, entry: str, stored: pa.Array, folder: Path, cluster: Cluster) -> list[Any]:
    folder.mkdir()
    pq.write_table(pa.table({"place": range(len(stored)), "x": stored}), folder / "t.parquet")
    with spark.engine(catalog_of(entry, folder)) as engine:
        table = engine._describe(catalog_of(entry, folder).tables[0])
    kind = table.types["x"]
    view = cluster.read([str(folder / "t.parquet")], f"place BIGINT, x {kind}")
    rows = cluster.rows(f"SELECT place, {cleaned.clean(column, kind)} FROM {view}")
    cluster.forget(view)
    return [plain(value) for _, value in sorted(rows, key=lambda row: row[0])]


def test_spark_reads_stored_values_as_duckdb_does(tmp_path: Path, cluster: Cluster) -> None:
    odd = []
    for place, (name, case) in enumerate(CASES.items()):
        stored = case.stored
        if pa.types.is_string(stored.type):
            stored = pa.array([*stored.to_pylist(), *awkward_texts(40)])
        found = read(case.column, case.entry, stored, tmp_path / str(place), cluster)
        if found != (there := on_duckdb(case.column, stored)):
            odd += [(name, *pair) for pair in zip(stored.to_pylist(), found, there, strict=True) if pair[1] != pair[2]]
    assert not odd, odd[:10]


def test_a_twin_that_ignores_how_values_are_read_is_seen(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES["codes in integers"]
    monkeypatch.setattr(cleaned, "read", lambda column, physical: cleaned._read(column, physical, "`x`"))
    assert read(case.column, case.entry, case.stored, tmp_path / "t", cluster) != on_duckdb(case.column, case.stored)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_a_code_for_no_answer_is_null_in_conditions(kind: pa.DataType, tmp_path: Path, cluster: Cluster) -> None:
    engine = 'engine = "spark"\ncluster = "local[2]"'
    assert kept_by_conditions(kind, tmp_path, engine) == [count for _, count in CODES]
