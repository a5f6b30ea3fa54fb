"""*timing* reads the noise from the naive sampler's coins; Lapwing's work never varies."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy.stats import spearmanr

from lapwing import lab
from lapwing.lab import Settings, naive, timing
from lapwing.lab.timing import TimedDraws
from tests.support.effort import one_in


@pytest.mark.long
def test_coins_give_the_noise_away_and_lapwings_work_does_not() -> None:
    # What is measured is real time, which others on the machine disturb: the coins only have to give it away once.
    tries = (timing.run(Settings(short=True)) for _ in range(3))
    found = next((found for found in tries if found.holds), None)
    assert found is not None
    naive, at_once, ours, at_a_moment = ({name: cell or 0.0 for name, cell in row.items()} for row in found.rows)
    assert float(naive["observed"]) > 0.97
    assert float(naive["work ~ |noise|"]) > 0.99
    assert float(ours["observed"]) < 0.57
    assert ours["work ~ |noise|"] == 0
    assert (at_once["target"], at_a_moment["target"]) == ("answered at once", "answered at a moment")


@pytest.mark.long
@pytest.mark.parametrize("epsilon", one_in(2, [0.05, 1.0, 4.0]))
def test_the_best_guess_by_coins_is_that_of_an_enumeration(epsilon: float) -> None:
    q = exp(-epsilon)
    again, reach = (1 - q) / 2, 1_200
    right = 0.0
    for y in range(-reach, reach + 1):
        coins = np.arange(1, min(reach, 60) + abs(y))
        likely = [
            np.where(coins > n, (1 - q) / 2 * q**n * again ** np.maximum(coins - 1.0 - n, 0.0), 0.0)
            for n in (abs(y), abs(y - 1))
        ]
        right += float(np.maximum(*likely).sum()) / 2
    assert timing.told_apart(epsilon) == pytest.approx(right, abs=1e-6)


def test_the_naive_sampler_has_the_law_of_the_discrete_laplace() -> None:
    drawn = [naive.laplace_by_coins(1.0) for _ in range(20_000)]
    zeros = sum(draw.noise == 0 for draw in drawn) / len(drawn)
    assert zeros == pytest.approx(0.46212, abs=0.02)
    assert all(draw.coins >= abs(draw.noise) + 1 for draw in drawn)


def test_rank_correlations_are_spearmans() -> None:
    generator = np.random.default_rng()
    x = generator.integers(0, 20, 500)
    y = x + generator.integers(0, 20, 500)
    assert timing.rank_correlation(x, y) == pytest.approx(float(spearmanr(x, y).statistic))
    assert timing.rank_correlation(x, np.ones_like(x)) is None


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    # Real time: a machine that is busy with something else can hide what the noise does to it.
    assert any(timing.run(Settings(epsilon=epsilon, short=True)).holds for _ in range(3))


def test_the_naive_sampler_in_lapwings_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    naive = timing._naive

    def planted(scale: Fraction, draws: int) -> TimedDraws:
        return naive(float(scale), draws)

    monkeypatch.setattr(timing, "_lapwing", planted)
    monkeypatch.setattr(timing, "_timed", lambda trials, _deadline: (np.arange(trials) % 2 == 0, np.ones(trials)))
    found = timing.run(Settings(short=True, against="lapwing"))
    wrong = {check.what for check in found.checks if not check.holds}
    assert wrong == {"different amounts of work, Lapwing", "correlation of time and |noise|, Lapwing"}


@pytest.mark.parametrize("sign", [1, -1])
def test_the_edge_is_between_two_times_that_tell(sign: int) -> None:
    """Also if who is there is answered sooner."""
    within = np.random.default_rng().random(200) < 0.5
    above, edge = timing._edge(np.where(within, sign * 2.0, sign * 1.0), within)
    assert above == (sign > 0)
    assert min(sign, 2 * sign) <= edge < max(sign, 2 * sign)


def test_an_answer_that_does_not_wait_for_its_moment_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clock tells as much as of what is answered at once."""
    within = np.random.default_rng().random(160) < 0.5
    monkeypatch.setattr(timing, "_timed", lambda _trials, _deadline: (within, np.where(within, 0.08, 0.02)))
    _, (check,) = timing._judged_clock(timing.AT_A_MOMENT, 160)
    assert not check.holds


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["timing"].attack
