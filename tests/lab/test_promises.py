"""*insurance*, *extremes*, *privacy-loss*, *collusion*, *query-limit* hold; noise that is too small is noticed."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import exp, prod
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from lapwing import lab
from lapwing.lab import Settings, collusion, extremes, insurance, privacy_loss, query_limit
from lapwing.lab.course import drawn
from lapwing.mechanisms import DiscreteLaplace
from tests.support.effort import only
from tests.support.lab.laws import discrete_laplace
from tests.support.lab.planted import a_tenth_too_small


def failed(found: Any) -> list[str]:
    return [check.what for check in found.checks if not check.holds]


def less(mechanism: DiscreteLaplace, true: int, count: int) -> Any:
    """Draw with a tenth less noise than the mechanism states."""
    return drawn(DiscreteLaplace(scale=mechanism.scale * 9 / 10), true, count)


@pytest.mark.parametrize(
    ("experiment", "repetitions"),
    only(
        [0],
        [(insurance, 20_000), (extremes, 5_000), (privacy_loss, 20_000), (collusion, 500), (query_limit, 2_000)],
        many=True,
    ),
    ids=lambda part: getattr(part, "__name__", "").rpartition(".")[2],
)
def test_they_hold(experiment: Any, repetitions: int) -> None:
    assert not failed(experiment.run(Settings(short=True, repetitions=repetitions)))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10_000), Fraction(3, 10), Fraction(5), Fraction(20)])
@pytest.mark.parametrize("name", ["insurance", "extremes", "privacy-loss", "collusion", "query-limit"])
def test_they_hold_at_other_epsilons(name: str, epsilon: Fraction) -> None:
    assert not failed(lab.run(name, epsilon=epsilon, short=True))


@pytest.mark.parametrize(
    ("experiment", "planted"),
    only(
        [0],
        [(insurance, "noise_of"), (extremes, "noise_of"), (privacy_loss, "noise_of"), (collusion, "noise_of")],
        many=True,
    ),
    ids=lambda part: getattr(part, "__name__", part).rpartition(".")[2],
)
def test_noise_that_is_a_tenth_too_small_is_noticed(
    experiment: Any, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, planted, a_tenth_too_small)
    assert failed(experiment.run(Settings(repetitions=50_000, k=None if experiment is not collusion else 5)))


@pytest.mark.long
def test_draws_that_are_less_noisy_than_the_mechanism_states_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_limit, "drawn", less)
    assert any("the same" in what for what in failed(query_limit.run(Settings(repetitions=50_000, k=20))))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_premiums_rise_as_the_law_says_and_no_event_rises_more(epsilon: float) -> None:
    reach = round(40 / epsilon)
    with_bob, without = (discrete_laplace(1 / epsilon, bob, reach) for bob in (1, 0))
    for limit in (-2, -1, 0, 1, 4):
        first = limit + reach + 1
        assert insurance.above(limit, epsilon) == pytest.approx(without[first:].sum())
        assert insurance.above(limit - 1, epsilon) == pytest.approx(with_bob[first:].sum())
    generator = np.random.default_rng(1)
    for _ in range(50):
        event = generator.random(with_bob.size) < generator.random()
        p = float(without[event].sum())
        assert with_bob[event].sum() <= insurance.at_most(p, epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", only([0], [Fraction(1, 10), Fraction(1)]))
def test_mean_and_spread_of_losses_are_those_of_all_outputs(epsilon: Fraction) -> None:
    reach = round(40 / epsilon)
    with_bob, without = (discrete_laplace(1 / float(epsilon), bob, reach) for bob in (1, 0))
    losses = np.log(with_bob / without)
    mean = float((with_bob * losses).sum())
    spread = float((with_bob * losses**2).sum() - mean**2) ** 0.5
    rows = {str(row["loss of"]): row for row in privacy_loss.run(Settings(epsilon=epsilon, repetitions=1_000)).rows}
    assert rows[privacy_loss.LAPLACE]["mean, predicted"] == pytest.approx(mean)
    rate = float(epsilon)
    assert rate / np.cosh(rate / 2) == pytest.approx(spread)
    assert float((with_bob * np.exp(-losses)).sum()) == pytest.approx(1)


@pytest.mark.long
def test_a_hundred_analysts_have_13_by_gaussian_dp_and_100_by_sum() -> None:
    rows = collusion.run(Settings(short=True, against="naive", repetitions=200)).rows
    last = {str(row["budgets"]): row["epsilon"] for row in rows if row["analysts"] == 100}
    assert last[collusion.OWN_PURE] == 100
    assert last[collusion.OWN_GAUSSIAN] == pytest.approx(13.5, abs=0.05)
    mu = float(collusion.together(Fraction(1), Fraction(1, 10**6), 1).mu)
    with mp.workdps(30):
        whole, epsilon = mpf(mu) * 10, mpf(str(last[collusion.OWN_GAUSSIAN]))
        delta = mp.ncdf(-epsilon / whole + whole / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / whole - whole / 2)
    assert float(delta) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("rule", [lambda i: 1, lambda i: i, lambda i: 2 ** (i - 1)])
@pytest.mark.parametrize("many", [1, 5, 13])
def test_guesses_are_right_as_often_as_all_outcomes_say(rule: Callable[[int], int], many: int) -> None:
    weights = [0.7 / rule(i) for i in range(1, many + 1)]
    right = 0.0
    for signs in product((1, -1), repeat=many):
        chance = prod(1 / (1 + exp(-sign * weight)) for sign, weight in zip(signs, weights, strict=True))
        total = sum(sign * weight for sign, weight in zip(signs, weights, strict=True))
        right += chance * (0.5 if abs(total) < 1e-12 else total > 0)
    assert query_limit.success(weights) == pytest.approx(right, abs=2e-4)
