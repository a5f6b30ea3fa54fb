"""*freedman*, *overfitting*, *remembering* and *stability* hold; what overfits more than it should is noticed."""

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from lapwing import lab
from lapwing.lab import Settings, freedman, overfitting, remembering, selection_laws, stability
from lapwing.mechanisms import ExponentialMechanism, RoundedGaussian
from tests.support.effort import only


def _failed(checks: Any) -> str:
    return " · ".join(check.what for check in checks if not check.holds)


@pytest.mark.long
@pytest.mark.parametrize("name", only((2,), ["overfitting", "remembering", "stability"]))
def test_they_hold(name: str) -> None:
    assert lab.run(name, short=True).holds


@pytest.mark.long
def test_a_naive_holdout_says_much_more_than_a_half() -> None:
    found = lab.run("freedman", n=1_000, d=1_000)
    assert found.holds, _failed(found.checks)
    said = {row["holdout"]: float(str(row["said of the vote"])) for row in found.rows}
    assert said["naive"] > 0.6
    assert said["guess-and-check"] == 0.5
    assert {row["holdout"] for row in lab.run("freedman", n=600, d=300, against="naive").rows} == {"naive"}


def test_a_gaussian_holdout_without_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: the noise is left out, and answers are those of the naive holdout."""
    monkeypatch.setattr(RoundedGaussian, "release", lambda self, value, entropy: value)
    _, checks = freedman._attacked("gaussian", 1_000, 400)
    assert "spread of the answers of gaussian" in _failed(checks)


@pytest.mark.long
@pytest.mark.parametrize("name", ["freedman", "overfitting", "remembering", "stability"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**4), Fraction(1), Fraction(20)])
def test_other_epsilons_hold(name: str, epsilon: Fraction) -> None:
    found = lab.run(name, epsilon=epsilon, short=True)
    assert found.holds, _failed(found.checks)


def test_sides_and_votes_are_those_of_exact_sums() -> None:
    for n in (3, 11, 51):
        agreeing = sum(comb(n, i) * max(i, n - i) for i in range(n + 1)) / n / 2**n
        assert overfitting.side(n) == pytest.approx(agreeing)
    assert overfitting.more_than_half(3, 0.6) == pytest.approx(0.6**3 + 3 * 0.6**2 * 0.4)
    # With hardly any noise a member is on the side of the count; with much, on either.
    assert remembering.agreeing(51, 1e-3) == pytest.approx(overfitting.side(51))
    assert remembering.agreeing(51, 1e6) == pytest.approx(0.5, abs=1e-5)


def test_nineteen_questions_whatever_the_size() -> None:
    assert [overfitting.failing(n) for n in (251, 1_001, 4_001)] == [19, 19, 19]


@pytest.mark.long
def test_an_attack_that_finds_less_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: a law that is that of a sample of four times as many people."""
    side = overfitting.side
    monkeypatch.setattr(overfitting, "side", lambda people: side(4 * people + 1))
    assert "error with 81 questions" in _failed(overfitting.run(Settings(short=True)).checks)


@pytest.mark.long
def test_noise_that_hides_less_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: a tenth of the noise for a promise of ε."""
    release = RoundedGaussian.release
    monkeypatch.setattr(
        RoundedGaussian, "release", lambda self, values: release(RoundedGaussian(sigma=self.sigma / 10), values)
    )
    assert "yes of members, Lapwing's noise" in _failed(remembering.run(Settings(short=True)).checks)


@pytest.mark.long
def test_a_choice_that_is_less_stable_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bugs: a tenth of the scale; a person whose score may move by two."""
    with monkeypatch.context() as patch:
        release = ExponentialMechanism.release
        patch.setattr(
            ExponentialMechanism, "release", lambda self, s: release(ExponentialMechanism(scale=self.scale / 10), s)
        )
        assert "overfit, exponential mechanism" in _failed(stability.run(Settings(short=True)).checks)
    law = selection_laws.exponential_mechanism
    monkeypatch.setattr(selection_laws, "exponential_mechanism", lambda scores, scale: law(scores, scale / 4))
    assert "largest |ln P/P'| of neighbours" in _failed(stability._neighbours(Fraction(1, 5), 200, 64))


@pytest.mark.long
def test_the_bounds_are_those_of_the_library() -> None:
    found = stability.run(Settings(short=True))
    most = {row["picked by"]: float(str(row["overfit, at most"])) for row in found.rows}
    assert most["exponential mechanism"] == pytest.approx(np.tanh(0.05))
    assert most["largest count"] == pytest.approx(np.sqrt(6 * np.log(2) / 400))
