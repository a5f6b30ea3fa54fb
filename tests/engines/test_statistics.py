"""What a Parquet footer says of its columns must not change what a question counts.

The engine believes these statistics, which leave NaN out and say of a row group that all its texts are one: so that
whether one row counts could depend on its neighbours.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.table import Column
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import cleaned, lockdown, queries
from lapwing.engines.duckdb.cleaned import WHOLE
from lapwing.query.bind.bind import bind
from tests.support.effort import one_in
from tests.support.engines.tables import ask, catalog, parquet

NAN = float("nan")
FLOATS = [[NAN, NAN, 1.0, 2.0], [NAN, NAN, 1.0, 2.0, None], [NAN, 1.0], [NAN, NAN]]
TEXTS = [["a", "a", None], ["a", "b", None], [None, None], ["a"]]
CONDITIONS = {
    "x": ["x IS NULL", "x IS NOT NULL", "x > 1", "NOT (x > 1)", "x <> 1", "COALESCE(x, 5) = 5", "NOT (x IN (1, 2))"],
    "s": ["s IS NULL", "s IS NOT NULL", "s = 'a'", "NOT (s = 'a')"],
}
DECLARED = {"x": ('{ type = "float" }', '{ type = "float", lower = 0, upper = 10 }'), "s": ('{ type = "string" }',)}


def believed(folder: Path, every: int = 1) -> Iterator[tuple[str, Any, object]]:
    """Yield the questions that are answered otherwise when the footer has statistics, of one content in so many."""
    for name, contents in (("x", FLOATS), ("s", TEXTS)):
        for declared in DECLARED[name]:
            for values in contents[::every]:
                answers = []
                for statistics in (True, False):
                    array = pa.array(values, pa.float64() if name == "x" else pa.string())
                    pq.write_table(
                        pa.table({name: array}), folder / "t.parquet", write_statistics=statistics, use_dictionary=False
                    )
                    described = catalog(folder, {name: declared})
                    engine = DuckDB(described, threads=1)
                    select = f"SELECT COUNT(*) AS n, COUNT({name}) AS m FROM t WHERE"
                    answers.append([ask(engine, described, f"{select} {where}") for where in CONDITIONS[name]])
                    engine.close()
                pairs = zip(CONDITIONS[name], *answers, strict=True)
                yield from ((declared, where, values) for where, with_them, without in pairs if with_them != without)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_statistics_of_the_file_change_nothing(tmp_path: Path, every: int) -> None:
    assert list(believed(tmp_path, every)) == []


@pytest.mark.parametrize("optimizer", one_in(2, ["statistics_propagation", "filter_pushdown"]))
def test_an_engine_that_believes_them_is_found(optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(name for name in lockdown.DISABLED_OPTIMIZERS if name != optimizer)
    monkeypatch.setattr(lockdown, "DISABLED_OPTIMIZERS", others)
    clean = cleaned._clean

    def of_any_length(column: Column, physical: str) -> str:
        """What looks at the length of a text hides it from this optimizer, which a later engine may see through."""
        return column.name if column.type == "string" else clean(column, physical)

    monkeypatch.setattr(cleaned, "_clean", of_any_length)
    assert any(believed(tmp_path))


def test_filters_on_rows_that_are_read_twice_are_not_pushed_into_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that has them believes the footer, whichever optimizer it has them from."""
    parquet(tmp_path, {"k": [1, 2, 2], "x": [1, 2, 3]})
    found = catalog(tmp_path, dict.fromkeys(("k", "x"), '{ type = "integer", values = [1, 2] }'))
    question = bind("SELECT k, COUNT(*) FROM t WHERE x > 1 GROUP BY ROLLUP (k)", found).question
    filtered = []
    for off in (lockdown.DISABLED_OPTIMIZERS, set(lockdown.DISABLED_OPTIMIZERS) - {"cte_filter_pusher"}):
        monkeypatch.setattr(lockdown, "DISABLED_OPTIMIZERS", tuple(off))
        engine = DuckDB(found)
        ((_, plan),) = engine.fetch(f"EXPLAIN WITH {engine._direct(question, {}, WHOLE)} {queries.answer(question)}")
        filtered.append("Filters" in plan)
        engine.close()
    assert filtered == [False, True]
