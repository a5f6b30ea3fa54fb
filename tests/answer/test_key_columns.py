"""The declared column that a key of an answer is: the column itself, on any way, and never something computed."""

import pytest

from lapwing.answer.key_columns import key_columns
from lapwing.query.bind.bind import bind
from tests.support.catalog.examples import TEXT, catalog

PLAN = ("visits", "plan")
VISITS = catalog(TEXT + '[views.seen]\nsql = "SELECT plan AS kind, age, cost FROM visits"\n')


@pytest.mark.parametrize(
    ("sql", "declared"),
    [
        ("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", {"plan": PLAN}),
        ("SELECT plan AS p, paid, COUNT(*) AS n FROM visits GROUP BY 1, 2", {"p": PLAN, "paid": ("visits", "paid")}),
        ("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", {"age": ("visits", "age")}),
        ("SELECT kind, COUNT(*) AS n FROM seen GROUP BY kind", {"kind": PLAN}),
        ("SELECT p, COUNT(*) AS n FROM (SELECT plan AS p FROM visits WHERE age > 3) AS t GROUP BY p", {"p": PLAN}),
        ("SELECT p, n * 2 AS m FROM (SELECT plan AS p, COUNT(*) AS n FROM visits GROUP BY plan) AS t", {"p": PLAN}),
        ("SELECT UPPER(plan) AS p, COUNT(*) AS n FROM visits GROUP BY 1", {}),
        ("SELECT FLOOR(age / 10) AS age, COUNT(*) AS n FROM visits GROUP BY 1", {}),
        ("SELECT CASE WHEN paid THEN 'a' ELSE 'b' END AS plan, COUNT(*) AS n FROM visits GROUP BY 1", {}),
        ("SELECT COUNT(*) AS plan FROM visits", {}),
        (
            "WITH a AS (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan), "
            "b AS (SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan) "
            "SELECT a.plan, n, s FROM a JOIN b USING (plan)",
            {"plan": PLAN},
        ),
    ],
)
def test_a_key_is_the_column_that_it_comes_from(sql: str, declared: dict[str, tuple[str, str]]) -> None:
    assert key_columns(bind(sql, VISITS)) == declared
