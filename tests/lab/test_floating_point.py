"""*floating-point* tells 0 from 1 by doubles that are impossible; Lapwing's integers have no such."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from lapwing import lab
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.lab import Settings, floating_point, naive
from lapwing.mechanisms import DiscreteLaplace


@pytest.mark.long
def test_doubles_give_the_true_figure_away_and_integers_do_not() -> None:
    found = floating_point.run(Settings(short=True))
    assert found.holds
    shares = [
        (row["target"], float(row["excluded, observed"] or 0), float(row["bits, observed"] or 0)) for row in found.rows
    ]
    naive = [share for target, share, _ in shares if target == "doubles"]
    assert min(naive) > 0.5
    assert [share for target, share, _ in shares if target == "Lapwing"] == [0, 0]
    ours = [sign for target, _, sign in shares if target == "Lapwing"]
    assert max(ours[0], 1 - ours[1]) < 1 / (1 + exp(-0.1)) + 0.02


def test_what_comes_out_can_come_out() -> None:
    for true in (0.0, 1.0, 3.5):
        for scale in (0.05, 1 / 3, 1.0, 10.0, 1000.0):
            given = naive.laplace_in_doubles(true, scale, 20_000)
            assert naive.can_give(given, true, scale).all()


def test_what_is_impossible_is_so_for_every_number_near_by() -> None:
    """Of a hundred impossible answers, a far wider search than the attack's finds none that is possible after all."""
    given = naive.laplace_in_doubles(0.0, 1.0, 4_000)
    given = given[~naive.can_give(given, 1.0, 1.0)][:100]
    for answer in given:
        noise = answer - 1.0
        nearest = int(np.rint(np.exp(-abs(noise)) * 2**53))
        u = np.clip(np.arange(nearest - 5_000, nearest + 5_001, dtype=np.float64), 1, 2**53) * 2.0**-53
        assert not (1.0 + np.sign(noise) * -np.log(u) == answer).any()


def test_evenness_is_that_of_the_law() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        law = np.exp(-epsilon * np.abs(np.arange(-2_000, 2_001)))
        assert floating_point.even(epsilon) == pytest.approx(law[::2].sum() / law.sum())


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert floating_point.run(Settings(epsilon=epsilon, short=True)).holds


def test_noise_with_gaps_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of even numbers only is as large, and gives 0 away from 1 with certainty."""
    release = DiscreteLaplace.release

    def gapped(self: DiscreteLaplace, values: np.ndarray, entropy: Entropy = SYSTEM) -> np.ndarray:
        noise = np.asarray(release(self, np.zeros_like(values), entropy))
        return np.asarray(values + 2 * (noise // 2))

    monkeypatch.setattr(DiscreteLaplace, "release", gapped)
    found = floating_point.run(Settings(short=True, against="lapwing"))
    assert sum(not check.holds for check in found.checks) == 4


def test_doubles_that_are_no_longer_caught_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the sampler were rounded to a public grid, answers to 0 and to 1 would be alike, and the attack would fail."""
    answers = naive.laplace_in_doubles
    monkeypatch.setattr(floating_point, "laplace_in_doubles", lambda *given: np.rint(answers(*given)))
    monkeypatch.setattr(floating_point, "can_give", lambda answer, true, scale: np.ones(answer.shape, dtype=bool))
    assert not floating_point.run(Settings(short=True, against="naive")).holds


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["floating-point"].attack
