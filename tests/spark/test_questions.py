"""Questions on Spark: the same exact integers as on DuckDB, where no unit has more rows than it may have."""

from collections.abc import Iterator

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import DuckDB
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.engine import Spark
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.plan.capabilities import relations_of
from lapwing.query.relations.per_unit import FirstGroups, FirstRows
from tests.support.effort import one_in
from tests.support.engines import spark
from tests.support.engines.tables import digests
from tests.support.query import clean, golden

GOLDEN = [entry.question for file in golden.files(refused=False) for entry in golden.read(file)]
FEW = [
    "SELECT plan, member, COUNT(*), SUM(cost), AVG(age), VAR_POP(age), COUNT(DISTINCT person) FROM visits"
    " WHERE age * 2 > 30 AND note IS NOT NULL GROUP BY plan, member",
    "SELECT town, MEDIAN(cost) FROM visits GROUP BY town",
    "SELECT plan, town, COUNT(*) FROM visits GROUP BY ROLLUP (plan, town)",
    "SELECT age, COUNT(DISTINCT person), SUM(cost) FROM visits GROUP BY age",
    "SELECT tier, COUNT(*), SUM(age) FROM visits JOIN codes ON visits.plan = codes.plan GROUP BY tier",
    "SELECT COUNT(*), AVG(spent) FROM (SELECT person, SUM(cost) AS spent FROM visits GROUP BY person) AS v"
    " WHERE spent > 100",
    "SELECT plan, SUM(cost, contribution_bounds_per_group => (0, 50)) FROM visits GROUP BY plan",
    "SELECT choice, AVG(weight), COUNT(*) FROM ballots GROUP BY choice",
    "SELECT COUNT(DISTINCT person) FROM visits WHERE member",
    "SELECT COUNT(TO_TIMESTAMP(age * 100000)) FROM visits WHERE TO_TIMESTAMP(age * 86400) < '1970-02-01'",
]  # fmt: skip


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return clean.catalog_in(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def facts(catalog: Catalog) -> Iterator[PublicData]:
    facts = PublicData(catalog)
    yield facts
    facts.close()


@pytest.fixture(scope="module")
def ours(catalog: Catalog, facts: PublicData, cluster: Cluster) -> Iterator[Spark]:
    with spark.engine(spark.on_spark(catalog), facts) as opened:
        yield opened


@pytest.fixture(scope="module")
def theirs(catalog: Catalog, facts: PublicData) -> Iterator[DuckDB]:
    engine = DuckDB(catalog, public=facts)
    yield engine
    engine.close()


def alike(text: str, catalog: Catalog, facts: PublicData, ours: Spark, theirs: DuckDB) -> bool | None:
    """Tell whether both engines find the same; None if Spark refuses the question, or is to choose among rows."""
    other = bind(text, catalog, facts).question
    try:
        own = bind(text, spark.on_spark(catalog), facts, capabilities=ours.capabilities)
    except QueryRefused:
        return None
    if any(isinstance(node, FirstRows | FirstGroups) for node in relations_of(own.question.selection)):
        return None
    wanted = theirs.run(other, digests(theirs, other))
    return spark.found(spark.run(ours, own.question)) == spark.found(wanted)


@pytest.mark.parametrize("text", one_in(2, FEW))
def test_both_engines_find_the_same(
    text: str, catalog: Catalog, facts: PublicData, ours: Spark, theirs: DuckDB
) -> None:
    assert alike(text, catalog, facts, ours, theirs) is True


@pytest.mark.long
def test_both_engines_find_the_same_in_every_golden_question(
    catalog: Catalog, facts: PublicData, ours: Spark, theirs: DuckDB
) -> None:
    found = {text: alike(text, catalog, facts, ours, theirs) for text in GOLDEN if "sheets" not in text}
    assert [text for text, same in found.items() if same is False] == []
    assert sum(same is True for same in found.values()) > len(found) / 2
