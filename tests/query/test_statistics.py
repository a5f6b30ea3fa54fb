"""Variances, deviations, covariances and correlations: held against plain SQL without noise, and with it.

The table breaks no bound and its values are whole steps, so that plain SQL over it means the same. How far one unit
moves the sums beneath is found by brute force with those of all other aggregates, in `tests.release.test_options`.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.toml import loads
from lapwing.errors import QueryRefused
from lapwing.opening import open_session
from lapwing.query.aggregates import statistics
from lapwing.query.bind.bind import bind
from lapwing.query.derivation.derived import measures_of
from lapwing.query.measures.measures import Count, Sum
from lapwing.release import release
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.fixed_entropy import StreamEntropy
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:visits.db"
[budget]
epsilon = 1e6
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
plan = { type = "string", values = ["a", "b", "none"] }
age = { type = "integer", lower = -20, upper = 90 }
pay = { type = "decimal", lower = 0, upper = 100, step = 0.25 }
share = { type = "float", lower = -1, upper = 1 }
fine = { type = "float", lower = 0, upper = 1e-12 }
huge = { type = "integer", lower = 0, upper = 9007199254740992 }
free = { type = "float" }
note = { type = "string" }
"""
PEOPLE = 400
STEP = 2.0**-19  # of share: its range over 2²⁰


def rows() -> list[dict[str, Any]]:
    chance = random.Random(7)
    found = []
    for n in range(PEOPLE):
        age = chance.randrange(-20, 91)
        steps = max(-(2**19), min(2**19, int(age * 2**12 + chance.gauss(0, 2**17))))
        one: dict[str, Any] = {
            "person": n,
            "plan": "ab"[n % 2],
            "age": age,
            "pay": chance.randrange(401) / 4,
            "share": steps * STEP,
            "fine": 0.0,
            "huge": n,
            "free": 1.0,
            "note": "x",
        }
        for name in ("age", "pay", "share"):
            one[name] = None if chance.random() < 0.1 else one[name]
        found.append(one)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("statistics")
    pq.write_table(pa.Table.from_pylist(rows()), path / "visits.parquet")
    return path


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    for name in ("visits.db", "visits.db-wal", "visits.db-shm", "visits.db.mark"):
        (folder / name).unlink(missing_ok=True)
    with open_session(loads(CATALOG, file="visits", folder=folder), entropy=StreamEntropy("statistics")) as found:
        yield found


def plain(folder: Path, text: str) -> list[tuple[Any, ...]]:
    with closing(duckdb.connect(config={"threads": 1})) as connection:
        return connection.execute(text.replace("visits", f"'{folder / 'visits.parquet'}'")).fetchall()


def number(value: object) -> float:
    """A number of an answer, which is an int, a float or a Decimal."""
    return float(str(value))


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "add_noise", lambda terms, sums, entropy: tuple(sums))


STATISTICS = [
    "VAR_POP(age)",
    "VAR_SAMP(age)",
    "VARIANCE(pay)",
    "STDDEV_POP(pay)",
    "STDDEV_SAMP(share)",
    "STDDEV(age + 2 * pay)",
    "COVAR_POP(age, pay)",
    "COVAR_SAMP(age, share)",
    "CORR(age, share)",
    "CORR(pay, age)",
    "CORR(-age, share)",
    "COVAR_POP(COALESCE(age, 0), pay)",
]
CONDITIONS = ["", " FILTER (WHERE pay > 50)", " FILTER (WHERE age IS NOT NULL AND plan = 'a')"]


def differences(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch, conditions: Sequence[str] = CONDITIONS[::2]
) -> list[str]:
    """Return where the answer without noise is not what plain SQL says."""
    without_noise(monkeypatch)
    wrong = []
    for condition in conditions:
        listed = ", ".join(f"{statistic}{condition} AS s{i}" for i, statistic in enumerate(STATISTICS))
        for text in (
            f"SELECT {listed} FROM visits",
            f"SELECT {listed} FROM visits GROUP BY plan ORDER BY plan LIMIT 2",
        ):
            answer = session.sql(text.replace("SELECT", "SELECT plan,") if "GROUP" in text else text, epsilon=1000)
            for line, wanted in zip(answer.rows(), plain(folder, text), strict=True):
                for i, value in enumerate(wanted):
                    found = line[f"s{i}"]
                    if (found is None) != (value is None) or (
                        value is not None and abs(number(found) - value) > 1e-4 * (1 + abs(value))
                    ):
                        wrong.append(f"{STATISTICS[i]}{condition}: {found} for {value}")
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("conditions", one_in(2, [CONDITIONS[::4], CONDITIONS]), ids=len)
def test_without_noise_they_are_plain_sql_s(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch, conditions: Sequence[str]
) -> None:
    assert differences(session, folder, monkeypatch, conditions) == []


def test_pairs_with_a_null_that_count_are_found(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: a covariance over rows of which one argument is NULL."""
    monkeypatch.setattr(statistics, "_all_present", lambda values, condition: condition)
    assert differences(session, folder, monkeypatch, CONDITIONS[::6])


@pytest.mark.long
def test_a_forgotten_filter_is_found(session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    product = statistics._product
    monkeypatch.setattr(statistics, "_product", lambda first, second, condition: product(first, second, None))
    assert differences(session, folder, monkeypatch)


@pytest.mark.long
def test_other_origins_change_nothing_but_noise(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moments do not depend on the public points around which they are taken."""
    monkeypatch.setattr(statistics, "_middle", lambda value: 3)
    assert differences(session, folder, monkeypatch) == []


@pytest.mark.long
@pytest.mark.parametrize("questions", [2, pytest.param(12, marks=pytest.mark.long)])
def test_intervals_hold_the_truth(session: Session, folder: Path, questions: int) -> None:
    """At 95 % each, and more, as their ends follow by interval arithmetic."""
    missed, cells = 0, 0
    listed = ", ".join(f"{statistic} AS s{i}" for i, statistic in enumerate(STATISTICS))
    (wanted,) = plain(folder, f"SELECT {listed} FROM visits")
    for number in range(questions):
        text = f"SELECT {listed} FROM visits WHERE free > {number - 50}"
        for i, (low, high) in enumerate(session.sql(text, epsilon=200).interval().values()):
            cells += 1
            missed += not low[0] - 1e-4 <= wanted[i] <= high[0] + 1e-4
    assert cells == questions * len(STATISTICS)
    assert missed <= cells * 0.05


@pytest.mark.long
def test_narrower_intervals_are_found(session: Session, folder: Path) -> None:
    """The twin: intervals of a fortieth of the width."""
    missed = 0
    (wanted,) = plain(folder, "SELECT VAR_POP(age) AS v FROM visits")
    for number in range(6):
        answer = session.sql(f"SELECT VAR_POP(age) AS v FROM visits WHERE free > {number - 90}", epsilon=200)
        low, high = (ends[0] for ends in answer.interval()["v"])
        middle, half = (low + high) / 2, (high - low) / 2
        missed += not abs(wanted[0] - middle) <= half / 40
    assert missed > 2


@pytest.mark.long
def test_they_are_null_where_there_is_nothing_and_bounded_where_there_is(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    text = "SELECT VAR_POP(age) AS v, COVAR_SAMP(age, pay) AS c, CORR(age, pay) AS r FROM visits WHERE plan = 'none'"
    assert session.sql(text, epsilon=1).rows() == [{"v": None, "c": None, "r": None}]
    one = session.sql("SELECT VAR_POP(age) AS v, VAR_SAMP(age) AS s FROM visits WHERE huge = 1", epsilon=1)
    assert one.rows() == [{"v": 0.0, "s": None}]
    monkeypatch.setattr(release, "add_noise", lambda terms, sums, entropy: tuple(values * 0 + 5 for values in sums))
    wild = session.sql("SELECT VAR_POP(age) AS v, COVAR_POP(age, pay) AS c, CORR(age, pay) AS r FROM visits", epsilon=1)
    (line,) = wild.rows()
    assert 0 <= number(line["v"]) <= 55**2
    assert abs(number(line["c"])) <= 55 * 50


def test_they_share_numbers_with_averages(folder: Path) -> None:
    """AVG, VAR and STDDEV of one column rest on three numbers together, so that each gets a third of the price."""
    catalog = loads(CATALOG, file="visits", folder=folder)
    plan = bind("SELECT AVG(age), VAR_POP(age), STDDEV_SAMP(age), COUNT(age) FROM visits", catalog)
    assert len(plan.question.measures) == 3
    corr = bind("SELECT CORR(age, pay), COVAR_POP(age, pay) FROM visits", catalog)
    assert len(corr.question.measures) == 6
    assert all(isinstance(measure, Sum | Count) for output in corr.outputs for measure in measures_of(output.value))


@pytest.mark.parametrize(
    ("text", "reason"),
    only(
        [0],
        [
            ("SELECT VAR_POP(note) FROM visits", "wrong_type"),
            ("SELECT CORR(age, note) FROM visits", "wrong_type"),
            ("SELECT CORR(age) FROM visits", "syntax_error"),
            ("SELECT STDDEV(free) FROM visits", "unbounded"),
            ("SELECT VAR_POP(DISTINCT age) FROM visits", "function_not_supported"),
            ("SELECT VAR_POP(age) OVER () FROM visits", "window_not_supported"),
            ("SELECT VAR_POP(age, contribution_bounds_per_group => (0, 1)) FROM visits", "inapplicable_option"),
        ],
        many=True,
    ),
)
def test_what_they_are_not_taken_of(session: Session, text: str, reason: str) -> None:
    with refused_as(reason):
        session.sql(text, epsilon=1)
    assert session.budget().history == ()


@pytest.mark.parametrize("column", one_in(4, ["fine", "huge", "fine * huge", "huge * huge"]))
def test_squares_too_fine_or_too_large_are_refused_or_rounded(session: Session, column: str) -> None:
    """Whatever the bounds, there is an answer or a refusal, and no failure of the engine."""
    try:
        (line,) = session.sql(f"SELECT VAR_POP({column}) AS v FROM visits", epsilon=1000).rows()
        assert number(line["v"]) >= 0
    except QueryRefused:
        assert session.budget().history == ()


@pytest.mark.long
def test_values_are_clamped_as_the_aggregate_says(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    answer = session.sql("SELECT STDDEV_POP(age, contribution_bounds_per_row => (0, 10)) AS s FROM visits", epsilon=1)
    (wanted,) = plain(folder, "SELECT STDDEV_POP(LEAST(GREATEST(age, 0), 10) + 0 * age) FROM visits")
    assert abs(number(answer.rows()[0]["s"]) - wanted[0]) < 1e-6
