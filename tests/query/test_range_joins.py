"""Joins of rows to public rows by comparisons: a row meets no more public rows than a plan says, and as many."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import RefusalCause
from lapwing.query.bind.bind import bind
from lapwing.query.plan.work import COMPARED, work
from lapwing.query.relations.public_join import PublicJoin
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "days"
ledger = "sqlite:days.db"
[budget]
epsilon = 1e30
measure = "pure"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.visits.columns]
age = { type = "integer", lower = 0, upper = 40 }
pay = { type = "decimal", lower = 0, upper = 50, step = 0.1 }
seen = { type = "timestamp", lower = 2024-01-01T00:00:00, upper = 2024-02-15T23:59:59 }
[tables.spine]
source = "spine.parquet"
public = true
[tables.spine.columns]
ds = { type = "timestamp" }
[tables.bands]
source = "bands.parquet"
public = true
[tables.bands.columns]
name = { type = "string" }
low = { type = "integer" }
high = { type = "integer" }
"""
EXACT = 10**10
FIRST = datetime(2024, 1, 1)
BANDS = [("child", 0, 17), ("adult", 18, 64), ("teen", 13, 19), ("open", 30, None), ("none", 9, 3), ("all", -5, 99)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("days"), random.Random(5)
    (folder / "lapwing.toml").write_text(CATALOG)
    moments = [FIRST + timedelta(minutes=chance.randrange(46 * 1440)) for _ in range(150)]
    visits = {
        "person": [place // 3 for place in range(150)],
        "age": [chance.choice((None, *range(41))) for _ in moments],
        "pay": [round(chance.randrange(500) / 10, 1) for _ in moments],
        "seen": [None if chance.random() < 0.05 else moment for moment in moments],
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    days = [FIRST + timedelta(days=place) for place in range(-40, 80)]
    pq.write_table(pa.table({"ds": [*days, None]}), folder / "spine.parquet")
    names, low, high = zip(*BANDS, strict=True)
    pq.write_table(pa.table({"name": names, "low": low, "high": high}), folder / "bands.parquet")
    return folder


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[lw.Session]:
    with lw.connect(folder / "lapwing.toml") as session:
        yield session


def number(value: object) -> float:
    return float(str(value or 0))


def raw(folder: Path, text: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    for name in ("visits", "spine", "bands"):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
    return connection.execute(text).fetchall()


DAY = "DATE_TRUNC('day', v.seen)"
QUERIES = {
    "a window of days": f"SELECT s.ds, COUNT(*) AS n, SUM(v.age) AS a FROM spine s JOIN visits v ON {DAY} <= s.ds "
    f"AND {DAY} > s.ds - INTERVAL 7 DAY GROUP BY s.ds",
    "people of two days": f"SELECT s.ds, COUNT(DISTINCT v.person) AS n FROM visits v JOIN spine s ON {DAY} <= s.ds "
    f"AND {DAY} > s.ds - INTERVAL 2 DAY GROUP BY s.ds",
    "a month to date": f"SELECT s.ds, SUM(v.pay) AS n FROM spine s INNER JOIN visits v ON ({DAY} <= s.ds) AND "
    f"({DAY} >= DATE_TRUNC('month', s.ds)) GROUP BY s.ds",
    "in WHERE": f"SELECT COUNT(*) AS n FROM visits v, spine s WHERE {DAY} <= s.ds AND v.seen > s.ds - INTERVAL 3 HOUR",
    "bands": "SELECT b.name, COUNT(*) AS n FROM visits v JOIN bands b ON v.age BETWEEN b.low AND b.high GROUP BY 1",
    "turned round": "SELECT b.name, COUNT(*) AS n, SUM(v.pay) AS p FROM visits v JOIN bands b ON b.low < v.age AND "
    "b.high >= v.age AND v.pay > b.low GROUP BY b.name",
    "left": "SELECT COALESCE(b.name, '?') AS name, COUNT(*) AS n FROM visits v LEFT JOIN bands b ON v.age >= b.low "
    "AND (v.age < b.high OR b.high IS NULL) AND b.low > 8 GROUP BY 1",
    "left with an equality": "SELECT COALESCE(b.name, '?') AS name, COUNT(*) AS n FROM visits v LEFT JOIN bands b "
    "ON v.age = b.low AND v.pay < b.high GROUP BY 1",
    "left of a row alone": "SELECT COALESCE(b.name, '?') AS name, COUNT(*) AS n FROM visits v LEFT JOIN bands b "
    "ON v.age = b.low AND v.pay < 25 GROUP BY 1",
    "the days come first": f"SELECT s.ds, COUNT(v.age) AS n FROM spine s LEFT JOIN visits v ON {DAY} <= s.ds AND "
    f"{DAY} > s.ds - INTERVAL 7 DAY GROUP BY s.ds",
    "in a subquery": "SELECT d, SUM(age) AS a FROM (SELECT s.ds AS d, v.age AS age FROM spine s JOIN visits v ON "
    "v.seen < s.ds AND v.seen >= s.ds - INTERVAL 36 HOUR) u WHERE d >= TIMESTAMP '2024-01-20' GROUP BY d",
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_results_are_those_of_duckdb(name: str, session: lw.Session, folder: Path) -> None:
    keys = 1 if "GROUP BY" in QUERIES[name] else 0
    shown = [tuple(row.values()) for row in session.sql(QUERIES[name], epsilon=EXACT)]
    ours: dict[tuple[object, ...], tuple[object, ...]] = {row[:keys]: row[keys:] for row in shown}
    theirs = {row[:keys]: row[keys:] for row in raw(folder, QUERIES[name]) if row[:1] != (None,)}
    assert theirs
    for key, numbers in theirs.items():
        assert list(map(number, ours[key])) == pytest.approx(list(map(number, numbers)), abs=0.02)
    assert all(not any(map(number, numbers)) for key, numbers in ours.items() if key not in theirs)


@pytest.fixture(scope="module")
def facts(folder: Path) -> Iterator[PublicData]:
    facts = PublicData(load(folder / "lapwing.toml"))
    yield facts
    facts.close()


def join_of(facts: PublicData, folder: Path, condition: str, table: str) -> PublicJoin:
    text = f"SELECT COUNT(*) AS n FROM visits v JOIN {table} ON {condition}"
    relation = bind(text, load(folder / "lapwing.toml"), facts).question.selection.relation
    assert isinstance(relation, PublicJoin)
    return relation


@pytest.mark.parametrize(
    ("condition", "table", "most"),
    [
        (f"{DAY} <= s.ds AND {DAY} > s.ds - INTERVAL 7 DAY", "spine s", 7),
        (f"{DAY} <= s.ds AND {DAY} >= s.ds - INTERVAL 7 DAY", "spine s", 8),
        (f"{DAY} < s.ds AND {DAY} > s.ds - INTERVAL 7 DAY", "spine s", 7),  # as a time between two days would
        (f"{DAY} <= s.ds", "spine s", 80),  # all days from the first that a row may have
        (f"{DAY} < s.ds", "spine s", 79),
        (f"{DAY} >= s.ds", "spine s", 86),
        (f"{DAY} <= s.ds AND {DAY} >= DATE_TRUNC('month', s.ds)", "spine s", 31),
        ("v.age BETWEEN b.low AND b.high", "bands b", 3),
        ("v.age > b.low AND v.age < b.high", "bands b", 3),
        ("v.age < b.low AND v.age > b.high", "bands b", 1),  # `none` alone
        ("v.age > b.high AND v.age >= b.high AND v.age <= b.low", "bands b", 1),
        ("v.age >= b.low AND v.pay < b.high", "bands b", 5),  # of two values: those of the one alone
    ],
)
def test_a_row_meets_as_many_as_intervals_overlap(
    condition: str, table: str, most: int, facts: PublicData, folder: Path
) -> None:
    assert join_of(facts, folder, condition, table).multiplicity == most


def test_overlaps_are_those_of_every_value(facts: PublicData, folder: Path) -> None:
    """For each sign on either side, no value meets more, and some value of those near an end meets as many."""
    for below in (">", ">="):
        for above in ("<", "<="):
            condition = f"v.age {below} b.low AND v.age {above} b.high"
            at = "(SELECT range / 2.0 - 10 AS age FROM range(240)) v"
            ((true,),) = raw(folder, f"SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM {at} JOIN bands b ON {condition} "
                             "WHERE v.age BETWEEN 0 AND 40 GROUP BY v.age)")  # fmt: skip
            assert join_of(facts, folder, condition, "bands b").multiplicity == true


def test_only_days_that_a_row_can_meet_are_in_the_answer(session: lw.Session) -> None:
    answer = session.sql(QUERIES["a window of days"], epsilon=1)
    days = sorted(str(row["ds"]) for row in answer)
    assert (days[0], days[-1]) == (str(FIRST), str(FIRST + timedelta(days=45 + 6)))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("SELECT COUNT(*) FROM visits v JOIN bands b ON v.age <> b.low", RefusalCause.JOIN_CONDITION_MISSING),
        ("SELECT COUNT(*) FROM visits v JOIN bands b ON v.age + b.low > 9", RefusalCause.JOIN_CONDITION_MISSING),
        ("SELECT COUNT(*) FROM visits v JOIN bands b ON v.age > b.low OR v.age < b.high",
         RefusalCause.JOIN_CONDITION_MISSING),
        ("SELECT COUNT(*) FROM visits v JOIN bands b ON v.age > b.name", RefusalCause.INCOMPATIBLE_TYPES),
        ("SELECT COUNT(*) FROM visits v SEMI JOIN bands b ON v.age > b.low",
         RefusalCause.JOIN_CONDITION_NOT_SUPPORTED),
        ("SELECT COUNT(*) FROM visits v ANTI JOIN bands b ON v.age = b.low AND v.pay > b.high",
         RefusalCause.JOIN_CONDITION_NOT_SUPPORTED),
    ],
)  # fmt: skip
def test_other_conditions_are_refused(text: str, cause: RefusalCause, session: lw.Session) -> None:
    with refused_as(cause.value):
        session.explain(text, epsilon=1)


def test_a_left_join_asks_its_condition_of_all_public_rows(facts: PublicData, folder: Path) -> None:
    """A unit's rows are few, and days are many: who may not see the clock is not told how many rows somebody has."""
    catalog = load(folder / "lapwing.toml")
    text = "SELECT COUNT(*) AS n FROM visits v {} JOIN spine s ON v.seen >= s.ds AND v.seen < s.ds + INTERVAL 1 DAY"
    inner, left = (work(bind(text.format(side), catalog, facts).question).most for side in ("", "LEFT"))
    assert left > inner + 3 * 121 * COMPARED
