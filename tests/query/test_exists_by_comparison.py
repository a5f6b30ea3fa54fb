"""EXISTS by one comparison holds for the rows for which SQL says so, NULL among them."""

from pathlib import Path

import duckdb
import pytest

import lapwing as lw
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "bands"
ledger = "sqlite:bands.db"
[budget]
epsilon = 1e15
[tables.people]
source = "people.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.people.columns]
age = { type = "integer", lower = 0, upper = 20 }
[tables.bands]
source = "bands.parquet"
public = true
[tables.bands.columns]
low = { type = "integer" }
kind = { type = "string" }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bands")
    (folder / "lapwing.toml").write_text(CATALOG)
    tables = {
        "people": "SELECT r AS person, NULLIF(r, 9) AS age FROM range(20) AS t (r)",
        "bands": "VALUES (3, 'a'), (8, 'a'), (NULL, 'a'), (15, 'b'), (NULL, 'n')",
    }
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            names = "(low, kind)" if name == "bands" else ""
            connection.execute(f"COPY (SELECT * FROM ({rows}) AS t {names}) TO '{folder / name}.parquet'")
    return folder


@pytest.mark.parametrize("denied", ["", "NOT "])
@pytest.mark.parametrize(
    "condition",
    [
        "p.age > b.low",
        "b.low > age",
        "low <= p.age AND kind = 'a'",
        "p.age <= low",
        "p.age > low AND kind = 'n'",
        "kind = 'z' AND low > p.age",
    ],
)
def test_as_sql_has_it(condition: str, denied: str, folder: Path) -> None:
    shown, said = answers(condition, denied, folder)
    assert shown == said


def answers(condition: str, denied: str, folder: Path) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return what Lapwing and DuckDB say."""
    text = f"SELECT COUNT(*) AS n FROM people AS p WHERE {denied}EXISTS (SELECT 1 FROM bands AS b WHERE {condition})"
    with duckdb.connect() as connection:
        for name in ("people", "bands"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
        said = connection.execute(text).fetchall()
    with lw.connect(folder / "lapwing.toml") as session:
        return [tuple(row.values()) for row in session.sql(text, epsilon=10**10).rows()], said


def test_two_comparisons_are_refused(folder: Path) -> None:
    text = (
        "SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM bands AS b WHERE p.age > b.low AND p.age < b.low)"
    )
    with lw.connect(folder / "lapwing.toml") as session, refused_as("invalid_exists"):
        session.sql(text, epsilon=1)
