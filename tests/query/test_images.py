"""The values of a key that follow from bounds or values of its column are those that the engine computes: all, no more.

Every value that the column may have is put through the key's own SQL.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.expressions import expression
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import Key
from lapwing.query.relations import images
from tests.support.effort import only
from tests.support.refusals import refused_as

TOML = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
[tables.orders]
source = "orders.parquet"
privacy_unit = "customer"
max_rows_per_unit = 5
[tables.orders.columns]
day = { type = "date", lower = 2023-11-15, upper = 2025-03-02 }
at = { type = "timestamp", lower = 2024-02-27T05:06:07Z, upper = 2024-03-04T00:00:00Z }
age = { type = "integer", lower = -7, upper = 100 }
plan = { type = "string", values = ["basic", "Gold", "it's"] }
sex = { type = "string", values = ["f", "m"] }
town = { type = "string", values = ["Ulm"], other = "elsewhere" }
street = { type = "string", values = ["Käferweg"] }
free = { type = "date" }
"""
DAYS = [f"DATE_TRUNC('{unit}', day)" for unit in ("year", "quarter", "month", "week", "day")]
SECONDS = [f"DATE_TRUNC('{unit}', at)" for unit in ("month", "week", "day", "hour", "minute")]
KEYS = [
    "day", "CAST(at AS DATE)", *DAYS, *SECONDS, "CAST(DATE_TRUNC('month', day) AS DATE)", "LAST_DAY(day)",
    "MONTHNAME(day)", "DAYNAME(day)", "DAYNAME(at)", "STRFTIME(day, '%Y-%m')", "STRFTIME(at, '%d.%m.%y')",
    "STRFTIME(day, '%G week %V, %% %j %b %B %a %A %u %w')", "TO_CHAR(day, 'YYYY-MM')", "FLOOR(age / 10) * 10",
    "3 - 2 * age", "-age", "UPPER(plan)", "LOWER(plan) || '-' || sex",
    "CAST(day AS VARCHAR)", "YEAR(day) || '-Q'", "'age ' || age", "CAST(FLOOR(age / 10) * 10 AS VARCHAR) || 's'",
]  # fmt: skip
PRIVATE = ["at", "free", "DATE_TRUNC('year', free)", "DATE_TRUNC('second', at)", "STRFTIME(day, '%H')",
           "STRFTIME(free, '%Y')", "UPPER(town)", "UPPER(street)", "LOWER(MONTHNAME(free) || town)"]  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(TOML, file="shop", folder=Path())


@pytest.fixture(scope="module")
def every() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every value that a column may have; of moments, every second."""
    first, last = datetime(2024, 2, 27, 5, 6, 7, tzinfo=UTC), datetime(2024, 3, 4, tzinfo=UTC)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE TABLE day AS SELECT DATE '2023-11-15' + i::INTEGER AS day FROM range(474) AS t(i)")
        connection.execute(
            'CREATE TABLE "at" AS SELECT ?::TIMESTAMP + to_seconds(i) AS "at" FROM range(?) AS t(i)',
            [first.replace(tzinfo=None), int((last - first) / timedelta(seconds=1)) + 1],
        )
        connection.execute('CREATE TABLE age AS SELECT i AS age, i AS "age as read" FROM range(-7, 101) AS t(i)')
        connection.execute(
            "CREATE TABLE plan AS SELECT plan, sex FROM (VALUES ('basic'), ('Gold'), ('it''s')) AS p(plan), "
            "(VALUES ('f'), ('m')) AS s(sex)"
        )
        yield connection


def _key(text: str, catalog: Catalog) -> Key:
    return bind(f"SELECT {text} AS k, COUNT(*) AS n FROM orders GROUP BY 1", catalog).keys[0]


def _computed(key: Key, connection: duckdb.DuckDBPyConnection) -> set[object]:
    table = next(name for name in ("day", "at", "age", "plan") if f'"{name}' in expression(key.expression))
    found = connection.execute(f'SELECT DISTINCT {expression(key.expression)} FROM "{table}"').fetchall()
    kind = key.expression.type
    return {Fraction(value) * kind.step if isinstance(kind, Fixed) else value for (value,) in found}


@pytest.mark.parametrize("text", only([0], KEYS))
def test_they_are_all_and_no_more(text: str, catalog: Catalog, every: duckdb.DuckDBPyConnection) -> None:
    key = _key(text, catalog)
    assert key.values is not None
    assert len(key.values) == len(set(key.values))
    possible = _computed(key, every)
    names = {"MONTHNAME(day)", "DAYNAME(day)", "DAYNAME(at)"}
    assert set(key.values) >= possible if text in names else set(key.values) == possible


@pytest.mark.parametrize("text", PRIVATE)
def test_others_stay_private(text: str, catalog: Catalog) -> None:
    assert _key(text, catalog).private


def test_a_list_that_is_short_of_one_is_seen(
    catalog: Catalog, every: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = images.image
    monkeypatch.setattr("lapwing.query.relations.domains.image", lambda *given: (whole(*given) or ())[:-1] or None)
    key = _key("DATE_TRUNC('month', day)", catalog)
    assert set(key.values or ()) < _computed(key, every)


def test_a_long_range_is_private(catalog: Catalog) -> None:
    key = _key("LEAST(GREATEST(free, DATE '1900-01-01'), DATE '2026-01-01')", catalog)
    assert key.private
    assert len(_key("LEAST(GREATEST(free, DATE '2000-01-01'), DATE '2026-01-01')", catalog).values or ()) == 9498


def test_too_many_cells_are_refused(catalog: Catalog) -> None:
    with refused_as("too_many_groups"):
        bind("SELECT day, age, DAYOFYEAR(at), COUNT(*) FROM orders GROUP BY 1, 2, 3", catalog)


def test_days_come_in_order(catalog: Catalog) -> None:
    values = _key("day", catalog).values or ()
    assert values[0] == date(2023, 11, 15)
    assert list(values) == sorted(values)  # type: ignore[type-var]  # all are dates
