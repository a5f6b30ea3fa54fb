"""Large tables: units counted by one mask each are as many as those that are told apart in every cell."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import engine as engine_module
from lapwing.engines.duckdb import queries, unit_masks
from lapwing.query.bind.bind import bind
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Key
from tests.support.effort import one_in
from tests.support.engines.tables import ask, catalog


def _values(count: int) -> str:
    names = [f"k{i}" for i in range(count)]
    return f'{{ type = "string", values = {names} }}'


COLUMNS = {
    "few": '{ type = "string", values = ["k3", "k1"] }',
    "k64": _values(64),
    "k65": _values(65),
    "sex": '{ type = "string", values = ["f", "m"], other = "else" }',
    "size": '{ type = "integer", lower = 0, upper = 9, values = [0, 1, 2, 3] }',
    "odd": '{ type = "integer", lower = 0, upper = 9, values = [9, 1, 2] }',
    "day": '{ type = "date", values = [2024-02-29, 2024-03-01, 2023-01-01] }',
    "member": '{ type = "boolean" }',
    "free": '{ type = "string" }',
    "cost": '{ type = "integer", lower = 0, upper = 50 }',
    "Cell": '{ type = "integer", lower = 0, upper = 3 }',
    "unit": '{ type = "integer", lower = 0, upper = 3 }',
}
BY_MASKS = [
    "SELECT k64, COUNT(*), COUNT(DISTINCT person), SUM(cost) FROM t GROUP BY k64",
    "SELECT k64, COUNT(DISTINCT person) FROM t WHERE cost > 48 GROUP BY k64",
    "SELECT few, COUNT(DISTINCT person), AVG(cost), COUNT(DISTINCT cost) FROM t GROUP BY few",
    "SELECT sex, COUNT(DISTINCT person) FILTER (WHERE cost > 48), COUNT(DISTINCT person) FROM t GROUP BY sex",
    "SELECT sex, COUNT(DISTINCT person) FILTER (WHERE member IS NULL AND cost > 50) FROM t GROUP BY sex",
    "SELECT member, size, sex, COUNT(DISTINCT person), COUNT(Cell) FROM t WHERE unit < 2 GROUP BY member, size, sex",
    "SELECT odd, day, COUNT(DISTINCT person), SUM(unit) FROM t GROUP BY odd, day",
    "SELECT cost > 20, COUNT(DISTINCT person) FROM t GROUP BY cost > 20",
    "SELECT UPPER(free), COUNT(DISTINCT person) FROM t WHERE UPPER(free) IN ('K2', 'K60') GROUP BY UPPER(free)",
    "SELECT few, COUNT(DISTINCT person) FROM t WHERE cost > 1000 GROUP BY few",
]
BY_MASKS_IN_PART = "SELECT k64, sex, COUNT(DISTINCT person), COUNT(*) FROM t GROUP BY ROLLUP (k64, sex)"
AS_EVER = [
    "SELECT k65, COUNT(DISTINCT person) FROM t GROUP BY k65",
    "SELECT k64, member, COUNT(DISTINCT person) FROM t GROUP BY k64, member",
    "SELECT COUNT(DISTINCT person) FROM t",
    "SELECT few, COUNT(*), SUM(cost) FROM t GROUP BY few",
    "SELECT free, COUNT(*), COUNT(DISTINCT person) FROM t GROUP BY free",
    "SELECT few, free, COUNT(DISTINCT person), COUNT(*) FROM t GROUP BY few, free",
    "SELECT few, COUNT(DISTINCT person), SUM(cost, contribution_bounds_per_group => (0, 9)) FROM t GROUP BY few",
    "SELECT few, COUNT(DISTINCT person) FROM (SELECT person, few, SUM(cost) AS c FROM t GROUP BY person, few) "
    "GROUP BY few",
]


def _file(folder: Path, rows: int, people: int, seed: int) -> None:
    """Write rows of which some have no person, or no value of a key; most people have more rows than count."""
    select = f"""SELECT CASE WHEN hash(i, {seed}, 0) % 40 > 0 THEN hash(i, {seed}) % {people} END AS person,
        'k' || CASE WHEN hash(i, 1) % 80 < 79 THEN (hash(i, 1) % 80)::INT % 70 END AS k65, k65 AS k64, k65 AS few,
        k65 AS free, ['f', 'm', 'd', NULL][1 + (hash(i, 2) % 4)::INT] AS sex, hash(i, 3) % 5 AS size,
        CASE WHEN size > 0 THEN hash(i, 4) % 10 END AS odd,
        [DATE '2024-02-29', DATE '2024-03-01', DATE '2023-01-01', DATE '1999-01-01', NULL][1 + (hash(i, 5) % 5)::INT]
        AS day, [true, false, NULL][1 + (hash(i, 6) % 3)::INT] AS member,
        hash(i, 7) % 52 AS cost, hash(i, 8) % 4 AS Cell, hash(i, 9) % 4 AS unit FROM range({rows}) AS t(i)"""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select}) TO '{folder}/t.parquet' (FORMAT parquet)")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("masks")
    _file(folder, 3000, 150, seed=0)
    return catalog(folder, COLUMNS, unit="person", rows=9, more="delta_keys = 1e-7\n")


@pytest.fixture(scope="module")
def engine(people: Catalog) -> Iterator[DuckDB]:
    engine = DuckDB(people, indexing=False)
    yield engine
    engine.close()


def both(engine: DuckDB, patched: pytest.MonkeyPatch, text: str) -> tuple[object, object]:
    """Return what a question finds of units as ever, and by masks."""
    found = []
    for least in (10**9, 0):
        patched.setattr(unit_masks, "LEAST_ROWS", least)
        found.append(ask(engine, engine._catalog, text))
    return found[0], found[1]


def fits(people: Catalog, text: str) -> list[bool]:
    return [unit_masks.fits(part) for part in bind(text, people).question.parts]


@pytest.mark.parametrize("text", one_in(5, [BY_MASKS_IN_PART, *BY_MASKS]))
def test_masks_count_what_is_counted_as_ever(
    text: str, people: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = fits(people, text)
    assert any(parts)
    assert all(parts) == (text != BY_MASKS_IN_PART)
    as_ever, by_masks = both(engine, monkeypatch, text)
    assert as_ever == by_masks
    assert bool(as_ever) == ("1000" not in text)
    monkeypatch.setattr(engine_module, "CODED_FROM", 0)
    assert ask(engine, people, text) == as_ever


@pytest.mark.parametrize("text", AS_EVER)
def test_other_questions_are_asked_as_ever(text: str, people: Catalog) -> None:
    question = bind(text, people).question
    assert fits(people, text) == [False]
    assert unit_masks.answer(question) == queries.answer(question)


@pytest.mark.long
def test_masks_are_of_passes_and_of_an_index_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(tmp_path, 2000, 90, seed=1)
    engine = DuckDB(catalog(tmp_path, COLUMNS, unit="person", rows=4))
    as_ever, once = both(engine, monkeypatch, BY_MASKS[0])
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: 3)
    assert both(engine, monkeypatch, BY_MASKS[0]) == (as_ever, once)
    engine.build_index(engine._catalog.tables[0])
    assert both(engine, monkeypatch, BY_MASKS[0]) == (as_ever, once)
    assert once == as_ever
    engine.close()


def test_a_single_row_has_no_mask(tmp_path: Path) -> None:
    found = catalog(tmp_path, {"few": COLUMNS["few"]})
    question = bind("SELECT few, COUNT(*) FROM t GROUP BY few", found).question
    units = replace(question, measures=(CountUnits(),))
    assert not unit_masks.fits(units)


def test_small_tables_and_the_largest_do_without(
    people: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few rows it would not pay; of as many as a sum has room for, the halves of sums would meet."""
    question = bind(BY_MASKS[0], people).question
    by_masks = [engine._asker(question) is not queries.ask]
    for least, most in ((0, 3000), (0, 3001), (3000, 3001), (3001, 1 << 32)):
        monkeypatch.setattr(unit_masks, "LEAST_ROWS", least)
        monkeypatch.setattr(unit_masks, "MOST_ROWS", most)
        by_masks.append(engine._asker(question) is not queries.ask)
    assert by_masks == [False, False, True, True, False]


# ---- planted bugs ----------------------------------------------------------------------------------------------------

place, bit, counts = unit_masks._place, unit_masks._bit, unit_masks._counts


def _one_bit_for_two(measure: CountUnits, cell: str) -> str:
    return bit(measure, f"({cell} // 2 * 2)")


def _of_all_rows(_: CountUnits, cell: str) -> str:
    return bit(CountUnits(), cell)


def _none_is_first(key: Key) -> str:
    return f"COALESCE({place(key)}, 0)"


def _last_before_first(mask: str, size: int) -> list[str]:
    return counts(mask, size)[::-1]


def _halves_run_together(mask: str, size: int) -> list[str]:
    return [count.replace(f" & {(1 << 32) - 1}::HUGEINT", "") for count in counts(mask, size)]


BUGS: dict[str, tuple[str, Callable[..., object], str]] = {
    "two cells share a bit": ("_bit", _one_bit_for_two, BY_MASKS[0]),
    "rows count that do not meet the condition": ("_bit", _of_all_rows, BY_MASKS[3]),
    "rows without a key are in the first cell": ("_place", _none_is_first, BY_MASKS[0]),
    "cells change places": ("_counts", _last_before_first, BY_MASKS[0]),
    "rows count that are not selected": ("where_clause", lambda *_: "", BY_MASKS[1]),
    "the upper half is added to the lower": ("_counts", _halves_run_together, BY_MASKS[0]),
}


@pytest.mark.parametrize("bug", one_in(2, BUGS))
def test_planted_bugs_are_found(bug: str, engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    name, planted, text = BUGS[bug]
    monkeypatch.setattr(unit_masks, name, planted)
    as_ever, by_masks = both(engine, monkeypatch, text)
    assert as_ever != by_masks


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_masks_of_other_tables(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(tmp_path, 20_000 if seed % 2 else 40, 1 + seed * 300, seed)
    engine = DuckDB(catalog(tmp_path, COLUMNS, unit="person", rows=1 + seed % 7), indexing=False)
    for text in [*BY_MASKS, BY_MASKS_IN_PART]:
        as_ever, by_masks = both(engine, monkeypatch, text)
        assert as_ever == by_masks, text
    engine.close()
