"""Quantiles, least and greatest values of dates and timestamps, as an analyst gets them."""

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer import Answer
from lapwing.catalog.toml import load
from lapwing.cli.answer_formats import as_csv, as_json, as_table
from lapwing.engines import DuckDB
from lapwing.errors import InvalidParameter
from lapwing.mechanisms import RoundedGaussian
from lapwing.opening import open_session
from lapwing.privacy.measures import GaussianDP
from lapwing.query.bind.bind import bind
from lapwing.query.pricing.calibrate import calibrate
from lapwing.release.cells import cells_of, columns_of, exact_values
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

ROWS = 6_000
FIRST, LAST = date(1960, 1, 1), date(1999, 12, 31)
DAWN, DUSK = datetime(2025, 3, 1), datetime(2025, 3, 1, 18)
TIMES = "MEDIAN(seen) AS m, QUANTILE(seen, 0.3) AS d, QUANTILE(seen, 0) AS a, QUANTILE(seen, 1) AS z"
DATES = "MEDIAN(born) AS m, QUANTILE(born, 0.3) AS d, QUANTILE_CONT(born, 0.9) AS c, QUANTILE(born, 1) AS z"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of people with three rows each: a birthday, a fifth of them unknown, and a time in whole seconds."""
    path = tmp_path_factory.mktemp("dates")
    generator = np.random.default_rng(5)
    days = generator.integers(0, (LAST - FIRST).days + 1, ROWS).tolist()
    seconds = generator.integers(0, 18 * 3600 + 1, ROWS).tolist()
    table = pa.table(
        {
            "person": np.arange(ROWS) // 3,
            "plan": generator.choice(["a", "b"], ROWS),
            "born": [None if n % 5 == 0 else FIRST + timedelta(days=day) for n, day in enumerate(days)],
            "seen": pa.array([DAWN + timedelta(seconds=s) for s in seconds], pa.timestamp("us")),
        }
    )
    pq.write_table(table, path / "visits.parquet")
    return path


def protected(folder: Path) -> lw.Session:
    for file in folder.glob("visits.lapwing*"):
        file.unlink()
    lw.protect(
        folder / "visits.parquet",
        privacy_unit="person",
        epsilon=8,
        delta=1e-5,
        max_rows_per_unit=3,
        bounds={"born": (FIRST, LAST), "seen": (DAWN, DUSK)},
        domains={"plan": ["a", "b", "c"]},
    ).close()
    for file in folder.glob("visits.lapwing.db*"):
        file.unlink()
    return open_session(load(folder / "visits.lapwing.toml"), entropy=StreamEntropy("dates"))


@pytest.fixture
def session(folder: Path) -> Iterator[lw.Session]:
    with protected(folder) as found:
        yield found


def plain(folder: Path, question: str) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        rows = connection.execute(question.replace("FROM visits", f"FROM '{folder}/visits.parquet'"))
        names = [str(column[0]) for column in rows.description or []]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def exact(session: lw.Session, text: str) -> Any:
    plan = bind(text, session.catalog)
    engine = DuckDB(session.catalog)
    found = engine.run(plan.question, {table.name: engine.digest(table) for table in plan.question.lineage})
    engine.close()
    return exact_values(plan.question, found.cells, cells_of(plan.question), found.leaves)


def silent(session: lw.Session, text: str) -> Answer:
    """Return the answer without noise."""
    values = exact(session, text)
    silence = [RoundedGaussian(sigma=Fraction(1, 2**30)) for _ in values]
    plan = bind(text, session.catalog)
    keys = columns_of(cells_of(plan.question), len(plan.question.keys))
    return Answer(plan=plan, mechanisms=silence, keys=keys, values=values, cost=GaussianDP.from_amount(0))


@pytest.mark.parametrize("wanted", one_in(2, [DATES, TIMES]))
def test_without_noise_answers_are_those_of_sql(session: lw.Session, folder: Path, wanted: str) -> None:
    text = f"SELECT plan, {wanted} FROM visits WHERE plan <> 'c' GROUP BY plan ORDER BY plan"
    ours, theirs = silent(session, text).rows()[:2], plain(folder, text)
    for one, other in zip(ours, theirs, strict=True):
        for name, value in other.items():
            assert type(one[name]) is type(value)
            if isinstance(value, date):
                assert abs(one[name] - value) <= timedelta(milliseconds=90)  # type: ignore[operator]  # a part of a day


@pytest.mark.long
def test_wide_leaves_are_right_to_within_their_width(session: lw.Session, folder: Path) -> None:
    stretched = "LEAST(GREATEST(seen, TIMESTAMP '2000-01-01'), TIMESTAMP '2030-12-31')"
    text = f"SELECT MEDIAN({stretched}) AS m FROM visits"
    (ours,), (theirs,) = silent(session, text).rows(), plain(folder, text)
    (measure,) = bind(text, session.catalog).question.distributions
    assert measure.width > 3600
    assert abs(ours["m"] - theirs["m"]) <= timedelta(seconds=measure.width)
    said = " ".join(session.explain(text, epsilon=1).notes)
    assert f"exact only to {measure.width:g} seconds" in said


def check_moved(session: lw.Session, other: lw.Session, text: str) -> None:
    """What one person moves is what is claimed, to the last count."""
    terms = calibrate(bind(text, session.catalog), session.catalog.budget, epsilon=1).terms
    for term, without, with_it in zip(terms, exact(session, text), exact(other, text), strict=True):
        moved = np.abs(with_it - without)
        assert moved.sum() == term.candidate.sensitivity.l1
        assert (moved**2).sum() == term.candidate.sensitivity.l2_squared


def test_a_person_with_times_beyond_all_bounds_moves_what_is_claimed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pq.read_table(folder / "visits.parquet")
    born, seen = [date(9999, 12, 31)] * 9, [datetime(9999, 12, 31)] * 9
    extra = pa.table({"person": [ROWS] * 9, "plan": ["a"] * 9, "born": born, "seen": seen}, schema=whole.schema)
    pq.write_table(pa.concat_tables([whole, extra]), tmp_path / "visits.parquet")
    text = "SELECT plan, MAX(born) AS b, MAX(seen) AS s FROM visits GROUP BY plan"
    with protected(folder) as session, protected(tmp_path) as other:
        check_moved(session, other, text)
        monkeypatch.setattr("lapwing.engines.duckdb.bounded_values.clean_temporal", lambda _column, name: name)
        monkeypatch.setattr("lapwing.engines.duckdb.leaves.clamp", lambda value, *_: value)
        with pytest.raises((AssertionError, IndexError, ValueError, lw.LapwingError)):  # the twin
            check_moved(session, other, text)


@pytest.mark.long
def test_intervals_hold_values_and_the_truth(session: lw.Session, folder: Path) -> None:
    text = f"SELECT plan, {DATES}, {TIMES.replace(' AS ', ' AS s_')} FROM visits GROUP BY plan ORDER BY plan"
    answer = session.sql(text, epsilon=4)
    theirs = plain(folder, text)
    intervals = answer.interval(1 - 1e-9)
    assert set(intervals) == {*"mdcz", "s_m", "s_d", "s_a", "s_z"}
    for name, (low, high) in intervals.items():
        assert str(low.dtype) == ("datetime64[D]" if name in "dz" else "datetime64[us]")
        for place, row in enumerate(answer.rows()):
            if row[name] is not None:
                assert low[place] <= np.datetime64(str(row[name])) <= high[place]
        assert all(low[place] <= np.datetime64(theirs[place][name]) <= high[place] for place in range(2))


@pytest.mark.long
def test_they_go_on_into_formulas_conditions_and_ends(session: lw.Session) -> None:
    text = """SELECT plan, MAX(born) - MIN(born) AS span, DATE_DIFF('hour', MIN(seen), MAX(seen)) AS hours,
        DP_INTERVAL_LOW(MEDIAN(born)) AS low, MEDIAN(born) AS m, COALESCE(MAX(born), DATE '2000-01-01') AS known
        FROM visits GROUP BY plan HAVING MAX(born) > DATE '1990-01-01' AND MEDIAN(born) < DATE '1990-01-01'
        AND MAX(seen) >= '2025-03-01 12:00:00' AND plan <> 'c' ORDER BY MAX(born) DESC, plan"""
    answer = session.sql(text, epsilon=4)
    assert {row["plan"] for row in answer.rows()} == {"a", "b"}
    for place, row in enumerate(answer.rows()):
        assert 13_000 < row["span"] < 14_610  # type: ignore[operator]
        assert 14 <= row["hours"] <= 18  # type: ignore[operator]
        assert isinstance(row["low"], datetime)
        assert row["low"] == answer.interval()["m"][0][place].item()
    assert answer.consistent().rows() == answer.rows()
    assert "low" not in answer.interval()  # an end hides nothing itself
    low, high = answer.interval()["known"]
    assert np.isnat(low).all()
    assert np.isnat(high).all()
    low, high = answer.interval()["hours"]
    assert low.dtype == np.int64
    assert (low <= high).all()


@pytest.mark.long
def test_they_are_shown_everywhere(session: lw.Session) -> None:
    text = """SELECT plan, MAX(born) AS b, MEDIAN(seen) AS s FROM visits GROUP BY plan
        HAVING DP_INTERVAL_LOW(MEDIAN(seen)) IS NOT NULL"""
    answer = session.sql(text, epsilon=4)
    rows, ends = answer.rows(), answer.interval()
    assert type(rows[0]["b"]) is date
    assert type(rows[0]["s"]) is datetime
    table = answer.to_arrow(0.95)
    assert table.schema.field("b").type == table.schema.field("b_low").type == pa.date32()
    assert table.schema.field("s").type == table.schema.field("s_high").type == pa.timestamp("us")
    assert table["b_low"].to_pylist() == ends["b"][0].tolist()
    lines = as_csv(answer, Fraction(95, 100)).splitlines()
    assert lines[0] == "plan,b,b_low,b_high,s,s_low,s_high"
    assert lines[1].split(",")[1:4] == [str(x) for x in (rows[0]["b"], ends["b"][0][0], ends["b"][1][0])]
    document = json.loads(as_json(answer, Fraction(95, 100)))
    assert document["rows"][0]["s"] == rows[0]["s"].isoformat()
    assert document["intervals"]["s"]["low"][0] == ends["s"][0][0].item().isoformat()
    assert f"[{ends['b'][0][0]} … {ends['b'][1][0]}]" in answer._repr_html_()
    assert as_table(answer, Fraction(95, 100)).table.row_count == 3
    with pytest.raises(InvalidParameter, match="no noisy column"):
        answer.plot("b")
    assert answer.describe()[1].half_width is None


@pytest.mark.long
def test_dates_at_the_ends_of_the_calendar_are_shown(session: lw.Session) -> None:
    """Nothing that noise does leads out of the years that there are, and a cell without rows has no value."""
    far = "LEAST(GREATEST(born, DATE '0001-01-02'), DATE '9999-12-31')"
    wanted = f"MIN({far}) AS a, MEDIAN(CAST({far} AS TIMESTAMP)) AS m, MAX({far}) AS z"
    text = f"SELECT plan, {wanted} FROM visits GROUP BY plan"
    (size, *_), values = exact(session, text)[0].shape, exact(session, text)
    for shift in (-(10**6), 10**6):
        noise = [RoundedGaussian(sigma=Fraction(10**6)) for _ in values]
        plan = bind(text, session.catalog)
        moved = [vector + shift for vector in values]
        keys = columns_of(cells_of(plan.question), len(plan.question.keys))
        answer = Answer(plan=plan, mechanisms=noise, keys=keys, values=moved, cost=GaussianDP.from_amount(0))
        assert len(answer.rows()) == size
        assert answer._repr_html_()
        for low, high in answer.interval().values():
            assert (low <= high).all()
            assert low.min() >= np.datetime64("0001-01-02")
            assert high.max() <= np.datetime64("9999-12-31")
