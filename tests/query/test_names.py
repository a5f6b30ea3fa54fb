"""What people see of a measure that is only a part of a column."""

from pathlib import Path

import pytest

from lapwing.query.bind.bind import bind
from lapwing.query.plan.measure_names import measure_names
from tests.support.query import clean

RACE = "contribution_bounds_per_group => RACE"


@pytest.mark.long
@pytest.mark.parametrize(
    ("aggregates", "names"),
    [
        ("SUM(age) AS s, AVG(cost) AS a", {"s", "sum of a", "count of a"}),
        ("STDDEV(age) AS d", {"sum of age", "sum of squares of age", "count of age"}),
        (
            "CORR(age, share) AS c",
            {
                *("sum of age", "sum of share", "count of age and share", "sum of products of age and share"),
                *("sum of squares of age", "sum of squares of share"),
            },
        ),
        (
            "SUM(age) / COUNT(*) AS q, SUM(cost) FILTER (WHERE member) * 2 AS f",
            {"sum of age", "count of rows", "sum of cost"},
        ),
        (
            "SUM(age) FILTER (WHERE member) / SUM(age) AS q, COUNT(DISTINCT town) + COUNT(DISTINCT person) AS b",
            {"sum of age", "sum of age (2)", "count of distinct town", "count of distinct person"},
        ),
        ("COUNT(*) AS n, COUNT_IF(member) / COUNT(*) AS q", {"n", "count of rows"}),
        ("MEDIAN(age) AS m, 2 * MEDIAN(cost) AS n", {"ranks of m", "ranks of cost"}),
    ],
)
def test_every_measure_has_a_name_of_its_own(aggregates: str, names: set[str], tmp_path: Path) -> None:
    plan = bind(f"SELECT {aggregates} FROM visits", clean.catalog_in(tmp_path))
    found = measure_names(plan)
    assert set(found) == set(plan.question.measures)
    assert sorted(found.values()) == sorted(names)


def test_the_levels_of_a_race_are_told_apart(tmp_path: Path) -> None:
    plan = bind(f"SELECT SUM(age, {RACE}) AS s FROM visits", clean.catalog_in(tmp_path))
    names = list(measure_names(plan).values())
    assert "sum of age, 0 to 330 for each person" in names
    assert "sum of age, 0 to 165 for each person" in names
    assert len(names) == len(set(names))
