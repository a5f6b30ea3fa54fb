"""Linked tables over real files: from files and from indexes, in one pass and in several, the same rows."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.base import IndexState
from lapwing.engines.duckdb import cleaned, stored_rows
from lapwing.engines.duckdb import engine as engine_module
from lapwing.engines.duckdb.cleaned import WHOLE, Pass
from lapwing.engines.duckdb.literals import kept_name, unit_name
from lapwing.errors import DataFault, EngineFault
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question
from tests.support.catalog.existing import Data, bag
from tests.support.effort import numbers, one_in, only
from tests.support.engines.linked import Bag, defined
from tests.support.engines.tables import HEAD, by_value, digests

SHOP = """\
[tables.people]
source = "people.{kind}"
privacy_unit = "who"
max_rows_per_unit = 2
[tables.people.columns]
k = {{ type = "integer" }}
who = {{ type = "integer" }}

[tables.orders]
source = "orders.{kind}"
link = {{ table = "people", on = {{ by = "k" }} }}
max_rows_per_unit = 3
[tables.orders.columns]
id = {{ type = "integer" }}
day = {{ type = "integer" }}
by = {{ type = "integer" }}

[tables.items]
source = "items.{kind}"
link = {{ table = "orders", on = {{ "order" = "id", on = "day" }} }}
max_rows_per_unit = 5
[tables.items.columns]
order = {{ type = "integer" }}
on = {{ type = "integer" }}
price = {{ type = "integer", lower = 0, upper = 100 }}
"""
QUESTIONS = [
    "SELECT COUNT(*), SUM(price) FROM items",
    "SELECT price, COUNT(*) FROM items WHERE price > 50 GROUP BY price",
    "SELECT COUNT(*), COUNT(DISTINCT day) FROM orders",
    "SELECT COUNT(*), COUNT(DISTINCT who) FROM people",
    "SELECT MEDIAN(price), COUNT(*) FROM items",
    "SELECT day, COUNT(*), COUNT(DISTINCT id) FROM orders GROUP BY day",
    'SELECT COUNT(*), SUM(price) FROM orders JOIN items ON id = "order" AND day = "on"',
    'SELECT day, COUNT(*) FROM people JOIN orders ON k = by JOIN items ON id = "order" AND day = "on" GROUP BY day',
]
COLUMNS = {"people": ("k", "who"), "orders": ("id", "day", "by"), "items": ("order", "on", "price")}


def shop(seed: int) -> Data:
    """Return data with orphans, NULLs, and more rows of a unit than may exist."""
    chance = random.Random(seed)

    def maybe(value: int) -> int | None:
        return None if chance.random() < 0.05 else value

    return {
        "people": [{"k": k, "who": maybe(chance.randrange(40))} for k in range(120)],
        "orders": [{"id": n // 2, "day": n % 2, "by": maybe(chance.randrange(140))} for n in range(400)],
        "items": [
            {"order": maybe(chance.randrange(220)), "on": maybe(chance.randrange(2)), "price": chance.randrange(101)}
            for _ in range(1500)
        ],
    }


def write(folder: Path, data: Data, kind: str = "parquet") -> None:
    for name, columns in COLUMNS.items():
        table = pa.table({c: pa.array([row[c] for row in data[name]], pa.int64()) for c in columns})
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=100)
        else:
            pyarrow.csv.write_csv(table, path)


def catalog(folder: Path, kind: str = "parquet", text: str = SHOP) -> Catalog:
    return loads(HEAD + text.format(kind=kind), file="shop.toml", folder=folder)


def named(found: Catalog, name: str) -> Table:
    return next(table for table in found.tables if table.name == name)


@pytest.fixture
def found(tmp_path: Path) -> Catalog:
    write(tmp_path, shop(0))
    return catalog(tmp_path)


@pytest.fixture
def engine(found: Catalog) -> Iterator[DuckDB]:
    engine = DuckDB(found)
    yield engine
    engine.close()


def rows(engine: DuckDB, table: Table, relations: dict[str, str] | None = None, part: Pass = WHOLE) -> Bag:
    """Return the rows of a table that exist for an engine."""
    held = relations or {}
    above = engine._layers(reads=True).of(cleaned.needed((table,), held), held, part)
    columns = [column.name for column in table.columns]
    listed = ", ".join(f'"{name}"' for name in columns)
    asked = f"WITH {', '.join(above)} SELECT {unit_name(table)}, {listed} FROM {kept_name(table)}"
    return bag((unit, dict(zip(columns, row, strict=True))) for unit, *row in engine.fetch(asked))


def question(text: str, found: Catalog) -> Question:
    return bind(text, found).question


def answers(engine: DuckDB, found: Catalog, texts: list[str] = QUESTIONS) -> list[Any]:
    """Return the exact cells, and leaves, of questions."""
    exact = []
    for text in texts:
        asked = question(text, found)
        result = engine.run(asked, digests(engine, asked))
        leaves: Counter[tuple[object, ...]] = Counter()
        for cells in result.leaves.values():
            for key, (names, counts) in cells.items():
                for name, n in zip(names.tolist(), counts.tolist(), strict=True):
                    leaves[(key, name)] += n
        exact.append((dict(result.cells), leaves, by_value(result.holders)))
    return exact


# ---- the same rows ---------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("seed", numbers(1, 6))
def test_rows_of_files_exist_by_the_definition(kind: str, seed: int, tmp_path: Path) -> None:
    data = shop(seed)
    write(tmp_path, data, kind)
    found = catalog(tmp_path, kind)
    engine = DuckDB(found)
    for table in found.tables:
        wanted = defined(engine._connection, table, data)
        assert sum(wanted.values()) < len(data[table.name])
        assert rows(engine, table) == wanted
        parts = [rows(engine, table, part=Pass(index=i, of=3)) for i in range(3)]
        assert sum(parts, type(wanted)()) == wanted
        assert engine.build_index(table)
        stored = engine._find_index(table, engine._lineage_digests(table))
        assert stored is not None
        assert rows(engine, table, {table.name: stored.relation()}) == wanted
    engine.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "stored",
    [
        [("people", "items")],
        pytest.param(
            [(), ("orders",), ("items",), ("people", "items"), ("people", "orders", "items")], marks=pytest.mark.long
        ),
    ],
    ids=len,
)
def test_answers_are_the_same_with_and_without_indexes_in_any_number_of_passes(
    found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch, stored: list[tuple[str, ...]]
) -> None:
    expected = answers(engine, found)
    data = shop(0)
    assert all(cells for cells, *_ in expected)
    assert expected[0][0][()][0] == sum(defined(engine._connection, named(found, "items"), data).values())
    for indexed in stored:
        for table in found.tables:
            assert engine.build_index(table) == (table.name in indexed) or engine.drop_index(table)
        ways = [(3, True), (1, False), (1, True), (3, False)]
        for passes, additive in ways[:2] if len(stored) == 1 else ways:
            with monkeypatch.context() as patch:
                patch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_, passes=passes: passes)
                if not additive:
                    patch.setattr(engine_module, "is_additive", lambda _: False)
                assert answers(engine, found) == expected
        for table in found.tables:
            engine.drop_index(table)
    assert engine.fetch("SELECT COUNT(*) FROM duckdb_tables() WHERE temporary") == [(0,)]


def test_a_pass_that_is_left_out_is_found(found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers(engine, found)
    engine.build_index(named(found, "orders"))
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: 3)
    right = stored_rows.stored
    monkeypatch.setattr(stored_rows, "stored", lambda table, relation, *_: right(table, relation))
    assert answers(engine, found) != expected, "of an index, all units in every pass"


@pytest.mark.long
def test_a_damaged_index_of_a_parent_is_not_used(found: Catalog, engine: DuckDB) -> None:
    expected = answers(engine, found)
    engine.build_index(named(found, "orders"))
    path = found.folder / "orders.lapwing.index"
    content = bytearray(path.read_bytes())
    for place in range(12_288, len(content), 64):
        content[place] ^= 1
    path.write_bytes(content)
    assert answers(engine, found) == expected


@pytest.mark.long
def test_the_second_question_about_a_large_file_makes_the_indexes_that_it_needs(
    found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = max((found.folder / table.source).stat().st_size for table in found.tables)
    monkeypatch.setattr(engine_module, "INDEXED_FROM", size)
    first = answers(engine, found, QUESTIONS[:1])
    assert answers(engine, found, QUESTIONS[:1]) == first
    states = {table.name: engine.index_state(table) for table in found.tables}
    assert states == {"people": IndexState.absent, "orders": IndexState.absent, "items": IndexState.current}
    assert answers(engine, found, QUESTIONS[:1]) == first


# ---- what an index is of ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_index_is_of_the_data_and_the_catalog_of_all_parents(found: Catalog, engine: DuckDB) -> None:
    items = named(found, "items")
    engine.build_index(items)
    fewer = found.with_table(replace(named(found, "people"), max_rows_per_unit=1))
    other = DuckDB(fewer)
    assert other.index_state(named(fewer, "items")) is IndexState.unusable
    other.close()
    write(found.folder, {**shop(0), "people": shop(1)["people"]})
    assert engine.index_state(items) is IndexState.unusable
    again = DuckDB(found)
    assert answers(engine, found) == answers(again, found)
    again.close()


@pytest.mark.long
def test_an_index_says_which_keys_were_unique(found: Catalog, engine: DuckDB) -> None:
    """A new link to a table that has an index: the key that it leads to was not looked at before."""
    people = named(found, "people")
    engine.build_index(people)
    text = SHOP.replace('on = {{ by = "k" }}', 'on = {{ by = "who" }}')
    linked = catalog(found.folder, text=text)
    later = DuckDB(linked)
    assert later.index_state(named(linked, "people")) is IndexState.unusable
    with pytest.raises(DataFault, match="several rows with the same who"):
        later.digest(named(linked, "people"))
    later.close()


# ---- digests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", one_in(3, ["people", "orders", "items"]))
def test_a_question_runs_on_data_of_the_given_digests_alone(changed: str, found: Catalog, engine: DuckDB) -> None:
    asked = question(QUESTIONS[0], found)
    accepted = digests(engine, asked)
    assert set(accepted) == {"people", "orders", "items"}
    write(found.folder, {**shop(0), changed: shop(1)[changed]})
    with pytest.raises(EngineFault):
        engine.run(asked, accepted)
    now = digests(engine, asked)
    assert {name for name in now if now[name] != accepted[name]} == {changed}
    assert engine.run(asked, now)
    with pytest.raises(EngineFault):
        engine.run(asked, accepted)


def test_a_parent_that_changes_during_the_question_is_noticed(
    found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, fetch = question(QUESTIONS[0], found), DuckDB.fetch
    known = digests(engine, asked)

    def changing(self: DuckDB, query: str) -> Any:
        result = fetch(self, query)
        write(found.folder, {**shop(0), "people": shop(1)["people"]})
        return result

    monkeypatch.setattr(DuckDB, "fetch", changing)
    with pytest.raises(EngineFault):
        engine.run(asked, known)


def test_a_missing_parent_is_a_fault_of_its_children(found: Catalog, engine: DuckDB) -> None:
    (found.folder / "people.parquet").unlink()
    with pytest.raises(DataFault, match=r"people\.parquet of table people is missing"):
        engine.digest(named(found, "items"))


# ---- keys ------------------------------------------------------------------------------------------------------------


def test_keys_that_two_rows_share_are_refused(found: Catalog, engine: DuckDB) -> None:
    """The curator learns which key of which file, and no value."""
    data = shop(0)
    twice = next(row for row in data["orders"] if row["by"] == data["people"][0]["k"])
    write(found.folder, {**data, "orders": [*data["orders"], twice]})
    assert engine.digest(named(found, "people"))
    for name in ("orders", "items"):
        with pytest.raises(DataFault) as raised:
            engine.digest(named(found, name))
        assert str(raised.value) == (
            "The file orders.parquet of table orders has several rows with the same day, id. The link of items "
            "needs exactly one row for each key. Leave one row, or link by a key that no two rows share"
        )


@pytest.mark.long
def test_keys_of_nobody_may_be_shared(found: Catalog, engine: DuckDB) -> None:
    data = shop(0)
    stray = [{"id": 0, "day": 0, "by": by} for by in (None, 9_999)] + [{"id": None, "day": 0, "by": 3}] * 2
    write(found.folder, {**data, "orders": [*data["orders"], *stray]})
    nobody = [{"k": 1, "who": None}, {"k": None, "who": 1}, {"k": None, "who": 2}]
    write(found.folder, {**data, "people": [*data["people"], *nobody], "orders": [*data["orders"], *stray]})
    assert engine.digest(named(found, "items"))


@pytest.mark.parametrize("passes", [1, 3])
def test_keys_that_rows_of_different_units_share_are_found(
    passes: int, found: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no pass has both rows, and where both are more than a unit may have."""
    data, people = shop(0), [{"k": 500 + who, "who": who} for who in range(20)]
    write(found.folder, {**data, "people": [*people, *({"k": 500 + who, "who": who + 20} for who in range(20))]})
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: passes)
    with pytest.raises(DataFault, match=r"several rows with the same k. The link of orders needs"):
        engine.digest(named(found, "people"))


@pytest.mark.long
def test_a_change_of_the_parent_may_bring_shared_keys_to_light(found: Catalog, engine: DuckDB) -> None:
    """The rows of nobody that share a key belong to somebody once their parent is there."""
    data = shop(0)
    stray = [{"id": 777, "day": 0, "by": 9_999}] * 2
    write(found.folder, {**data, "orders": [*data["orders"], *stray]})
    asked = question(QUESTIONS[0], found)
    assert engine.run(asked, digests(engine, asked))
    more = {**data, "people": [*data["people"], {"k": 9_999, "who": 3_000}], "orders": [*data["orders"], *stray]}
    stamp = (found.folder / "orders.parquet").stat()
    write(found.folder, more)
    os.utime(found.folder / "orders.parquet", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(DataFault, match="several rows with the same day, id"):
        digests(engine, asked)
    known = {name: digest for (name, _), digest in engine._digests.items()}
    with pytest.raises(EngineFault):
        engine.run(asked, known)


@pytest.mark.parametrize("kind", only([0], [pa.float64(), pa.float32(), pa.bool_()]))
@pytest.mark.parametrize(
    ("name", "column"), only([0], [("people", "k"), ("orders", "by"), ("orders", "day"), ("items", "on")], many=True)
)
def test_what_cannot_tell_keys_apart_is_no_key(
    name: str, column: str, kind: pa.DataType, found: Catalog, engine: DuckDB
) -> None:
    path = found.folder / f"{name}.parquet"
    table = pq.read_table(path)
    index = table.column_names.index(column)
    pq.write_table(table.set_column(index, column, table[column].cast(kind)), path)
    with pytest.raises(DataFault, match=f"The key {column} of {name} is a .* it must be an integer or a text"):
        engine.digest(named(found, name))


@pytest.mark.long
@pytest.mark.parametrize("kind", only([0], [pa.int8(), pa.int32(), pa.uint64(), pa.string(), pa.decimal128(20, 0)]))
def test_keys_of_different_types_are_equal_by_their_value(kind: pa.DataType, tmp_path: Path) -> None:
    data = shop(0)
    data = {**data, "people": [row for row in data["people"] if row["k"] < 100]}  # type: ignore[operator]
    write(tmp_path, data)
    found = catalog(tmp_path)
    engine = DuckDB(found)
    expected = rows(engine, named(found, "items"))
    engine.close()
    people = pq.read_table(tmp_path / "people.parquet")
    pq.write_table(people.set_column(0, "k", people["k"].cast(kind)), tmp_path / "people.parquet")
    again = DuckDB(found)
    assert rows(again, named(found, "items")) == expected
    again.close()


# ---- statistics ------------------------------------------------------------------------------------------------------


def test_the_reader_of_a_file_is_not_told_which_keys_the_parent_has(found: Catalog, engine: DuckDB) -> None:
    """A filter by them would believe what the file's footer says of its row groups."""
    items = named(found, "items")
    above = ", ".join(engine._layers(reads=True).of(cleaned.needed((items,), {}), {}, WHOLE))
    ((_, plan),) = engine.fetch(f"EXPLAIN ANALYZE WITH {above} SELECT COUNT(*) FROM {kept_name(items)}")
    assert "Dynamic Filters" not in plan
    with duckdb.connect() as plain:
        ((_, plan),) = plain.execute(f"EXPLAIN ANALYZE WITH {above} SELECT COUNT(*) FROM {kept_name(items)}").fetchall()
    assert "Dynamic Filters" in plan
