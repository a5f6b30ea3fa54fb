"""Ages, buckets, spans and zones, as their SQL computes them on random times, beside DuckDB's own functions."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import cast
from zoneinfo import ZoneInfo

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb.expressions import expression
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import days, instants, logic, temporal
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.types import Fixed, Plain
from tests.support.query import clean
from tests.support.refusals import refused_as

ROWS = 20_000
LOW, HIGH = datetime(1996, 1, 1), datetime(2012, 12, 31)
BOUNDS = {"low": days.count(LOW), "high": days.count(HIGH)}
A, B = (ColumnReference(name=name, type=Plain(name="timestamp", **BOUNDS)) for name in "ab")
DAYS = {"low": BOUNDS["low"] // days.DAY, "high": BOUNDS["high"] // days.DAY}
C, D = (ColumnReference(name=name, type=Plain(name="date", **DAYS)) for name in "cd")
WEEK = 7 * days.DAY


@pytest.fixture(scope="module")
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    """Times of which every third pair is on the same day of a month, and every fifth at the same time of day."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SELECT setseed(0.5)")
        random = f"TIMESTAMP '{LOW}' + to_seconds(CAST(floor(random() * {(HIGH - LOW).total_seconds()}) AS BIGINT))"
        connection.execute(
            f"CREATE TABLE drawn AS SELECT i, {random} AS a, {random} AS r FROM range({ROWS}) t(i);"
            "CREATE TABLE rows AS SELECT a, CASE WHEN i % 3 = 0 THEN a + to_months((i % 200 - 100)::INT)"
            " WHEN i % 5 = 0 THEN date_trunc('day', r) + (a - date_trunc('day', a)) ELSE r END AS b FROM drawn;"
            f"DELETE FROM rows WHERE b < '{LOW}' OR b > '{HIGH}';"
            "CREATE VIEW times AS SELECT a, b, a::DATE AS c, b::DATE AS d FROM rows"
            " UNION ALL SELECT NULL, NULL, NULL, NULL"
        )
        yield connection


def differing(rows: duckdb.DuckDBPyConnection, ours: Expression, theirs: str) -> int:
    """Return in how many rows an expression is not what SQL says, or outside its bounds."""
    value, kind = expression(ours), ours.type
    if isinstance(kind, Fixed):
        value, ends = f"({value}) * {kind.step.numerator} / {kind.step.denominator}", (kind.low, kind.high)
        bounds = f"{expression(ours)} NOT BETWEEN {ends[0]} AND {ends[1]}"
    else:
        moments = [days.moment_at(cast(int, end)) for end in (cast(Plain, kind).low, cast(Plain, kind).high)]
        bounds = f"{value} NOT BETWEEN TIMESTAMP '{moments[0]}' AND TIMESTAMP '{moments[1]}'"
    found = rows.execute(
        f"SELECT count(*) FROM times WHERE ({value}) IS DISTINCT FROM ({theirs}) OR {bounds}"
    ).fetchone()
    return cast(tuple[int], found)[0]


AGES = [
    (instants.part_of_age("year", A, B), "date_part('year', age(a, b))"),
    (instants.part_of_age("month", A, B), "date_part('month', age(a, b))"),
    (instants.part_of_age("year", C, D), "date_part('year', age(c, d))"),
    (instants.part_of_age("month", C, B), "date_part('month', age(c, b))"),
]
OTHERS = [
    (instants.bucket(900_000_000, A), "time_bucket(INTERVAL '15 minutes', a)"),
    (instants.bucket(3 * WEEK, A), "time_bucket(INTERVAL '21 days', a)"),
    (instants.bucket(WEEK, C, days.count(datetime(2030, 1, 2, 3))),
     "time_bucket(INTERVAL '7 days', c::TIMESTAMP, TIMESTAMP '2030-01-02 03:00:00')"),
    (instants.part_of_span("epoch", instants.seconds_between(A, B)), "epoch(a - b)"),
    (instants.part_of_span("day", instants.seconds_between(A, B)), "date_part('day', a - b)"),
    (instants.part_of_span("hour", instants.seconds_between(A, B)), "date_part('hour', a - b)"),
    (instants.part_of_span("minute", instants.seconds_between(A, B)), "date_part('minute', a - b)"),
    (instants.part_of_span("second", instants.seconds_between(A, B)), "date_part('second', a - b)"),
    *((instants.in_zone(A, zone), f"a AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'")
      for zone in ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Africa/Casablanca", "Australia/Lord_Howe")),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs"), [*AGES, *OTHERS], ids=[theirs for _, theirs in (*AGES, *OTHERS)])
def test_it_is_what_duckdb_says(rows: duckdb.DuckDBPyConnection, ours: Expression, theirs: str) -> None:
    assert differing(rows, ours, theirs) == 0


def test_a_birthday_that_is_counted_a_moment_late_is_found(
    rows: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: a year is over only after the birthday."""
    compare = logic.compare
    monkeypatch.setattr(logic, "compare", lambda symbol, x, y: compare("<=" if symbol == "<" else symbol, x, y))
    assert differing(rows, instants.part_of_age("month", A, B), AGES[1][1]) > 100


def test_a_change_of_the_clocks_that_is_missed_is_found(
    rows: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: one change of several is not there."""
    offsets = instants.zone_offsets
    monkeypatch.setattr(instants, "zone_offsets", lambda *given: offsets(*given)[1:])
    ours = instants.in_zone(A, "Europe/Berlin")
    assert differing(rows, ours, "a AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'") > 100


def test_the_first_bucket_of_all_is_null_where_it_begins_before_the_calendar() -> None:
    bucket = instants.bucket(WEEK, ColumnReference(name="a", type=Plain(name="timestamp")), 86_400_000_000)
    kind = cast(Plain, bucket.type)
    assert (kind.low, kind.high) >= days.CALENDAR["timestamp"][:1]
    with duckdb.connect() as connection:
        sql = expression(bucket)
        first = connection.execute(f"SELECT {sql} FROM (SELECT TIMESTAMP '0001-01-01' AS a)").fetchone()
        later = connection.execute(f"SELECT {sql} FROM (SELECT TIMESTAMP '0001-01-08' AS a)").fetchone()
    assert first == (None,)
    assert later is not None
    assert later[0] is not None


def test_parts_of_released_times_are_those_of_rows() -> None:
    with duckdb.connect() as connection:
        for moment in (datetime(2024, 2, 29, 13, 5, 7), datetime(2021, 1, 3), datetime(1999, 12, 31, 23, 59, 59)):
            for unit in days.PARTS:
                theirs = connection.execute(f"SELECT date_part('{unit}', TIMESTAMP '{moment}')").fetchone()
                assert (days.part(days.count(moment), unit),) == theirs
    assert set(days.PARTS) == set(temporal.PARTS)


@pytest.mark.parametrize(
    ("zone", "low", "high"),
    [
        ("Africa/Freetown", datetime(1939, 8, 30), datetime(1939, 9, 12)),  # an offset that was kept for four days
        ("America/Recife", datetime(2000, 10, 1, 2, 30), datetime(2000, 10, 20)),
        ("Asia/Tokyo", datetime(9995, 1, 1), datetime.max),
        ("America/New_York", datetime.min, datetime(5, 1, 1)),
    ],
)
def test_offsets_of_a_zone_are_those_of_every_hour(zone: str, low: datetime, high: datetime) -> None:
    rules = ZoneInfo(zone)
    offsets = instants.zone_offsets(rules, days.count(low), days.count(high), zone)
    hours = [low + timedelta(hours=hour) for hour in range(24, min(400, int((high - low).total_seconds() // 3600)))]
    for moment in hours:
        there = moment.replace(tzinfo=UTC).astimezone(rules).utcoffset()
        assert there is not None
        found = next((offset for until, offset in offsets[:-1] if days.count(moment) < until), offsets[-1][1])
        assert found == there.total_seconds()


@pytest.mark.parametrize(
    "where",
    [
        "seen < TIMESTAMP '9999-12-31 23:00:00' AT TIME ZONE 'America/New_York'",
        "seen > TIMESTAMP '0001-01-01 00:00:00' AT TIME ZONE 'Asia/Tokyo'",
    ],
)
def test_a_constant_that_leaves_the_calendar_in_utc_is_refused(where: str, tmp_path: Path) -> None:
    with refused_as("invalid_date"):
        bind(f"SELECT COUNT(*) FROM visits WHERE {where}", clean.catalog_in(tmp_path))


def test_a_bound_beyond_the_calendar_narrows_nothing(tmp_path: Path) -> None:
    catalog = clean.catalog_in(tmp_path)
    text = "SELECT HOUR(seen) AS k, COUNT(*) AS n FROM visits WHERE seen < {} GROUP BY k"
    for end in ("TIMESTAMP '9999-12-31 00:00:00' + INTERVAL 2 DAY", "DATE '9999-12-31' + INTERVAL 2 DAY"):
        assert bind(text.format(end), catalog).question.cells


def _bindings(text: str, catalog: Catalog) -> int:
    """Return how many expressions are bound for a query."""
    count = 0

    def note(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is bind_expression.__code__

    sys.setprofile(note)
    try:
        bind(text, catalog)
    finally:
        sys.setprofile(None)
    return count


def test_a_difference_is_bound_once_however_deep_it_stands(tmp_path: Path) -> None:
    # Bound twice at each level, two levels more are four times the work.
    catalog, day, age = clean.catalog_in(tmp_path), ["day"], ["age"]
    for _ in range(4):
        day.append(f"day - EXTRACT(DAY FROM {day[-1]})")
        age.append(f"age - (CASE WHEN {age[-1]} > 2 THEN 1 ELSE 0 END)")
    for texts, where in ((day, "EXTRACT(YEAR FROM {}) > 2000"), (age, "{} > 2")):
        low, high = (
            _bindings(f"SELECT COUNT(*) FROM visits WHERE {where.format(texts[depth])}", catalog) for depth in (2, 4)
        )
        assert high < 3 * low
