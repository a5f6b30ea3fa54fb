"""*dimensions* holds, its figures are those computed a second way, and noise or calibration that is off is noticed."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from mpmath import exp, log, mp, mpf, ncdf

from lapwing.lab import Settings, dimensions
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian, Sensitivity
from lapwing.privacy import cheapest
from tests.support.effort import one_in


@pytest.mark.long
def test_it_holds_and_has_the_growth_of_the_textbook() -> None:
    found = dimensions.run(Settings(short=True))
    assert found.holds
    reach = {(row["noise"], row["answers"]): int(str(row["±, Lapwing"])) for row in found.rows}
    # k against √k: a hundred times as many answers.
    assert reach["Laplace", 1_000] / reach["Laplace", 10] == pytest.approx(100, rel=0.02)
    assert reach["Gaussian", 1_000] / reach["Gaussian", 10] == pytest.approx(10, rel=0.02)
    assert reach["Laplace", 5] < reach["Gaussian", 5]
    assert reach["Gaussian", 10] < reach["Laplace", 10]


def _delta(epsilon: Fraction, sigma: mpf) -> mpf:
    e = mpf(epsilon.numerator) / epsilon.denominator
    return ncdf(1 / (2 * sigma) - e * sigma) - exp(e) * ncdf(-1 / (2 * sigma) - e * sigma)


@pytest.mark.parametrize("delta", dimensions.DELTAS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_sigma_and_the_crossing_are_those_of_the_formula(epsilon: Fraction, delta: Fraction) -> None:
    sigma = dimensions._sigma(epsilon, delta)
    with mp.workdps(50):
        deltas = [_delta(epsilon, mpf(sigma) * factor) for factor in (mpf("0.999999"), mpf("1.000001"))]
    assert deltas[1] < mpf(delta.numerator) / delta.denominator < deltas[0]
    expected = (1.959963984540054 * float(epsilon) * sigma / float(log(20))) ** 2
    assert dimensions._crossing(epsilon, delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert dimensions.run(Settings(epsilon=epsilon, short=True)).holds


def _failed(checks: tuple[Any, ...]) -> str:
    return " · ".join(check.what for check in checks if not check.holds)


def _laplace(release: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, values, *rest: release(DiscreteLaplace(scale=self.scale * 9 / 10), values, *rest)


def _gaussian(release: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, values, *rest: release(RoundedGaussian(sigma=self.sigma * 9 / 10), values, *rest)


@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "less"), one_in(2, [(DiscreteLaplace, _laplace), (RoundedGaussian, _gaussian)], many=True)
)
def test_too_little_noise_is_noticed(mechanism: Any, less: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "release", less(mechanism.release))
    assert "noise within ±" in _failed(dimensions.run(Settings()).checks)


@pytest.mark.long
def test_noise_for_one_answer_where_there_are_many_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrate = RoundedGaussian.for_loss
    one = Sensitivity(l1=1, l2_squared=1)
    monkeypatch.setattr(RoundedGaussian, "for_loss", lambda loss, _: calibrate(loss, one))
    found = _failed(dimensions.run(Settings(short=True)).checks)
    assert "± of Gaussian noise, k = 1,000" in found
    assert "± of Gaussian noise, k = 1 ·" not in found


@pytest.mark.long
def test_a_planner_that_likes_laplace_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = cheapest
    monkeypatch.setattr(dimensions, "cheapest", lambda k, *rest: plan(max(1, k - 1), *rest))
    assert "planner's noise" in _failed(dimensions.run(Settings(short=True)).checks)
