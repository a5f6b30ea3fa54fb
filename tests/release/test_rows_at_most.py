"""How many rows a table may have in all: a public figure, beyond which no version of the data is accepted."""

from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.toml import dumps, loads
from lapwing.errors import CatalogError, DataFault
from lapwing.opening import open_session
from tests.support.effort import only
from tests.support.release.tables import PEOPLE, protected, visits

ROWS = 2 * PEOPLE
QUESTION = "SELECT COUNT(*) AS n FROM visits"
TEXT = """\
[dataset]
name = "visits"
ledger = "sqlite:visits.db"
[budget]
epsilon = 3
delta = 1e-6
[tables.visits]
source = "{source}"
privacy_unit = "person_id"
max_rows_per_unit = 2
rows_at_most = {rows}
[tables.visits.columns]
cost = {{ type = "integer", lower = 0, upper = 100 }}
"""


def described(folder: Path, rows: object, source: str = "visits.parquet") -> Any:
    return loads(TEXT.format(rows=rows, source=source), file="visits.toml", folder=folder)


def as_csv(folder: Path, *, people: int = PEOPLE) -> None:
    lines = ["person_id,cost", *(f"{row // 2},{row % 100}" for row in range(2 * people))]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def check(folder: Path, source: str) -> None:
    """As many rows are accepted as are promised, and one person more is not; what was accepted goes on."""
    write = as_csv if source.endswith("csv") else visits
    write(folder)
    with pytest.raises(DataFault, match="has more rows than the 399"):
        open_session(described(folder, ROWS - 1, source))
    assert not (folder / "visits.db").exists(), "nothing was begun"
    with open_session(described(folder, ROWS, source)) as session:
        first = session.sql(QUESTION, epsilon=1)
        write(folder, people=PEOPLE + 1)
        with pytest.raises(DataFault, match=r"more rows than the 400 that rows_at_most of table visits promises"):
            session.accept_data()
        assert session.budget().version == 1
        with pytest.raises(lw.DataChanged):
            session.sql(f"{QUESTION} WHERE cost > 3", epsilon=1)
        write(folder)
        assert session.sql(QUESTION, epsilon=1).rows() == first.rows()


@pytest.mark.parametrize("source", only([0], ["visits.parquet", "visits.csv"]))
def test_no_version_with_more_is_accepted(source: str, tmp_path: Path) -> None:
    check(tmp_path, source)


def test_twin_a_figure_that_nobody_looks_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.engines.duckdb.engine.DuckDB.rows", lambda self, table: 0)

    with pytest.raises(pytest.fail.Exception):
        check(tmp_path, "visits.parquet")


def test_it_is_kept_and_means_nothing_to_answers(tmp_path: Path) -> None:
    few, more = described(tmp_path, ROWS), described(tmp_path, 10 * ROWS)
    assert loads(dumps(few), file="visits.toml", folder=tmp_path).tables[0].rows_at_most == ROWS
    assert few.tables[0].digest == more.tables[0].digest
    visits(tmp_path)
    with open_session(few) as session:
        first = session.sql(QUESTION, epsilon=1)
    with open_session(more) as session:
        again = session.sql(QUESTION, epsilon=1)
    assert (again.rows(), again.stored) == (first.rows(), True)


@pytest.mark.parametrize("rows", [0, -1, 10**13, "true", "1.5", '"many"'])
def test_what_cannot_be_meant(rows: object, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"tables\.visits\.rows_at_most"):
        described(tmp_path, rows)


def test_a_catalog_without_it_has_no_such_limit(tmp_path: Path) -> None:
    with protected(visits(tmp_path)) as session:
        assert session.catalog.tables[0].rows_at_most is None
        visits(tmp_path, people=5 * PEOPLE)
        assert session.accept_data() == 2
