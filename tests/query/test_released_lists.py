"""Rows that are joined to the groups of a result: the same question as IN with the list of these groups."""

from collections.abc import Iterator

import pytest

import lapwing as lw
from lapwing.errors import QueryRefused
from lapwing.query.normalise import released_lists
from tests.query.test_public_queries import folder  # noqa: F401
from tests.support.refusals import refused_as

TOP = "SELECT site, COUNT(*) AS k FROM visits GROUP BY site ORDER BY k DESC LIMIT 2"
LISTED = (
    f"SELECT v.site, COUNT(*) AS n FROM visits AS v WHERE v.site IN (SELECT site FROM ({TOP}) AS t) GROUP BY v.site"
)
SAME = [
    f"SELECT v.site, COUNT(*) AS n FROM visits AS v JOIN ({TOP}) AS t ON v.site = t.site GROUP BY v.site",
    f"SELECT v.site, COUNT(*) AS n FROM visits AS v INNER JOIN ({TOP}) AS t ON (t.site = v.site) GROUP BY v.site",
    f"SELECT site, COUNT(*) AS n FROM visits AS v JOIN ({TOP}) AS t USING (site) GROUP BY site",
    "SELECT site, COUNT(*) AS n FROM visits JOIN (SELECT site AS site__, COUNT(*) AS mme FROM visits GROUP BY 1 "
    "ORDER BY mme DESC LIMIT 2) AS series_limit ON site = site__ GROUP BY site",
]
REFUSED = [
    f"SELECT SUM(t.k) AS n FROM visits AS v JOIN ({TOP}) AS t ON v.site = t.site",
    f"SELECT COUNT(*) AS n FROM visits AS v JOIN ({TOP}) AS t USING (site) WHERE k > 3",
    f"SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN ({TOP}) AS t ON v.site = t.site",
    f"SELECT COUNT(*) AS n FROM visits AS v JOIN ({TOP}) AS t ON v.site > t.site",
    f"SELECT COUNT(*) AS n FROM visits AS v JOIN ({TOP}) AS t ON v.site = t.site RIGHT JOIN sites s USING (site)",
]
TWO_KEYS = (
    "SELECT COUNT(*) AS n FROM visits AS v JOIN (SELECT site, state, COUNT(*) AS k FROM visits JOIN sites USING (site) "
    "GROUP BY site, state) AS t ON v.site = t.site"
).replace("state", "region")


@pytest.fixture(scope="module")
def session(folder: object) -> Iterator[lw.Session]:  # noqa: F811
    with lw.connect(f"{folder}/lapwing.toml") as opened:
        yield opened


@pytest.mark.parametrize("text", SAME)
def test_it_is_the_question_with_the_list(text: str, session: lw.Session) -> None:
    """So it has its price and is released first: what was bought as one is free as the other."""
    joined, listed = (session.plan(each, (), epsilon=1) for each in (text, LISTED))
    assert joined.question == listed.question
    assert [plan.question for plan in joined.constants] == [plan.question for plan in listed.constants]
    assert len(joined.constants) == 1
    assert session.explain(text, epsilon=0.5).price == session.explain(LISTED, epsilon=0.5).price
    bought = session.sql(LISTED, epsilon=0.5)
    answer = session.sql(text, epsilon=0.5)
    assert answer.cost.amount == 0
    assert answer.rows() == bought.rows()


@pytest.mark.parametrize("text", [*REFUSED, TWO_KEYS])
def test_what_looks_at_more_of_a_result_is_refused(text: str, session: lw.Session) -> None:
    with pytest.raises(QueryRefused):
        session.explain(text, epsilon=1)


def test_twin_a_row_that_matches_several_is_counted_once(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a key of a result that is grouped by two is taken for the only one, so that a list would lose copies."""
    with refused_as("mixes_units"):
        session.explain(TWO_KEYS, epsilon=1)
    monkeypatch.setattr(released_lists, "only_key", lambda query: "site")
    assert session.explain(TWO_KEYS, epsilon=1).price.amount > 0
