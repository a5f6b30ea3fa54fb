"""What a unit makes an engine do is its own: an empty side of a join does not spare everybody's work on the other."""

import time
from collections.abc import Iterable
from math import inf
from pathlib import Path

import pytest

from lapwing.engines import DuckDB
from lapwing.engines.duckdb import relations
from lapwing.query.bind.bind import bind
from tests.support.effort import one_in
from tests.support.engines.tables import catalog, digests, parquet

ROWS = 12_000
V = "WITH v AS (SELECT * FROM t WHERE name = '{}') "
DEAR = "NOT REGEXP_MATCHES(LPAD(note, 250, 'ab'), '(a|b)*c')"
OF_ALL = f"(SELECT * FROM t WHERE {DEAR})"
QUESTIONS = {
    "IN": f"SELECT COUNT(*) FROM {OF_ALL} a WHERE a.u IN (SELECT u FROM v)",
    "JOIN": f"SELECT COUNT(*) FROM {OF_ALL} a JOIN v ON a.u = v.u AND a.x = v.x AND a.name = v.name",
    "mirrored": f"SELECT COUNT(*) FROM v JOIN {OF_ALL} a ON a.u = v.u",
    "LEFT JOIN": f"SELECT COUNT(*) FROM v LEFT JOIN {OF_ALL} a ON a.u = v.u",
    "EXISTS": "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM t a WHERE a.u = v.u AND "
    f"{DEAR.replace('note', 'a.note')})",
    "NOT IN": f"SELECT COUNT(*) FROM v WHERE u NOT IN (SELECT u FROM t a WHERE {DEAR.replace('note', 'a.note')})",
    "OR": f"SELECT COUNT(*) FROM v WHERE x > 99 OR u IN (SELECT u FROM t a WHERE {DEAR.replace('note', 'a.note')})",
}
BOTH_READ = {"mirrored", "LEFT JOIN", "EXISTS", "NOT IN"}
"""Where an engine builds the dear side first, it is read in any case."""


@pytest.fixture
def people(tmp_path: Path) -> DuckDB:
    numbers = range(ROWS)
    columns = {"u": [n // 4 for n in numbers], "x": [n % 50 for n in numbers], "name": [f"p{n // 4}" for n in numbers]}
    parquet(tmp_path, {**columns, "note": [f"ab{n}" for n in numbers]})
    texts = dict.fromkeys(("name", "note"), '{ type = "string" }')
    found = catalog(tmp_path, {"x": '{ type = "integer", lower = 0, upper = 50 }', **texts}, unit="u", rows=4)
    engine = DuckDB(found, threads=1, indexing=False)
    engine.build_index(found.tables[0])
    return engine


def seconds(engine: DuckDB, text: str) -> float:
    question = bind(text, engine._catalog).question
    known = digests(engine, question)
    begun = time.process_time()
    engine.run(question, known)
    return time.process_time() - begun


def spared(engine: DuckDB, question: str) -> bool:
    """Tell whether it takes less than half of the time where a unit is not there: what each takes at least.

    A busy machine makes both longer by chance. So they are asked until there is no doubt.
    """
    absent = present = inf
    for tried in range(30):
        absent = min(absent, seconds(engine, V.format("nobody") + question))
        present = min(present, seconds(engine, V.format("p17") + question))
        if tried >= 2 and not 0.4 < absent / present < 0.6:
            break
    return absent < present / 2


def toggled(engine: DuckDB, names: Iterable[str]) -> set[str]:
    """Return the questions whose work a unit that is not there spares."""
    return {name for name in names if spared(engine, QUESTIONS[name])}


NAMES = pytest.mark.parametrize("names", one_in(2, [[*QUESTIONS][::6], [*QUESTIONS]]), ids=len)


@NAMES
def test_an_empty_side_spares_no_work(people: DuckDB, names: list[str]) -> None:
    assert toggled(people, names) == set()


@NAMES
def test_a_side_that_can_be_empty_is_found(people: DuckDB, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_and_nobodys", lambda _nulls, _keys: "")
    assert toggled(people, names) == set(names) - BOTH_READ
