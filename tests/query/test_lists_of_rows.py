"""LATERAL and CROSS APPLY of what is computed of a row: copies of it, each with columns of its own, as in DuckDB."""

import pytest

from tests.support.query.differing.comparing import DIFFERS, EQUAL, Question, judged
from tests.support.query.differing.worlds import Pair
from tests.support.refusals import refused_as

PARTS = "CROSS JOIN LATERAL (VALUES ('age', v.age), ('pay', v.pay)) AS l(k, y)"
UNITED = "(SELECT *, 'age' AS k, v.age AS y FROM visits v UNION ALL SELECT *, 'pay' AS k, v.pay AS y FROM visits v)"
SAME = [
    (f"SELECT l.k, SUM(l.y) AS a0 FROM visits v {PARTS} GROUP BY l.k",
     f"SELECT k, SUM(y) AS a0 FROM {UNITED} AS v GROUP BY k"),
    ("SELECT COUNT(l.y) AS a0 FROM visits v, LATERAL (VALUES (v.age), (v.age + 1)) AS l(y) WHERE l.y > 30",
     "SELECT COUNT(y) AS a0 FROM (SELECT *, v.age AS y FROM visits v UNION ALL SELECT *, v.age + 1 AS y FROM visits v) "
     "AS v WHERE y > 30"),
    ("SELECT l.y, COUNT(*) AS a0 FROM visits v LEFT JOIN LATERAL (SELECT age // 10 AS y) l ON TRUE GROUP BY l.y",
     "SELECT y, COUNT(*) AS a0 FROM (SELECT *, age // 10 AS y FROM visits v) AS v GROUP BY y"),
    ("SELECT p.region, l.y, COUNT(*) AS a0 FROM visits v JOIN places p ON v.site = p.site CROSS JOIN LATERAL "
     "(SELECT v.age > 30) AS l(y) GROUP BY p.region, l.y",
     "SELECT p.region, y, COUNT(*) AS a0 FROM (SELECT *, v.age > 30 AS y FROM visits v) AS v JOIN places p "
     "ON v.site = p.site GROUP BY p.region, y"),
    ("SELECT m.z, COUNT(*) AS a0 FROM visits v, LATERAL (SELECT v.age + 1 AS y) AS l, LATERAL (SELECT l.y > 9 AS z) "
     "AS m GROUP BY m.z",
     "SELECT z, COUNT(*) AS a0 FROM (SELECT *, y > 9 AS z FROM (SELECT *, v.age + 1 AS y FROM visits v) AS v) AS v "
     "GROUP BY z"),
    ("SELECT SUM(t.x) AS a0 FROM visits v CROSS JOIN UNNEST([v.age, v.age * 2]) AS t(x)",
     "SELECT SUM(x) AS a0 FROM (SELECT *, v.age AS x FROM visits v UNION ALL SELECT *, v.age * 2 AS x FROM visits v) "
     "v"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "same"), SAME)
def test_it_is_the_union_of_copies(text: str, same: str, pair: Pair) -> None:
    assert pair.session.plan(text, (), epsilon=1) == pair.session.plan(same, (), epsilon=1)
    assert judged(Question(text=text), pair).state == EQUAL


def test_cross_apply_is_the_same(pair: Pair) -> None:
    applied = SAME[0][0].replace("CROSS JOIN LATERAL", "CROSS APPLY")
    assert pair.session.plan(applied, (), epsilon=1) == pair.session.plan(SAME[0][0], (), epsilon=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT l.y FROM visits v, LATERAL (SELECT SUM(v.age) AS y) AS l",
        "SELECT COUNT(l.y) FROM visits v, LATERAL (SELECT (SELECT MAX(age) FROM visits) AS y) AS l",
        "SELECT COUNT(l.y) FROM visits v JOIN places p ON v.site = p.site, LATERAL (SELECT rate AS y) AS l",
        "SELECT COUNT(l.y) FROM visits v JOIN places p ON v.site = p.site, LATERAL (SELECT p.rate AS y) AS l",
        "SELECT COUNT(l.y) FROM visits v JOIN LATERAL (SELECT v.age AS y) AS l ON l.y > 3",
        "SELECT COUNT(l.y) FROM visits v RIGHT JOIN places p ON v.site = p.site CROSS JOIN (VALUES (1), (2)) AS l(y)",
        "SELECT COUNT(l.y) FROM visits v RIGHT JOIN places p ON v.site = p.site, LATERAL (SELECT v.age AS y) AS l",
        "SELECT COUNT(l.y) FROM visits v, LATERAL (VALUES (v.age, 1)) AS l(y)",
    ],
)
def test_others_are_refused(text: str, pair: Pair) -> None:
    with refused_as("subquery_not_supported"):
        pair.session.explain(text, epsilon=1)


def test_each_copy_is_a_row_of_the_unit(pair: Pair) -> None:
    """Three copies have three times the noise of one."""
    text = "SELECT COUNT(l.y) AS n FROM visits v, LATERAL (VALUES {}) AS l(y)"
    shown = [
        pair.session.explain(text.format(rows), epsilon=0.01).columns[0].half_width
        for rows in ("(v.age)", "(v.age), (1 - v.age), (7)")
    ]
    assert None not in shown
    assert 2.9 < float(shown[1] or 0) / float(shown[0] or 1) < 3.1


def test_twin_a_copy_that_is_left_out_is_found(pair: Pair) -> None:
    text, same = SAME[1]
    planted = same.split(" UNION ALL ")[0] + ") AS v WHERE y > 30"
    assert judged(Question(text=text), pair).state == EQUAL
    assert judged(Question(text=planted, theirs=text), pair).state == DIFFERS
