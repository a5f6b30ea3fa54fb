"""Functions of one row of the answer: what DuckDB computes from the same released numbers."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import polars
import pytest

import lapwing as lw
from lapwing.query.aggregates import formulas
from lapwing.query.derivation.node import Derived
from tests.release.test_window_values import rows_of, said
from tests.support.effort import one_in
from tests.support.refusals import refused_as
from tests.support.release.tables import repeatable, visits

BASE = "SELECT plan, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY plan"
# None of these rounds a half, which Lapwing rounds up and DuckDB's casts to the nearest even number.
FORMULAS = (
    "IF(n > 100, 'many', 'few')",
    "UPPER(plan) || '-' || LOWER('X')",
    "CONCAT(plan, NULLIF(plan, 'a'), '!')",
    "n % 7",
    "POWER(n, 2)",
    "SIGN(n - 100)",
    "EXP(m / 100)",
    "LN(ABS(n) + 1)",
    "CAST(n AS DOUBLE) / 4",
    "CAST(m AS INTEGER)",
    "CAST(m AS DECIMAL(10, 2))",
    "NULLIF(n % 2, 0)",
    "CASE n % 2 WHEN 0 THEN 'even' ELSE 'odd' END",
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with repeatable(visits(tmp_path), "scalars") as session:
        yield session


def check(session: lw.Session) -> None:
    released = polars.DataFrame(session.sql(BASE, epsilon=1)).to_arrow()
    for formula in FORMULAS:
        answer = session.sql(BASE.replace(" FROM", f", {formula} AS x FROM", 1), epsilon=1)
        assert answer.stored, formula  # the same noisy numbers
        wanted = said(f"SELECT plan, {formula} AS x FROM released ORDER BY plan", released=released)
        found = sorted((row["plan"], row["x"]) for row in rows_of(answer))
        for (plan, ours), (expected, theirs) in zip(found, wanted, strict=True):
            assert plan == expected
            if isinstance(theirs, Decimal | int | float):
                assert float(ours) == pytest.approx(float(theirs)), formula
            else:
                assert ours == theirs, formula


def test_they_are_what_duckdb_computes_from_released_numbers(session: lw.Session) -> None:
    check(session)


def test_a_planted_bug_is_found(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def unguarded(part: Derived) -> Derived:
        return part

    monkeypatch.setattr(formulas, "_present", unguarded)  # CONCAT of NULL is then NULL
    with pytest.raises(AssertionError):
        check(session)


@pytest.mark.long
def test_intervals_pass_through_casts_and_nullif(session: lw.Session) -> None:
    text = BASE.replace(" FROM", ", CAST(n AS DOUBLE) AS d, NULLIF(n, 0) AS z, m / NULLIF(n, 0) AS q FROM", 1)
    answer = session.sql(text, epsilon=1)
    ends = answer.interval()
    for name in ("d", "z"):
        assert all((ends[name][side] == ends["n"][side]).all() for side in (0, 1))
    quotients = [one for one in zip(rows_of(answer), *ends["q"], strict=True) if one[0]["q"] is not None]
    assert quotients
    assert all(low <= row["q"] <= high for row, low, high in quotients)


@pytest.mark.parametrize(
    ("item", "reason"),
    one_in(
        3,
        [
            ("CAST(plan AS INTEGER)", "cast_not_supported"),
            ("CAST(COUNT(*) / 2 AS VARCHAR)", "wrong_type"),
            ("UPPER(COUNT(*))", "wrong_type"),
            ("AVG(cost) || '%'", "wrong_type"),
            ("POWER(2, COUNT(*))", "invalid_argument"),
            ("IF(COUNT(*), 1, 2)", "wrong_type"),
            ("CASE (COUNT(*) + 1) * 2 WHEN 1 THEN 2 END", "query_too_complex"),
        ],
        many=True,
    ),
)
def test_others_are_refused(item: str, reason: str, session: lw.Session) -> None:
    with refused_as(reason):
        session.explain(f"SELECT plan, {item} FROM visits GROUP BY plan", epsilon=1)
