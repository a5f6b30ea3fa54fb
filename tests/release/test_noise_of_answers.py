"""The noise that an analyst really gets: its law, its independence of the data, and the coverage of its intervals."""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer import Answer
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.query.measures.measures import Count
from tests.support.effort import only

CELLS = 24_000
COUNTS = "SELECT town, COUNT(pay) AS n FROM staff GROUP BY town"
MEANS = "SELECT town, COUNT(pay) AS n, AVG(pay) AS m FROM staff GROUP BY town"  # here a count may share its noise
# A fair release leaves the bands of all numbers below with probability under 1e-9, by their exact binomial laws. Beyond
# three standard deviations of the noise there are so few draws that theirs would be skewed.
DEVIATIONS = 7


@pytest.fixture(scope="module", params=only([0], ["gdp", "pure"]))
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Answer]:
    """Questions over very many cells: as many independent draws of their noise. Half of the cells are empty."""
    folder = tmp_path_factory.mktemp("cells")
    towns = np.repeat(np.arange(0, CELLS, 2), 3)
    table = pa.table({"person": np.arange(len(towns)), "town": towns, "pay": np.full(len(towns), 30)})
    pq.write_table(table, folder / "staff.parquet")
    delta = 1e-6 if request.param == "gdp" else 0
    with lw.protect(
        folder / "staff.parquet",
        privacy_unit="row",
        epsilon=3,
        delta=delta,
        bounds={"pay": (0, 100)},
        domains={"town": list(range(CELLS))},
    ) as session:
        return session.sql(COUNTS, epsilon=1), session.sql(MEANS, epsilon=1)


@pytest.fixture(scope="module")
def answer(answers: tuple[Answer, Answer]) -> Answer:
    return answers[0]


def truth() -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([3, 0] * (CELLS // 2))


def noise(answer: Answer) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([row["n"] for row in answer.rows()], dtype=np.int64) - truth()


def covered(answer: Answer, column: str, confidence: float, true: np.ndarray[Any, Any]) -> float:
    low, high = answer.interval(confidence)[column]
    return float(np.mean((low <= true) & (true <= high)))


def mechanism_of(answer: Answer) -> RoundedGaussian | DiscreteLaplace:
    found = next(m for measure, m in answer.mechanisms.items() if isinstance(measure, Count))
    assert isinstance(found, RoundedGaussian | DiscreteLaplace)
    return found


def departure(draws: np.ndarray[Any, Any], mechanism: RoundedGaussian | DiscreteLaplace) -> float:
    """The largest standardised difference between the share of |noise| ≤ h and its exact probability, over h."""
    worst = 0.0
    for h in range(int(3 * mechanism.standard_deviation)):
        exact = float(mechanism.coverage(h).lower)
        deviation = sqrt(exact * (1 - exact) / len(draws)) + 1e-12
        worst = max(worst, abs(float(np.mean(np.abs(draws) <= h)) - exact) / deviation)
    return worst


def test_the_noise_has_the_stated_law_in_full_and_in_empty_cells(answer: Answer) -> None:
    draws = noise(answer)
    for part in (draws[::2], draws[1::2]):
        assert departure(part, mechanism_of(answer)) < DEVIATIONS
        assert abs(float(np.mean(part))) < DEVIATIONS * mechanism_of(answer).standard_deviation / sqrt(len(part))


def test_noise_of_nine_tenths_the_scale_is_noticed(answer: Answer) -> None:
    mechanism = mechanism_of(answer)
    larger = (
        RoundedGaussian(sigma=mechanism.sigma / Fraction(9, 10))
        if isinstance(mechanism, RoundedGaussian)
        else DiscreteLaplace(scale=mechanism.scale / Fraction(9, 10))
    )
    assert departure(noise(answer), larger) > DEVIATIONS


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_intervals_of_counts_cover_exactly_as_the_law_says(answer: Answer, confidence: float) -> None:
    mechanism = mechanism_of(answer)
    half_width = mechanism.half_width(confidence)
    exact = float(mechanism.coverage(half_width).lower)
    share = covered(answer, "n", confidence, truth())
    deviation = sqrt(exact * (1 - exact) / CELLS)
    assert exact >= confidence
    assert abs(share - exact) < DEVIATIONS * deviation
    assert float(mechanism.coverage(half_width - 1).upper) < confidence  # no narrower interval would do


def test_intervals_of_means_cover_at_least_as_stated(answers: tuple[Answer, Answer]) -> None:
    low, high = answers[1].interval(0.95)["m"]
    full = slice(0, None, 2)  # a mean exists where there are rows
    share = float(np.mean((low[full] <= 30) & (high[full] >= 30)))
    assert share > 0.95 - DEVIATIONS * sqrt(0.95 * 0.05 / (CELLS / 2))
    assert (low >= 0).all()
    assert (high <= 100).all()


def test_a_mean_is_null_where_the_noisy_count_is_below_one(answers: tuple[Answer, Answer]) -> None:
    columns = answers[1].to_arrow().to_pydict()
    assert all((mean is None) == (count < 1) for mean, count in zip(columns["m"], columns["n"], strict=True))
