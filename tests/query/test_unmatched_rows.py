"""Public rows that nobody's row matches are those that SQL shows, where noise rounds away; and a twin is not."""

from pathlib import Path

import duckdb
import pytest

import lapwing as lw
from lapwing.answer.notes import MATCHES_CHOSEN, code_of
from lapwing.query.normalise import unmatched_rows
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1e15
[tables.sales]
source = "sales.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.sales.columns]
item = { type = "integer" }
day = { type = "integer", lower = 0, upper = 9 }
[tables.items]
source = "items.parquet"
public = true
[tables.items.columns]
id = { type = "integer" }
brand = { type = "string" }
shelf = { type = "integer" }
name = { type = "string" }
"""
UNSOLD = "SELECT brand FROM items AS i LEFT JOIN sales AS s ON s.item = i.id {} WHERE s.person IS NULL ORDER BY brand"

NAMED = "SELECT id, name FROM items AS i LEFT JOIN sales AS s ON s.item = i.id WHERE s.item IS NULL AND i.shelf > 2"
"""One of these names is NULL."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "lapwing.toml").write_text(CATALOG)
    tables = {
        "sales": "SELECT r % 7 AS person, NULLIF(r % 5, 4) AS item, r % 10 AS day FROM range(20) AS t (r)",
        "items": "SELECT r AS id, 'b' || r // 3 AS brand, r // 2 AS shelf, 'n' || NULLIF(r, 9) AS name "
        "FROM range(15) AS t (r)",
    }
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.execute(f"COPY ({rows}) TO '{folder / name}.parquet'")
    return folder


def true_rows(folder: Path, text: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        for name in ("sales", "items"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
        return connection.execute(text).fetchall()


@pytest.mark.parametrize("text", [UNSOLD.format(""), UNSOLD.format("AND s.day > 6"),
                                  f"SELECT COUNT(*) AS n FROM ({UNSOLD.format('')[:-15]})",
                                  f"{NAMED} ORDER BY id", f"SELECT COUNT(name) AS n FROM ({NAMED}) AS u"])  # fmt: skip
def test_they_are_those_that_sql_shows(folder: Path, text: str) -> None:
    with lw.connect(folder / "lapwing.toml") as session:
        answer = session.sql(text, epsilon=10**10)
        assert [tuple(row.values()) for row in answer.rows()] == true_rows(folder, text)


def test_twin_rows_that_share_a_group_are_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their shelf a group holds several items, and without a look at the public table it would be shown once."""
    text = "SELECT i.shelf FROM items AS i LEFT JOIN sales AS s ON s.item = i.shelf WHERE s.person IS NULL"
    with lw.connect(folder / "lapwing.toml") as session:
        with pytest.raises(lw.QueryRefused):
            session.sql(text, epsilon=10**10)
        monkeypatch.setattr(unmatched_rows, "are_unique", lambda *_: True)
        rows = [tuple(row.values()) for row in session.sql(text, epsilon=10**10).rows()]
    assert rows == sorted(set(true_rows(folder, text))) != sorted(true_rows(folder, text))


@pytest.mark.parametrize(
    "text", ["SELECT i.id, s.day FROM {}", "SELECT COUNT(*) FROM (SELECT i.id, s.day FROM {}) AS u"]
)
def test_what_has_no_value_there_is_not_shown(folder: Path, text: str) -> None:
    """The second would be 0: rows of nobody are in no subquery of rows."""
    unsold = "items AS i LEFT JOIN sales AS s ON s.item = i.id WHERE s.item IS NULL"
    with lw.connect(folder / "lapwing.toml") as session, refused_as("join_not_supported", saying="'day'"):
        session.sql(text.format(unsold), epsilon=1)


SOLD = "(SELECT 1 FROM sales WHERE item = id AND day > shelf + 6)"
"""Of items, outside: `sales` has no such columns. `day` is its own."""


@pytest.mark.parametrize("text", [
    f"SELECT brand FROM items WHERE EXISTS {SOLD}",
    f"SELECT id, name FROM items AS i WHERE NOT (NOT (EXISTS {SOLD})) AND i.shelf < 2",
    f"SELECT * FROM items WHERE NOT EXISTS {SOLD}",
    f"SELECT brand, COUNT(*) AS n FROM items WHERE EXISTS {SOLD} GROUP BY brand",
    "SELECT id FROM items WHERE id IN (SELECT DISTINCT item FROM sales AS s WHERE day > 6)",
    "SELECT COUNT(*) AS n FROM items AS i WHERE i.id IN (SELECT s.item FROM sales AS s)",
])  # fmt: skip
def test_those_with_a_match_are_those_of_sql(text: str, folder: Path) -> None:
    with lw.connect(folder / "lapwing.toml") as session:
        answer = session.sql(text, epsilon=10**10)
        assert sorted(tuple(map(str, row.values())) for row in answer.rows()) == sorted(
            tuple(map(str, row)) for row in true_rows(folder, text)
        )
        assert MATCHES_CHOSEN in map(code_of, answer.notes)
        (measure,) = session.explain(text, epsilon=1).measures
        assert measure.sensitivity == 3, "a person has three sales, and so may be in three groups"


def test_twins_that_are_misread_show_others(folder: Path) -> None:
    """The first forgets the condition, the second a NOT."""
    text = f"SELECT id, name FROM items AS i WHERE EXISTS {SOLD} AND i.shelf < 2"
    for twin in (text.replace("day > shelf + 6", "TRUE"), text.replace("EXISTS", "NOT EXISTS")):
        assert true_rows(folder, twin) != true_rows(folder, text)


@pytest.mark.parametrize("text", [
    "SELECT id FROM items WHERE id NOT IN (SELECT item FROM sales)",
    "SELECT shelf FROM items AS i WHERE EXISTS (SELECT 1 FROM sales AS s WHERE s.item = i.shelf)",
    "SELECT id FROM items AS i WHERE EXISTS (SELECT 1 FROM sales AS s WHERE s.day > i.id)",
    f"SELECT id FROM items WHERE shelf > 2 OR EXISTS {SOLD}",
    f"SELECT id FROM items WHERE EXISTS {SOLD} AND EXISTS {SOLD}",
    "SELECT id FROM items WHERE EXISTS (SELECT COUNT(*) FROM sales WHERE item = id)",
])  # fmt: skip
def test_of_other_subqueries_nothing_is_said(text: str, folder: Path) -> None:
    with lw.connect(folder / "lapwing.toml") as session, pytest.raises(lw.QueryRefused):
        session.sql(text, epsilon=1)
