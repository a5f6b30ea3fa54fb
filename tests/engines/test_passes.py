"""A question in several passes gives what it gives in one; bounded memory is enough for many units."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import cleaned
from lapwing.engines.duckdb import engine as engine_module
from lapwing.engines.duckdb import queries as asking
from lapwing.engines.duckdb.engine import MEMORY
from tests.support.effort import only
from tests.support.engines.tables import ask, catalog

COLUMNS = {
    "region": '{ type = "string", values = ["r0", "r1", "r2"] }',
    "cost": '{ type = "decimal", lower = 0, upper = 100, step = 0.01 }',
}
QUESTIONS = [
    "SELECT COUNT(*), COUNT(DISTINCT person), SUM(cost), AVG(cost) FROM t",
    "SELECT region, COUNT(*), COUNT(DISTINCT person), SUM(cost) FROM t WHERE cost > 10 GROUP BY region",
]


def generated(folder: Path, rows: int, people: int) -> Catalog:
    with duckdb.connect() as connection:
        select = f"""SELECT hash(i) % {people} AS person, 'r' || (hash(i + 1) % 4) AS region,
                            (hash(i + 2) % 12000) / 100 AS cost FROM range({rows}) AS t(i)"""
        connection.execute(f"COPY ({select}) TO '{folder}/t.parquet' (FORMAT parquet)")
    return catalog(folder, COLUMNS, unit="person", rows=3)


@pytest.mark.parametrize("text", only((1,), QUESTIONS))
def test_passes_add_up(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = generated(tmp_path, 5_000, 400)
    engine = DuckDB(found)
    once = ask(engine, found, text)
    for passes in (2, 3, 7):
        monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_, passes=passes: passes)
        assert ask(engine, found, text) == once
    engine.close()


def test_a_pass_that_is_left_out_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = generated(tmp_path, 5_000, 400)
    engine = DuckDB(found)
    once = ask(engine, found, QUESTIONS[0])
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: 3)
    printed = cleaned.layer
    monkeypatch.setattr(
        engine_module,
        "layer",
        lambda t, s, reads, part: printed(t, s, reads, cleaned.Pass(index=min(part.index, 1), of=3)),
    )
    assert ask(engine, found, QUESTIONS[0]) != once
    engine.close()


@pytest.mark.long
@pytest.mark.parametrize("text", only((0,), QUESTIONS))
def test_rows_of_all_passes_may_be_gathered_first(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = generated(tmp_path, 5_000, 400)
    engine = DuckDB(found)
    once = ask(engine, found, text)
    monkeypatch.setattr(engine_module, "is_additive", lambda _: False)
    for passes in (1, 2, 7):
        monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_, passes=passes: passes)
        assert ask(engine, found, text) == once
    assert engine.fetch("SELECT COUNT(*) FROM duckdb_tables()") == [(0,)]
    engine.close()


@pytest.mark.long
def test_cells_that_do_not_add_up_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Different costs, which people share, are no sum over people: that is what gathering is for."""
    found = generated(tmp_path, 5_000, 400)
    engine = DuckDB(found)
    distinct = 'SELECT COUNT(DISTINCT cost) AS measure0 FROM "kept t"'
    monkeypatch.setattr(asking, "answer", lambda _: distinct)
    text = "SELECT COUNT(*) FROM t"
    once = ask(engine, found, text)
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: 3)
    assert ask(engine, found, text) != once
    monkeypatch.setattr(engine_module, "is_additive", lambda _: False)
    assert ask(engine, found, text) == once
    engine.close()


@pytest.mark.long
def test_gathered_rows_spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = generated(tmp_path, 2_000_000, 200_000)
    small, large = DuckDB(found, memory=64_000_000), DuckDB(found)
    expected = ask(large, found, QUESTIONS[1])
    monkeypatch.setattr(engine_module, "is_additive", lambda _: False)
    assert ask(small, found, QUESTIONS[1]) == expected
    small.close()
    large.close()


def test_more_rows_take_more_passes(tmp_path: Path) -> None:
    found = generated(tmp_path, 100, 10)
    table = found.tables[0]
    passes = [cleaned.passes_for({table: rows}, MEMORY) for rows in (0, 100, 10**7, 10**8, 10**9)]
    assert passes == [1, 1, 1, 10, 94]
    assert cleaned.passes_for({table: 10**7, replace(table, name="other"): 10**8}, MEMORY) == 11


@pytest.mark.long
def test_many_units_fit_a_small_memory(tmp_path: Path) -> None:
    """Two million rows of 200,000 people in 64 MB: the bounding sort alone would take more."""
    found = generated(tmp_path, 2_000_000, 200_000)
    small, large = DuckDB(found, memory=64_000_000), DuckDB(found)
    assert small._passes(found.tables) > 1
    assert ask(small, found, QUESTIONS[1]) == ask(large, found, QUESTIONS[1])
    small.close()
    large.close()


@pytest.mark.long
def test_rows_are_kept_alike_whatever_the_threads_and_the_order(tmp_path: Path) -> None:
    found = generated(tmp_path, 20_000, 500)
    wanted = None
    for threads, order in ((1, "cost"), (2, "hash(cost)"), (4, "region, person")):
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE t AS SELECT * FROM '{tmp_path}/t.parquet'")
            path = f"{tmp_path}/t.parquet"
            connection.execute(
                f"COPY (SELECT * FROM t ORDER BY {order}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
            )
        engine = DuckDB(found, threads=threads)
        cells = ask(engine, found, QUESTIONS[1])
        engine.close()
        assert wanted in (None, cells)
        wanted = cells
