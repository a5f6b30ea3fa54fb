"""Rows that somebody sends to make a question fail, on Spark: as `tests.threats.test_hostile_rows` on DuckDB."""

from pathlib import Path

import pytest

from lapwing.catalog.toml import load
from lapwing.engines.spark.cluster import Cluster
from lapwing.opening import open_session
from tests.support import hostile_rows as rows
from tests.support.effort import only

TABLES = rows.tables()


@pytest.mark.parametrize("kind", only([0], list(TABLES)))
def test_questions(cluster: Cluster, kind: str, tmp_path: Path) -> None:
    found = []
    for name, engine in ((kind, "spark"), ("alike", "duckdb")):
        path = rows.written(tmp_path / engine, TABLES[name], engine, engine)
        with open_session(load(path)) as session:
            found.append(list(rows.shapes(session)))
    answered = [place for place, (_, names) in enumerate(found[0]) if names]
    assert len(answered) > 10
    assert [found[0][place] for place in answered] == [found[1][place] for place in answered]
