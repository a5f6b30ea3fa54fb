"""The shipped data set is what its script makes of the source, and its catalog fits it."""

import importlib.util
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from lapwing.catalog.draft import draft
from lapwing.catalog.toml import load
from lapwing.datasets import rand_hie_catalog, rand_hie_data

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_rand_hie.py"


def remade(folder: Path) -> Path:
    specification = importlib.util.spec_from_file_location("make_rand_hie", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    path = module.main(folder)
    assert isinstance(path, Path)
    return path


@pytest.mark.long
def test_the_script_makes_the_shipped_file(tmp_path: Path) -> None:
    first = remade(tmp_path)
    shipped = pyarrow.parquet.read_table(rand_hie_data())
    assert pyarrow.parquet.read_table(first).equals(shipped)
    content = first.read_bytes()
    assert remade(tmp_path).read_bytes() == content


def test_rows_and_people() -> None:
    rows = pyarrow.parquet.read_table(rand_hie_data())
    per_person = pa.TableGroupBy(rows, "person_id").aggregate([("year", "count"), ("year", "count_distinct")])
    assert (rows.num_rows, per_person.num_rows) == (20_190, 5_912)
    assert set(per_person["year_count"].to_pylist()) == {1, 2, 3, 4, 5}
    assert per_person["year_count"].equals(per_person["year_count_distinct"])
    assert rand_hie_data().stat().st_size < 400_000


def test_only_education_has_missing_values() -> None:
    rows = pyarrow.parquet.read_table(rand_hie_data())
    assert {name: rows[name].null_count for name in rows.column_names if rows[name].null_count} == {"education": 4}


def test_the_catalog_fits_the_file() -> None:
    catalog = load(rand_hie_catalog())
    table = catalog.tables[0]
    assert catalog.source_path(table) == rand_hie_data()
    found = draft(rand_hie_data(), privacy_unit="person_id", epsilon=3, delta=1e-6, max_rows_per_unit=5).catalog
    types = {column.name: column.type for column in found.tables[0].columns}
    assert {column.name: column.type for column in table.columns} == types
    assert (table.max_rows_per_unit, catalog.budget.measure) == (5, "gdp")


def test_every_key_is_listed() -> None:
    table = load(rand_hie_catalog()).tables[0]
    rows = pyarrow.parquet.read_table(rand_hie_data())
    for column in table.columns:
        if column.values is not None:
            assert set(rows[column.name].to_pylist()) == set(column.values), column.name


def test_few_values_are_outside_the_bounds() -> None:
    """Bounds are public choices; they would be poor ones if they cut off much."""
    table = load(rand_hie_catalog()).tables[0]
    with duckdb.connect() as connection:
        for column in table.columns:
            if column.bounded:
                question = f"SELECT count(*) FROM '{rand_hie_data()}' WHERE {column.name} NOT BETWEEN ? AND ?"
                outside = connection.execute(question, [float(column.lower), float(column.upper)]).fetchone()  # type: ignore[arg-type]
                assert outside is not None
                assert outside[0] < 0.006 * 20_190, column.name


def test_every_column_is_explained() -> None:
    text = rand_hie_catalog().with_name("README.md").read_text(encoding="utf-8")
    for column in load(rand_hie_catalog()).tables[0].columns:
        assert f"| `{column.name}` |" in text
