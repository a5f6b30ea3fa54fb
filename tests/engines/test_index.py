"""Questions have the same cells with an index and without; an index that is not to be trusted is not used."""

import os
import random
import shutil
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lapwing.catalog.model import Catalog, Table
from lapwing.engines import DuckDB, Exact
from lapwing.engines.base import IndexState
from lapwing.engines.duckdb import cleaned, index, stored_rows
from lapwing.engines.duckdb import engine as engine_module
from lapwing.engines.duckdb.engine import passed_on
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import DataFault, EngineFault, Fault
from lapwing.machine import scratch
from lapwing.query.bind.bind import bind
from tests.engines.test_passes import QUESTIONS, generated
from tests.support.effort import one_in, only
from tests.support.engines.tables import ask, by_value, catalog, digests, parquet
from tests.support.query import clean, golden

GOLDEN = [entry.question for file in golden.files(refused=False) for entry in golden.read(file)]


def cold(found: Catalog, text: str, **options: Any) -> dict[Any, Any]:
    engine = DuckDB(found, indexing=False, **options)
    try:
        return ask(engine, found, text)
    finally:
        engine.close()


def relation(engine: DuckDB, table: Table) -> index.IndexedRows | None:
    return engine._find_index(table, {table.name: engine.digest(table)})


def texts(engine: DuckDB, table: Table) -> str:
    """Return an index that is there as a relation whose texts are texts."""
    stored = relation(engine, table)
    assert stored is not None
    return stored.relation()


@pytest.fixture
def found(tmp_path: Path) -> Catalog:
    return generated(tmp_path, 5_000, 400)


@pytest.fixture
def engine(found: Catalog) -> Iterator[DuckDB]:
    engine = DuckDB(found)
    yield engine
    engine.close()


@pytest.fixture
def stored(engine: DuckDB, found: Catalog) -> Path:
    """The path of an index that is there."""
    assert engine.build_index(found.tables[0])
    return found.folder / "t.lapwing.index"


# ---- the same relation -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def golden_catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return clean.catalog_in(tmp_path_factory.mktemp("indexed"))


@pytest.fixture(scope="module")
def facts(golden_catalog: Catalog) -> Iterator[PublicData]:
    facts = PublicData(golden_catalog)
    yield facts
    facts.close()


@pytest.fixture(scope="module")
def pair(golden_catalog: Catalog, facts: PublicData) -> Iterator[tuple[DuckDB, DuckDB]]:
    """An engine that finds no index of any table, and one that finds one of every table."""
    without, within = (DuckDB(golden_catalog, public=facts) for _ in range(2))
    without._find_index = lambda *_: None  # type: ignore[method-assign]
    for table in golden_catalog.tables:
        without.digest(table)
        assert within.build_index(table)
    yield without, within
    without.close()
    within.close()


def plainly(exact: Exact) -> list[object]:
    """Return what was found as values that can be compared: in what pieces leaves come has no meaning."""
    leaves: Counter[tuple[object, ...]] = Counter()
    for measure, cells in exact.leaves.items():
        for key, (names, counts) in cells.items():
            for name, rows in zip(names.tolist(), counts.tolist(), strict=True):
                leaves[(measure, key, name)] += rows
    return [exact.cells, by_value(exact.holders), leaves]


@pytest.mark.parametrize("text", only([0], GOLDEN))
def test_every_golden_question_finds_the_same(
    text: str, pair: tuple[DuckDB, DuckDB], golden_catalog: Catalog, facts: PublicData
) -> None:
    without, within = pair
    question = bind(text, golden_catalog, facts).question
    wanted = digests(within, question)
    assert relation(within, question.table) is not None
    found = within.run(question, wanted)
    assert relation(within, question.table) is not None  # it was not doubted
    assert plainly(found) == plainly(without.run(question, wanted))


@pytest.mark.parametrize("text", only([0], QUESTIONS))
@pytest.mark.parametrize("passes", only([0], [1, 4]))
def test_rows_beyond_the_bound_are_not_in_it(
    text: str, passes: int, found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """400 people with some twelve rows each, of which three are kept, the same three."""
    expected = cold(found, text)
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: passes)
    engine.build_index(found.tables[0])
    assert ask(engine, found, text) == expected
    assert ask(engine, found, "SELECT COUNT(*) FROM t") == {(): (1200,)}


@pytest.mark.long
def test_an_index_of_other_rows_is_found(
    found: Catalog, engine: DuckDB, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the tests above do not pass because the index is not read."""
    engine.drop_index(found.tables[0])
    kept_rows = stored_rows.kept_rows
    monkeypatch.setattr(stored_rows, "kept_rows", lambda *a: f"{kept_rows(*a)} LIMIT 100")
    engine.build_index(found.tables[0])
    assert ask(engine, found, QUESTIONS[0]) != cold(found, QUESTIONS[0]) or stored.exists()
    assert ask(engine, found, "SELECT COUNT(*) FROM t") == {(): (100,)}


VALUES = {
    "d": pa.array([0.0, -0.0, 5e-324, 1e308, -1e308, float("inf"), float("nan"), None] * 2, pa.float64()),
    "s": pa.array(["", " ", "a\x00b", "\U0001f600", "x" * 5000, "é", "e\u0301", None] * 2, pa.string()),
    "t": pa.array([-(2**62), 0, 1, 2**62, None, 5, 6, 7] * 2, pa.int64()).cast(pa.timestamp("us")),
    "u": pa.array([2**63 - 1, -(2**63), 0, None, 1, 2, 3, 4] * 2, pa.int64()),
}


def test_numbers_are_stored_within_their_bounds(pair: tuple[DuckDB, DuckDB], golden_catalog: Catalog) -> None:
    """How long it takes to clamp them for each question tells how many are NULL or out of bounds."""
    for table in golden_catalog.tables:
        kept = relation(pair[1], table)
        assert kept is not None
        stored = {name for name, *_ in pair[1].fetch(f"DESCRIBE {kept.rows}")}
        assert {column.name for column in table.columns if column.numeric and column.bounded} <= stored
        assert "CASE" not in kept.relation()


@pytest.mark.parametrize("unit", one_in(3, ["row", "u", "s"]))
def test_values_come_back_as_they_were(unit: str, tmp_path: Path) -> None:
    parquet(tmp_path, VALUES)
    kinds = {"d": "float", "s": "string", "t": "timestamp", "u": "integer"}
    declared = {name: f'{{ type = "{kind}" }}' for name, kind in kinds.items()}
    found = catalog(tmp_path, declared | {"s": '{ type = "string", max_length = 5000 }'}, unit=unit)
    engine, table = DuckDB(found, threads=1), found.tables[0]
    engine.build_index(table)
    columns = ", ".join(f"hash({name}) AS h{name}, {name}::VARCHAR, typeof({name})" for name in kinds)
    source = engine._describe(table).source
    asked = f'SELECT {columns} FROM "kept t" ORDER BY ALL'
    before = engine.fetch(f"WITH {cleaned.layer(table, source, True)} {asked}")
    after = engine.fetch(f"WITH {stored_rows.stored(table, texts(engine, table))} {asked}")
    assert before == after
    engine.close()


# ---- words -----------------------------------------------------------------------------------------------------------

WORDS = {
    "person": [n % 40 for n in range(400)],
    "s": pa.array([["", " ", "b", "a\x00b", "é", "zz", "B", None][n % 8] for n in range(400)], pa.string()),
    "x": list(range(400)),
}
SELECTED = {
    "SELECT s, COUNT(*) FROM t GROUP BY s": {"s"},
    "SELECT s, COUNT(DISTINCT person) FROM t WHERE x < 9 GROUP BY s": {"s"},
    "SELECT s, x > 20 AS late, SUM(x) FROM t GROUP BY s, late": {"s"},
    "SELECT s, COUNT(*) FROM t WHERE s <> 'b' GROUP BY s": set(),
    "SELECT s, COUNT(*) FROM t WHERE s = 'no such word' GROUP BY s": set(),
    "SELECT s, COUNT(*) FILTER (WHERE s < 'b') FROM t GROUP BY s": set(),
    "SELECT s, COUNT(DISTINCT person) FILTER (WHERE s LIKE '%b') FROM t GROUP BY s": set(),
    "SELECT s, COUNT(s) FROM t GROUP BY s": set(),
    "SELECT s, s = 'b' AS known, COUNT(*) FROM t GROUP BY s, known": set(),
    "SELECT UPPER(s) AS big, COUNT(*) FROM t GROUP BY big": set(),
    "SELECT s, COUNT(*) FROM (SELECT DISTINCT person, s FROM t) GROUP BY s": set(),
    "SELECT COUNT(DISTINCT s) FROM t WHERE s >= 'B'": set(),
}


@pytest.fixture
def worded(tmp_path: Path) -> Iterator[tuple[DuckDB, Catalog]]:
    """An engine, and a table with a column of eight words."""
    parquet(tmp_path, WORDS)
    kinds = {"s": '{ type = "string" }', "x": '{ type = "integer", lower = 0, upper = 50 }'}
    found = catalog(tmp_path, kinds, unit="person", more="delta_keys = 1e-7\n")
    engine = DuckDB(found)
    yield engine, found
    engine.close()


def everything(engine: DuckDB, found: Catalog, text: str) -> list[object]:
    question = bind(text, found).question
    return plainly(engine.run(question, digests(engine, question)))


@pytest.mark.long
@pytest.mark.parametrize(("text", "wanted"), one_in(6, SELECTED.items(), many=True))
def test_words_are_texts_to_every_question(text: str, wanted: set[str], worded: tuple[DuckDB, Catalog]) -> None:
    engine, found = worded
    assert passed_on(bind(text, found).question) == wanted
    before = everything(engine, found, text)
    engine.build_index(found.tables[0])
    stored = relation(engine, found.tables[0])
    assert stored is not None
    assert stored.by_words == {"s"}
    assert everything(engine, found, text) == before
    assert relation(engine, found.tables[0]) == stored  # it was not doubted


def test_a_question_that_looks_at_words_is_not_handed_numbers(
    worded: tuple[DuckDB, Catalog],
) -> None:
    """What is stored is not a text to everything: a hash, by which rows are chosen, tells them apart."""
    engine, found = worded
    engine.build_index(found.tables[0])
    stored = relation(engine, found.tables[0])
    assert stored is not None
    hashes = [engine.fetch(f"SELECT max(hash(s)) FROM {stored.relation(these)}") for these in ((), ("s",))]
    assert hashes[0] != hashes[1]


@pytest.mark.long
@pytest.mark.parametrize("limit", ["MOST_WORDS", "MOST_LETTERS"])
def test_too_many_words_stay_texts(limit: str, worded: tuple[DuckDB, Catalog], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, found = worded
    monkeypatch.setattr(index, limit, 6)
    engine.build_index(found.tables[0])
    stored = relation(engine, found.tables[0])
    assert stored is not None
    assert stored.by_words == set()


def test_a_csv_file_has_an_index(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("person,x\n" + "".join(f"{n % 7},{n}\n" for n in range(100)))
    found = catalog(tmp_path, {"x": '{ type = "integer", lower = 0, upper = 50 }'}, source="t.csv", unit="person")
    engine = DuckDB(found)
    expected = ask(engine, found, "SELECT SUM(x), COUNT(*), COUNT(DISTINCT person) FROM t")
    assert engine.build_index(found.tables[0])
    assert ask(engine, found, "SELECT SUM(x), COUNT(*), COUNT(DISTINCT person) FROM t") == expected
    engine.close()


@pytest.mark.long
def test_a_table_without_columns_has_an_index(tmp_path: Path) -> None:
    parquet(tmp_path, {"person": [1, 1, 2, None]})
    for unit, rows in (("row", 4), ("person", 3)):
        found = catalog(tmp_path, {}, unit=unit)
        engine = DuckDB(found)
        assert engine.build_index(found.tables[0])
        assert ask(engine, found, "SELECT COUNT(*) AS n FROM t") == {(): (rows,)}
        engine.close()


# ---- what it is of ---------------------------------------------------------------------------------------------------


def other_data(folder: Path, found: Catalog) -> Catalog:
    return generated(folder, 5_001, 400)


def other_bound(_folder: Path, found: Catalog) -> Catalog:
    return replace(found, tables=(replace(found.tables[0], max_rows_per_unit=2),))


def other_limits(_folder: Path, found: Catalog) -> Catalog:
    table = found.tables[0]
    cost = replace(table.columns[1], upper=Fraction(50))
    return replace(found, tables=(replace(table, columns=(table.columns[0], cost)),))


def fewer_columns(_folder: Path, found: Catalog) -> Catalog:
    """The hash that chooses rows is of all columns: without one, other rows are kept."""
    return replace(found, tables=(replace(found.tables[0], columns=found.tables[0].columns[1:]),))


@pytest.mark.parametrize("change", one_in(4, [other_data, other_bound, other_limits, fewer_columns]))
def test_an_index_of_something_else_is_not_used(
    change: Callable[[Path, Catalog], Catalog], found: Catalog, stored: Path
) -> None:
    changed = change(found.folder, found)
    engine = DuckDB(changed)
    table = changed.tables[0]
    assert engine.index_state(table) is IndexState.unusable
    text = "SELECT SUM(cost), COUNT(*) FROM t"
    assert ask(engine, changed, text) == cold(changed, text)
    assert engine.build_index(table)
    assert engine.index_state(table) is IndexState.current
    assert ask(engine, changed, text) == cold(changed, text)
    engine.close()


@pytest.mark.long
@pytest.mark.parametrize("what", ["FORMAT", "_engine"])
def test_an_index_of_another_version_is_not_used(
    what: str, found: Catalog, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, what, 0 if what == "FORMAT" else lambda: ("v0.0.1", "abc", "riscv"))
    engine = DuckDB(found)
    assert engine.index_state(found.tables[0]) is IndexState.unusable
    engine.close()


@pytest.mark.long
def test_data_and_index_may_move_together(found: Catalog, stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for path in (stored, found.folder / "t.parquet"):
        shutil.move(path, folder / path.name)
    moved = replace(found, folder=folder)
    engine = DuckDB(moved)
    assert engine.index_state(moved.tables[0]) is IndexState.current
    engine.close()


def test_tables_over_one_file_have_indexes_of_their_own() -> None:
    source = Path("/data/visits.parquet")
    names = ["visits", "Visits 2", "a/b", "..", "é" * 60, "visits%2F"]
    tables = [Table(name=n, source="s", privacy_unit="row", max_rows_per_unit=1, columns=()) for n in names]
    paths = [index.path_of(source, table) for table in tables]
    assert len(set(paths)) == len(paths)
    assert {path.parent for path in paths} == {source.parent}
    assert all(len(path.name) < 255 for path in paths)
    assert paths[0].name == "visits.lapwing.index"


# ---- damage and strangers --------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("flips", [12, pytest.param(60, marks=pytest.mark.long)])
def test_no_flipped_bit_changes_an_answer(found: Catalog, engine: DuckDB, stored: Path, flips: int) -> None:
    expected = ask(engine, found, QUESTIONS[1])
    content, places = stored.read_bytes(), random.Random(7)
    used = 0
    for trial in range(flips):
        damaged = bytearray(content)
        place = places.randrange(len(content) if trial % 3 else 12_288)
        damaged[place] ^= 1 << places.randrange(8)
        stored.write_bytes(damaged)
        used += relation(engine, found.tables[0]) is not None
        assert ask(engine, found, QUESTIONS[1]) == expected, place
    assert used  # some damage shows only when a row is read


@pytest.mark.parametrize("kept", only([0], [0, 100, 4096, 12_288, 100_000, -1]))
def test_an_index_that_is_cut_off_is_not_used(kept: int, found: Catalog, engine: DuckDB, stored: Path) -> None:
    expected = ask(engine, found, QUESTIONS[1])
    stored.write_bytes(stored.read_bytes()[:kept])
    assert ask(engine, found, QUESTIONS[1]) == expected  # the engine that had it open
    again = DuckDB(found)
    assert ask(again, found, QUESTIONS[1]) == expected
    assert again.index_state(found.tables[0]) is IndexState.unusable
    assert again.build_index(found.tables[0])
    assert again.index_state(found.tables[0]) is IndexState.current
    again.close()


def of_strangers(path: Path) -> None:
    """A file that everybody could have written."""
    path.chmod(0o666)


def linked(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to(path.with_name("real"))


def with_a_log(path: Path) -> None:
    """The engine would add what a log says to what the file says."""
    path.with_name(f"{path.name}.wal").write_bytes(b"")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def of_no_kind(path: Path) -> None:
    path.write_text("person,cost\n1,2\n")


@pytest.mark.parametrize("change", one_in(6, [of_strangers, linked, with_a_log, a_folder, of_no_kind]))
def test_a_file_that_is_no_index_of_ours_is_not_used(
    change: Callable[[Path], None], found: Catalog, stored: Path, engine: DuckDB
) -> None:
    change(stored)
    assert engine.index_state(found.tables[0]) is IndexState.unusable
    assert ask(engine, found, QUESTIONS[0]) == cold(found, QUESTIONS[0])


@pytest.mark.long
def test_a_fault_over_the_index_is_none_over_the_data(
    found: Catalog, engine: DuckDB, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, fetch, tried = ask(engine, found, QUESTIONS[0]), DuckDB.fetch, []

    def failing(self: DuckDB, query: str) -> Any:
        tried.append(query)
        if ".kept)" in query:
            raise duckdb.IOException("secret 7")
        return fetch(self, query)

    monkeypatch.setattr(DuckDB, "fetch", failing)
    assert ask(engine, found, QUESTIONS[0]) == expected
    assert ask(engine, found, QUESTIONS[0]) == expected
    assert sum(".kept)" in query for query in tried) == 1


# ---- writing it ------------------------------------------------------------------------------------------------------


def test_only_its_owner_can_read_it_from_the_first_row_on(
    found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: dict[str, set[int]] = {}
    query = type(engine._database)._run

    def watching(self: Any, cursor: Any, text: str, *how: Any) -> Any:
        rows = query(self, cursor, text, *how)
        for path in found.folder.rglob("*"):
            if path.name not in {"t.parquet"} and path.parent.name.startswith(index.BUILD_PREFIX) and "kept" in text:
                modes.setdefault(path.name, set()).add(stat.S_IMODE(path.stat().st_mode))
                modes.setdefault("folder", set()).add(stat.S_IMODE(path.parent.stat().st_mode))
        return rows

    monkeypatch.setattr(type(engine._database), "_run", watching)
    umask = os.umask(0)
    try:
        engine.build_index(found.tables[0])
    finally:
        os.umask(umask)
    assert modes["folder"] == {0o700}
    assert modes["index"] == {0o600}
    assert stat.S_IMODE((found.folder / "t.lapwing.index").stat().st_mode) == 0o600
    assert sorted(path.name for path in found.folder.iterdir()) == ["t.lapwing.index", "t.parquet"]


def test_data_that_change_while_it_is_written_have_none(
    found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.digest(found.tables[0])
    write = index._write

    def changing(*arguments: Any) -> None:
        write(*arguments)
        parquet(found.folder, {"person": [1], "region": ["r0"], "cost": [1.0]})

    monkeypatch.setattr(index, "_write", changing)
    with pytest.raises(Fault, match=r"could not be written next to t\.parquet"):
        engine.build_index(found.tables[0])
    assert [path.name for path in found.folder.iterdir()] == ["t.parquet"]


@pytest.mark.long
@pytest.mark.parametrize(
    "error", one_in(2, [OSError(28, "no space"), duckdb.OutOfMemoryException("x"), KeyboardInterrupt()])
)
def test_an_index_that_is_not_finished_leaves_nothing(
    error: BaseException, found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise error

    monkeypatch.setattr(index, "_publish", failing)
    with pytest.raises((Fault, KeyboardInterrupt)):
        engine.build_index(found.tables[0])
    assert [path.name for path in found.folder.iterdir()] == ["t.parquet"]
    monkeypatch.undo()
    assert engine.build_index(found.tables[0])


@pytest.mark.long
def test_builders_and_readers_may_race(found: Catalog) -> None:
    expected, engines = cold(found, QUESTIONS[1]), [DuckDB(found, threads=1) for _ in range(3)]
    seen: list[Any] = []

    def working(engine: DuckDB, turn: int) -> None:
        for step in range(6):
            if (step + turn) % 3 == 0:
                engine.drop_index(found.tables[0])
            elif (step + turn) % 3 == 1:
                engine.build_index(found.tables[0])
            seen.append(ask(engine, found, QUESTIONS[1]))

    threads = [threading.Thread(target=working, args=(engine, turn)) for turn, engine in enumerate(engines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 18
    for engine in engines:
        engine.close()


@pytest.mark.long
def test_threads_of_one_engine_share_an_index_that_goes(found: Catalog, engine: DuckDB, stored: Path) -> None:
    expected = cold(found, QUESTIONS[1])
    seen: list[Any] = []

    def asking() -> None:
        seen.extend(ask(engine, found, QUESTIONS[1]) for _ in range(8))

    threads = [threading.Thread(target=asking) for _ in range(3)]
    for thread in threads:
        thread.start()
    engine.drop_index(found.tables[0])
    for thread in threads:
        thread.join()
    assert seen == [expected] * 24


@pytest.mark.long
def test_an_index_in_memory_s_limit(tmp_path: Path) -> None:
    """Two million rows of 200,000 people in 64 MB."""
    found = generated(tmp_path, 2_000_000, 200_000)
    expected = cold(found, QUESTIONS[1])
    small = DuckDB(found, memory=64_000_000)
    assert small.build_index(found.tables[0])
    assert ask(small, found, QUESTIONS[1]) == expected
    small.close()


# ---- when ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_second_question_about_a_large_file_makes_it(
    found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state() -> IndexState:
        return engine.index_state(found.tables[0])

    monkeypatch.setattr(engine_module, "INDEXED_FROM", (found.folder / "t.parquet").stat().st_size)
    first = ask(engine, found, QUESTIONS[0])
    assert state() is IndexState.absent
    assert ask(engine, found, QUESTIONS[0]) == first
    assert state() is IndexState.current
    engine.drop_index(found.tables[0])
    assert ask(engine, found, QUESTIONS[0]) == first
    assert state() is IndexState.absent  # what the curator drops stays dropped
    unwilling = DuckDB(found, indexing=False)
    for _ in range(3):
        assert ask(unwilling, found, QUESTIONS[0]) == first
    assert state() is IndexState.absent
    unwilling.close()


@pytest.mark.long
def test_a_small_file_has_none_until_many_questions_were_asked(found: Catalog, engine: DuckDB) -> None:
    first = ask(engine, found, QUESTIONS[0])
    for _ in range(engine_module.SMALL_INDEXED_AT - 2):
        assert ask(engine, found, QUESTIONS[0]) == first
    assert engine.index_state(found.tables[0]) is IndexState.absent
    assert ask(engine, found, QUESTIONS[0]) == first
    assert engine.index_state(found.tables[0]) is IndexState.current
    assert ask(engine, found, QUESTIONS[0]) == first


@pytest.mark.long
def test_where_none_can_be_written_questions_do_without(
    found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise OSError(30, "read-only")

    monkeypatch.setattr(scratch, "fresh_at", failing)
    monkeypatch.setattr(engine_module, "INDEXED_FROM", 0)
    first = ask(engine, found, QUESTIONS[0])
    assert [ask(engine, found, QUESTIONS[0]) for _ in range(2)] == [first] * 2
    with pytest.raises(Fault, match="Queries need no index"):
        engine.build_index(found.tables[0])


@pytest.mark.long
def test_who_finds_an_index_need_not_read_the_data_through(
    found: Catalog, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reading(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(DuckDB, "_read_through", reading)
    engine = DuckDB(found)
    assert ask(engine, found, "SELECT COUNT(*) FROM t") == {(): (1200,)}
    engine.close()


def test_data_that_are_gone_are_not_answered_from_an_index(found: Catalog, engine: DuckDB, stored: Path) -> None:
    question = bind(QUESTIONS[0], found).question
    known = digests(engine, question)
    generated(found.folder, 10, 2)
    with pytest.raises(EngineFault):
        engine.run(question, known)
    (found.folder / "t.parquet").unlink()
    with pytest.raises(EngineFault):
        engine.run(question, known)
    with pytest.raises(DataFault, match="is missing"):
        engine.digest(question.table)
