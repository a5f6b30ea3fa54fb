"""*over-time* finds every answer that is reported anew each day, and not those behind a kept noisy answer."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from mpmath import binomial, exp, mp, mpf

from lapwing import lab
from lapwing.lab import Settings, over_time
from lapwing.lab.experiment import Finding
from lapwing.local import Memoised
from lapwing.session import Session


def _majority(epsilon: float, days: int) -> float:
    with mp.workdps(40):
        p = 1 / (1 + exp(-mpf(epsilon)))
        mass = [binomial(days, k) * p**k * (1 - p) ** (days - k) for k in range(days + 1)]
        tie = mass[days // 2] / 2 if days % 2 == 0 else mpf(0)
        return float(sum(mass[days // 2 + 1 :]) + tie)


def _observed(found: Finding, how: str) -> dict[int, float]:
    return {int(row["days"] or 0): float(row["found, observed"] or 0) for row in found.rows if row["reports"] == how}


@pytest.mark.long
def test_fresh_coins_give_everybody_away_and_a_kept_answer_does_not() -> None:
    found = over_time.run(Settings(short=True))
    assert found.holds
    fresh, kept = _observed(found, over_time.FRESH), _observed(found, over_time.KEPT)
    assert fresh[365] == 1
    assert fresh[21] > 0.97
    assert kept[365] < 0.92
    spent = {row["days"]: row["epsilon"] for row in found.rows if row["reports"] == over_time.FRESH}
    assert (spent[30], spent[365]) == (30, 365)


def test_the_figures_of_majorities_are_those_of_the_binomial_law() -> None:
    assert _majority(1, 21) == pytest.approx(0.9885, abs=5e-5)
    assert _majority(1, 101) == pytest.approx(0.9999996, abs=5e-8)
    mechanism = over_time.memoised(Fraction(1))
    p, again = (float(one.rates(0).p) for one in (mechanism.first, mechanism.second))
    for days in (1, 7, 30):
        majority = _majority(log(again / (1 - again)), days)
        assert over_time.kept_right(mechanism, days) == pytest.approx(p * majority + (1 - p) * (1 - majority))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(20)])
def test_another_epsilon_holds(epsilon: Fraction) -> None:
    assert over_time.run(Settings(epsilon=epsilon, short=True)).holds


def test_a_small_epsilon_raises_no_false_alarm() -> None:
    """Below 0.003 the logarithm of a ratio near 1 came out above the bound that the ratio attains."""
    for epsilon in (Fraction(1, 1_000), Fraction(1, 10_000), Fraction(1, 10**6)):
        mechanism = over_time.memoised(epsilon)
        for days in over_time.DAYS:
            assert over_time._logarithm(mechanism.unchanged_ratio(days)) <= float(over_time.forever(epsilon))
        assert all(check.holds for _, checks in over_time._kept(epsilon, 100) for check in checks)


@pytest.mark.long
def test_fresh_coins_in_the_kept_answers_place_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def anew(self: Memoised, histories: np.ndarray) -> np.ndarray:
        return np.column_stack([np.asarray(self.randomize(day)) for day in histories.T])

    monkeypatch.setattr(Memoised, "simulate", anew)
    found = over_time.run(Settings(short=True, against="lapwing"))
    wrong = [check.what for check in found.checks if not check.holds]
    assert f"bound of majorities right, 365 days, {over_time.KEPT}" in wrong


@pytest.mark.long
def test_a_budget_that_is_reset_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Session.sql

    def cheaper(self: Session, text: str, *, epsilon: Fraction) -> object:
        return ask(self, text, epsilon=epsilon / 2)

    monkeypatch.setattr(Session, "sql", cheaper)
    found = over_time.run(Settings(short=True, against="lapwing"))
    wrong = [check.what for check in found.checks if not check.holds]
    assert wrong == [f"refused on the second day, {over_time.LEDGER}"]


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["over-time"].attack
