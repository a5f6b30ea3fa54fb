"""*tails*, *risk*, *median* and *price-in-sql* hold; noise that is too small, or depends on data, is noticed."""

from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest

from lapwing import lab, noise
from lapwing.lab import median, price_in_sql, risk, tails
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from tests.support.effort import one_in
from tests.support.lab.laws import discrete_laplace


def failed(found: Any) -> list[str]:
    return [check.what for check in found.checks if not check.holds]


@pytest.mark.parametrize(
    ("name", "sizes"),
    one_in(
        4,
        [
            ("tails", {"d": 100, "repetitions": 1_000}),
            ("risk", {"d": 64, "repetitions": 10_000}),
            ("median", {"repetitions": 5_000}),
            ("price-in-sql", {"repetitions": 200}),
        ],
        many=True,
    ),
)
def test_they_hold(name: str, sizes: Any) -> None:
    assert not failed(lab.run(name, short=True, **sizes))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10_000), Fraction(3, 10), Fraction(5), Fraction(20)])
@pytest.mark.parametrize("name", ["tails", "risk", "median", "price-in-sql"])
def test_they_hold_at_other_epsilons(name: str, epsilon: Fraction) -> None:
    assert not failed(lab.run(name, epsilon=epsilon, short=True))


@pytest.mark.parametrize("level", [-1.0, 0.0, 0.4, 1.0, 3.7])
def test_tails_are_sums_of_the_law(level: float) -> None:
    law = discrete_laplace(1.0, 0, 60)
    exact = float(law[np.abs(np.arange(-60, 61)) > level].sum())
    assert tails.above(tails.DISCRETE, level, 1.0) == pytest.approx(exact)
    assert tails.largest_above(tails.DISCRETE, 7, level, 1.0) == pytest.approx(1 - (1 - exact) ** 7)
    t = max(level, 0.0)
    assert tails.largest_above(tails.EXPONENTIAL, 10, log(10) + t, 1.0) == pytest.approx(1 - (1 - exp(-t) / 10) ** 10)


def test_the_bound_is_no_equation() -> None:
    rows = lab.run("tails", short=True, d=100, repetitions=500).rows
    at = {(row["noise"], row["of"], row["t"]): row for row in rows}
    row = at[tails.EXPONENTIAL, 100, 0]
    assert row["e^(−t)"] == 1
    assert float(str(row["predicted"])) == pytest.approx(0.634, abs=5e-4)


def test_tails_of_too_little_noise_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = noise.discrete_laplace
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: sampler(scale * 9 / 10, size))
    assert any(tails.DISCRETE in what for what in failed(lab.run("tails", d=1_000, repetitions=2_000)))


@pytest.mark.parametrize("kind", [DiscreteLaplace, RoundedGaussian])
def test_means_with_too_little_noise_are_noticed(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    release = kind.release

    def less(self: Any, values: Any, *rest: Any) -> Any:
        return values + np.rint(0.9 * (release(self, values, *rest) - values)).astype(np.int64)

    monkeypatch.setattr(kind, "release", less)
    assert any("error of a coordinate" in what for what in failed(lab.run("risk", d=16, repetitions=50_000)))


def test_exponents_are_one_and_a_half() -> None:
    rows = lab.run("risk", repetitions=20_000).rows
    assert risk.slope(list(rows), risk.LAPLACE) == pytest.approx(1, abs=0.03)
    assert risk.slope(list(rows), risk.GAUSSIAN) == pytest.approx(0.5, abs=0.03)


def moved(values: list[int], others: int) -> int:
    """Return the largest local sensitivity that data have after so many persons were replaced, by trying all."""
    if others == 0:
        ordered, middle = sorted(values), len(values) // 2
        medians = []
        for place in range(len(values)):
            for value in range(median.LARGEST + 1):
                changed = sorted([*values[:place], value, *values[place + 1 :]])
                medians.append(abs(changed[middle] - ordered[middle]))
        return max(medians)
    return max(
        moved([*values[:place], value, *values[place + 1 :]], others - 1)
        for place in range(len(values))
        for value in range(median.LARGEST + 1)
    )


def test_sensitivities_are_those_of_all_data_that_are_so_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(median, "LARGEST", 3)
    for values in ([0, 0, 0], [0, 1, 3], [0, 2, 2], [3, 3, 0], [1, 1, 2]):
        for k in (0, 1, 2):
            assert median.away(np.array(values), k) == max(moved(values, j) for j in range(k + 1))


@pytest.mark.long
def test_local_sensitivity_in_smooths_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(median, "smooth", lambda values, beta: max(1.0, float(median.local(values))))
    # The random neighbours of one run miss the step once in a hundred times.
    wrong = {name for _ in range(2) for name in failed(lab.run("median", repetitions=5_000))}
    assert "loss of answers of 0, smooth sensitivity" in wrong
    assert "largest step of ln S between neighbours" in wrong


@pytest.mark.long
def test_medians_by_too_little_noise_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    law = median.smooth
    monkeypatch.setattr(
        median, "smooth", lambda values, beta: law(values, beta) * np.random.default_rng().choice([1, 2])
    )
    assert failed(lab.run("median", repetitions=20_000))


def test_errors_of_revenues_are_those_of_the_noises() -> None:
    for name, cells, rate in (
        (price_in_sql.COUNTS, 1, 1 / 99),
        (price_in_sql.FEW, 1, 1 / 9),
        (price_in_sql.HISTOGRAM, 50, 1.0),
    ):
        variance = cells * DiscreteLaplace(scale=Fraction(1 / rate)).standard_deviation ** 2
        assert price_in_sql.deviation(name, 50, 1.0) == pytest.approx(50 * variance**0.5, rel=1e-6)
    law = np.ones(1)
    for _ in range(50):
        law = np.convolve(law, discrete_laplace(1.0, 0, 40))
    assert price_in_sql._no_error(price_in_sql.HISTOGRAM, 1.0) == pytest.approx(float(law[law.size // 2]), rel=1e-6)


@pytest.mark.long
def test_a_histogram_that_costs_less_than_said_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = price_in_sql._ask

    def cheaper(session: Any, name: str, epsilon: Fraction) -> Any:
        return ask(session, name, epsilon * 9 / 10)

    monkeypatch.setattr(price_in_sql, "_ask", cheaper)
    assert failed(lab.run("price-in-sql", repetitions=200))
