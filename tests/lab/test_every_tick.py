"""*every-tick* holds, its laws are those computed a second way, and noise that is too small is noticed."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.exact import samplers
from lapwing.lab import Settings, every_tick
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.continual import tree


@pytest.mark.long
def test_it_holds_and_has_the_order_that_it_says() -> None:
    found = every_tick.run(Settings(short=True))
    assert found.holds
    errors = {(row["noise"], row["way"], row["ticks"]): float(row["error, predicted"] or 0) for row in found.rows}
    assert errors["Gaussian", "fresh", 128] / errors["Gaussian", "fresh", 16] == pytest.approx(8**0.5, rel=0.01)
    assert errors["Gaussian", "matrix", 128] < 1.4 * errors["Gaussian", "matrix", 16]
    assert errors["Gaussian", "matrix", 128] < 0.4 * errors["Gaussian", "binary tree", 128]
    assert errors["Laplace", "subtractive tree", 128] < 0.4 * errors["Laplace", "binary tree", 128]
    assert errors["Gaussian", "a monitor", 128] == pytest.approx(errors["Gaussian", "matrix", 128], rel=1e-3)


def test_the_laws_of_sums_are_those_of_convolutions() -> None:
    q = np.exp(-1 / 2)
    one = (1 - q) / (1 + q) * q ** np.abs(np.arange(-60, 61))
    three = np.convolve(np.convolve(one, one), one)
    places = np.arange(-180, 181)
    law = every_tick._laplaces(Fraction(2), 3)
    assert law.deviation == pytest.approx(float(np.sqrt(three @ places**2)), rel=1e-9)
    assert law.within == pytest.approx(float(three[np.abs(places) <= law.reach].sum()), rel=1e-9)
    normal = every_tick._normals(7.0, 5)
    assert normal.deviation == pytest.approx((5 * (49 + 1 / 12)) ** 0.5, rel=1e-9)


def test_the_square_root_has_the_errors_that_are_known() -> None:
    assert every_tick.square_root(1 << 10) == pytest.approx(3.2726, abs=1e-4)
    assert every_tick.square_root(1 << 20) == pytest.approx(5.4790, abs=1e-4)


def _wrong(checks: tuple[Any, ...]) -> str:
    return " · ".join(check.what for check in checks if not check.holds)


def _gaussian(release: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, values, *rest: release(RoundedGaussian(sigma=self.sigma * 8 / 10), values, *rest)


@pytest.mark.long
def test_twin_gaussian_noise_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundedGaussian, "release", _gaussian(RoundedGaussian.release))
    wrong = _wrong(every_tick.run(Settings(short=True, repetitions=4_000)).checks)
    for way in (every_tick.FRESH, every_tick.BINARY, every_tick.MATRIX):
        assert f"Gaussian, {way}, 16 ticks" in wrong
    assert "Laplace" not in wrong


@pytest.mark.long
def test_twin_laplace_noise_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    release, drawn = DiscreteLaplace.release, samplers.discrete_laplace
    less = Fraction(8, 10)
    monkeypatch.setattr(tree, "discrete_laplace", lambda scale, *rest: drawn(scale * less, *rest))
    monkeypatch.setattr(
        DiscreteLaplace,
        "release",
        lambda self, values, *rest: release(DiscreteLaplace(scale=self.scale * less), values, *rest),
    )
    wrong = _wrong(every_tick.run(Settings(short=True, repetitions=1_300)).checks)
    for way in (every_tick.FRESH, every_tick.BINARY, every_tick.SUBTRACTS):
        assert f"Laplace, {way}, 128 ticks" in wrong
    assert "Gaussian" not in wrong


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert every_tick.run(Settings(epsilon=epsilon, short=True)).holds
