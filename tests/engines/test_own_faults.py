"""One question's end is its own: whatever became of it, the next of any kind is answered as if it had not been."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB, truncated_rows
from lapwing.engines.duckdb import database, held_keys, overlaps
from lapwing.engines.duckdb.database import QueryRunner
from lapwing.errors import EngineFault
from lapwing.query.bind.bind import bind
from tests.support.effort import only
from tests.support.engines.tables import HEAD, parquet, run

TABLES = """
[tables.orders]
source = "orders.parquet"
privacy_unit = "buyer"
max_rows_per_unit = 4
[tables.orders.columns]
shop = { type = "integer" }
paid = { type = "integer", lower = 0, upper = 9 }
town = { type = "string" }
[tables.shops]
source = "shops.parquet"
privacy_unit = "owner"
max_rows_per_unit = 9
[tables.shops.columns]
shop = { type = "integer" }
"""
ROWS = 3_000
SHARED = "SELECT COUNT(*, contribution_bounds_per_group => (0, 40)) AS n FROM orders o JOIN shops s ON o.shop = s.shop"
PRIVATE = "SELECT town, COUNT(*) AS n FROM orders GROUP BY town"
PLAIN = "SELECT SUM(paid) AS s FROM orders"
QUESTIONS = (PLAIN, PRIVATE, SHARED)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder, rows = tmp_path_factory.mktemp("market"), range(ROWS)
    orders = {
        "buyer": [row // 2 for row in rows],
        "shop": [row % 600 for row in rows],
        "paid": [row % 10 for row in rows],
        "town": [f"town {row % 50}" for row in rows],
    }
    parquet(folder, orders, "orders.parquet")
    parquet(folder, {"shop": list(range(600)), "owner": [row // 3 for row in range(600)]}, "shops.parquet")
    head = HEAD.replace("delta = 1e-6", "delta = 1e-6\ndelta_keys = 1e-7")
    return loads(head + TABLES, file="market.toml", folder=folder)


@pytest.fixture
def engine(market: Catalog) -> Iterator[DuckDB]:
    """An engine, where nothing is tidied up by chance: what a question leaves open stays open."""
    engine = DuckDB(market)
    gc.collect()
    gc.disable()
    yield engine
    gc.enable()
    engine.close()


def answered(engine: DuckDB, market: Catalog) -> list[Any]:
    """Return what every kind of question finds."""
    exact = [engine.run(q, {t.name: engine.digest(t) for t in q.lineage}) for q in plans(market)]
    return [(found.cells, found.holders and sorted(found.holders.named())) for found in exact]


def plans(market: Catalog) -> list[Any]:
    return [bind(text, market).question for text in QUESTIONS]


# ---- ways to end -----------------------------------------------------------------------------------------------------


def _half_read(error: BaseException) -> Callable[[pa.RecordBatchReader], Any]:
    """Fail with most of an answer still to be read."""

    def take(reader: pa.RecordBatchReader) -> Any:
        reader.read_next_batch()
        raise error

    return take


def too_much(patch: pytest.MonkeyPatch) -> None:
    """There are more sets of units than are taken."""
    patch.setattr(truncated_rows, "MOST_TUPLES", 100)
    patch.setattr(held_keys, "counted", _half_read(MemoryError()))


def out_of_memory(patch: pytest.MonkeyPatch) -> None:
    """The process runs out of memory over what it was handed."""
    for module, name in ((overlaps, "taken"), (held_keys, "counted")):
        patch.setattr(module, name, _half_read(MemoryError()))
    patch.setattr(QueryRunner, "__call__", _instead("SELECT list(i) FROM range(100000000000) AS t(i)"))


def unforeseen(patch: pytest.MonkeyPatch) -> None:
    """Something is wrong that nobody thought of."""
    for module, name in ((overlaps, "taken"), (held_keys, "counted")):
        patch.setattr(module, name, _half_read(RuntimeError("unforeseen")))
    patch.setattr(QueryRunner, "__call__", _instead("SELECT error('unforeseen')"))


def stopped(patch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while the rows are read."""
    for module, name in ((overlaps, "taken"), (held_keys, "counted")):
        patch.setattr(module, name, _half_read(KeyboardInterrupt()))
    patch.setattr(QueryRunner, "__call__", _raising(KeyboardInterrupt()))


def out_of_time(patch: pytest.MonkeyPatch) -> None:
    """The time limit comes while the engine works."""
    slow = "SELECT COUNT(*) FROM range(10000000) AS a(i), range(100000) AS b(j) WHERE i * j % 7 = 3"
    reading = QueryRunner.columns
    patch.setattr(QueryRunner, "__call__", _instead(slow))
    patch.setattr(QueryRunner, "columns", lambda self, _query, take: reading(self, slow, take))


def _instead(query: str) -> Callable[[QueryRunner, str], Any]:
    """Ask something else than any question over the rows of the tables."""
    asking = QueryRunner.__call__
    return lambda self, text: asking(self, query if "kept" in text or "WITH" in text else text)


def _raising(error: BaseException) -> Callable[[QueryRunner, str], Any]:
    def fail(self: QueryRunner, text: str) -> Any:
        raise error

    return fail


ENDS = (too_much, out_of_memory, unforeseen, stopped, out_of_time)


@pytest.mark.parametrize("end", only([4], ENDS), ids=lambda end: end.__name__)
@pytest.mark.parametrize("text", only([2], QUESTIONS), ids=["plain", "private keys", "shared"])
def test_the_next_questions_are_answered_after(
    text: str, end: Callable[[pytest.MonkeyPatch], None], engine: DuckDB, market: Catalog
) -> None:
    before = answered(engine, market)
    question = bind(text, market).question
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "BATCH", 64)
        patch.setattr(engine._database, "_seconds", 0.2 if end is out_of_time else 1.0)  # all cores work until then
        end(patch)
        if (text, end) == (PLAIN, too_much):
            run(engine, question)  # a plain question has no sets of units: it ends by being answered
        else:
            with pytest.raises((EngineFault, KeyboardInterrupt)):
                run(engine, question)
    assert answered(engine, market) == before
