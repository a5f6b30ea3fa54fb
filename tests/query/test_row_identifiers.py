"""Identifiers that only tell rows apart, and windows that pick the unit, as tools write them for conversions."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1e30
measure = "pure"
[tables.views]
source = "views.parquet"
privacy_unit = "person"
unit = "guest"
max_rows_per_unit = 4
[tables.views.columns]
person = { type = "integer" }
day = { type = "integer", lower = 0, upper = 9 }
page = { type = "string", values = ["a", "b"] }
[tables.sales]
source = "sales.parquet"
privacy_unit = "buyer"
unit = "guest"
max_rows_per_unit = 4
[tables.sales.columns]
buyer = { type = "integer" }
day = { type = "integer", lower = 0, upper = 9 }
[views.numbered]
sql = "SELECT buyer, day, GEN_RANDOM_UUID() AS id FROM sales"
"""
EXACT = 10**10
WITHIN = (
    "PARTITION BY s.buyer, s.day, s.id ORDER BY v.day DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
)
CONVERTED = f"""
    SELECT page, SUM(sale) AS sales FROM (
        SELECT DISTINCT FIRST_VALUE(v.page) OVER ({WITHIN}) AS page, FIRST_VALUE(v.person) OVER ({WITHIN}) AS person,
            s.id AS id, s.sale AS sale
        FROM views AS v
        JOIN (SELECT buyer, day, 1 AS sale, GEN_RANDOM_UUID() AS id FROM sales) AS s
            ON v.person = s.buyer AND v.day <= s.day AND v.day > s.day - 5
    ) AS c GROUP BY page
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "lapwing.toml").write_text(CATALOG)
    people = [n // 3 for n in range(120)]
    views = {"person": people, "day": [2 * n % 7 for n in range(120)], "page": ["ab"[n // 5 % 2] for n in range(120)]}
    sales = {"buyer": people, "day": [(n // 2) % 10 for n in range(120)]}  # many of a person are alike
    pq.write_table(pa.table(views), folder / "views.parquet")
    pq.write_table(pa.table(sales), folder / "sales.parquet")
    return folder


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[lw.Session]:
    with lw.connect(folder / "lapwing.toml") as session:
        yield session


def raw(folder: Path, text: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    for name in ("views", "sales"):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
    return sorted(connection.execute(text).fetchall())


def ours(session: lw.Session, text: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in session.sql(text, epsilon=EXACT))


COUNTED = """
    SELECT COUNT(*) AS n FROM (
        SELECT DISTINCT buyer, day, id FROM (SELECT buyer, day, GEN_RANDOM_UUID() AS id FROM sales) AS s) AS d
"""


@pytest.mark.parametrize(
    "text",
    [
        CONVERTED,
        COUNTED,
        "SELECT SUM(n) AS s FROM (SELECT day, COUNT(*) OVER (PARTITION BY buyer, id) AS n FROM "
        "(SELECT buyer, day, GEN_RANDOM_UUID() AS id FROM sales) s) u",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT MAX(person) OVER (PARTITION BY person) AS p, page FROM views) u",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT LAST_VALUE(person) OVER (PARTITION BY person, page ORDER BY day) "
        "AS p, page FROM views) u",
    ],
)
def test_results_are_those_of_duckdb(text: str, session: lw.Session, folder: Path) -> None:
    assert ours(session, text) == raw(folder, text)


def test_rows_that_are_alike_are_not_one(session: lw.Session) -> None:
    """Else the test above would hold without identifiers, too."""
    assert ours(session, COUNTED) != ours(session, COUNTED.replace(", id FROM", " FROM"))
    assert ours(session, CONVERTED) != ours(session, CONVERTED.replace("s.id AS id,", ""))


NUMBERED = "(SELECT buyer, day, GEN_RANDOM_UUID() AS id FROM sales) AS s"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(DISTINCT id) FROM {NUMBERED}",
        f"SELECT id, COUNT(*) FROM {NUMBERED} GROUP BY id",
        f"SELECT id, COUNT(*) FROM {NUMBERED} GROUP BY 1",
        f"SELECT id, COUNT(*) FROM {NUMBERED} GROUP BY ALL",
        f"SELECT COUNT(*) FROM {NUMBERED} WHERE id > 'a'",
        f"SELECT COUNT(*) FROM {NUMBERED} JOIN (SELECT buyer, GEN_RANDOM_UUID() AS id FROM sales) t USING (buyer, id)",
        f"SELECT COUNT(*) FROM (SELECT buyer, id FROM {NUMBERED} UNION SELECT buyer, id FROM {NUMBERED}) u",
        f"SELECT COUNT(*) FROM (SELECT buyer, day, id AS key FROM {NUMBERED}) u WHERE key > 'a'",
        f"SELECT SUM(n) FROM (SELECT LENGTH(id) AS n FROM {NUMBERED}) u",
        "SELECT COUNT(*) FROM (SELECT DISTINCT GEN_RANDOM_UUID() AS id, buyer FROM sales) u",
        "SELECT COUNT(*) FROM (SELECT GEN_RANDOM_UUID() AS id, buyer FROM sales GROUP BY buyer) u",
        "SELECT COUNT(DISTINCT z) FROM (SELECT buyer, GEN_RANDOM_UUID() AS id FROM sales) AS t (buyer, z)",
        "SELECT COUNT(DISTINCT id) FROM numbered",  # what is asked of a view stands outside its own text
        "SELECT COUNT(*) FROM (SELECT buyer, id FROM numbered UNION SELECT buyer, id FROM numbered) u",
        "SELECT COUNT(*) FROM numbered a JOIN numbered b ON a.buyer = b.buyer AND a.id = b.id",
        f"WITH n AS {NUMBERED.removesuffix(' AS s')} SELECT COUNT(DISTINCT id) FROM n",
        f"WITH n AS {NUMBERED.removesuffix(' AS s')} SELECT COUNT(*) FROM n a JOIN n b "
        "ON a.buyer = b.buyer AND a.id = b.id",
        f"WITH n AS {NUMBERED.removesuffix(' AS s')} SELECT COUNT(*) FROM "
        "(SELECT buyer, id FROM n UNION SELECT buyer, id FROM n) u",
        f"SELECT COUNT(*) FROM (SELECT * RENAME (id AS z) FROM {NUMBERED}) u WHERE z > 1",
        f"SELECT DISTINCT id FROM {NUMBERED}",
        f"SELECT COUNT(*) FROM sales WHERE (buyer, day) IN (SELECT buyer, id FROM {NUMBERED})",
        "PIVOT (SELECT buyer, day, GEN_RANDOM_UUID() AS id FROM sales) ON day IN (1, 2) USING COUNT(*)",
    ],
)
def test_an_identifier_of_which_more_is_asked_is_refused(text: str, session: lw.Session) -> None:
    with refused_as("function_not_supported"):
        session.explain(text, epsilon=1)


@pytest.mark.parametrize(
    "frame", ["ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING"]
)
def test_a_window_that_may_be_empty_is_not_the_unit(frame: str, session: lw.Session) -> None:
    text = f"SELECT DISTINCT FIRST_VALUE(person) OVER (PARTITION BY person ORDER BY day {frame}) AS p, page FROM views"
    with refused_as("mixes_units", "privacy_unit_as_value"):
        session.explain(f"SELECT COUNT(*) AS n FROM ({text}) u", epsilon=1)
