"""T19–T26: nothing leaks through what reaches the engine, keys, order, facts, clauses, stored answers, versions."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.engines import holders
from lapwing.engines.duckdb import cleaned, literals
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.mechanisms import TruncatedGeometric
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.release import answering, release, selecting, stored
from tests.engines.test_lockdown import FORBIDDEN
from tests.query.test_injection import NASTY, literal
from tests.support.effort import some
from tests.support.engines.tables import holders_of
from tests.support.fixed_entropy import StreamEntropy
from tests.support.query import neighbours, rendering
from tests.support.release import small
from tests.support.release.tables import protected, visits
from tests.support.replay import SCHEMA, Row, compare, run
from tests.support.strategies import catalog_in

PRICE = {"epsilon": 1}


def row(person: int, **values: Any) -> Row:
    plain: Row = {"person": person, "plan": "a", "member": True, "age": 30, "cost": 1.0, "score": 0, "note": "x"}
    return plain | {"day": None, "pay": None} | values


# ---- T19 -------------------------------------------------------------------------------------------------------------

ESCAPES = [
    *(text.format(folder=".") for text in FORBIDDEN),
    "SELECT COUNT(*) FROM visits; SELECT 1",
    "SELECT COUNT(*) FROM visits; DROP TABLE visits",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM 'visits.parquet'",
    "SELECT COUNT(*) FROM duckdb_settings()",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT COUNT(*) FROM pg_catalog.pg_tables",
    "SELECT COUNT(*) FROM visits WHERE note IN (SELECT table_name FROM duckdb_tables())",
    "SELECT COUNT(*) FROM visits, LATERAL (SELECT * FROM glob('*'))",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE \"note\" = x'41'",
    'SELECT COUNT("note""); DROP TABLE visits; --") FROM visits',
]


def with_long_notes(described: Catalog) -> Catalog:
    """Return a catalog in which every one of these texts is short enough to be read."""
    longest = max(len(text.encode()) for text in NASTY)
    tables = [
        replace(table, columns=tuple(replace(c, max_length=longest) if c.name == "note" else c for c in table.columns))
        for table in described.tables
    ]
    return replace(described, tables=tuple(tables))


def check_constants(folder: Path) -> None:
    """Every awkward text, as a constant and as a parameter, is found in the one row that holds it."""
    described = with_long_notes(neighbours.catalog(folder))
    facts = PublicData(described)
    rows = [row(n, note=text) for n, text in enumerate(NASTY)]
    for text in some(3, NASTY):
        asked: list[tuple[str, Any]] = [("?", [text])] if len(text) > 1000 else [("?", [text]), (literal(text), [])]
        for constant, values in asked:
            question = bind(f"SELECT COUNT(*) FROM visits WHERE note = {constant}", described, facts, values).question
            assert len(duckdb.extract_statements(rendering.render(question, {"visits": neighbours.SOURCE}))) == 1
            assert neighbours.cells_of_rows(question, rows, facts) == {(): (1,)}, text
    facts.close()


def test_t19_injection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine runs what is printed from a plan: a text of an analyst reaches it as a constant, or not at all."""
    check_constants(tmp_path)
    described = catalog_in(tmp_path)
    pq.write_table(pa.Table.from_pylist([row(1)], schema=SCHEMA), tmp_path / "visits.parquet")
    with open_session(described) as session:
        before = sorted(tmp_path.rglob("*"))
        names = ['"' + name.replace('"', '""') + '"' for name in NASTY]
        for text in [*ESCAPES, *(f"SELECT COUNT({name}) FROM visits" for name in some(3, names))]:
            with pytest.raises(QueryRefused):
                session.sql(text, epsilon=0.1)
        assert session.budget().history == ()
        assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.setattr(literals, "text", lambda value: f"'{value}'")
    with pytest.raises((AssertionError, duckdb.Error)):
        check_constants(tmp_path)


# ---- T20 -------------------------------------------------------------------------------------------------------------


def check_own_keys(mechanism: Any, held: int) -> None:
    """A unit that is the only one to hold some keys has one of them shown with probability δ at most."""
    assert isinstance(mechanism, TruncatedGeometric)
    assert 1 - (1 - mechanism.chance(1).upper) ** held <= mechanism.delta


def test_t20_group_keys(tmp_path: Path) -> None:
    """By the exact law of the very mechanism that a question gets. Public keys are in the answer whoever holds them."""
    text = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
    small.write(tmp_path, [])
    found = small.priced(text, small.catalog(tmp_path, budget=small.PURE, most=3), epsilon=2, delta=1e-5)
    assert found.key_selection is not None
    mechanism: Any = found.key_selection.mechanism
    check_own_keys(mechanism, 3)
    with pytest.raises(AssertionError):
        check_own_keys(replace(mechanism, max_keys=1), 3)
    with small.opened(tmp_path, [small.row(1, plan="a", town="rare")], budget=small.PURE) as session:
        assert small.shown(session.sql(text, epsilon=2, delta=1e-5)) == []
        answer = session.sql(text.replace("town", "plan"), epsilon=2)
        assert [shown["plan"] for shown in small.shown(answer)] == ["a", "b"]


# ---- T21 -------------------------------------------------------------------------------------------------------------


def test_t21_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same noise, rows in another order give the same answer, row for row."""
    rows = [small.row(n, town=["Ulm", "Bonn", "Rom"][n % 3], plan="ab"[n % 2], cost=n % 9) for n in range(90)]
    texts = [
        "SELECT town, COUNT(*) AS n FROM visits GROUP BY town",
        "SELECT plan, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY plan",
        "SELECT plan, town, AVG(cost) AS a FROM visits GROUP BY plan, town ORDER BY a DESC",
    ]
    found: list[Any] = []
    for order in (rows, rows[::-1], random.Random(1).sample(rows, len(rows))):
        place = tmp_path / str(len(found))
        place.mkdir()
        with small.opened(place, order, entropy=StreamEntropy("order")) as session:
            found.append([small.shown(session.sql(text, epsilon=20, delta=1e-4)) for text in texts])
    assert found[0] == found[1] == found[2]
    assert [shown["town"] for shown in found[0][0]] == ["Bonn", "Rom", "Ulm"]

    small.write(tmp_path, [])
    priced = small.priced(texts[0], small.catalog(tmp_path), epsilon=20, delta=1e-4)
    held = {town: {1: 5} for town in "cadbfe"}
    turned = dict(reversed(held.items()))

    def chosen(held: Any) -> list[Any]:
        return [list(selecting.selected_keys(priced, holders_of(held), StreamEntropy(str(n)))) for n in range(60)]

    assert chosen(held) == chosen(turned)
    monkeypatch.setattr(holders, "_order", lambda values: np.arange(len(values)))
    assert chosen(held) != chosen(turned), "the twin"


# ---- T22 -------------------------------------------------------------------------------------------------------------

FACTS = [
    "SELECT plan, COUNT(*) AS n, AVG(cost) AS a, DP_INTERVAL_LOW(n) AS low FROM visits GROUP BY plan",
    "SELECT MEDIAN(age) AS m, MIN(pay) AS least FROM visits",
    "SELECT MAX(LEAST(GREATEST(day, DATE '2026-01-01'), DATE '2026-01-30')) AS last FROM visits",
    "SELECT SUM(age, contribution_bounds_per_group => AUTO) AS s FROM visits",
    "SELECT member, COUNT(*) AS n FROM visits JOIN codes USING (plan) GROUP BY ROLLUP (member)",
]


def test_t22_facts_about_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is shown but noisy numbers follows from question and catalog: prices, widths, notes, previews, SQL."""
    described = catalog_in(tmp_path)
    victim = [row(1, cost=99.0, age=110, plan="b"), row(1, age=0)]
    others = [row(n, age=n) for n in range(2, 30)]
    for text in some(3, FACTS):
        assert compare(described, [*victim, *others], others[::-1], text, PRICE) == []

    for folder, people in (("one", 50), ("other", 49)):  # nor are bounds, values or sizes read off the data
        (tmp_path / folder).mkdir()
        visits(tmp_path / folder, people=people)
    one, other = (protected(tmp_path / f"{name}/visits.parquet", bounds={}, domains={}) for name in ("one", "other"))
    assert (one.catalog.tables, one.catalog.digest) == (other.catalog.tables, other.catalog.digest)
    one.close()
    other.close()

    notes_of = vars(answering)["notes_of"]

    def counted(*asked: Any) -> Any:
        return (*notes_of(*asked), f"of {pq.read_metadata(tmp_path / 'visits.parquet').num_rows} rows")

    monkeypatch.setattr(answering, "notes_of", counted)
    assert compare(described, [*victim, *others], others, FACTS[0], PRICE), "the twin"


# ---- T23 -------------------------------------------------------------------------------------------------------------

BY_PLAN = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
AFTERWARDS = [f"{BY_PLAN} HAVING COUNT(*) > 2", f"{BY_PLAN} ORDER BY n DESC LIMIT 1", f"{BY_PLAN} LIMIT 1 OFFSET 1"]
AFTERWARDS += [f"SELECT * FROM ({BY_PLAN}) WHERE n > 2", f"SELECT plan, n / SUM(n) OVER () AS n FROM ({BY_PLAN})"]
BEFORE = [
    "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 10)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY age LIMIT 1)",
    "SELECT AVG(n) FROM (SELECT plan, age AS n FROM visits GROUP BY plan HAVING COUNT(*) > 5)",
    "SELECT COUNT(*) FROM visits TABLESAMPLE 10 PERCENT",
    "SELECT COUNT(*) FROM visits USING SAMPLE 5",
    "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY age) AS k FROM visits) WHERE k = 1",
    "SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY RANK() OVER (ORDER BY cost) = 1)",
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT MAX(age) FROM visits GROUP BY plan)",
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT age FROM visits LIMIT 1)",
    "SELECT FIRST(note) FROM visits",
]


def test_t23_selection_before_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HAVING, ORDER BY and LIMIT see released numbers alone; nothing else picks among the rows of several people."""
    described = catalog_in(tmp_path)
    rows = [*(row(n) for n in (2, 3, 4, 5)), *(row(n, plan="b") for n in (6, 7, 8, 1, 1))]
    for text in some(3, AFTERWARDS):
        assert compare(described, rows, rows[:-2], text, PRICE) == []
        asked, plain = (run(described, rows, one, PRICE).shown["sql"] for one in (text, BY_PLAN))
        assert set(asked) == set(plain), "the engine is asked the same"
    with open_session(described) as session:
        for text in some(3, BEFORE):
            with pytest.raises(QueryRefused):
                session.sql(text, epsilon=1)
    grouped = render.grouped
    monkeypatch.setattr(render, "grouped", lambda q, of: f"{grouped(q, of)} ORDER BY COUNT(*) DESC LIMIT 1")
    assert compare(described, rows, rows[:-2], BY_PLAN, PRICE), "the twin"


# ---- T24 -------------------------------------------------------------------------------------------------------------


def check_stored(path: Path) -> None:
    text = "SELECT plan, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY plan"
    same = "select plan, sum(cost) as total, count(*) as rows_ from visits as v group by 1 -- again"
    with protected(path) as session:
        first = session.sql(text, epsilon=1)
        spent = session.budget().spent
        again, other, less = session.sql(text, epsilon=1), session.sql(same, epsilon=1), session.sql(text, epsilon=0.5)
        assert repr(again.rows()) == repr(first.rows()) == repr(less.rows())
        assert [list(shown.values()) for shown in other.rows()] == [
            [shown["plan"], shown["s"], shown["n"]] for shown in first.rows()
        ]
        assert session.budget().spent == spent
    with protected(path) as later:
        assert repr(later.sql(text, epsilon=1).rows()) == repr(first.rows())
        assert later.budget().spent == spent


def test_t24_stored_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question about the same data has the same answer to the last bit, and costs nothing: no averaging."""
    check_stored(visits(tmp_path))
    (tmp_path / "twin").mkdir()
    monkeypatch.setattr(stored, "stored_answer", lambda *_: None)
    with pytest.raises(AssertionError):
        check_stored(visits(tmp_path / "twin"))


# ---- T25 -------------------------------------------------------------------------------------------------------------


def check_versions(path: Path) -> None:
    text = "SELECT COUNT(*) AS n FROM visits"
    with protected(path) as session:
        first = session.sql(text, epsilon=1)
        visits(path.parent, people=120)
        with pytest.raises(lw.DataChanged):
            session.sql(text, epsilon=1)
        assert session.budget().spent == first.cost
        assert session.accept_data() == 2
        second = session.sql(text, epsilon=1)
        assert (second.stored, second.cost) == (False, first.cost)
        assert session.budget().spent.amount == 2 * first.cost.amount, "spending stays with the people"


def test_t25_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other data are answered once their curator accepts them, paid anew from the same budget, never from the store."""
    check_versions(visits(tmp_path))
    (tmp_path / "twin").mkdir()

    def trusting(tables: Any, engine: Any, _state: Any) -> dict[str, str]:
        return {table.name: engine.digest(table) for table in tables}

    monkeypatch.setattr(release, "current_digests", trusting)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_versions(visits(tmp_path / "twin"))


# ---- T26 -------------------------------------------------------------------------------------------------------------

OF_MANY = [
    "SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (person)",
    "SELECT plan, COUNT(*), SUM(age), COUNT(DISTINCT note) FROM visits GROUP BY plan",
    "SELECT tier, COUNT(*), SUM(factor) FROM visits JOIN codes USING (plan) GROUP BY tier",
    "SELECT COUNT(*), COUNT(DISTINCT person) FROM visits LEFT JOIN codes ON visits.plan = codes.plan",
    "SELECT COUNT(*), SUM(n) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person)",
    "SELECT COUNT(*) FROM (SELECT person, note FROM visits UNION ALL SELECT person, plan FROM visits)",
    "SELECT SUM(age, contribution_bounds_per_group => (0, 50)) FROM visits GROUP BY plan",
]
TWO_TABLES = [
    "SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (plan)",
    "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.plan = b.plan",
    "SELECT COUNT(*) FROM visits, visits AS other",
    "SELECT COUNT(*) FROM visits WHERE plan IN (SELECT note FROM visits)",
]


def check_many_rows(described: Catalog, facts: PublicData) -> None:
    chance = random.Random(26)
    others = [neighbours.awkward_row(chance, person) for person in (2, 3, 3, 4, 4, 4)]
    for text in some(2, OF_MANY):
        question = bind(text, described, facts).question
        before = neighbours.cells_of_rows(question, others, facts)
        for count in (1, 2, 5, 60):
            victim = [neighbours.awkward_row(chance, 1) for _ in range(count)]
            after = neighbours.cells_of_rows(question, chance.sample([*others, *victim], len(others) + count), facts)
            assert neighbours.moved_too_far(question, after, before, "add_remove") == [], (text, count)


@pytest.mark.parametrize("bug", ["none", "rows are not bounded", "a join is thought to match once"])
def test_t26_many_rows_of_one_person(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows a person has, and whatever is joined to them, the exact answer moves by its bound at most."""
    described = neighbours.catalog(tmp_path)
    facts = PublicData(described)
    if bug == "none":
        check_many_rows(described, facts)
        for text in TWO_TABLES:
            with pytest.raises(QueryRefused):
                bind(text, described, facts)
    else:
        if bug == "rows are not bounded":
            monkeypatch.setattr(cleaned, "kept", lambda *_: "SELECT * FROM cleaned")
        else:
            monkeypatch.setattr(PublicData, "multiplicity", lambda *_: 1)
        with pytest.raises(AssertionError):
            check_many_rows(described, facts)
    facts.close()
