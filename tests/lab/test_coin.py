"""*coin* holds, has the textbook's figures, and notices respondents who lie less, or more, than they say."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from lapwing.exact.arrays import IntArray
from lapwing.lab import Finding, Settings, coin
from lapwing.local import BinaryResponse
from tests.support.effort import only


def rows_by_epsilon(found: Finding) -> dict[float, dict[str, object]]:
    return {round(float(row["epsilon"] or 0), 9): dict(row) for row in found.rows}


def test_it_holds_and_has_the_figures_of_the_textbook() -> None:
    found = coin.run(Settings(short=True))
    assert found.holds
    rows = rows_by_epsilon(found)
    two_coins = rows[round(float(mpmath.log(3)), 9)]
    assert two_coins["coin"] == "two fair coins"
    assert two_coins["lies, predicted"] == pytest.approx(0.25)
    assert rows[8]["lies, predicted"] == pytest.approx(0.0003, abs=0.00005)  # 0.03 %


@pytest.mark.parametrize("epsilon", only([0], [0.1, 1, 2, 4, 8]))
def test_a_coin_of_epsilon_has_exactly_that_loss_and_errs_as_predicted(epsilon: float) -> None:
    """By the coin's own two probabilities, and by the variance of a sum of independent reports."""
    fair = BinaryResponse.for_epsilon(epsilon)
    yes, no = (mpmath.mpf(rate.numerator) / rate.denominator for rate in fair.rates(1))
    assert max(yes / no, (1 - no) / (1 - yes)) == pytest.approx(mpmath.exp(epsilon))
    (row,) = [
        r for r in coin.run(Settings(epsilon=Fraction(str(epsilon)), short=True)).rows if r["coin"] != "two fair coins"
    ]
    assert row["lies, predicted"] == pytest.approx(float(1 - yes))
    assert row["error, predicted"] == pytest.approx(float(mpmath.sqrt(1000 * yes * (1 - yes)) / (1000 * (yes - no))))


def test_a_coin_of_p_has_the_odds_of_p() -> None:
    for p in ("0.6", "0.75", "0.9", "0.999"):
        loss = BinaryResponse.from_truth(Fraction(p)).loss()
        assert float(loss.epsilon) == pytest.approx(float(mpmath.log(mpmath.mpf(p) / (1 - mpmath.mpf(p)))))


@pytest.mark.long
@pytest.mark.parametrize("short", [True, False])
def test_another_epsilon_holds(short: bool) -> None:
    found = coin.run(Settings(epsilon=Fraction(3), short=short))
    assert found.holds
    assert len(found.rows) == 2


@pytest.mark.parametrize("flipped", [0.02, 0.05])
def test_respondents_who_lie_more_are_noticed(monkeypatch: pytest.MonkeyPatch, flipped: float) -> None:
    original = BinaryResponse.randomize

    def lying(mechanism: BinaryResponse, values: IntArray) -> IntArray:
        reports = original(mechanism, values)
        return np.where(np.random.default_rng().random(reports.size) < flipped, 1 - reports, reports)

    monkeypatch.setattr(BinaryResponse, "randomize", lying)
    assert not coin.run(Settings(short=True)).holds


def test_respondents_who_tell_the_truth_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BinaryResponse, "randomize", lambda mechanism, values: np.asarray(values))
    assert not coin.run(Settings(short=True)).holds


def test_an_estimate_without_its_correction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: the share of reports that say yes, which coins draw towards one half."""

    class Shares:
        def __init__(self, reports: IntArray) -> None:
            self.raw = np.array([1 - reports.mean(), reports.mean()])

    monkeypatch.setattr(coin, "estimate", lambda mechanism, reports, names: Shares(reports))
    assert not coin.run(Settings(epsilon=Fraction(1), short=True)).holds


def test_it_speaks_of_the_epsilon_that_was_tried() -> None:
    assert "ε = 8 one answer in 2,982 is a lie: that protects nobody" in coin.run(Settings(short=True)).conclusion
    said = coin.run(Settings(epsilon=Fraction(1), short=True)).conclusion
    assert said.endswith("At ε = 1 one answer in 3.72 is a lie.")
    assert "ε = 8" not in said


def test_one_lie_at_a_large_epsilon_is_no_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 100,000 reports is a lie at ε = 20 in 1 of 5,000 runs: beyond what the normal law allows, but not rare."""
    randomize = BinaryResponse.randomize

    def one_lie(self: BinaryResponse, values: Any, *rest: Any) -> Any:
        reports = randomize(self, values, *rest).copy()
        if self.loss().epsilon > 19:
            reports[:] = values
            reports[0] = 1 - reports[0]
        return reports

    monkeypatch.setattr(BinaryResponse, "randomize", one_lie)
    assert coin.run(Settings(epsilon=Fraction(20), short=True)).holds
