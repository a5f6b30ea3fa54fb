"""The driver of a service that runs for months: what it keeps of past queries, of old versions, of closed sessions."""

import re
import subprocess
import sys
from textwrap import dedent
from typing import Any, Final

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.engine import Spark
from lapwing.engines.spark.retired import RetiredViews
from lapwing.query.bind.bind import bind
from tests.spark.test_engine import SECOND, catalog, write
from tests.support.engines import spark
from tests.support.query.corpus import FIXTURES

__all__ = ["catalog"]

PRINTED: Final = re.compile("(WITH|SELECT) .*`")

PARSED = """
    import sys
    from contextlib import suppress

    from lapwing.engines.spark.cluster import Cluster
    from pyspark.errors import ParseException
    from tests.support.engines.spark import SMALL

    cluster = Cluster("local[1]", seconds=300, further={**SMALL, "spark.driver.memory": "480m", **FURTHER})
    cluster.open()
    java = cluster._session._jvm
    java.org.apache.spark.sql.classic.SparkSession.setActiveSession(cluster._session._jsparkSession)
    parser = cluster._session._jsparkSession.sessionState().sqlParser()
    for query in sys.stdin:
        with suppress(ParseException):  # of the first line of several
            parser.parsePlan(query)
    # Where ANTLR keeps what it remembers, unless it is told to keep it elsewhere.
    parsers = cluster._session.sparkContext._jvm.java.lang.Class.forName(
        "org.apache.spark.sql.catalyst.parser.SqlBaseParser")
    kept = parsers.getDeclaredField("_decisionToDFA")
    kept.setAccessible(True)
    states = java.java.lang.Class.forName("org.antlr.v4.runtime.dfa.DFA").getField("states")
    static = sum(states.get(one).size() for one in kept.get(None))
    print(static + java.org.apache.spark.sql.catalyst.parser.AbstractParser.getDFACacheNumStates())
    cluster.close()
"""


def remembered(further: str) -> int:
    """Return how many states a parser of a small driver remembers of all printed queries that are on one line."""
    spark.skip_where_missing()
    printed = [line for file in sorted(FIXTURES.glob("*.sql")) for line in file.read_text().splitlines()]
    queries = "\n".join(line for line in printed if PRINTED.match(line))
    script = dedent(PARSED).replace("FURTHER", further)
    found = subprocess.run(
        [sys.executable, "-c", script], input=queries, capture_output=True, text=True, check=True, timeout=600
    )
    return int(found.stdout)


@pytest.mark.long
def test_a_parser_forgets_what_it_looked_ahead_at() -> None:
    """Spark's own remembers all of it, and the queries of a few hundred analysts fill a driver."""
    at_most = 480 * 2**20 // 10 // 9700
    assert remembered("{}") < at_most
    assert remembered("{'spark.sql.parser.manageParserCaches': 'false'}") > 3 * at_most


def held(cluster: Cluster) -> tuple[int, int]:
    """Return how many views an application has in sessions of the tests, and the rows of how many it keeps."""

    def counted(session: Any) -> tuple[int, int]:
        manager = session._jsparkSession.sharedState().cacheManager()
        return len(session.catalog.listTables()), int(manager.numCachedEntries())

    return cluster._run(counted)


def ask_versions(engine: Spark, catalog: Catalog, versions: int) -> list[tuple[int, int]]:
    """Ask every version of a table twice; return how many views and kept tables there are after each."""
    question, after = bind(SECOND, catalog).question, []
    for version in range(versions):
        write(catalog.folder, "a.parquet", 300 + version, seed=version)
        for _ in range(2):
            engine.prepare(question)
            assert spark.run(engine, question).cells
        after.append(held(engine._cluster))
    return after


def test_old_versions_of_the_data_are_forgotten(cluster: Cluster, catalog: Catalog) -> None:
    with spark.engine(catalog) as engine:
        after = ask_versions(engine, catalog, 5)
        assert after[1:] == after[:1] * 4
        assert after[0][0] == 2  # the files, and the rows that are kept of them


def test_views_that_are_not_dropped_are_counted(cluster: Cluster, catalog: Catalog) -> None:
    """Planted: every version leaves its views."""
    with spark.engine(catalog) as engine:
        engine._retired = RetiredViews(lambda _view: None)
        views = [views for views, _ in ask_versions(engine, catalog, 3)]
        assert views == sorted(set(views))


def test_a_closed_session_leaves_nothing_in_an_application_that_goes_on(cluster: Cluster, catalog: Catalog) -> None:
    before = held(cluster)
    with spark.engine(catalog) as engine:
        ask_versions(engine, catalog, 1)
        assert held(cluster)[1] == before[1] + 1
    assert held(cluster) == before


def test_rows_that_another_session_dropped_are_kept_again(cluster: Cluster, catalog: Catalog) -> None:
    """Two sessions that ask the same version share the rows; the one that ends first drops them."""
    question, before = bind(SECOND, catalog).question, held(cluster)[1]
    with spark.engine(catalog) as engine:
        with spark.engine(catalog) as other:
            found = [spark.found(spark.run(one, question)) for one in (engine, other)]
        assert held(cluster)[1] == before
        assert [spark.found(spark.run(engine, question)), found[1]] == found
        assert held(cluster)[1] == before + 1


def test_a_view_is_dropped_when_no_query_of_before_runs() -> None:
    dropped: list[str] = []
    retired = RetiredViews(dropped.append)
    with retired.reading():
        retired.add(["one"])
        with retired.reading():
            retired.add(["two"])
        assert dropped == []
    assert dropped == ["one", "two"]
    retired.add(["three"])
    assert dropped == ["one", "two", "three"]


def test_a_query_that_began_later_delays_no_drop() -> None:
    dropped: list[str] = []
    retired = RetiredViews(dropped.append)
    early, late = retired.reading(), retired.reading()
    early.__enter__()
    retired.add(["one"])
    late.__enter__()
    early.__exit__(None, None, None)
    assert dropped == ["one"]
    late.__exit__(None, None, None)


def test_a_view_that_cannot_be_dropped_raises_nothing() -> None:
    """Its session may be lost, and a query that was paid ends then as it would otherwise."""

    def fail(_view: str) -> None:
        raise ConnectionError

    retired = RetiredViews(fail)
    retired.add(["one"])
    with retired.reading():
        pass
