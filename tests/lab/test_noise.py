"""*noise* holds, has the textbook's figures, and notices noise that is a tenth too small or rounded from floats."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from lapwing import noise
from lapwing.lab import Settings
from lapwing.lab import noise as experiment
from tests.support.effort import one_in
from tests.support.lab.laws import discrete_laplace


def test_it_holds_and_has_the_figures_of_the_textbook() -> None:
    found = experiment.run(Settings(short=True))
    assert found.holds
    predicted = {row["answer"]: row for row in found.rows}
    assert len(predicted) == 13
    law = discrete_laplace(1.0, 0, 60)
    for answer in (53, 54, 55, 56, 57):
        row = predicted[answer]
        assert row["discrete, predicted"] == pytest.approx(law[60 + answer - 55])
        ends = (mpmath.mpf(answer - 55) - 0.5, mpmath.mpf(answer - 55) + 0.5)
        rounded = mpmath.quad(lambda x: mpmath.exp(-abs(x)) / 2, [ends[0], answer - 55, ends[1]])
        assert row["rounded, predicted"] == pytest.approx(float(rounded))
    shown = {a: (predicted[a]["rounded, predicted"], predicted[a]["discrete, predicted"]) for a in (54, 55)}
    assert [[round(float(share or 0), 2) for share in shown[a]] for a in (55, 54)] == [[0.39, 0.46], [0.19, 0.17]]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", one_in(3, [0.1, 0.2, 0.5, 1, 2]))
def test_risk_and_its_spread_are_those_of_the_law(epsilon: float) -> None:
    reach = round(60 / epsilon)
    places = np.arange(-reach, reach + 1)
    law = discrete_laplace(1 / epsilon, 0, reach)
    second, fourth = float(law @ places**2), float(law @ places.astype(float) ** 4)
    assert experiment._spread(Fraction(str(epsilon))) == pytest.approx((fourth - second**2) ** 0.5)
    (check,) = [c for c in experiment.run(Settings(short=True)).checks if c.what.endswith(f"error at ε = {epsilon:g}")]
    assert check.predicted == pytest.approx(second)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(3)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert experiment.run(Settings(epsilon=epsilon, short=True)).holds


def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = noise.discrete_laplace
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: drawn(scale * 9 / 10, size))
    assert not experiment.run(Settings(short=True)).holds


@pytest.mark.long
def test_rounded_floats_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the naive law, which has nearly the same variance."""

    def rounded(scale: Fraction, size: int) -> np.ndarray:
        return np.random.default_rng().laplace(0, float(scale), size).round().astype(np.int64)

    monkeypatch.setattr(noise, "discrete_laplace", rounded)
    assert not experiment.run(Settings(short=True)).holds
