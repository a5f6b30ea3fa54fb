"""How a catalog says that stored values are read, on Spark: what DuckDB and Python read."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.toml import loads
from lapwing.engines.spark import cleaned
from lapwing.engines.spark.cluster import Cluster
from tests.engines.test_stored_values import CODES, kept_by_conditions
from tests.engines.test_stored_values import read as on_duckdb
from tests.support.effort import only, some
from tests.support.engines import spark
from tests.support.engines.stored_values import CASES, CATALOG, Case, awkward_texts, plain


def read(cases: Mapping[str, Case], folder: Path, cluster: Cluster) -> dict[str, list[Any]]:
    """Return what is read of the values of each case, as columns of one table: short ones end with NULL."""
    longest = max(len(case.stored) for case in cases.values())
    columns = {f"x{place}": case for place, case in enumerate(cases.values())}
    stored = {
        name: pa.concat_arrays([case.stored, pa.nulls(longest - len(case.stored), case.stored.type)])
        for name, case in columns.items()
    }
    pq.write_table(pa.table({"place": range(longest), **stored}), folder / "t.parquet")
    entries = "".join(f"{name} = {{ {case.entry} }}\n" for name, case in columns.items())
    catalog = spark.on_spark(loads(CATALOG + entries, file="any.toml", folder=folder))
    with spark.engine(catalog) as engine:
        types = engine._describe(catalog.tables[0]).types
    read_in = ", ".join(f"{name} {types[name]}" for name in columns)
    view = cluster.read([str(folder / "t.parquet")], f"place BIGINT, {read_in}")
    cleaned_columns = (cleaned.clean(replace(case.column, name=name), types[name]) for name, case in columns.items())
    rows = sorted(cluster.rows(f"SELECT place, {', '.join(cleaned_columns)} FROM {view}"), key=lambda row: row[0])
    cluster.forget(view)
    values = zip(*rows, strict=True)
    next(values)  # the places
    return {
        name: [plain(value) for value in found[: len(case.stored)]]
        for (name, case), found in zip(cases.items(), values, strict=True)
    }


def test_spark_reads_stored_values_as_duckdb_does(tmp_path: Path, cluster: Cluster) -> None:
    cases = {
        name: replace(case, stored=pa.array([*case.stored.to_pylist(), *awkward_texts(40)]))
        if pa.types.is_string(case.stored.type)
        else case
        for name, case in some(2, CASES.items())
    }
    odd = []
    for name, found in read(cases, tmp_path, cluster).items():
        stored = cases[name].stored
        if found != (there := on_duckdb(cases[name].column, stored)):
            odd += [(name, *pair) for pair in zip(stored.to_pylist(), found, there, strict=True) if pair[1] != pair[2]]
    assert not odd, odd[:10]


def test_a_twin_that_ignores_how_values_are_read_is_seen(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES["codes in integers"]
    monkeypatch.setattr(cleaned, "read", lambda column, physical: cleaned._read(column, physical, f"`{column.name}`"))
    assert read({"codes": case}, tmp_path, cluster)["codes"] != on_duckdb(case.column, case.stored)


@pytest.mark.parametrize("kind", only([1], [pa.int64(), pa.string()]))
def test_a_code_for_no_answer_is_null_in_conditions(kind: pa.DataType, tmp_path: Path, cluster: Cluster) -> None:
    engine = 'engine = "spark"\ncluster = "local[2]"'
    codes = some(3, CODES)
    assert kept_by_conditions(kind, tmp_path, engine, codes) == [count for _, count in codes]
