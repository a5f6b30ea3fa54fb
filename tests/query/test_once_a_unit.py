"""Rows that are units, each once: a unit moves their count by 1, whatever its rows hold, as COUNT(DISTINCT person)."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.query.from_clause import subqueries
from lapwing.query.relations.once_a_unit import rows_of_then
from lapwing.query.sensitivity.stability import of_question
from tests.support.effort import some
from tests.support.engines.tables import ask, catalog, parquet

K = 5
SIDES = "SELECT person FROM t WHERE x > 1", "SELECT person AS p FROM t WHERE x < 4"
OFTEN = "SELECT person FROM t GROUP BY person HAVING COUNT(*) > 1"
TEXTS = (
    "SELECT DISTINCT person FROM t",
    "SELECT DISTINCT person AS p, 7 AS seven FROM t WHERE x > 2",
    f"{SIDES[0]} INTERSECT {SIDES[1]}",
    f"{SIDES[0]} EXCEPT {SIDES[1]}",
    f"{SIDES[0]} UNION {SIDES[1]}",
    f"({SIDES[0]} UNION {SIDES[1]}) EXCEPT SELECT DISTINCT person FROM t WHERE x = 3",
    f"{OFTEN} UNION {SIDES[0]}",
    f"{SIDES[0]} EXCEPT {OFTEN}",
    f"{OFTEN} INTERSECT SELECT person FROM t GROUP BY person HAVING MAX(x) > 3",
    "SELECT DISTINCT a.person FROM t AS a JOIN t AS b ON a.person = b.person AND a.x < b.x",
    "SELECT person FROM (SELECT DISTINCT person FROM t) WHERE person > 4",
)
MORE = (
    f"{SIDES[0]} UNION ALL {SIDES[1]}",
    "SELECT DISTINCT person, x FROM t",
    "SELECT DISTINCT person, x AS p, x > 3 AS y FROM t",
)


def counted(rows: str) -> str:
    return f"SELECT COUNT(*) AS n FROM ({rows})"


def declared(folder: Path, person: str = '{ type = "integer" }', **changes: Any) -> Catalog:
    columns = {"person": person, "x": '{ type = "integer", lower = 0, upper = 9 }'}
    return catalog(folder, columns, unit="person", rows=K, **changes)


def people(seed: int = 3) -> dict[str, list[Any]]:
    chance = random.Random(seed)
    return {"person": [n // 3 for n in range(60)], "x": [chance.randrange(6) for _ in range(60)]}


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_unit_moves_their_count_by_1(relation: str, tmp_path: Path) -> None:
    known = declared(tmp_path)
    for rows in TEXTS:
        ((bound,),) = of_question(bind(counted(rows), known).question, relation)
        assert (bound.sensitivity.l1, bound.sensitivity.l2_squared) == (1, 1), rows
    for rows in MORE:
        ((bound,),) = of_question(bind(counted(rows), known).question, relation)
        assert bound.sensitivity.l1 >= K, rows


@pytest.mark.long
def test_they_are_those_of_sql(tmp_path: Path) -> None:
    parquet(tmp_path, people())
    known = declared(tmp_path)
    with duckdb.connect() as plain:
        plain.sql(f"CREATE VIEW t AS FROM '{tmp_path / 't.parquet'}'")
        engine = DuckDB(known)
        for rows in TEXTS:
            expected = plain.execute(f"SELECT COUNT(*) AS n FROM ({rows}) AS r").fetchall()[0]
            assert ask(engine, known, counted(rows)) == {(): expected}, rows
        engine.close()


# ---- neighbours ------------------------------------------------------------------------------------------------------

HALVES: dict[str, list[Any]] = {"person": ["-0.5", "-1", "7", "8", "8", "8.2"], "x": [3, 3, 3, 2, 5, 3]}
"""Texts that are declared integers: -0.5 is rounded to -1 as a unit, and to 0 as a value within bounds."""
WITHIN = '{ type = "integer", lower = -9, upper = 9 }'


def moved(folder: Path, data: Mapping[str, list[Any]]) -> Iterator[tuple[str, int]]:
    """Yield how far the count of each text moves, at most, when one unit is taken away."""
    whole = ways(folder, data)
    for unit in some(2, (-1, 7, 8)):
        less = [n for n, person in enumerate(data["person"]) if round(float(person) - 0.1) != unit]
        without = ways(folder, {name: [values[n] for n in less] for name, values in data.items()})
        yield from ((rows, abs(whole[rows] - without[rows])) for rows in TEXTS)


def ways(folder: Path, data: Mapping[str, list[Any]]) -> dict[str, int]:
    parquet(folder, dict(data))
    known = declared(folder, person=WITHIN)
    engine = DuckDB(known)
    counts = {rows: ask(engine, known, counted(rows))[()][0] for rows in TEXTS}
    engine.close()
    return counts


def test_neighbours_differ_by_1_at_most(tmp_path: Path) -> None:
    """Also where the column has several values in the rows of one unit."""
    assert {by for _, by in moved(tmp_path, HALVES)} == {0, 1}


def test_rows_that_only_look_like_units_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: the values of the column are made distinct, and taken for one a unit."""
    monkeypatch.setattr(subqueries, "once_a_unit", lambda rows: rows)
    assert max(by for _, by in moved(tmp_path, HALVES)) == 2


# ---- what was bought before ------------------------------------------------------------------------------------------

GDP = 'measure = "gdp"\n'


def session(folder: Path, more: str = GDP) -> lw.Session:
    parquet(folder, people())
    known = declared(folder, more=more)
    return open_session(known)


@pytest.fixture
def bought(tmp_path: Path) -> Iterator[lw.Session]:
    """A ledger with answers that an earlier version bought: distinct values were as many rows as a unit has."""
    with session(tmp_path) as opened, pytest.MonkeyPatch.context() as before:
        before.setattr(subqueries, "once_a_unit", lambda rows: rows)
        for rows in TEXTS[:6]:
            opened.sql(counted(rows), epsilon=1)
    with open_session(declared(tmp_path, more=GDP)) as again:
        yield again


def test_what_was_bought_stays_free(bought: lw.Session) -> None:
    for rows in TEXTS[:6]:
        for price in (1, 0.5):
            assert bought.explain(counted(rows), epsilon=price).stored
            answer = bought.sql(counted(rows), epsilon=price)
            assert answer.stored
            assert answer.cost.amount == 0


@pytest.mark.long
def test_more_costs_no_more_than_afresh(bought: lw.Session) -> None:
    """An answer of then has a fifth of the accuracy: to make that sharper saves little, and is only done if it does."""
    text = counted(TEXTS[0])
    sharper = bought.explain(text, epsilon=2)
    assert not sharper.stored
    answer, other = bought.sql(text, epsilon=2), bought.sql("SELECT COUNT(DISTINCT person) AS n FROM t", epsilon=2)
    assert 0 < answer.cost.amount <= other.cost.amount
    assert bought.sql(text, epsilon=2).stored
    (low, high), (least, most) = answer.interval()["n"], other.interval()["n"]
    assert high[0] - low[0] <= most[0] - least[0]


@pytest.mark.long
def test_an_answer_of_then_does_not_serve_where_more_is_bought_now(bought: lw.Session) -> None:
    """Asked for more than it cost, it is no answer."""
    assert not bought.explain(counted(TEXTS[1]), epsilon=1.5).stored


@pytest.mark.long
def test_plans_of_then_are_those_that_were_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in (declared(tmp_path), declared(tmp_path, person=WITHIN)):
        for rows in (*TEXTS, *MORE):
            question = bind(counted(rows), known).question
            then = rows_of_then(question.selection)
            with monkeypatch.context() as before:
                before.setattr(subqueries, "once_a_unit", lambda distinct: distinct)
                printed = bind(counted(rows), known).question.selection
            assert str(then or question.selection) == str(printed), rows
            assert (then or question.selection).rows_per_unit == printed.rows_per_unit, rows
