"""Window functions over the rows of an answer: what DuckDB says of the same released numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

import lapwing as lw
from lapwing.query.derivation import over
from tests.release.tables import repeatable, visits

BASE = "SELECT plan, cost > 1000 AS member, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY plan, member"
WINDOWS = {
    "100.0 * n / SUM(n) OVER ()": "100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()",
    "n * 1.0 / SUM(n) OVER (PARTITION BY plan)": "COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY plan)",
    "COUNT(*) OVER (PARTITION BY member)": "COUNT(*) OVER (PARTITION BY member)",
    "RANK() OVER (ORDER BY n DESC)": "RANK() OVER (ORDER BY COUNT(*) DESC)",
    "RANK() OVER (ORDER BY member, m > 0)": "RANK() OVER (ORDER BY member, AVG(cost) > 0)",
    "DENSE_RANK() OVER (ORDER BY plan DESC)": "DENSE_RANK() OVER (ORDER BY plan DESC)",
    "ROW_NUMBER() OVER (PARTITION BY plan ORDER BY n)": "ROW_NUMBER() OVER (PARTITION BY plan ORDER BY COUNT(*))",
    "SUM(m) OVER (PARTITION BY member)": "SUM(AVG(cost)) OVER (PARTITION BY member)",
    "SUM(CASE WHEN n < 0 THEN n END) OVER ()": "SUM(CASE WHEN COUNT(*) < 0 THEN COUNT(*) END) OVER ()",
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with repeatable(visits(tmp_path), "over") as session:
        yield session


def rows_of(answer: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.rows()
    return found


def said(text: str, **tables: Any) -> list[Any]:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection.execute(text).fetchall()


def check(session: lw.Session) -> None:
    released = polars.DataFrame(session.sql(BASE, epsilon=1))
    assert len(released) > 3
    for wanted, asked in WINDOWS.items():
        answer = session.sql(BASE.replace(" FROM", f", {asked} AS w FROM", 1), epsilon=1)
        assert answer.stored, asked  # the same noisy numbers
        found = [row["w"] for row in rows_of(answer)]
        expected = said(f"SELECT {wanted} AS w FROM released ORDER BY plan, member", released=released.to_arrow())
        rows = said("SELECT plan, member FROM released ORDER BY plan, member", released=released.to_arrow())
        ours = dict(zip([(row["plan"], row["member"]) for row in rows_of(answer)], found, strict=True))
        for key, (value,) in zip(rows, expected, strict=True):
            assert (ours[key] is None) == (value is None), asked
            assert value is None or float(ours[key]) == pytest.approx(float(value)), asked
        assert answer.interval().get("w") is None or all(end != end for end in answer.interval()["w"][0])


def test_they_are_what_duckdb_computes_from_released_numbers(session: lw.Session) -> None:
    check(session)


@pytest.mark.parametrize("name", ["_groups", "_changes"])
def test_a_planted_bug_is_found(name: str, session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    original = getattr(over, name)
    bugs = {
        "_groups": lambda _over, frame: original(_over, frame) * 0,
        "_changes": lambda keys, places: original([*keys][:1], places),
    }
    monkeypatch.setattr(over, name, bugs[name])
    with pytest.raises(AssertionError):
        check(session)


def test_they_are_of_the_rows_that_having_keeps_before_limit(session: lw.Session) -> None:
    text = "SELECT plan, COUNT(*) AS n, SUM(n) OVER () AS total, RANK() OVER (ORDER BY n DESC) AS r FROM visits "
    every = rows_of(session.sql(f"{text} GROUP BY plan", epsilon=1))
    assert {row["total"] for row in every} == {sum(row["n"] for row in every)}
    two = rows_of(session.sql(f"{text} GROUP BY plan ORDER BY r LIMIT 2", epsilon=1))
    assert [row["r"] for row in two] == [1, 2]
    assert {row["total"] for row in two} == {row["total"] for row in every}
    some = rows_of(session.sql(f"{text} GROUP BY plan HAVING plan <> 'a'", epsilon=1))
    assert {row["total"] for row in some} == {sum(row["n"] for row in every if row["plan"] != "a")}


def test_the_consistent_view_adds_up_what_it_shows(session: lw.Session) -> None:
    text = "SELECT plan, cost > 9 AS c, COUNT(*) AS n, SUM(n) OVER () AS total FROM visits GROUP BY plan, c"
    view = session.sql(text, epsilon=0.1).consistent()
    assert {row["total"] for row in rows_of(view)} == {sum(row["n"] for row in rows_of(view))}


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("RANK() OVER ()", "needs an order"),
        ("SUM(COUNT(*)) OVER (ORDER BY plan)", "running total"),
        ("LAG(COUNT(*)) OVER (ORDER BY plan)", "LAG OVER is not answered"),
        ("SUM(SUM(COUNT(*)) OVER ()) OVER ()", "inside another"),
        ("SUM(cost) OVER ()", "neither a key nor inside an aggregate"),
        ("SUM(plan) OVER ()", "needs a number"),
        ("SUM(COUNT(*)) OVER (ROWS 1 PRECEDING)", "not answered here"),
    ],
)
def test_others_are_refused(item: str, reason: str, session: lw.Session) -> None:
    with pytest.raises(lw.QueryRefused, match=reason):
        session.explain(f"SELECT plan, {item} FROM visits GROUP BY plan", epsilon=1)
    with pytest.raises(lw.QueryRefused, match="HAVING comes before"):
        session.explain("SELECT plan, COUNT(*) FROM visits GROUP BY plan HAVING SUM(COUNT(*)) OVER () > 3", epsilon=1)
