"""*membership*: a model without privacy gives its people away, ours does not, and one with too little noise does."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing import lab
from lapwing.lab import Settings, membership
from lapwing.learn.noisy_sums import Releases
from lapwing.mechanisms import RoundedGaussian


def _right(found: Any) -> dict[tuple[str, str], float]:
    return {(row["model"], row["attack"]): row["right"] for row in found.rows}


@pytest.mark.long
def test_a_model_without_privacy_gives_its_people_away_and_ours_does_not() -> None:
    found = lab.run("membership", short=True)
    assert found.holds
    right = _right(found)
    assert right[membership.NAIVE, membership.LIKELIHOOD] > 0.8
    assert right[membership.PRIVATE, membership.LIKELIHOOD] < 0.7
    assert lab.experiments()["membership"].attack


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a hundredth of the noise. The attack is a real one, and finds it."""
    noise = Releases.noise

    def less(self: Releases, name: str, bound: int, entries: int) -> RoundedGaussian:
        return RoundedGaussian(sigma=noise(self, name, bound, entries).sigma / 100)

    monkeypatch.setattr(Releases, "noise", less)
    found = membership.run(Settings(repetitions=200, against="lapwing"))
    assert any(not check.holds for check in found.checks)


def test_a_model_without_privacy_makes_no_error_where_there_are_more_features_than_people() -> None:
    rng = np.random.default_rng(3)
    x, labels = rng.choice([-1.0, 1.0], (20, 40)), rng.integers(0, 2, 20)
    weights = membership.without_privacy(x, labels)
    assert ((2 * labels - 1) * (weights[0] + x @ weights[1:]) > 0).all()


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(4), Fraction(20)])
def test_other_epsilons_hold(epsilon: Fraction) -> None:
    assert lab.run("membership", epsilon=epsilon, d=20, short=True).holds
