"""What an engine does before it reads a row does not grow with the words of an index."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import lockdown
from lapwing.query.bind.bind import bind
from tests.support.engines.tables import catalog, digests, parquet

ROWS = 6_000
PLAIN = "SELECT COUNT(*) FROM t WHERE x > 3"
STEEP = (
    "SELECT COUNT(*) FROM t WHERE x IN (1, 3, 5, 7, 9, 11)",
    "SELECT COUNT(*) FROM (SELECT u, SUM(x) AS m FROM t GROUP BY u HAVING SUM(x) IN (1, 2, 3, 4, 5, 6))",
    "SELECT COUNT(*) FROM t WHERE u IN (SELECT u FROM t WHERE x > 5)",
    "SELECT COUNT(*) FROM (SELECT u, x FROM t UNION SELECT u, x + 1 FROM t)",
)
"""None of them reads a text."""


def indexed(folder: Path) -> tuple[DuckDB, Catalog]:
    """Return an engine whose index holds every text as one of its words."""
    texts = [f"{row * 7919} {'q' * 240}" for row in range(ROWS)]
    numbers = {"u": [row // 4 for row in range(ROWS)], "x": [row % 50 for row in range(ROWS)]}
    parquet(folder, {**numbers, **dict.fromkeys("abcdefgh", texts)})
    kinds = {"x": '{ type = "integer", lower = 0, upper = 50 }', **dict.fromkeys("abcdefgh", '{ type = "string" }')}
    found = catalog(folder, kinds, unit="u", rows=4)
    engine = DuckDB(found, threads=1, indexing=False)
    engine.build_index(found.tables[0])
    return engine, found


def seconds(engine: DuckDB, found: Catalog, text: str, known: Mapping[str, str]) -> float:
    """Return the least processor time of a question."""
    question, times = bind(text, found).question, []
    for _ in range(3):
        begun = time.process_time()
        engine.run(question, known)
        times.append(time.process_time() - begun)
    return min(times)


def slow_ones(folder: Path, texts: Iterable[str] = STEEP) -> set[str]:
    engine, found = indexed(folder)
    known = digests(engine, bind(PLAIN, found).question)
    plain = seconds(engine, found, PLAIN, known)
    slow = {text for text in texts if seconds(engine, found, text, known) > 10 * plain + 0.005}
    engine.close()
    return slow


@pytest.mark.long
def test_questions_do_not_pay_for_the_words_of_an_index(tmp_path: Path) -> None:
    assert slow_ones(tmp_path) == set()


@pytest.mark.long
def test_an_engine_that_writes_them_out_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(name for name in lockdown.DISABLED_OPTIMIZERS if name != "common_subplan")
    monkeypatch.setattr(lockdown, "DISABLED_OPTIMIZERS", others)
    assert slow_ones(tmp_path, STEEP[:1])
