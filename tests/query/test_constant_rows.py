"""Lists of constants are computed in bounded time and space, whatever a query writes."""

from pathlib import Path

import pytest

from lapwing.errors import QueryRefused
from tests.support.refusals import refused_as
from tests.support.release.tables import protected, visits

ENDLESS = (
    "SELECT 2 AS n UNION ALL SELECT n * n FROM m",  # its digits double
    "SELECT 1 AS n UNION ALL SELECT n / 3 FROM m",
    "SELECT 'ab' AS n UNION ALL SELECT n || n FROM m",
    "SELECT 1 AS n UNION ALL SELECT n FROM m",
    "SELECT 1 AS n UNION ALL SELECT * FROM m",
)


@pytest.mark.parametrize("rows", ENDLESS)
def test_a_list_that_grows_without_end_is_refused(tmp_path: Path, rows: str) -> None:
    with protected(visits(tmp_path, people=3)) as session, pytest.raises(QueryRefused):
        session.explain(f"WITH RECURSIVE m AS ({rows}) SELECT COUNT(*) AS k FROM m", epsilon=0.1)


def test_a_list_that_doubles_is_refused(tmp_path: Path) -> None:
    twice = "".join(f", a{i + 1} AS (SELECT * FROM a{i} UNION ALL SELECT * FROM a{i})" for i in range(60))
    text = f"WITH a0 AS (SELECT * FROM generate_series(1, 900)){twice} SELECT COUNT(*) AS k FROM a60"
    with protected(visits(tmp_path, people=3)) as session, pytest.raises(QueryRefused):
        session.explain(text, epsilon=0.1)


LIST = "(VALUES ('b'), ('z')) AS d (plan) LEFT JOIN visits AS v ON v.plan = d.plan"


@pytest.mark.parametrize("seen", ["COUNT(v.cost)", "SUM(v.cost + 1)", "COUNT_IF(v.cost > 3 AND v.cost < 9)"])
def test_a_list_beside_rows_is_answered(tmp_path: Path, seen: str) -> None:
    with protected(visits(tmp_path, people=3)) as session:
        assert session.explain(f"SELECT d.plan, {seen} AS n FROM {LIST} GROUP BY d.plan", epsilon=0.1).cells == 2


@pytest.mark.parametrize(
    "seen",
    [
        "COUNT(*)", "COUNT(1)", "SUM(1)", "SUM(COALESCE(v.cost, 7))", "COUNT_IF(v.cost IS NULL)",
        "SUM(CASE WHEN v.cost IS NULL THEN 1 ELSE 0 END)", "COUNT_IF(v.cost > 3 OR TRUE)",
    ],
)  # fmt: skip
def test_what_counts_a_row_without_values_is_refused(tmp_path: Path, seen: str) -> None:
    """SQL counts the row of NULLs that an outer join makes. The query inside has no such row."""
    with protected(visits(tmp_path, people=3)) as session, pytest.raises(QueryRefused):
        session.explain(f"SELECT d.plan, {seen} AS n FROM {LIST} GROUP BY d.plan", epsilon=0.1)


def test_a_condition_that_keeps_values_without_rows_is_refused(tmp_path: Path) -> None:
    text = f"SELECT d.plan, COUNT(v.cost) AS n FROM {LIST} WHERE v.cost IS NULL GROUP BY d.plan"
    with protected(visits(tmp_path, people=3)) as session, pytest.raises(QueryRefused):
        session.explain(text, epsilon=0.1)


@pytest.mark.parametrize("values", ["(5), (5.0), (7)", "(5), (7), (5)"])
def test_a_list_with_a_value_twice_is_refused(tmp_path: Path, values: str) -> None:
    listed = f"(VALUES {values}) AS d (x) LEFT JOIN visits AS v ON v.cost = d.x"
    text = f"SELECT d.x, COUNT(v.cost) AS n FROM {listed} GROUP BY d.x"
    with protected(visits(tmp_path, people=3)) as session, pytest.raises(QueryRefused):
        session.explain(text, epsilon=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM generate_series(1, 5000)",
        "SELECT COUNT(*) AS n FROM range(0, 1500) AS g (x) JOIN visits AS v ON v.cost = g.x",
        "WITH s AS (SELECT x * 2 AS x FROM generate_series(1, 9999) AS g (x)) SELECT x FROM s",
    ],
)
def test_a_series_that_is_too_long_says_so(tmp_path: Path, text: str) -> None:
    with (
        protected(visits(tmp_path, people=3)) as session,
        refused_as("result_too_large", saying="more than 1,000 rows"),
    ):
        session.explain(text, epsilon=0.1)
