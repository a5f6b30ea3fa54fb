"""Which column has the unit of a number. Titles of axes show it, so it may be left out, but must never be wrong."""

import pytest

from lapwing.answer.unit_columns import unit_columns
from lapwing.query.bind.bind import bind
from tests.support.catalog.examples import TEXT, catalog

COST = ("visits", "cost")
VISITS = catalog(TEXT + '[views.seen]\nsql = "SELECT plan, cost AS c, cost * 2 AS twice FROM visits"\n')


@pytest.mark.parametrize(
    ("sql", "declared"),
    [
        (
            "SELECT plan, SUM(cost) AS s, AVG(cost) AS m, COUNT(*) n FROM visits GROUP BY plan",
            {"s": COST, "m": COST},
        ),
        ("SELECT MEDIAN(cost) AS m, MAX(cost) AS x FROM visits", {"m": COST, "x": COST}),
        ("SELECT ROUND(AVG(cost), 1) AS m FROM visits", {"m": COST}),
        ("SELECT SUM(c) AS s, SUM(twice) AS t FROM seen", {"s": COST}),
        ("SELECT SUM(cost * 2) AS s, COUNT(cost) AS n FROM visits", {}),
        ("SELECT SUM(cost) / COUNT(*) AS m, VARIANCE(cost) AS v, STDDEV(cost) AS d FROM visits", {}),
        ("SELECT SUM(CASE WHEN paid THEN 1 ELSE 0 END) AS s FROM visits", {}),
        (
            "WITH a AS (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan), "
            "b AS (SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan) "
            "SELECT a.plan, n, s, s / n AS m FROM a JOIN b USING (plan)",
            {"s": COST},
        ),
    ],
)
def test_a_number_has_the_unit_of_the_column_that_it_is_of(sql: str, declared: dict[str, tuple[str, str]]) -> None:
    assert unit_columns(bind(sql, VISITS)) == declared
