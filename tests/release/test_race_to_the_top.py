"""contribution_bounds_per_group => RACE: the race to the top in SQL."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.opening import open_session
from lapwing.query.aggregates import race_to_the_top
from lapwing.query.bind.bind import bind
from lapwing.query.derivation.derived import measures_of
from lapwing.query.measures.measures import Sum
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy
from tests.support.refusals import refused_as
from tests.support.release.tables import protected

RACE = "contribution_bounds_per_group => RACE"
PEOPLE = 20_000


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    """Three visits a person, of which the catalog knows only that there are at most a thousand; repeatable noise.

    A race is too high in 5 of 100 answers.
    """
    path = tmp_path / "visits.parquet"
    rows = range(3 * PEOPLE)
    table = {
        "person_id": [row // 3 for row in rows],
        "plan": ["ab"[row // 3 % 2] for row in rows],
        "cost": [float(row % 7) for row in rows],
    }
    pq.write_table(pa.table(table), path)
    with protected(path, max_rows_per_unit=1000, epsilon=30) as first:
        catalog = first.catalog
    with open_session(catalog, entropy=StreamEntropy("race")) as session:
        yield session


def test_the_error_follows_the_data_and_not_the_limit(session: lw.Session) -> None:
    (row,) = session.sql(f"SELECT COUNT(*, {RACE}) AS n FROM visits", epsilon=1).rows()
    (plain,) = session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=1).columns
    assert plain.half_width is not None
    assert 0 <= 3 * PEOPLE - row["n"] < plain.half_width / 4  # type: ignore[operator]


@pytest.mark.long
def test_every_cell_has_a_race_of_its_own(session: lw.Session) -> None:
    answer = session.sql(f"SELECT plan, SUM(cost, {RACE}) AS s FROM visits GROUP BY plan", epsilon=2)
    assert [row["plan"] for row in answer.rows()] == ["a", "b", "c"]
    found = [float(row["s"]) for row in answer.rows()]  # type: ignore[arg-type]
    truth = [sum(row % 7 for row in range(3 * PEOPLE) if row // 3 % 2 == place) for place in (0, 1)]
    for value, true in zip(found, truth, strict=False):
        assert 0.8 * true < value < 1.02 * true
    assert found[2] < 0.05 * truth[0]


def test_levels_halve_from_the_limit_down(session: lw.Session) -> None:
    plan = bind(f"SELECT SUM(cost, {RACE}) AS s FROM visits", session.catalog)
    clamps = [m.clamp for m in measures_of(plan.outputs[0].value) if isinstance(m, Sum) and m.clamp is not None]
    steps = int(100 * 1000 / plan.question.measures[0].step)
    assert clamps[0] == (0, steps)
    assert len(clamps) == race_to_the_top.MOST_THRESHOLDS
    assert all(2 * low[1] - high[1] in (0, 1) for high, low in pairwise(clamps))


@pytest.mark.long
def test_a_race_gets_the_part_of_two_measures(session: lw.Session) -> None:
    plan = bind(f"SELECT SUM(cost, {RACE}) AS s, COUNT(DISTINCT person_id) AS n FROM visits", session.catalog)
    assert sum(plan.price_request.weights.values()) == race_to_the_top.RACE_WEIGHT == Fraction(2)
    preview = session.explain(f"SELECT SUM(cost, {RACE}) AS s, COUNT(DISTINCT person_id) AS n FROM visits", epsilon=1)
    alone = session.explain("SELECT COUNT(DISTINCT person_id) AS n FROM visits", epsilon=1)
    people = next(m for m in preview.measures if m.measure == "n")
    assert people.scale == pytest.approx(alone.measures[0].scale * 3**0.5, rel=1e-6)
    assert any("at most the true value" in note for note in preview.notes)


@pytest.mark.parametrize(
    ("aggregate", "reason"),
    one_in(
        3,
        [
            (f"SUM(cost - 50, {RACE})", "needs_nonnegative"),
            (f"AVG(cost, {RACE})", "invalid_bounds"),
            ("MEDIAN(cost, contribution_bounds_per_row => AUTO)", "invalid_bounds"),
        ],
        many=True,
    ),
)
def test_what_has_no_race_is_refused(aggregate: str, reason: str, session: lw.Session) -> None:
    with refused_as(reason):
        session.explain(f"SELECT {aggregate} AS s FROM visits", epsilon=1)


@pytest.mark.long
def test_it_is_one_sided(tmp_path: Path) -> None:
    """At most the truth in 95 of 100 answers; a race that took the released values themselves would not be."""
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"person_id": list(range(400)), "plan": ["a"] * 400, "cost": [1.0] * 400}), path)
    over = 0
    with protected(path, max_rows_per_unit=64, epsilon=100) as session:
        for number in range(20):
            question = f"SELECT COUNT(*, {RACE}) AS n FROM visits WHERE cost < {2 + number}"
            over += session.sql(question, epsilon=1).rows()[0]["n"] > 400  # type: ignore[operator]
    assert over <= 9  # a binomial of 20 at 5 % exceeds 9 with probability below 2e-8
