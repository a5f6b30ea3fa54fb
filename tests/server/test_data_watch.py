"""The watch notices replaced files of protected tables, public tables and graphs, and that they come back."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.server.data_watch import DataWatch
from tests.graphs.test_asking import RING, TIES
from tests.support.graphs import NODES, written

CATALOG = """
[dataset]
name = "shops"
ledger = "sqlite:shops.db"
[budget]
epsilon = 10
measure = "pure"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
kind = { type = "string", values = ["a", "b"] }
[tables.kinds]
source = "kinds.parquet"
public = true
[tables.kinds.columns]
kind = { type = "string" }
name = { type = "string" }
"""


def watched(session: lw.Session) -> Any:
    """Return what looks once, and says what changed."""
    served = SimpleNamespace(name="x", session=session)
    watch = DataWatch(SimpleNamespace(everything=lambda: [served]))  # type: ignore[arg-type]

    def look() -> str | None:
        watch._due.clear()
        watch.look()
        return watch.change("x", session.budget().version)

    return look


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[lw.Session]:
    pq.write_table(pa.table({"person": [1, 2], "kind": ["a", "b"]}), tmp_path / "visits.parquet")
    pq.write_table(pa.table({"kind": ["a", "b"], "name": ["x", "y"]}), tmp_path / "kinds.parquet")
    (tmp_path / "lapwing.toml").write_text(CATALOG)
    with lw.connect(tmp_path / "lapwing.toml") as session:
        yield session


def test_replaced_public_files_are_noticed_until_they_come_back(shops: lw.Session, tmp_path: Path) -> None:
    look, file = watched(shops), tmp_path / "kinds.parquet"
    kept = file.read_bytes()
    pq.write_table(pa.table({"kind": ["a", "b"], "name": ["x", "z"]}), file)
    assert look() is None  # nobody has read it yet
    file.write_bytes(kept)
    shops.sql("SELECT name, COUNT(*) AS n FROM kinds GROUP BY name")
    assert look() is None
    pq.write_table(pa.table({"kind": ["a", "b"], "name": ["x", "z"]}), file)
    assert look() == "public_changed"
    file.unlink()
    assert look() == "public_changed"
    file.write_bytes(kept)
    assert look() is None
    (tmp_path / "visits.parquet").unlink()
    assert look() == "changed"


@pytest.mark.parametrize("graph", [NODES, TIES])
def test_replaced_edges_are_noticed_after_the_first_query(tmp_path: Path, graph: str) -> None:
    with lw.connect(written(tmp_path, 40, RING, graph=graph)) as session:
        look = watched(session)
        assert look() is None
        session.explain("SELECT GRAPH_EDGES(friends)", epsilon=1)
        assert look() is None
        file = tmp_path / "friendships.csv"
        kept = file.read_bytes()
        file.write_bytes(b"")
        assert look() == "changed"
        file.write_bytes(kept)
        assert look() is None
