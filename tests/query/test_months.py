"""Times moved by months: bounds that hold for every time of the day, and columns that are clamped all the same."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import days
from lapwing.query.sensitivity import stability
from tests.support.effort import one_in
from tests.support.engines.tables import run

CATALOG = """
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
seen = { type = "timestamp" }
"""
EPOCH = datetime(1970, 1, 1)
MOMENTS = [
    datetime(year, month, day, hour)
    for year, (month, day), hour in product(
        (2023, 2024), ((1, 29), (1, 30), (1, 31), (3, 1), (3, 31), (12, 31)), (0, 23)
    )
]
MONTHS = (-13, -1, 0, 1, 2, 12)


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def moved() -> Iterator[tuple[int, int, int]]:
    """Return (microseconds, months, microseconds then) as the engine has it."""
    connection = duckdb.connect()
    for moment, months in product(MOMENTS, MONTHS):
        found = connection.execute(
            "SELECT epoch_us($1::TIMESTAMP + to_months($2::INTEGER))", [moment, months]
        ).fetchall()
        yield microseconds(moment), months, found[0][0]
    connection.close()


def strays() -> list[tuple[int, int, int, int]]:
    """Return the pairs of times of which one, moved, lies beyond what the other bounds."""
    found = list(moved())
    return [
        (least, us, most, months)
        for (us, months, then), (least, m, _), (most, n, _) in product(found, found, found)
        if months == m == n
        and least <= us <= most
        and not days.later(least, months)[0] <= then <= days.later(most, months)[1]
    ]


def test_no_time_between_two_strays_beyond_their_bounds() -> None:
    assert strays() == []


@pytest.mark.long
def test_bounds_that_keep_the_time_of_day_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    later = days.later
    monkeypatch.setattr(days, "later", lambda us, months: (later(us, months)[0] + us % days.DAY,) * 2)
    assert strays()


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    times = [datetime(2026, 1, 30, 23), datetime(2026, 1, 31)]
    pq.write_table(
        pa.table({"person": [1, 2], "seen": pa.array(times, pa.timestamp("us"))}), tmp_path / "visits.parquet"
    )
    return loads(CATALOG, file="small", folder=tmp_path)


CLOSE = "GREATEST(LEAST(seen, TIMESTAMP '2026-01-31 00:00:00'), TIMESTAMP '2026-01-30 00:00:00') + INTERVAL 1 MONTH"


@pytest.mark.parametrize(
    "question",
    one_in(
        3,
        [
            f"SELECT SUM(v) FROM (SELECT DISTINCT person, EXTRACT(epoch FROM ({CLOSE})) - 1772236800 AS v FROM visits)",
            f"SELECT SUM(v) FROM (SELECT person, SUM(DATE_DIFF('hour', TIMESTAMP '2026-02-28 00:00:00', {CLOSE})) AS v "
            "FROM visits GROUP BY person)",
            f"SELECT SUM(DATE_DIFF('hour', TIMESTAMP '2026-02-28 00:00:00', {CLOSE})) FROM visits",
        ],
    ),
)
def test_a_unit_moves_a_sum_over_moved_times_by_no_more_than_is_claimed(question: str, catalog: Catalog) -> None:
    asked = bind(question, catalog).question
    engine = DuckDB(catalog, threads=1)
    ((total,),) = run(engine, asked).values()
    engine.close()
    ((candidate,),) = stability.of_question(asked, "add_remove")
    assert 0 < abs(Fraction(total)) <= candidate.sensitivity.l1
