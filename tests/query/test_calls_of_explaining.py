"""Pricing a query takes few calls: how many it makes is a number of the code, and not of the machine.

Each text may make a tenth more than it does. What walks the tree once more in every stage, or parses what it has
written, makes many more, and no test of results sees it.
"""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from tests.query.test_public_answers import CATALOG, SITES, A
from tests.support.calls import within

MOST = {
    "SELECT COUNT(*) AS n FROM sites": 11_500,
    "SELECT region, COUNT(*) AS n FROM sites GROUP BY region": 10_000,
    "SELECT s.region, COUNT(*) AS n FROM visits v JOIN sites s ON v.site = s.site WHERE v.age > 3 GROUP BY 1": 19_500,
    f"WITH a AS ({A}) SELECT region, SUM(n) AS n FROM a JOIN sites USING (site) GROUP BY region": 26_500,
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> lw.Session:
    folder = tmp_path_factory.mktemp("calls")
    visits = {"person": [1, 2, 3], "site": ["x", "y", "z"], "age": [20, 30, 40]}
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    pq.write_table(pa.table(SITES), folder / "sites.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    return lw.connect(folder / "lapwing.toml")


@pytest.mark.parametrize("text", MOST)
def test_a_query_beside_a_public_table_is_priced_in_few_calls(text: str, session: lw.Session) -> None:
    session.explain(text, epsilon=1)  # looks into the public table, and searches for noise: both are kept
    within(MOST[text], lambda: session.explain(text, epsilon=1))


def test_many_keys_take_few_calls_each(session: lw.Session) -> None:
    """Each key was compared with all keys before it, for every combination of values: that took 3.4 million calls."""
    keys = ", ".join(f"age % {number}" for number in range(2, 82))
    within(1_500_000, lambda: session.explain(f"SELECT COUNT(*) AS n FROM visits GROUP BY {keys}", epsilon=1))


def test_many_numbers_of_public_tables_take_few_calls_each(session: lw.Session) -> None:
    """All subqueries were looked for again for each of them: that took 3.7 million calls, 9.5 million of bare ones."""
    numbers = ", ".join(f"1 + (SELECT MAX(beds) + {number} FROM sites)" for number in range(300))
    within(2_500_000, lambda: session.explain(f"SELECT COUNT(*) AS n FROM visits WHERE age IN ({numbers})", epsilon=1))


def test_columns_that_follow_from_one_another_take_few_calls_each(session: lw.Session) -> None:
    """What each column adds up was asked again at each of its sums: that took 3 million calls."""
    columns = ", ".join(f"c{number} + 1 AS c{number + 1}" for number in range(60))
    within(1_350_000, lambda: session.explain(f"SELECT COUNT(*) AS c0, {columns} FROM visits", epsilon=1))
