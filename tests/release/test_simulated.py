"""Made-up answers: their noise is that of the price, around what was assumed, and nothing is read or charged."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from lapwing.answer import Answer
from lapwing.errors import InvalidParameter
from lapwing.release.simulated import AssumedGroup, simulated
from lapwing.session import Session
from tests.support.fixed_entropy import StreamEntropy
from tests.support.server.world import data_set

GROUPS: Final = 100
CENT: Final = Fraction(95, 100)
RESULTS: Final = {
    "COUNT(*)": Fraction(500),
    "COUNT(DISTINCT person)": Fraction(300),
    "SUM(cost)": Fraction(1500),
    "AVG(cost)": Fraction(3),
    "AVG(CASE WHEN plan = 'a' THEN 1 ELSE 0 END)": Fraction(1, 4),
    "COUNT(DISTINCT cost)": Fraction(7),
    "COUNT(*), AVG(cost)": Fraction(500),
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with data_set(tmp_path, "visits") as opened:
        yield opened


def made_up(session: Session, aggregates: str, result: Fraction, epsilon: Fraction = Fraction(1)) -> Answer:
    sql = f"SELECT plan, {aggregates.replace(',', ' AS x,', 1) if '*),' in aggregates else aggregates + ' AS x'} "
    request = session._planned(f"{sql} FROM visits GROUP BY plan", (), epsilon, None, None, assuming_count=500)
    return simulated(request, AssumedGroup(rows=500, typical={"x": result}), GROUPS, StreamEntropy(aggregates))


def covered(answer: Answer, result: Fraction, other: Answer | None = None) -> int:
    """Return how many of the intervals at 95 % have the made-up result inside; with the widths of another answer's."""
    low, high = (other or answer).interval(CENT)["x"]
    widths = [float(b) - float(a) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    near = [abs(float(str(row["x"])) - float(result)) for row in answer.rows()]
    return sum(2 * off <= width for off, width in zip(near, widths, strict=True))


@pytest.mark.parametrize(("aggregates", "result"), RESULTS.items())
def test_noise_is_that_of_the_price(session: Session, aggregates: str, result: Fraction) -> None:
    answer = made_up(session, aggregates, result)
    assert len(answer.rows()) == GROUPS
    assert len({row["x"] for row in answer.rows()}) > 5
    assert 85 <= covered(answer, result) <= GROUPS
    near = made_up(session, aggregates, result, Fraction(30))
    values = [float(str(row["x"])) for row in near.rows()]
    assert abs(np.mean(values) - float(result)) < 0.02 * float(result) + 0.01
    assert not session.budget().history


@pytest.mark.parametrize("aggregates", ["COUNT(*)", "AVG(CASE WHEN plan = 'a' THEN 1 ELSE 0 END)"])
def test_noise_that_is_too_wide_is_found(session: Session, aggregates: str) -> None:
    """Planted: the noise of a quarter of the price."""
    result = RESULTS[aggregates]
    asked, cheap = (made_up(session, aggregates, result, Fraction(1, part)) for part in (1, 4))
    assert covered(cheap, result, asked) < 85


def test_medians_lie_around_the_assumed_one(session: Session) -> None:
    values = [float(str(row["x"])) for row in made_up(session, "MEDIAN(cost)", Fraction(3), Fraction(20)).rows()]
    assert abs(np.mean(values) - 3) < 0.3
    wide = [row["x"] for row in made_up(session, "MEDIAN(cost)", Fraction(3), Fraction(1, 1000)).rows()]
    assert np.std([float(str(value)) for value in wide if value is not None]) > 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT plan FROM visits GROUP BY plan",
        "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
    ],
)
def test_results_that_are_no_table_of_numbers_have_no_picture(session: Session, sql: str) -> None:
    request = session._planned(sql, (), Fraction(1), None, None)
    with pytest.raises(InvalidParameter):
        simulated(request, AssumedGroup(rows=5, typical={}), 2, StreamEntropy("none"))
