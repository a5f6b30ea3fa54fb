"""Queries over only constants, as drivers and tools send them: exact, free, and what DuckDB answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lapwing as lw
from lapwing.dbapi import connect as cursor_connect
from lapwing.errors import LapwingError, QueryRefused
from lapwing.query.bind import listed_answers, public_answers
from lapwing.query.classify.kinds import Kinds, RelationKind
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan
from tests.query.test_public_queries import check_same, folder  # noqa: F401
from tests.support.effort import one_in
from tests.support.refusals import refused_as
from tests.support.release.tables import protected, visits

SAME = [
    "VALUES (1), (1), (2)",
    "SELECT 1",
    "SELECT 1 AS x, 'a' AS y, NULL AS n, TRUE AS b",
    "(SELECT 1 + 1 AS two);",
    "SELECT UPPER('a') || 'b' AS t, ROUND(2.5, 0) AS r, 1 IN (1, 2) AS i, CAST('2020-01-01' AS DATE) AS d",
    "SELECT 1 WHERE 1 = 0",
    "SELECT 1 AS x LIMIT 0",
    "SELECT 1 UNION ALL SELECT 1",
    "SELECT 1 UNION SELECT 1",
    "SELECT x FROM generate_series(1, 5) AS t(x) ORDER BY x DESC",
    "SELECT * FROM generate_series(1, 3)",
    "VALUES (1, 'a'), (2, NULL) ORDER BY col0 DESC LIMIT 1",
    "SELECT col0 FROM (VALUES (1), (2)) AS t",
    "SELECT x, y FROM (VALUES (1, 'a'), (2, NULL), (NULL, 'c')) AS t(x, y)",
    "SELECT x FROM (VALUES (NULL), (NULL)) AS t(x)",
    "SELECT COUNT(x), COUNT(*), SUM(x), AVG(x) FROM (VALUES (NULL), (1), (2)) AS t(x)",
    "SELECT x, COUNT(*) FROM (VALUES (1), (1), (2)) AS t(x) GROUP BY x ORDER BY x",
    "SELECT COUNT(*), SUM(x) FROM (VALUES (1), (2)) AS t(x) WHERE x > 5",
    "SELECT a.x, b.y FROM (VALUES (1), (2)) a(x), (VALUES (3), (NULL)) b(y) WHERE a.x < b.y - 1",
    "SELECT a.x, b.y FROM (VALUES (1), (NULL)) a(x) LEFT JOIN (VALUES (1), (NULL)) b(y) ON a.x = b.y",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT n FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT SUM(n), MAX(n) FROM t",
    "SELECT x, r.head FROM (VALUES ('north'), ('none')) AS t(x) LEFT JOIN regions r ON r.region = t.x",
]


@pytest.fixture(scope="module")
def session(folder: object) -> Iterator[lw.Session]:  # noqa: F811
    with lw.connect(f"{folder}/lapwing.toml") as opened:
        yield opened


@pytest.fixture(scope="module")
def exact() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE regions AS SELECT 'north' AS region, 'A' AS head")
        yield connection


@pytest.mark.parametrize("text", one_in(2, SAME))
def test_it_is_what_duckdb_answers(text: str, session: lw.Session, exact: duckdb.DuckDBPyConnection) -> None:
    check_same(text, session, exact)


def test_it_is_free_takes_no_price_and_is_in_no_history(session: lw.Session) -> None:
    before, entries = session.budget(), len(session.history())
    for text in ("SELECT 1 AS n", "VALUES (1)", "SELECT CURRENT_DATE AS today"):
        for epsilon in (None, 10**6):
            answer = session.sql(text, epsilon=epsilon)
            assert not answer.cost.amount
            assert (answer.entries, len(answer)) == ((), 1)
        assert session.explain(text).price.amount == 0
        assert not plans_asked(session.plan(text, ()))
    assert (session.budget().spent, len(session.history())) == (before.spent, entries)


def test_a_ping_of_a_driver_is_answered(folder: object) -> None:  # noqa: F811
    with cursor_connect(f"{folder}/lapwing.toml") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_what_names_a_column_or_counts_needs_rows(session: lw.Session) -> None:
    for text in ("SELECT site", "SELECT *", "SELECT COUNT(*)", "SELECT 1 AS x, site"):
        with refused_as("no_from"):
            session.sql(text)
    with refused_as("wrong_argument_count"):
        session.sql("SELECT CEIL()")
    with refused_as("not_constant"):
        session.sql("VALUES (1, 2), (3)")
    with refused_as("several_statements"):
        session.sql("VALUES (1); SELECT 1")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT COUNT(*) AS c, SUM(n) AS s, MAX(site) AS m FROM ({})", [(0, None, None)]),
        ("SELECT COUNT(*) + 1 AS c FROM ({}) AS t WHERE n > 3", [(1,)]),
        ("SELECT COUNT(*) AS c FROM ({}) AS t JOIN sites USING (site)", [(0,)]),
        ("SELECT COUNT(*) AS c FROM (SELECT SUM(n) AS s FROM ({}))", [(1,)]),
        ("SELECT site, COUNT(*) AS c FROM ({}) GROUP BY site", []),
        ("SELECT site, n FROM ({})", []),
    ],
)
def test_an_aggregate_over_an_empty_result_has_one_row(
    text: str, rows: list[tuple[object, ...]], session: lw.Session
) -> None:
    """No row can have a value of the key, in any data: so COUNT is 0 and all else NULL, and nothing is released."""
    empty = "SELECT site, COUNT(*) AS n FROM visits WHERE site = 'none' GROUP BY site"
    answer = session.sql(text.format(empty))
    assert [tuple(row.values()) for row in answer.rows()] == rows
    assert not answer.cost.amount
    assert not plans_asked(session.plan(text.format(empty), ()))


def _different(columns: Any, rows: Any, within: Any) -> Plan:
    return public_answers.constant_rows(columns, list(dict.fromkeys(map(tuple, rows))), within)


def test_twins_are_noticed(
    session: lw.Session, exact: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a protected table has the kind of a list of constants, or rows of a list that are alike are one.

    The rows of the table still do not come into a plan.
    """
    with monkeypatch.context() as planted:
        planted.setattr(Kinds, "in_from", lambda *_: [RelationKind.CONSTANTS])
        with pytest.raises(LapwingError):
            session.sql("SELECT v.site FROM visits AS v LEFT JOIN sites USING (site)")
    with monkeypatch.context() as planted:
        planted.setattr(listed_answers, "constant_rows", _different)
        with pytest.raises(AssertionError):
            check_same(SAME[0], session, exact)


def test_what_is_free_is_bounded(tmp_path: Path) -> None:
    """A free query can be sent again and again: its rows and its values are bounded."""
    pair = "(SELECT * FROM generate_series(1, 900)) AS a (x), (SELECT * FROM generate_series(1, 900)) AS b (y)"
    sums = ", ".join(f"SUM(v.x * {n}) AS s{n}" for n in range(1, 150))
    texts = (f"SELECT a.x FROM {pair}", f"SELECT {sums} FROM (SELECT * FROM generate_series(1, 1000)) AS v (x)")
    with protected(visits(tmp_path, people=3)) as session:
        for text in texts:
            with pytest.raises(QueryRefused):
                session.sql(text)
