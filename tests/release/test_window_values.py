"""Window functions over the rows of an answer: what DuckDB says of the same released numbers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pytest

import lapwing as lw
from lapwing.query.derivation import window_values
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as
from tests.support.release.tables import repeatable, visits

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
    "SUM(n) OVER (ORDER BY plan, member)": "SUM(COUNT(*)) OVER (ORDER BY plan, member)",
    "SUM(n) OVER (ORDER BY plan)": "SUM(COUNT(*)) OVER (ORDER BY plan)",
    "SUM(m) OVER (PARTITION BY member ORDER BY plan DESC)": (
        "SUM(AVG(cost)) OVER (PARTITION BY member ORDER BY plan DESC)"
    ),
    "AVG(n) OVER (ORDER BY plan, member ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)": (
        "AVG(COUNT(*)) OVER (ORDER BY plan, member ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)"
    ),
    "SUM(m) OVER (ORDER BY plan, member ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)": (
        "SUM(AVG(cost)) OVER (ORDER BY plan, member ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)"
    ),
    "COUNT(*) OVER (ORDER BY plan)": "COUNT(*) OVER (ORDER BY plan)",
    "SUM(n) OVER (ORDER BY plan RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)": (
        "SUM(COUNT(*)) OVER (ORDER BY plan RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
    ),
    "AVG(n) OVER ()": "AVG(COUNT(*)) OVER ()",
    "MAX(n) OVER (PARTITION BY plan)": "MAX(COUNT(*)) OVER (PARTITION BY plan)",
    "MIN(m) OVER (ORDER BY plan, member)": "MIN(AVG(cost)) OVER (ORDER BY plan, member)",
    "MAX(n) OVER (PARTITION BY member ORDER BY plan ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)": (
        "MAX(COUNT(*)) OVER (PARTITION BY member ORDER BY plan ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)"
    ),
    "LAG(n) OVER (ORDER BY plan, member)": "LAG(COUNT(*)) OVER (ORDER BY plan, member)",
    "LEAD(n, 2) OVER (PARTITION BY member ORDER BY plan)": "LEAD(COUNT(*), 2) OVER (PARTITION BY member ORDER BY plan)",
    "n - LAG(n) OVER (PARTITION BY plan ORDER BY member)": (
        "COUNT(*) - LAG(COUNT(*)) OVER (PARTITION BY plan ORDER BY member)"
    ),
    "FIRST_VALUE(n) OVER (PARTITION BY member ORDER BY plan)": (
        "FIRST_VALUE(COUNT(*)) OVER (PARTITION BY member ORDER BY plan)"
    ),
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


@pytest.mark.long
def test_they_are_what_duckdb_computes_from_released_numbers(session: lw.Session) -> None:
    check(session)


@pytest.mark.parametrize("name", only([0], ["_groups", "_changes", "_spans", "_runs"]))
def test_a_planted_bug_is_found(name: str, session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    original = getattr(window_values, name)
    bugs = {
        "_groups": lambda _over, cells: original(_over, cells) * 0,
        "_changes": lambda keys, places: original([*keys][:1], places),
        "_spans": lambda span, starts, differs: original(replace(span, peers=False), starts, differs),
        "_runs": lambda starts: original(np.arange(len(starts)) == 0),
    }
    monkeypatch.setattr(window_values, name, bugs[name])
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


QUALIFIED = (
    "ROW_NUMBER() OVER (PARTITION BY plan ORDER BY n DESC) = 1",
    "n > AVG(n) OVER () AND member",
    "SUM(n) OVER (ORDER BY plan, member) > 10",
)


@pytest.mark.long
def test_qualify_chooses_rows_of_the_answer(session: lw.Session) -> None:
    released = polars.DataFrame(session.sql(BASE, epsilon=1)).to_arrow()
    for condition in QUALIFIED:
        answer = session.sql(f"{BASE} QUALIFY {condition} ORDER BY plan, member", epsilon=1)
        assert answer.stored
        wanted = said(f"SELECT plan, member, n FROM released QUALIFY {condition} ORDER BY ALL", released=released)
        assert [(row["plan"], row["member"], row["n"]) for row in rows_of(answer)] == wanted, condition
        view = answer.consistent()
        assert [row["plan"] for row in rows_of(view)] == [plan for plan, _, _ in wanted]  # the same rows


def test_an_aggregate_of_qualify_alone_is_paid(session: lw.Session) -> None:
    text = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan QUALIFY RANK() OVER (ORDER BY {} DESC) <= 2"
    alone = session.explain(text.format("COUNT(*)"), epsilon=1)
    assert [measure.measure for measure in alone.measures] == ["n"]
    assert len(session.explain(text.format("SUM(cost)"), epsilon=1).measures) == 2


def test_distinct_changes_nothing_where_every_row_has_its_keys(session: lw.Session) -> None:
    plain = session.sql(BASE, epsilon=1)
    distinct = session.sql(BASE.replace("SELECT", "SELECT DISTINCT", 1), epsilon=1)
    assert distinct.stored
    assert rows_of(distinct) == rows_of(plain)


@pytest.mark.parametrize(
    ("question", "reason"),
    one_in(
        4,
        [
            ("SELECT DISTINCT COUNT(*) FROM visits GROUP BY plan", "distinct_not_supported"),
            ("SELECT DISTINCT plan, COUNT(*) FROM visits GROUP BY ROLLUP (plan)", "distinct_not_supported"),
            ("SELECT DISTINCT ON (plan) plan, COUNT(*) FROM visits GROUP BY plan", "clause_not_supported"),
            ("SELECT plan, COUNT(*) FROM visits GROUP BY plan QUALIFY COUNT(*) + 1", "not_a_condition"),
            (
                "SELECT plan, COUNT(*) FROM visits GROUP BY plan "
                "QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY cost) = 1",
                "clause_not_supported",
            ),
        ],
        many=True,
    ),
)
def test_other_distincts_and_qualifies_are_refused(question: str, reason: str, session: lw.Session) -> None:
    with refused_as(reason):
        session.explain(question, epsilon=1)


def test_the_consistent_view_adds_up_what_it_shows(session: lw.Session) -> None:
    text = "SELECT plan, cost > 9 AS c, COUNT(*) AS n, SUM(n) OVER () AS total FROM visits GROUP BY plan, c"
    view = session.sql(text, epsilon=0.1).consistent()
    assert {row["total"] for row in rows_of(view)} == {sum(row["n"] for row in rows_of(view))}


@pytest.mark.parametrize(
    ("item", "reason"),
    one_in(
        7,
        [
            ("RANK() OVER ()", "window_needs_order"),
            ("LAG(COUNT(*)) OVER ()", "window_needs_order"),
            ("SUM(plan) OVER (ORDER BY plan)", "wrong_type"),
            ("LAG('a') OVER (ORDER BY plan)", "wrong_type"),
            ("LAG(COUNT(*), 1, 0) OVER (ORDER BY plan)", "clause_not_supported"),
            ("LEAD(COUNT(*), -1) OVER (ORDER BY plan)", "not_constant"),
            ("LAG(COUNT(*) IGNORE NULLS) OVER (ORDER BY plan)", "window_not_supported"),
            ("RANK() OVER (ORDER BY plan ROWS 1 PRECEDING)", "invalid_frame"),
            ("MIN(COUNT(*)) OVER (ORDER BY plan ROWS 1 PRECEDING)", "invalid_frame"),
            ("SUM(COUNT(*)) OVER (ORDER BY plan RANGE 1 PRECEDING)", "invalid_frame"),
            ("NTILE(COUNT(*)) OVER (ORDER BY plan)", "not_constant"),
            ("SUM(SUM(COUNT(*)) OVER ()) OVER ()", "twice_over_answer"),
            ("SUM(cost) OVER ()", "not_grouped"),
            ("SUM(plan) OVER ()", "wrong_type"),
            ("SUM(COUNT(*)) OVER (ROWS 1 PRECEDING)", "window_needs_order"),
        ],
        many=True,
    ),
)
def test_others_are_refused(item: str, reason: str, session: lw.Session) -> None:
    with refused_as(reason):
        session.explain(f"SELECT plan, {item} FROM visits GROUP BY plan", epsilon=1)
    with refused_as("clause_not_supported"):
        session.explain("SELECT plan, COUNT(*) FROM visits GROUP BY plan HAVING SUM(COUNT(*)) OVER () > 3", epsilon=1)
