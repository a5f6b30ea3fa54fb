"""Verdicts before paying and beside the answer: from the plan alone, and only where something is to be said."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer.notes import (
    ALL_WITHIN_BOUNDS,
    AS_READ,
    CLAMPED,
    EXTREMES,
    FAR_VALUES,
    MANY_CELLS,
    MEASURED_TOGETHER,
    NULL_PASSED_OVER,
    OUTSIDE_BOUNDS,
    ROWS_CHOSEN,
    ROWS_OF_RESULT,
    TEXT_NOT_LISTED,
    TOO_WIDE,
    code_of,
)
from lapwing.opening import open_session
from lapwing.release import answering
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.release.small import GDP, catalog, opened, row, write

DAYS = "DATE_DIFF('day', DATE '2020-01-01', day)"


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Session]]:
    """Two data sets that have nothing in common but their catalog."""
    people = [row(n, plan="ab"[n % 2], age=n % 3, day=date(2026, 1, 1 + n % 28)) for n in range(60)]
    with (
        opened(tmp_path_factory.mktemp("one"), people, budget=GDP) as one,
        opened(tmp_path_factory.mktemp("other"), [row(0, plan="b", age=3)], budget=GDP) as other,
    ):
        yield one, other


PLANS = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
SAID = [
    ("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC LIMIT 1", ROWS_CHOSEN),
    ("SELECT plan, AVG(age) AS a FROM visits GROUP BY plan ORDER BY 2 LIMIT 1", ROWS_CHOSEN),
    (
        "SELECT MAX(n) AS m FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan)",
        EXTREMES,
    ),
    ("SELECT COUNT(*) AS k FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) WHERE n > 1", ROWS_OF_RESULT),
    (f"SELECT MEDIAN(n) AS m FROM ({PLANS})", ROWS_OF_RESULT),
    (f"SELECT AVG(n) AS m FROM ({PLANS})", ROWS_OF_RESULT),
    (f"SELECT QUANTILE_DISC(n, 0.25) AS m FROM ({PLANS})", ROWS_OF_RESULT),
    (f"SELECT COUNT(DISTINCT n) AS m FROM ({PLANS})", ROWS_OF_RESULT),
    (f"SELECT COUNT(*) AS c FROM ({PLANS} UNION ALL {PLANS}) AS q", ROWS_OF_RESULT),
    (f"SELECT AVG(n) AS c FROM ({PLANS} UNION ALL {PLANS}) AS q", ROWS_OF_RESULT),
    ("SELECT AVG(LEAST(age, 30)) AS a FROM visits", NULL_PASSED_OVER),
    ("SELECT COUNT(*) AS n FROM visits WHERE GREATEST(age, 2) > 2", NULL_PASSED_OVER),
    ("SELECT MEDIAN(LEAST(age, 30)) AS a FROM visits WHERE age > 2 OR plan = 'a'", NULL_PASSED_OVER),
    ("SELECT COUNT(*) AS n FROM visits WHERE age > 1000", OUTSIDE_BOUNDS),
    ("SELECT COUNT(*) AS n FROM visits WHERE plan = 'nothing alike'", TEXT_NOT_LISTED),
    ("SELECT YEAR(day) AS y, COUNT(*) AS n FROM visits GROUP BY 1", MANY_CELLS),
]
SILENT = [
    f"SELECT SUM(n) AS s FROM ({PLANS})",  # rows of zeros add nothing
    f"SELECT SUM(n) AS s FROM ({PLANS} UNION ALL {PLANS}) AS q",
    "SELECT AVG(n) AS a FROM (SELECT COUNT(*) AS n FROM visits UNION ALL SELECT SUM(age) AS n FROM visits) AS q",
    "SELECT COUNT(*) AS n FROM visits WHERE age + 5 < 0 OR plan = 'a'",
    f"SELECT AVG({DAYS}, contribution_bounds_per_row => (0, 4000)) AS d FROM visits",
    f"SELECT SUM(CASE WHEN day IS NOT NULL THEN LEAST({DAYS}, 100) END) - SUM(age) AS d FROM visits",
    "SELECT SUM(age) AS s, AVG(size) AS z, SUM(age * 1000000) AS m FROM visits",
    "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY plan LIMIT 1",
    "SELECT AVG(CASE WHEN age IS NOT NULL THEN LEAST(age, 30) END) AS a FROM visits",
    "SELECT AVG(LEAST(age, 30)) AS a FROM visits WHERE age IS NOT NULL",
    "SELECT AVG(LEAST(age, 30)) AS a FROM visits WHERE age > 2 AND plan = 'a'",
    "SELECT SUM(CASE WHEN age > 2 THEN LEAST(age, 30) ELSE 0 END) AS a FROM visits",
    "SELECT AVG(age, contribution_bounds_per_row => (0, 30)) AS a FROM visits",
    "SELECT AVG(n) AS a FROM (SELECT person, LEAST(COUNT(*), 3) AS n FROM visits GROUP BY person)",
    "SELECT plan, COUNT(*) AS n FROM visits WHERE plan IS NOT NULL AND age > 2 GROUP BY plan",
    "SELECT plan, COUNT(*) AS n FROM visits WHERE plan <> 'z' OR age = 1 GROUP BY plan",
    "SELECT age, COUNT(*) AS n FROM visits WHERE age * 2 > 4 GROUP BY age",
    "SELECT COUNT(*) AS n FROM visits WHERE age >= 0 AND plan IN ('a', 'b')",
    "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC",
]
LONG = [
    ("SELECT COUNT(*) AS n FROM visits", True),
    ("SELECT plan, AVG(age) AS a FROM visits GROUP BY plan", True),
    ("SELECT COUNT(DISTINCT person) AS n FROM visits", False),
    ("SELECT SUM(age, contribution_bounds_per_group => (0, 40)) AS s FROM visits", False),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 40) COUNT(*) AS n FROM visits", False),
]
VERDICTS = {
    TOO_WIDE,
    ROWS_CHOSEN,
    MANY_CELLS,
    NULL_PASSED_OVER,
    OUTSIDE_BOUNDS,
    TEXT_NOT_LISTED,
}


@pytest.mark.long
@pytest.mark.parametrize(("text", "said"), only([0], SAID, many=True))
def test_a_verdict_is_the_same_before_and_after_and_on_all_data(
    sessions: tuple[Session, Session], text: str, said: str
) -> None:
    explained = [session.explain(text, epsilon=1).notes for session in sessions]
    before = [tuple(note for note in notes if code_of(note) != MEASURED_TOGETHER) for notes in explained]
    after = [session.sql(text, epsilon=1).notes for session in sessions]
    assert before == after
    assert before[0] == before[1]
    assert said in map(code_of, before[0])


@pytest.mark.parametrize("text", one_in(4, SILENT))
def test_nothing_is_said_where_all_is_well(sessions: tuple[Session, Session], text: str) -> None:
    assert not VERDICTS & {*map(code_of, sessions[0].explain(text, epsilon=1).notes)}


@pytest.mark.long
def test_noise_for_many_rows_of_a_unit(tmp_path: Path) -> None:
    """What is advised makes the noise a tenth, as is said."""
    with opened(tmp_path, [row(1)], budget=GDP, most=400) as session:
        for text, said in LONG:
            notes = [note for note in session.explain(text, epsilon=1).notes if note.startswith("the noise is for 400")]
            assert bool(notes) is said, text
        fewer = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 40) COUNT(*) AS n FROM visits"
        widths = [session.explain(text, epsilon=1).columns[0].half_width for text in (LONG[0][0], fewer)]
    assert widths[0] is not None
    assert widths[1] is not None
    assert widths[0] / widths[1] == pytest.approx(10, rel=0.02)


def test_what_bounds_rule_out_is_said_and_no_more(tmp_path: Path) -> None:
    """At each end of the bounds, of numbers, dates and timestamps."""
    pq.write_table(pa.table({"n": [1], "d": [date(2020, 5, 5)], "t": [datetime(2020, 5, 5)]}), tmp_path / "t.parquet")
    low, high = "2020-01-01", "2020-12-31"
    ends = {
        "n": ("-1", "3"),
        "d": (f"DATE '{low}'", f"DATE '{high}'"),
        "t": (f"TIMESTAMP '{low}'", f"TIMESTAMP '{high}'"),
    }
    with lw.protect(
        tmp_path / "t.parquet", privacy_unit="row", epsilon=1, bounds={"n": (-1, 3), "d": (low, high), "t": (low, high)}
    ) as session:
        for name, (first, last) in ends.items():
            none = [f"< {first}", f"> {last}"]
            inner = [f"<= {first}", f">= {last}", f"= {first}", f"<> {first}", f"< {last}"]
            for condition in [*none, *inner, f"BETWEEN {first} AND {last}"]:
                text = f"SELECT COUNT(*) AS n FROM t WHERE {name} {condition}"
                notes = session.explain(text, epsilon=1).notes
                codes = {getattr(note, "code", "") for note in notes}
                assert (OUTSIDE_BOUNDS in codes) is (condition in none), text
                assert (ALL_WITHIN_BOUNDS in codes) is condition.startswith("BETWEEN"), text
                assert (CLAMPED in codes) is (name != "n"), "numbers are compared as they are"


def test_a_code_that_bounds_leave_out_is_said_to_be_looked_at(tmp_path: Path) -> None:
    """-99 is "no answer": the condition does something, and what is summed is within bounds."""
    pq.write_table(pa.table({"x": [-99 if i % 5 == 0 else i % 60 for i in range(2000)]}), tmp_path / "t.parquet")
    with lw.protect(tmp_path / "t.parquet", privacy_unit="row", epsilon=10**9, bounds={"x": (0, 60)}) as session:
        for text in ("SELECT AVG(x) AS m FROM t WHERE x <> -99", "SELECT AVG(NULLIF(x, -99)) AS m FROM t"):
            answer = session.sql(text, epsilon=10**6)
            assert round(float(str(answer.rows()[0]["m"])), 3) == 29.8
            assert AS_READ not in {getattr(note, "code", "") for note in answer.notes}
        codes = {
            getattr(n, "code", "") for n in session.explain("SELECT COUNT(*) FROM t WHERE x <> -99", epsilon=1).notes
        }
        assert ALL_WITHIN_BOUNDS in codes
        assert session.sql("SELECT COUNT(*) AS n FROM t WHERE x = -99", epsilon=10**6).rows() == [{"n": 400}]


@pytest.mark.long
def test_noise_beyond_all_rows_that_there_may_be(tmp_path: Path) -> None:
    """Of 500 rows at most, with bounds -1 to 3: it is said where the half-width that `explain` states is as wide."""
    table = catalog(tmp_path, budget=GDP)
    described = table.with_table(replace(table.tables[0], rows_at_most=500))
    write(tmp_path, [row(1)])
    texts = {
        "SELECT COUNT(*) AS x FROM visits": 500,
        "SELECT COUNT(DISTINCT person) AS x FROM visits": 500,
        "SELECT SUM(age) AS x FROM visits": 1500,
    }
    with open_session(described) as session:
        for text, most in texts.items():
            told = []
            for epsilon in (0.0005, 0.002, 0.01, 0.05, 0.5):
                preview = session.explain(text, epsilon=epsilon)
                width = preview.columns[0].half_width
                assert width is not None
                said = any(note.startswith("too noisy to use: ± of x is more than") for note in preview.notes)
                assert said is (width >= most), (text, epsilon, width)
                told.append(said)
            assert set(told) == {True, False}, text
        for epsilon, said in ((0.001, True), (1, False)):
            notes = session.explain("SELECT AVG(age) AS x FROM visits", epsilon=epsilon).notes
            assert any("more than the bounds -1 to 3 are apart" in note for note in notes) is said
        joined = "SELECT COUNT(*) AS x FROM visits JOIN codes USING (plan)"
        assert not any("too noisy" in note for note in session.explain(joined, epsilon=0.001).notes)


@pytest.mark.long
def test_what_may_be_millions_in_theory_alone_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"SELECT AVG({DAYS}) AS d FROM visits"
    said = "d would have noise for values from -737,424 to 2,914,634, too noisy to use"
    with opened(tmp_path, [row(1)], budget=GDP) as session:
        with pytest.raises(lw.QueryRefused, match=said) as refused:
            session.sql(text, epsilon=1)
        assert "AVG(x, contribution_bounds_per_row => (0, 40))" in str(refused.value)
        with pytest.raises(lw.QueryRefused, match=said):
            session.batch(["SELECT COUNT(*) AS n FROM visits", text], epsilon=1)
        assert not session.budget().history
        preview = session.explain(text, epsilon=1)
        assert said in str(preview.refusal)
        assert any(note.startswith(said) for note in preview.notes)
        with monkeypatch.context() as patch:
            patch.setattr(answering, "require_usable", lambda *_: None)  # as before it was refused
            bought = session.sql(text, epsilon=1).rows()
        again = session.sql(text, epsilon=1)
        assert (again.stored, again.rows()) == (True, bought), "what was bought stays free"
        assert session.explain(text, epsilon=1).refusal is None


def test_a_bounded_number_beside_one_without_bounds_does_not_go_as_far(tmp_path: Path) -> None:
    """Both are infinite; the bounded one counts as 2¹⁵⁰, which a note says where they are compared, and only there."""
    columns = {"x": [5.0, float("inf")], "y": [1.0, float("inf")]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with lw.protect(tmp_path / "t.parquet", privacy_unit="row", epsilon=10**9, bounds={"x": (0, 10)}) as session:
        for text, wanted, is_noted in (
            ("SELECT COUNT(*) AS n FROM t WHERE x >= y", 1, True),
            ("SELECT COUNT(*) AS n FROM t WHERE x + 1 > y OR x IS NULL", 1, True),
            ("SELECT COUNT(*) AS n FROM t WHERE x > 3 AND y > 0", 2, False),
        ):
            answer = session.sql(text, epsilon=10**6)
            assert answer.rows() == [{"n": wanted}]
            assert (FAR_VALUES in {getattr(note, "code", "") for note in answer.notes}) is is_noted
