"""What an engine does not have is refused when a question is bound, with the construct and what to write instead."""

import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines.duckdb.engine import CAPABILITIES
from lapwing.errors import QueryRefused
from lapwing.query.bind import bind
from lapwing.query.capabilities import MEASURES, PRIVATE_KEYS, Capabilities, Missing
from tests.support.query.clean import FIXTURES

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


def test_a_question_without_what_is_missing_is_bound_as_ever(catalog: Catalog) -> None:
    text = "SELECT member, COUNT(*), SUM(age) FROM visits WHERE age > 20 GROUP BY member"
    assert bind(text, catalog, capabilities=POORER) == bind(text, catalog)


def test_every_measure_has_a_name_that_an_engine_can_lack() -> None:
    assert len(set(MEASURES.values())) == len(MEASURES)


def test_duckdb_has_everything() -> None:
    assert CAPABILITIES.missing == ()
