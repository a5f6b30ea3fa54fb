"""JOIN … USING whose columns are named with their tables is the join that ON says, and has DuckDB's results."""

import pytest

from tests.support.query.differing.comparing import DIFFERS, EQUAL, Question, judged
from tests.support.query.differing.worlds import Pair
from tests.support.refusals import refused_as

PLACES = "visits v JOIN places p ON v.site = p.site"
UNIT = "visits v JOIN guests g ON v.person = g.person"
SAME = [
    ("SELECT v.site, COUNT(*) AS a0 FROM visits v JOIN places p USING (site) GROUP BY v.site",
     f"SELECT v.site, COUNT(*) AS a0 FROM {PLACES} GROUP BY v.site"),
    ("SELECT p.site, COUNT(site) AS a0 FROM visits v INNER JOIN places p USING (site) WHERE v.site <> 'n' AND site "
     "<> 's' GROUP BY p.site",
     f"SELECT p.site, COUNT(p.site) AS a0 FROM {PLACES} WHERE v.site <> 'n' AND p.site <> 's' GROUP BY p.site"),
    ("SELECT UPPER(v.site) AS site, COUNT(*) AS a0 FROM visits v JOIN places p USING (site) GROUP BY 1 ORDER BY site",
     f"SELECT UPPER(v.site) AS site, COUNT(*) AS a0 FROM {PLACES} GROUP BY 1 ORDER BY site"),
    ("SELECT site, COUNT(p.site) AS a0 FROM visits v LEFT JOIN places p USING (site) GROUP BY site",
     "SELECT v.site, COUNT(p.site) AS a0 FROM visits v LEFT JOIN places p ON v.site = p.site GROUP BY v.site"),
    ("SELECT site, COUNT(v.site) AS a0 FROM places p LEFT JOIN visits v USING (site) GROUP BY site",
     "SELECT p.site, COUNT(v.site) AS a0 FROM places p LEFT JOIN visits v ON v.site = p.site GROUP BY p.site"),
    ("SELECT site, COUNT(v.site) AS a0 FROM visits v RIGHT JOIN places p USING (site) GROUP BY site",
     "SELECT p.site, COUNT(v.site) AS a0 FROM visits v RIGHT JOIN places p ON v.site = p.site GROUP BY p.site"),
    ("SELECT g.tier, COUNT(DISTINCT g.person) AS a0 FROM visits v JOIN guests g USING (person) GROUP BY g.tier",
     f"SELECT g.tier, COUNT(DISTINCT g.person) AS a0 FROM {UNIT} GROUP BY g.tier"),
    ("SELECT COUNT(v.person) AS a0, COUNT(person) AS a1 FROM visits v FULL JOIN guests g USING (person)",
     "SELECT COUNT(v.person) AS a0, COUNT(COALESCE(v.person, g.person)) AS a1 FROM visits v FULL JOIN guests g "
     "ON v.person = g.person"),
    ("SELECT COUNT(*) AS a0 FROM visits v FULL OUTER JOIN guests g USING (person) WHERE v.person IS NULL",
     "SELECT COUNT(*) AS a0 FROM visits v FULL JOIN guests g ON v.person = g.person WHERE v.person IS NULL"),
    ("WITH w AS (SELECT v.site, v.age FROM visits v JOIN places USING (site)) SELECT site, SUM(age) AS a0 "
     "FROM w GROUP BY 1",
     "WITH w AS (SELECT v.site, v.age FROM visits v JOIN places p ON v.site = p.site) SELECT site, SUM(age) AS a0 "
     "FROM w GROUP BY 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "same"), SAME)
def test_it_is_the_join_that_on_says(text: str, same: str, pair: Pair) -> None:
    assert pair.session.plan(text, (), epsilon=1) == pair.session.plan(same, (), epsilon=1)
    assert judged(Question(text=text), pair).state == EQUAL


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM visits v JOIN places p USING (site) WHERE v.site = 'n'",
        "SELECT q.site, COUNT(*) AS n FROM visits v JOIN places p USING (site) GROUP BY q.site",
        "SELECT COUNT(p.site) AS n FROM visits v SEMI JOIN places p USING (site)",
        "SELECT COUNT(v.site) AS n FROM visits v JOIN places p USING (site) JOIN places q USING (site)",
    ],
)
def test_others_are_refused(text: str, pair: Pair) -> None:
    with refused_as("unknown_column", "unknown_table"):
        pair.session.explain(text, epsilon=1)


def test_twin_the_column_of_the_other_table_of_a_left_join_is_another_one(pair: Pair) -> None:
    """Planted: USING shows the column of the second table, which is NULL where nothing matches."""
    text = SAME[3][0].replace("places p", "(SELECT site, rate FROM places WHERE rate > 1e9) AS p")
    planted = text.replace("COUNT(p.site)", "COUNT(site)")
    assert judged(Question(text=text), pair).state == EQUAL
    assert judged(Question(text=planted, theirs=text), pair).state == DIFFERS
