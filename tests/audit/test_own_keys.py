"""Thresholds for private keys are high enough for their delta, and one step less is found."""

from fractions import Fraction

import pytest

from lapwing.audit.own_keys import shows_own_keys
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.thresholding import CountThresholding
from lapwing.mechanisms.weighted_gaussian import WeightedGaussian

DELTAS = (Fraction(1, 10**4), Fraction(1, 10**12))
LAWS = (DiscreteLaplace(scale=Fraction(7)), RoundedGaussian(sigma=Fraction(9)))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("keys", [1, 5])
@pytest.mark.parametrize("minimum", [1, 4])
def test_weights(monkeypatch: pytest.MonkeyPatch, delta: Fraction, keys: int, minimum: int) -> None:
    honest = WeightedGaussian(sigma=Fraction(3), delta=delta, max_keys=keys, minimum=minimum)
    assert shows_own_keys(honest) is None
    # With few bits one step of weight is large enough to be seen in double precision.
    coarse = WeightedGaussian(sigma=Fraction(3), delta=delta, max_keys=keys, minimum=minimum, fraction_bits=6)
    assert shows_own_keys(coarse) is None
    low = coarse.threshold - 1
    with monkeypatch.context() as planted:
        planted.setattr(WeightedGaussian, "threshold", low)
        assert shows_own_keys(coarse) is not None


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("minimum", [1, 4])
def test_counts(monkeypatch: pytest.MonkeyPatch, law: DiscreteLaplace, delta: Fraction, minimum: int) -> None:
    honest = CountThresholding(law=law, delta=delta, max_keys=3, minimum=minimum)
    assert shows_own_keys(honest) is None
    low = honest.threshold - 1
    with monkeypatch.context() as planted:
        planted.setattr(CountThresholding, "threshold", low)
        assert shows_own_keys(honest) is not None


def test_a_selection_without_a_formula_here_is_left_out() -> None:
    assert shows_own_keys(LAWS[0]) is None
