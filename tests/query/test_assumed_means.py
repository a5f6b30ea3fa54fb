"""A mean at a wanted error: cheapest for the rows that are assumed, a function of public facts alone."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.query.pricing import assumed_means
from tests.support.effort import one_in
from tests.support.refusals import refused_as

MEANS = "SELECT plan, AVG(age) AS mean, COUNT(*) AS n FROM visits GROUP BY plan"
ALONE = "SELECT plan, AVG(age) AS mean FROM visits GROUP BY plan"


@pytest.fixture(params=one_in(2, ["gdp", "pure"]))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[lw.Session]:
    rows = range(6_000)
    columns = {"person": list(rows), "plan": ["aab"[n % 3] for n in rows], "age": [n * 7 % 80 for n in rows]}
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    with lw.protect(
        tmp_path / "visits.parquet", privacy_unit="person", epsilon=1_000, max_rows_per_unit=1,
        delta=1e-6 if request.param == "gdp" else 0, measure=request.param,
        domains={"plan": ["a", "b"]}, bounds={"age": (0, 80)},
    ) as session:  # fmt: skip
        yield session


@pytest.mark.long
@pytest.mark.parametrize("error", one_in(3, [0.1, 1, 5]))
def test_the_price_promises_the_error_and_little_more_exactness(session: lw.Session, error: float) -> None:
    preview = session.explain(ALONE, error=error, assuming_count=1_000)
    promised = preview.columns[1].half_width
    assert promised is not None
    assert error * 0.9 < promised <= error
    less = session.explain(ALONE, epsilon=preview.epsilon * 0.99, assuming_count=1_000).columns[1].half_width
    assert less is not None
    assert less > error * 0.999


@pytest.mark.long
def test_cells_of_as_many_rows_are_as_exact(session: lw.Session) -> None:
    answer = session.sql(ALONE, error=0.5, assuming_count=2_000)
    low, high = answer.interval()["mean"]
    assert ((high - low) / 2 <= 0.5).all()
    assert answer.cost == session.explain(ALONE, error=0.5, assuming_count=2_000).price
    assert session.sql(ALONE, error=0.6, assuming_count=2_000).stored


@pytest.mark.long
def test_a_count_beside_a_mean_is_held_to_the_error_too(session: lw.Session) -> None:
    preview = session.explain(MEANS, error=2, assuming_count=100_000)
    assert all(column.half_width is None or column.half_width <= 2 for column in preview.columns)


@pytest.mark.long
def test_a_price_for_more_rows_would_be_noticed(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: the price is that of ten times as many rows."""
    honest = assumed_means.half_width_of_mean
    fair = session.explain(ALONE, error=0.5, assuming_count=2_000).price.amount
    monkeypatch.setattr(
        assumed_means, "half_width_of_mean", lambda average, terms, count: honest(average, terms, 10 * count)
    )
    assert session.explain(ALONE, error=0.4999, assuming_count=2_000).price.amount < fair / 2


def test_without_an_assumption_it_is_refused(session: lw.Session) -> None:
    with refused_as("assumes_rows"):
        session.sql(ALONE, error=0.5)
    for wrong in (0, -1, True, 2.5, "7"):
        with pytest.raises(InvalidParameter, match="assuming_count is"):
            session.sql(ALONE, error=0.5, assuming_count=wrong)  # type: ignore[arg-type]
    with refused_as("error_not_public"):
        session.sql("SELECT AVG(age) / COUNT(*) AS r FROM visits", error=0.5, assuming_count=9)
    assert session.budget().spent.amount == 0
    assert session.price(Fraction(1)).amount > 0
