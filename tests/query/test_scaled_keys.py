"""GROUP BY age / 12 makes the groups that GROUP BY age makes, with DuckDB's keys."""

import pytest

from tests.support.query.differing.comparing import DIFFERS, EQUAL, Question, judged
from tests.support.query.differing.worlds import Pair
from tests.support.refusals import refused_as

SAME = [
    ("SELECT age / 12 AS k, COUNT(*) AS a0 FROM visits GROUP BY age / 12",
     "SELECT age / 12 AS k, COUNT(*) AS a0 FROM visits GROUP BY age"),
    ("SELECT 3 * (age / -7.5) AS k, SUM(age) AS a0 FROM visits GROUP BY k HAVING 3 * (age / -7.5) < -1 ORDER BY k",
     "SELECT 3 * (age / -7.5) AS k, SUM(age) AS a0 FROM visits GROUP BY age HAVING 3 * (age / -7.5) < -1 ORDER BY k"),
    ("SELECT site, p.rate / 4 AS k, COUNT(*) AS a0 FROM visits v JOIN places p USING (site) GROUP BY 1, 2",
     "SELECT site, p.rate / 4 AS k, COUNT(*) AS a0 FROM visits v JOIN places p USING (site) GROUP BY 1, p.rate"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "same"), SAME)
def test_the_column_is_the_key(text: str, same: str, pair: Pair) -> None:
    assert pair.session.plan(text, (), epsilon=1) == pair.session.plan(same, (), epsilon=1)
    assert judged(Question(text=text), pair).state == EQUAL


@pytest.mark.parametrize(
    "key", ["age / 7 + 1e18", "age / 0", "age * 0.0 / 3", "age / 1e20", "age / pay", "SQRT(age)", "age / 7 + age"]
)
def test_what_may_make_other_groups_is_refused(key: str, pair: Pair) -> None:
    with refused_as("invalid_group_key", "constant_division", "overflow"):
        pair.session.explain(f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY {key}", epsilon=1)


@pytest.mark.parametrize("sets", ["GROUPING SETS ((age / 12), (age))", "CUBE (1, 2)", "ROLLUP (k, age)"])
def test_grouping_sets_in_which_the_column_is_another_key_are_refused(sets: str, pair: Pair) -> None:
    with refused_as("invalid_group_key"):
        pair.session.explain(f"SELECT age / 12 AS k, age AS a, COUNT(*) AS n FROM visits GROUP BY {sets}", epsilon=1)


def test_twin_whole_numbers_of_a_quotient_are_other_groups(pair: Pair) -> None:
    text = SAME[0][0]
    assert judged(Question(text=text.replace("age / 12", "age // 12"), theirs=text), pair).state == DIFFERS
