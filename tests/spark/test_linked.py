"""Linked tables on Spark: the same integers as on DuckDB where nothing is cut off, and neighbours within the price."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.spark import relations
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.engine import Spark
from lapwing.errors import DataFault
from lapwing.query.bind.bind import bind
from tests.support.effort import SEED, is_long
from tests.support.engines import spark
from tests.support.engines.tables import digests
from tests.support.query.printing import print_otherwise
from tests.support.query.worlds import moved_too_far

TEXT = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.customers]
source = "customers.parquet"
privacy_unit = "who"
max_rows_per_unit = {customers}
[tables.customers.columns]
ck = {{ type = "integer" }}
plan = {{ type = "string", values = ["a", "b"] }}
age = {{ type = "integer", lower = 0, upper = 110 }}
[tables.orders]
source = "orders.parquet"
link = {{ table = "customers", on = {{ ock = "ck" }} }}
max_rows_per_unit = {orders}
[tables.orders.columns]
ock = {{ type = "integer" }}
kind = {{ type = "string", values = ["x", "y"] }}
pay = {{ type = "decimal", lower = 0, upper = 50, step = 0.01 }}
"""
QUESTIONS = [
    "SELECT kind, COUNT(*), SUM(pay), COUNT(DISTINCT unit_of) FROM (SELECT kind, pay, kind AS unit_of FROM orders) AS o"
    " GROUP BY kind",
    "SELECT plan, kind, COUNT(*), SUM(pay), AVG(age) FROM orders JOIN customers ON ock = ck GROUP BY plan, kind",
    "SELECT plan, COUNT(*), COUNT(pay) FROM customers LEFT JOIN orders ON ock = ck AND pay > 10 GROUP BY plan",
    "SELECT COUNT(*), SUM(b.age) FROM customers AS a JOIN customers AS b ON a.who = b.who AND a.plan = b.plan",
    "SELECT COUNT(*) FROM customers WHERE ck IN (SELECT ock FROM orders WHERE kind = 'x')",
    "SELECT COUNT(*) FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders WHERE ock = ck AND pay > age)",
]  # fmt: skip


def write(folder: Path, number: int, without: int | None = None) -> None:
    """Write customers, of whom some have two rows, and their orders, some of nobody; keys are unique."""
    chance = random.Random(f"{SEED} {number}")
    people = [1, 1, 2, 3, 3, 4, 5, 6, None]
    customers = [
        {"who": who, "ck": place, "plan": chance.choice(["a", "b", None]), "age": chance.choice([3, 30, 200, None])}
        for place, who in enumerate(people)
    ]
    orders = [
        {
            "ock": chance.choice([None, *range(11)]),
            "kind": chance.choice("xyz"),
            "pay": chance.choice([0.5, 7, 99, None]),
        }
        for _ in range(60)
    ]
    customers = [row for row in customers if without is None or row["who"] != without]
    chance = random.Random()
    kinds = {"who": pa.int64(), "ck": pa.int64(), "plan": pa.string(), "age": pa.int32()}
    shapes = {"customers": kinds, "orders": {"ock": pa.int64(), "kind": pa.string(), "pay": pa.float64()}}
    for name, rows in (("customers", customers), ("orders", orders)):
        table = pa.Table.from_pylist(chance.sample(rows, len(rows)), schema=pa.schema(list(shapes[name].items())))
        pq.write_table(table, folder / f"{name}.parquet")


def catalog(folder: Path, customers: int, orders: int) -> Catalog:
    return loads(TEXT.format(customers=customers, orders=orders), file="shop", folder=folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("shop")
    write(folder, 0)
    return catalog(folder, 9, 99)


@pytest.fixture(scope="module")
def ours(whole: Catalog, cluster: Cluster) -> Iterator[Spark]:
    with spark.engine(spark.on_spark(whole)) as engine:
        yield engine


def test_both_engines_find_the_same(whole: Catalog, ours: Spark) -> None:
    theirs = DuckDB(whole)
    for text in QUESTIONS if is_long() else QUESTIONS[1::2]:
        other, own = (bind(text, one).question for one in (whole, spark.on_spark(whole)))
        ours.capabilities.require(own)
        wanted = spark.found(theirs.run(other, digests(theirs, other)))
        assert spark.found(spark.run(ours, own)) == wanted, text
    theirs.close()


def moved(folder: Path, number: int) -> list[str]:
    exact: list[list[Any]] = []
    for name, without in (("whole", None), ("less", 1 + number % 6)):
        (folder / name).mkdir(parents=True)
        write(folder / name, number, without)
        there = spark.on_spark(catalog(folder / name, 1, 2))
        with spark.engine(there) as engine:
            asked = [bind(text, there).question for text in QUESTIONS]
            exact.append([spark.run(engine, question) for question in asked])
    return [
        far for q, one, other in zip(asked, *exact, strict=True) for far in moved_too_far(q, one, other, "add_remove")
    ]


@pytest.mark.long
def test_neighbours_are_no_further_apart_than_is_charged_for(cluster: Cluster, tmp_path: Path) -> None:
    assert moved(tmp_path, 1) == []


@pytest.mark.long
def test_a_join_of_other_units_rows_is_found(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, anybody = "ON ours.`unit` = theirs.", "ON TRUE OR ours.`unit` = theirs."
    print_otherwise(lambda text: text.replace(own, anybody), monkeypatch, relations)
    assert any(moved(tmp_path / str(number), number) for number in range(6))


def test_a_key_that_repeats_is_no_key(cluster: Cluster, tmp_path: Path) -> None:
    write(tmp_path, 0)
    table = pq.read_table(tmp_path / "customers.parquet")
    pq.write_table(pa.concat_tables([table, table.filter(pc.equal(table["who"], 2))]), tmp_path / "customers.parquet")
    there = spark.on_spark(catalog(tmp_path, 9, 99))
    with spark.engine(there) as engine, pytest.raises(DataFault, match="is not unique"):
        engine.digest(there.tables[0])
