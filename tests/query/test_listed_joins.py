"""Joins of rows to lists of constants: CASE where the keys differ, else copies of the rows; as DuckDB answers them."""

import pytest

from tests.support.query.differing.comparing import DIFFERS, EQUAL, Question, judged
from tests.support.query.differing.worlds import Pair
from tests.support.refusals import refused_as

LIST = "(VALUES ('n', 2), ('s', 3), ('x', 4)) AS f(site, w)"
NULLS = "(VALUES (NULL, 9), ('n', 2), (NULL, 1), ('s', 3), ('x', 4)) AS f(site, w)"
CASE = "CASE WHEN v.site = 'n' THEN 2 WHEN v.site = 's' THEN 3 WHEN v.site = 'x' THEN 4 END"
KEPT = "v.site IN ('n', 's', 'x')"
SAME = [
    (f"SELECT f.w, COUNT(*) AS n FROM visits v JOIN {LIST} ON v.site = f.site AND v.age > f.w GROUP BY f.w",
     f"SELECT {CASE} AS w, COUNT(*) AS n FROM visits v WHERE {KEPT} AND v.age > {CASE} GROUP BY {CASE}"),
    (f"SELECT f.site, SUM(w) AS s FROM visits v JOIN {LIST} USING (site) GROUP BY f.site",
     f"SELECT v.site, SUM({CASE}) AS s FROM visits v WHERE {KEPT} GROUP BY v.site"),
    (f"SELECT COALESCE(w, 0) AS w, COUNT(f.site) AS n FROM visits v LEFT JOIN {LIST} ON f.site = v.site GROUP BY 1",
     f"SELECT COALESCE({CASE}, 0) AS w, COUNT(CASE WHEN {KEPT} THEN v.site END) AS n FROM visits v GROUP BY 1"),
    (f"SELECT site, COUNT(f.site) AS n FROM visits v LEFT JOIN {LIST} USING (site) GROUP BY site",
     f"SELECT v.site, COUNT(CASE WHEN {KEPT} THEN v.site END) AS n FROM visits v GROUP BY v.site"),
    (f"SELECT f.w, COUNT(*) AS n FROM visits v JOIN {NULLS} ON v.site = f.site AND v.age > f.w GROUP BY f.w",
     f"SELECT f.w, COUNT(*) AS n FROM visits v JOIN {LIST} ON v.site = f.site AND v.age > f.w GROUP BY f.w"),
    (f"SELECT COALESCE(w, 0) AS w, COUNT(f.site) AS n FROM visits v LEFT JOIN {NULLS} ON f.site = v.site GROUP BY 1",
     f"SELECT COALESCE(w, 0) AS w, COUNT(f.site) AS n FROM visits v LEFT JOIN {LIST} ON f.site = v.site GROUP BY 1"),
    ("SELECT g.k, COUNT(*) AS n FROM visits v JOIN (VALUES (20), (NULL), (30)) AS g(k) ON v.age > g.k GROUP BY g.k",
     "SELECT g.k, COUNT(*) AS n FROM visits v, (VALUES (20), (30)) AS g(k) WHERE v.age > g.k GROUP BY g.k"),
    ("SELECT SUM(f.w) AS s FROM visits v JOIN (VALUES ('n', 2), ('s', NULL)) AS f(site, w) ON v.site = f.site",
     "SELECT SUM(CASE WHEN v.site = 'n' THEN 2 WHEN v.site = 's' THEN NULL END) AS s FROM visits v "
     "WHERE v.site IN ('n', 's')"),
    (f"SELECT COUNT(*) AS n FROM {LIST} JOIN visits v ON v.site = f.site",
     f"SELECT COUNT(*) AS n FROM visits v WHERE {KEPT}"),
    ("SELECT g.k, COUNT(*) AS n FROM visits v JOIN generate_series(0, 40, 10) AS g(k) ON v.age > g.k GROUP BY g.k",
     "SELECT g.k, COUNT(*) AS n FROM visits v, generate_series(0, 40, 10) AS g(k) WHERE v.age > g.k GROUP BY g.k"),
    ("SELECT f.age, SUM(f.w) AS n FROM visits v JOIN (VALUES (20, 1), (20.0, 5)) AS f(age, w) ON v.age = f.age "
     "GROUP BY 1",
     "SELECT f.k AS age, SUM(f.w) AS n FROM visits v, (VALUES (20, 1), (20.0, 5)) AS f(k, w) WHERE v.age = f.k "
     "GROUP BY 1"),
    ("WITH f (s, w) AS (VALUES ('n', 2), ('s', 3), ('x', 4)) SELECT w, COUNT(*) AS n FROM visits v JOIN f "
     "ON v.site = s GROUP BY w",
     f"SELECT f.w, COUNT(*) AS n FROM visits v JOIN {LIST} ON v.site = f.site GROUP BY f.w"),
    ("SELECT w, COUNT(*) AS n FROM visits JOIN (VALUES (NULL, 9), ('n', 2), (NULL, 1)) AS f(s, w) "
     "ON (s = site) GROUP BY w",
     "SELECT w, COUNT(*) AS n FROM visits v JOIN (VALUES ('n', 2)) AS f(s, w) ON v.site = f.s GROUP BY w"),
    ("SELECT f.rate, COUNT(*) AS n FROM places p JOIN visits v ON v.site = p.site JOIN (VALUES ('n', 2), ('s', 3), "
     "('x', 4)) AS f(site, rate) ON p.site = f.site GROUP BY f.rate",
     "SELECT CASE WHEN p.site = 'n' THEN 2 WHEN p.site = 's' THEN 3 WHEN p.site = 'x' THEN 4 END AS rate, COUNT(*) "
     "AS n FROM places p JOIN visits v ON v.site = p.site WHERE p.site IN ('n', 's', 'x') GROUP BY 1"),
    ("SELECT f.rate, COUNT(*) AS n FROM visits v JOIN places p ON v.site = p.site JOIN (VALUES (20, 4), (30, 5)) "
     "AS f(age, rate) ON v.age > f.age AND p.rate < f.rate GROUP BY f.rate",
     "SELECT f.r AS rate, COUNT(*) AS n FROM visits v JOIN places p ON v.site = p.site CROSS JOIN "
     "(VALUES (20, 4), (30, 5)) AS f(k, r) WHERE v.age > f.k AND p.rate < f.r GROUP BY f.r"),
    ("SELECT p.region, COUNT(*) AS n FROM places p JOIN visits v ON v.site = p.site JOIN (VALUES ('n', 1), ('n', 2), "
     "('s', 1)) AS f(k, r) ON p.site = f.k WHERE f.r = 1 GROUP BY p.region",
     "SELECT p.region, COUNT(*) AS n FROM visits v JOIN places p ON v.site = p.site CROSS JOIN (VALUES ('n', 1), "
     "('n', 2), ('s', 1)) AS f(k, r) WHERE f.r = 1 AND p.site = f.k GROUP BY p.region"),
    ("SELECT G.K AS k, COUNT(*) AS n FROM visits v, (VALUES (20), (30)) AS g(k) WHERE v.age > G.k GROUP BY g.K",
     "SELECT g.k, COUNT(*) AS n FROM visits v, (VALUES (20), (30)) AS g(k) WHERE v.age > g.k GROUP BY g.k"),
]  # fmt: skip
REPEATED = SAME[-2][0]


@pytest.mark.parametrize(("text", "same"), SAME)
def test_it_is_the_same_question_and_answer(text: str, same: str, pair: Pair) -> None:
    assert pair.session.plan(text, (), epsilon=1) == pair.session.plan(same, (), epsilon=1)
    assert judged(Question(text=text.replace(" AS n", " AS a0").replace(" AS s ", " AS a0 ")), pair).state == EQUAL


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM visits v JOIN {LIST} ON v.site = f.site",
        "SELECT COUNT(*) FROM visits v LEFT JOIN (VALUES (1), (1)) AS f(k) ON v.age = f.k",
        "SELECT COUNT(*) FROM visits v LEFT JOIN (VALUES (1), (2)) AS f(k) ON v.age > f.k",
        "SELECT COUNT(*) FROM visits v JOIN (VALUES (NULL, 1)) AS f(k, w) ON v.age = f.k",
        "SELECT COUNT(*) FROM visits v JOIN (VALUES (NULL, 1), (2, 3)) AS f(k, w) ON v.age = f.k OR v.age = f.w",
        "SELECT COUNT(*) FROM visits v JOIN (VALUES (NULL, 1), (2, 3)) AS f(k, w) ON v.age IS NOT DISTINCT FROM f.k",
    ],
)
def test_other_joins_of_lists_are_refused(text: str, pair: Pair) -> None:
    with refused_as("subquery_not_supported"):
        pair.session.explain(text, epsilon=1)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("SELECT SUM(age) FROM visits v JOIN (VALUES ('n', 1)) AS f(k, age) ON v.site = f.k", "ambiguous_column"),
        ("SELECT SUM(age) FROM visits v JOIN (VALUES ('n', 1), ('n', 2)) AS f(k, age) ON v.site = f.k",
         "ambiguous_column"),
        ("SELECT SUM(rate) FROM visits v JOIN places p USING (site) JOIN (VALUES (20, 4)) AS f(k, rate) ON v.age = f.k",
         "ambiguous_column"),
        (f"SELECT COUNT(*) FROM visits v LEFT JOIN {LIST} ON v.site = f.site WHERE site = 's'", "ambiguous_column"),
        ("SELECT COUNT(*) FROM visits v JOIN (VALUES (1e99999999999999999999)) AS f(k) ON v.age = f.k",
         "invalid_number"),
        ("SELECT COUNT(*) FROM visits v JOIN (VALUES (1e1000001)) AS f(k) ON v.age = f.k", "invalid_number"),
        ("SELECT COUNT(*) FROM visits v JOIN (VALUES (1)) ON v.age = 1", "subquery_not_supported"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_clear_is_refused(text: str, cause: str, pair: Pair) -> None:
    with refused_as(cause):
        pair.session.explain(text, epsilon=1)


def test_twin_one_row_of_keys_that_repeat_is_not_all_of_them(pair: Pair) -> None:
    """Planted: CASE takes the first row of the list where two have the key."""
    question = Question(text=REPEATED.replace(" AS n", " AS a0"))
    planted = "SELECT v.age, SUM(CASE WHEN v.age = 20 THEN 1 END) AS a0 FROM visits v WHERE v.age = 20 GROUP BY 1"
    assert judged(question, pair).state == EQUAL
    assert judged(Question(text=planted, theirs=question.text), pair).state == DIFFERS
