"""Which rows exist on Spark: a function of each unit's own rows, whatever else there is, however files are cut."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.spark import cleaned
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.engine import Spark
from tests.support.effort import SEED, is_long
from tests.support.engines import spark
from tests.support.query.neighbours import awkward_row
from tests.support.query.neighbours import catalog as of_neighbours
from tests.support.replay import SCHEMA, Row

MOST = 2
WORLDS = 20 if is_long() else 2


def draw(number: int) -> list[Row]:
    """Rows of some people, of whom most have more than they may, and equal ones; and of nobody."""
    chance = random.Random(f"spark {SEED} {number}")
    people = [None, *range(1, 9)]
    rows = [awkward_row(chance, person) for person in people for _ in range(chance.randrange(1, 6))]
    return rows + [dict(row) for row in chance.sample(rows, 8)]


def write(rows: Sequence[Row], folder: Path, chance: random.Random) -> None:
    """Write rows into some files, in some order."""
    folder.mkdir(parents=True)
    shuffled = chance.sample(list(rows), len(rows))
    files = chance.randrange(1, 5)
    for place in range(files):
        table = pa.Table.from_pylist(shuffled[place::files], schema=SCHEMA)
        pq.write_table(table, folder / f"{place}.parquet", row_group_size=chance.randrange(1, 9))


def over(folder: Path, catalog: Catalog) -> Catalog:
    table = replace(catalog.tables[0], source="*.parquet", rows_at_most=1000)
    return spark.on_spark(replace(catalog, tables=(table,), public_tables=(), folder=folder))


def kept(catalog: Catalog, engine: Spark, cluster: Cluster) -> dict[Any, Counter[tuple[str, ...]]]:
    """Return the rows that exist, as a bag a unit."""
    table = catalog.tables[0]
    found = engine._describe(table)
    view = cluster.read(found.paths, ", ".join(f"`{name}` {kind}" for name, kind in found.types.items()))
    bags: dict[Any, Counter[tuple[str, ...]]] = {}
    for unit, *values in cluster.rows(cleaned.rows_of(table, view, found.types, True)):
        bags.setdefault(unit, Counter())[tuple(map(repr, values))] += 1
    cluster.forget(view)
    return bags


def strayed(rows: list[Row], without: int, catalog: Catalog, folder: Path, cluster: Cluster) -> list[Any]:
    """Return whose kept rows are others when a unit is not there, or rows lie otherwise; or who has too many."""
    chance, found = random.Random(SEED), []
    for name, some in (("whole", rows), ("less", [row for row in rows if row["person"] != without])):
        write(some, folder / name, chance)
        there = over(folder / name, catalog)
        with spark.engine(there) as engine:
            found.append(kept(there, engine, cluster))
    one, other = found
    too_many = [unit for unit, bag in one.items() if bag.total() > MOST]
    return too_many + [
        unit for unit in one.keys() | other.keys() if unit != without and one.get(unit) != other.get(unit)
    ]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return of_neighbours(tmp_path_factory.mktemp("neighbours"), rows=MOST)


@pytest.mark.parametrize("number", range(WORLDS))
def test_what_is_kept_of_a_unit_is_a_function_of_its_own_rows(
    number: int, catalog: Catalog, cluster: Cluster, tmp_path: Path
) -> None:
    assert strayed(draw(number), 1 + number % 8, catalog, tmp_path, cluster) == []


@pytest.mark.long  # the short run has one of these in test_replay
@pytest.mark.parametrize(
    "order", ["monotonically_increasing_id()", "spark_partition_id(), input_file_name(), 1", "rand()", "1"]
)
def test_an_order_by_anything_else_is_found(
    order: str, catalog: Catalog, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_place(table: Any, rows: str, *_: Sequence[str]) -> str:
        unit, names = cleaned.unit_name(table), ", ".join(f"`{column.name}`" for column in table.columns)
        value = f"concat({order})" if "," in order else order
        numbered = f"row_number() OVER (PARTITION BY {unit} ORDER BY o) AS place"
        placed = f"SELECT *, {numbered} FROM (SELECT *, {value} AS o FROM ({rows}))"
        return f"SELECT {unit}, {names} FROM ({placed}) WHERE place <= {table.max_rows_per_unit}"

    monkeypatch.setattr(cleaned, "kept", by_place)
    found = [strayed(draw(number), 1 + number % 8, catalog, tmp_path / str(number), cluster) for number in range(4)]
    assert any(found)
