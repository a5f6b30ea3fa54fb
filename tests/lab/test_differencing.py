"""*differencing* succeeds on exact totals and stays within the bound of the price on Lapwing's."""

from fractions import Fraction
from itertools import cycle

import numpy as np
import pytest

from lapwing import lab
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.lab import Settings, differencing
from lapwing.lab.differencing import CHEATED, MANY, SCHOLARSHIP
from lapwing.mechanisms import DiscreteLaplace

SHORT = Settings(short=True)


def _law(scale: float, reach: int) -> np.ndarray:
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return np.asarray(law / law.sum())


def _right(scale: float, noises: int, value: int) -> float:
    """Return how often the guess is right by convolving the noises one after the other."""
    one = _law(scale, round(40 * scale))
    law = one
    for _ in range(noises - 1):
        law = np.convolve(law, one)
    away = np.arange(law.size) - law.size // 2
    return float(1 - law[2 * away > value].sum() - law[2 * away == value].sum() / 2)


@pytest.mark.long
def test_exact_totals_give_bob_away_and_lapwings_do_not() -> None:
    found = differencing.run(SHORT)
    assert found.holds
    shares = {(row["target"], row["secret"], row["pairs"]): row for row in found.rows}
    for row in found.rows:
        observed, most = row["right, observed"], row["right, at most"]
        assert isinstance(observed, float)
        assert isinstance(most, float)
        assert observed == 1 if str(row["target"]).startswith("exact") else most < 0.74
    ours = shares["Lapwing's noise", CHEATED.name, MANY]["right, observed"]
    assert isinstance(ours, float)
    assert ours < 0.53


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_predictions_are_those_of_a_convolution(epsilon: float) -> None:
    assert differencing.predicted(CHEATED, 1, epsilon) == pytest.approx(_right(2 / epsilon, 2, 1), abs=1e-9)
    assert differencing.predicted(CHEATED, MANY, epsilon) == pytest.approx(_right(10 / epsilon, 10, 5), abs=1e-9)
    assert differencing.predicted(SCHOLARSHIP, 1, epsilon * 100) == pytest.approx(
        _right(120 / epsilon, 2, 4500), abs=1e-9
    )


@pytest.mark.long
def test_another_epsilon_holds_and_one_target_is_enough() -> None:
    assert differencing.run(Settings(epsilon=Fraction(3), short=True, against="lapwing")).holds
    found = differencing.run(Settings(short=True, against="naive"))
    assert found.holds
    assert {row["target"] for row in found.rows} == {"exact totals"}


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    release = DiscreteLaplace.release

    def less(self: DiscreteLaplace, values: np.ndarray, entropy: Entropy = SYSTEM) -> object:
        return release(DiscreteLaplace(scale=self.scale * 8 / 10), values, entropy)

    monkeypatch.setattr(DiscreteLaplace, "release", less)
    assert not differencing.run(Settings(short=True, against="lapwing")).holds


@pytest.mark.long
def test_exact_answers_in_lapwings_place_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = cycle([1, 0])
    monkeypatch.setattr(
        differencing,
        "_differences",
        lambda session, bob, secret, price, many: np.full(many, next(worlds) * secret.value),
    )
    found = differencing.run(Settings(short=True, against="lapwing"))
    wrong = [check.what for check in found.checks if not check.holds]
    assert wrong == [f"guesses right, Lapwing, {secret.name}, 1 pair" for secret in (CHEATED, SCHOLARSHIP)]


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["differencing"].attack
