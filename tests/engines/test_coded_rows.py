"""Large tables: rows with codes in the place of texts are, to the questions that read them, the rows that exist."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import cleaned, coded_rows
from lapwing.engines.duckdb import engine as engine_module
from lapwing.query.bind.bind import bind
from tests.support.effort import one_in
from tests.support.engines.tables import ask, catalog

COLUMNS = {
    "plan": '{ type = "string", values = ["c", "a", "b"] }',
    "sex": '{ type = "string", values = ["f", "m"], other = "else" }',
    "name": '{ type = "string" }',
    "cost": '{ type = "integer", lower = 0, upper = 5 }',
    "place": '{ type = "boolean" }',
}
CODED = [
    "SELECT COUNT(*), SUM(cost) FROM t",
    "SELECT plan, COUNT(*), COUNT(DISTINCT person), AVG(cost) FROM t WHERE cost > 1 GROUP BY plan",
    "SELECT sex, plan, place, COUNT(*) FROM t GROUP BY sex, plan, place",
    "SELECT plan, sex, COUNT(*) FROM t GROUP BY ROLLUP (plan, sex)",
    "SELECT cost, COUNT(*, contribution_bounds_per_group => (0, 1)) FROM t GROUP BY cost",
    "SELECT plan, COUNT(*), SUM(cost) FROM t WHERE cost <> 6 GROUP BY plan",
]
NOT_CODED = [
    "SELECT COUNT(*) FROM t WHERE name < 'n'",
    "SELECT COUNT(*) FROM t WHERE sex <> 'f'",
    "SELECT plan, COUNT(DISTINCT sex) FROM t GROUP BY plan",
    "SELECT UPPER(plan), COUNT(*) FROM t GROUP BY UPPER(plan)",
    "SELECT LEFT(name, 1), COUNT(*) FROM t WHERE LEFT(name, 1) IN ('n', 'o') GROUP BY LEFT(name, 1)",
    "SELECT n, COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM t GROUP BY person) GROUP BY n",
]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A person has more rows than count, many of them alike; values that nobody declared are among them, and NULLs."""
    folder = tmp_path_factory.mktemp("coded")
    select = """SELECT hash(i) % 200 AS person, ['a', 'b', 'c', 'x', 'y', NULL][1 + (hash(i, 1) % 6)::INT] AS plan,
                       ['f', 'm', 'd', 'e', NULL][1 + (hash(i, 2) % 5)::INT] AS sex,
                       'n' || (hash(i, 3) % 4) AS name,
                       hash(i, 4) % 7 AS cost, hash(i, 5) % 2 = 0 AS place FROM range(4000) AS t(i)"""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select}) TO '{folder}/t.parquet' (FORMAT parquet)")
    return catalog(folder, COLUMNS, unit="person", rows=5)


def both(people: Catalog, patched: pytest.MonkeyPatch, text: str) -> tuple[object, object]:
    """Return what a question finds in the rows that exist, and in coded ones."""
    found = []
    for least in (10**9, 0):
        patched.setattr(engine_module, "CODED_FROM", least)
        engine = DuckDB(people, indexing=False)
        found.append(ask(engine, people, text))
        engine.close()
    return found[0], found[1]


def hashed_alike(patched: pytest.MonkeyPatch, hashed: str = "hash(cost) % 2") -> None:
    """Let hashes be alike, as they hardly ever are: then the columns decide."""
    order = cleaned.row_order
    for module in (cleaned, coded_rows):
        patched.setattr(module, "row_order", lambda *facts: (hashed, order(*facts)[1]))


def is_coded(people: Catalog, text: str) -> bool:
    return coded_rows._reads_codes(bind(text, people).question, people.tables[0])


@pytest.mark.parametrize("text", one_in(6, CODED))
def test_questions_cannot_tell_coded_rows_from_those_that_exist(
    text: str, people: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_coded(people, text)
    kept, coded = both(people, monkeypatch, text)
    assert kept == coded
    hashed_alike(monkeypatch)
    same_hashes, coded = both(people, monkeypatch, text)
    assert same_hashes == coded
    assert len(kept) == 1 or same_hashes != kept  # type: ignore[arg-type]


@pytest.mark.parametrize("text", NOT_CODED)
def test_texts_that_are_looked_at_are_not_coded(text: str, people: Catalog) -> None:
    assert not is_coded(people, text)


def _of_codes(kept: Callable[..., object]) -> Callable[..., object]:
    """Plant: the hash is of what a question sees, so that others of a unit's rows come first."""
    return lambda *facts: ("hash(cost, plan)", kept(*facts)[1])  # type: ignore[index]


def _turned(kept: Callable[..., object]) -> Callable[..., object]:
    """Plant: rows of one hash come in another order of the columns."""
    return lambda *facts: ("hash(cost) % 2", kept(*facts)[1][::-1])  # type: ignore[index]


@pytest.mark.parametrize("planted", one_in(2, [_of_codes, _turned]))
def test_another_order_is_found(
    planted: Callable[[Callable[..., object]], Callable[..., object]], people: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    if planted is _turned:
        hashed_alike(monkeypatch)
    monkeypatch.setattr(coded_rows, "row_order", planted(cleaned.row_order))
    kept, coded = both(people, monkeypatch, CODED[2])
    assert kept != coded


@pytest.mark.long
def test_text_that_decides_before_the_codes_is_found(people: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: the rows that exist are put in order by whole texts, and not by their codes before."""
    hashed_alike(monkeypatch)
    monkeypatch.setattr(cleaned, "fixed_width", lambda column: None)
    kept, coded = both(people, monkeypatch, CODED[2])
    assert kept != coded


def test_a_row_that_nobody_declared_takes_its_place(people: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: rows without a code are left out before the first rows of a unit are kept."""
    monkeypatch.setattr(
        coded_rows, "cleaned", lambda *facts: f"SELECT * FROM ({cleaned.cleaned(*facts)}) WHERE plan IN ('a', 'b', 'c')"
    )
    kept, coded = both(people, monkeypatch, CODED[1])
    assert kept != coded


@pytest.mark.long
def test_coded_rows_come_in_passes(people: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = people.tables[0]
    rows = coded_rows.CodedRows(
        table=table, source=cleaned.Location(relation="t", types={}), rows=100, memory=10**9, reads=False
    )
    assert [replace(rows, rows=n).passes for n in (100, 10**7, 10**8)] == [1, 1, 5]
    once, _ = both(people, monkeypatch, CODED[1])
    monkeypatch.setattr(coded_rows.CodedRows, "passes", property(lambda _: 3))
    assert both(people, monkeypatch, CODED[1]) == (once, once)


@pytest.mark.long
def test_coded_rows_of_many_units_fit_a_small_memory(tmp_path: Path) -> None:
    """Two million rows of 200,000 people in 64 MB, of which the passes use all, and more."""
    select = """SELECT hash(i) % 200000 AS person, ['a', 'b', 'c', 'x'][1 + (hash(i, 1) % 4)::INT] AS plan,
                       'm' AS sex, 'n' || i AS name, hash(i, 4) % 7 AS cost, true AS place FROM range(2000000) t(i)"""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select}) TO '{tmp_path}/t.parquet' (FORMAT parquet)")
    found = catalog(tmp_path, COLUMNS, unit="person", rows=5)
    answers = []
    for memory in (64_000_000, 10**9):
        engine = DuckDB(found, memory=memory, indexing=False)
        answers.append(ask(engine, found, CODED[1]))
        engine.close()
    assert answers[0] == answers[1]
