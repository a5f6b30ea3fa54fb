"""What an engine does not have is refused when a question is bound, with the construct and what to write instead."""

from dataclasses import fields

import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines.duckdb.engine import CAPABILITIES
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.plan.capabilities import (
    CHOOSING,
    CLAMPS,
    FEWEST_UNITS,
    GROUPING_SETS,
    MEASURES,
    PRIVATE_KEYS,
    Capabilities,
    Missing,
)
from lapwing.query.plan.plan import Question
from tests.support.query.clean import FIXTURES
from tests.support.refusals import refused_as

POORER = Capabilities(
    engine="Abacus",
    missing=(
        Missing(construct="formatted", name="STRFTIME", remedy="Use EXTRACT."),
        Missing(construct="window functions", name="window functions", remedy="Join a subquery to itself."),
        Missing(construct="UNION", name="UNION", remedy="Ask for each part by itself."),
        Missing(construct="distributions", name="quantiles", remedy="Ask for AVG."),
        Missing(construct=PRIVATE_KEYS, name="groups that are not public", remedy="Declare their values."),
    ),
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load(FIXTURES / "catalog.toml")


@pytest.mark.parametrize(
    ("text", "name", "remedy"),
    [
        ("SELECT COUNT(*) FROM visits WHERE STRFTIME(day, '%Y') = '2024'", "STRFTIME", "Use EXTRACT."),
        ("SELECT COUNT(DISTINCT STRFTIME(day, '%Y')) FROM visits", "STRFTIME", "Use EXTRACT."),
        (
            "SELECT COUNT(*) FROM (SELECT person, ROW_NUMBER() OVER (PARTITION BY person ORDER BY day) AS n"
            " FROM visits) AS v WHERE n = 1",
            "window functions",
            "Join a subquery to itself.",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT person, age FROM visits UNION ALL SELECT person, age FROM visits) AS v",
            "UNION",
            "Ask for each part by itself.",
        ),
        ("SELECT MEDIAN(age) FROM visits", "quantiles", "Ask for AVG."),
        ("SELECT SUM(weight, contribution_bounds_per_row => AUTO) FROM visits", "quantiles", "Ask for AVG."),
        ("SELECT note, COUNT(*) FROM visits GROUP BY note", "groups that are not public", "Declare their values."),
    ],
)
def test_what_an_engine_does_not_have_is_refused_with_a_remedy(
    catalog: Catalog, text: str, name: str, remedy: str
) -> None:
    bind(text, catalog)
    with pytest.raises(QueryRefused) as refused:
        bind(text, catalog, capabilities=POORER)
    assert refused.value.reason == f"Abacus does not have {name}"
    assert refused.value.remedy == remedy


PER_UNIT = "SELECT COUNT(*) FROM (SELECT person, {} AS x FROM visits GROUP BY person) AS v WHERE x IS NOT NULL"
WINDOW = "SELECT COUNT(*) FROM (SELECT person, {} AS x FROM visits) AS v WHERE x IS NOT NULL"
PRIVACY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({}) note, COUNT(*) FROM visits GROUP BY note"
MEETING = "SELECT COUNT(*, contribution_bounds_per_group => AUTO) FROM visits AS a JOIN visits AS b ON a.age = b.age"
CONSTRUCTS = {
    CLAMPS: "SELECT SUM(age, contribution_bounds_per_group => (0, 50)) FROM visits",
    GROUPING_SETS: "SELECT plan, member, COUNT(*) FROM visits GROUP BY ROLLUP (plan, member)",
    FEWEST_UNITS: PRIVACY.format("min_privacy_units_per_group = 5"),
    CHOOSING: MEETING,
    "joins of different units' rows": MEETING,
    "limits of rows": PRIVACY.format("max_rows_contributed = 1"),
    "limits of groups": PRIVACY.format("max_groups_contributed = 1"),
    "GROUP BY the privacy unit: average": PER_UNIT.format("AVG(age)"),
    "GROUP BY the privacy unit: count_distinct": PER_UNIT.format("COUNT(DISTINCT age)"),
    "window functions: lag": WINDOW.format("LAG(age) OVER (PARTITION BY person ORDER BY day)"),
    "window functions: sum": WINDOW.format("SUM(age) OVER (PARTITION BY person)"),
    "window functions: frames in rows": WINDOW.format(
        "SUM(age) OVER (PARTITION BY person ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    ),
    "window functions: frames in range": WINDOW.format(
        "SUM(age) OVER (PARTITION BY person ORDER BY age RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"
    ),
    "window functions: IGNORE NULLS": WINDOW.format("LAG(age IGNORE NULLS) OVER (PARTITION BY person ORDER BY day)"),
    "joins of a unit's rows: left": (
        "SELECT COUNT(*) FROM visits AS a LEFT JOIN visits AS b ON a.person = b.person AND b.age = a.age"
    ),
    "joins of a unit's rows: anti": (
        "SELECT COUNT(*) FROM visits WHERE person NOT IN (SELECT person FROM visits WHERE age > 50)"
    ),
}


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_each_construct_is_one_that_an_engine_may_refuse(catalog: Catalog, construct: str) -> None:
    poorer = Capabilities(engine="Abacus", missing=(Missing(construct=construct, name="that", remedy="Ask less."),))
    bind(CONSTRUCTS[construct], catalog)
    with refused_as("not_supported_by_engine"):
        bind(CONSTRUCTS[construct], catalog, capabilities=poorer)


def test_all_that_a_question_says_is_a_construct() -> None:
    """A new field of a question is something that an engine may lack: then it belongs among the constructs.

    All but two: which cells an answer has is no matter of the engine, which returns those with rows.
    """
    said = {"selection", "keys", "measures", "fewest_units", "sets", "choosing"}
    assert {field.name for field in fields(Question)} == said | {"combined", "wider"}


def test_a_question_without_what_is_missing_is_bound_as_ever(catalog: Catalog) -> None:
    text = "SELECT member, COUNT(*), SUM(age) FROM visits WHERE age > 20 GROUP BY member"
    assert bind(text, catalog, capabilities=POORER) == bind(text, catalog)


def test_every_measure_has_a_name_that_an_engine_can_lack() -> None:
    assert len(set(MEASURES.values())) == len(MEASURES)


def test_duckdb_has_everything() -> None:
    assert CAPABILITIES.missing == ()
