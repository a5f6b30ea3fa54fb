"""A working analyst's questions about one table: which are answered, and that the others are refused with a remedy.

The questions are in `fixtures/query_survey.sql`, as people write them, not as Lapwing would like them. What is not in
`REFUSED` must stay answered; what becomes so leaves it.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from tests.support.effort import one_in

FIXTURES = Path(__file__).parents[1] / "fixtures"
BLOCKS = [block.split("\n", 1) for block in (FIXTURES / "query_survey.sql").read_text().strip().split("\n\n")]
QUESTIONS = {name.removeprefix("-- "): text for name, text in BLOCKS}

REFUSED = {
    "qualify outermost",
    "arg max",
    "mode per user",
    "median per user",
    "order in subquery",
    "count of rows star",
    "any value",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Catalog, PublicData]]:
    folder = tmp_path_factory.mktemp("shop")
    products = {
        "product": [1, 2, 3, 4, 5, 6],
        "category": ["book", "book", "toy", "toy", "food", "food"],
        "price": [10.0, 20.0, 5.0, 6.0, 2.0, 3.0],
        "launched": [date(2025, 1, 1)] * 6,
    }
    regions = {"region": ["north", "south", "east", "west"], "country": ["A", "A", "B", "B"]}
    pq.write_table(pa.table(products), folder / "products.parquet")
    pq.write_table(pa.table(regions), folder / "regions.parquet")
    catalog = loads((FIXTURES / "query_survey.toml").read_text(), file="shop", folder=folder)
    facts = PublicData(catalog)
    yield catalog, facts
    facts.close()


@pytest.mark.parametrize("name", one_in(36, sorted(QUESTIONS.keys() - REFUSED)))
def test_it_is_answered(name: str, shop: tuple[Catalog, PublicData]) -> None:
    assert bind(QUESTIONS[name], *shop).outputs


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_has_a_remedy(name: str, shop: tuple[Catalog, PublicData]) -> None:
    with pytest.raises(QueryRefused) as refused:
        bind(QUESTIONS[name], *shop)
    assert refused.value.remedy


def test_most_are_answered() -> None:
    assert QUESTIONS.keys() >= REFUSED
    assert len(REFUSED) / len(QUESTIONS) < 0.2
