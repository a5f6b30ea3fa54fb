"""How many rows may come back is bounded before anything is charged, by public facts alone."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.spark import capabilities
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.query.bind.bind import bind
from tests.support.refusals import refused_as

TEXT = """
[dataset]
name = "trips"
engine = "spark"
ledger = "sqlite:trips.db"
[budget]
epsilon = 10
delta = 1e-6
delta_keys = 1e-7
[tables.trips]
source = "trips/*.parquet"
privacy_unit = "rider"
max_rows_per_unit = 50
[tables.trips.columns]
minute = { type = "integer", lower = 0, upper = 9_999_999 }
fare = { type = "decimal", lower = 0, upper = 100, step = 0.01 }
stop = { type = "string" }
[tables.stops]
public = true
source = "stops.parquet"
[tables.stops.columns]
stop = { type = "string" }
line = { type = "string" }
"""
BY_STOP = "SELECT stop, COUNT(*) FROM trips GROUP BY stop"
BY_MINUTE = "SELECT minute, COUNT(*) FROM trips GROUP BY minute"
MEDIANS = "SELECT minute, MEDIAN(fare) FROM trips GROUP BY minute"
JOINED = "SELECT trips.stop, COUNT(*) FROM trips LEFT JOIN stops ON trips.stop = stops.stop GROUP BY trips.stop"
PAIRS = (
    "SELECT b.stop, COUNT(*) FROM trips AS a JOIN trips AS b ON a.rider = b.rider AND a.fare = b.fare GROUP BY b.stop"
)
BOTH = (
    "SELECT stop, COUNT(*) FROM (SELECT rider, stop FROM trips UNION ALL SELECT rider, stop FROM trips) AS t"
    " GROUP BY stop"
)
ROWS, LINES, MOST, MINUTES, LEAVES = 1000, 3, 50, 10_000_000, 201


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("cells")
    pq.write_table(pa.table({"stop": ["a"] * LINES, "line": list("xyz")}), folder / "stops.parquet")
    return loads(TEXT, file="lapwing.toml", folder=folder)


@pytest.mark.parametrize(
    ("question", "rows", "most"),
    [
        (BY_STOP, ROWS, ROWS),  # a stop has a row, or nobody hears of it
        (BY_MINUTE, ROWS, ROWS),
        (BY_MINUTE, None, MINUTES * MOST),
        (MEDIANS, ROWS, ROWS),
        (MEDIANS, None, MINUTES * LEAVES),
        (JOINED, ROWS, ROWS * LINES),
        (PAIRS, ROWS, ROWS * MOST),
        (BOTH, ROWS, ROWS * 2),
    ],
)
def test_what_may_come_back_is_bounded_by_public_facts(
    question: str, rows: int | None, most: int, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for so many rows a question is bound; with room for one less it is refused, before it has a price."""
    told, facts = replace(catalog, tables=(replace(catalog.tables[0], rows_at_most=rows),)), PublicData(catalog)
    monkeypatch.setattr(capabilities, "MOST_CELLS", most)
    bind(question, told, facts, capabilities=CAPABILITIES)
    monkeypatch.setattr(capabilities, "MOST_CELLS", most - 1)
    with refused_as("not_supported_by_engine", saying=f"{most - 1:,}"):
        bind(question, told, facts, capabilities=CAPABILITIES)
    facts.close()


@pytest.mark.parametrize("question", [BY_STOP, JOINED])
def test_where_nothing_is_declared_nothing_comes_back(question: str, catalog: Catalog) -> None:
    facts = PublicData(catalog)
    with refused_as("not_supported_by_engine", saying="4,000,000"):
        bind(question, catalog, facts, capabilities=CAPABILITIES)
    facts.close()
