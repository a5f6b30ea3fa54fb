"""What the errors of many entries add up to: quantiles rest on it, and no half-width of one entry says it."""

from fractions import Fraction

import numpy as np
import pytest

import lapwing as lw
from lapwing.mechanisms import Events, continual_mechanism
from lapwing.mechanisms.continual.planning import ContinualMechanism
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.monitors.tick import TickNoise
from tests.support.effort import one_in, only

TICKS, ENTRIES, TRIALS = 16, 8, 800
TAIL = Fraction(1, 10)


def missed(mechanism: ContinualMechanism, half_width: float) -> float:
    """Return how often a signed sum of the errors of all entries is farther off, at the last tick."""
    sums, estimates = mechanism.start(ENTRIES * TRIALS), mechanism.estimates(ENTRIES * TRIALS)
    for _ in range(TICKS):
        shown = np.rint(estimates.advance(sums.advance(np.zeros(ENTRIES * TRIALS, dtype=np.int64))))
    signs = np.where(np.arange(ENTRIES) % 2, 1, -1)
    return float(np.mean(np.abs(shown.reshape(TRIALS, ENTRIES) @ signs) > half_width))


@pytest.mark.parametrize("loss", one_in(3, [lw.GaussianDP(0.5), lw.PureDP(1)]))
@pytest.mark.parametrize("window", only([1], [None, 3]))
def test_sums_of_errors_are_within_their_bound(loss: lw.GaussianDP | lw.PureDP, window: int | None) -> None:
    mechanism = continual_mechanism(loss, TICKS, Events(2), window=window)
    bound = sum_half_width(TickNoise(mechanism, TICKS, ENTRIES), Fraction(ENTRIES), TAIL)
    assert missed(mechanism, bound) <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / TRIALS)
    assert missed(mechanism, bound / 3) > 0.2, "the bound is so wide that this shows nothing"
