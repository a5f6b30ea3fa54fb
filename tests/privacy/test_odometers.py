"""An odometer against the best rule for stopping, exactly, by dynamic programming over randomized responses."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.odometers import AS_IF_CAP, WHENEVER, Odometer, as_if_cap

DELTA = Fraction(1, 1000)
STEP = PureDP(Fraction(1, 10)).to_kind("zcdp")


def best_stopping(step: Loss, epsilon: float, steps: int, read: Callable[[Loss], float]) -> float:
    """The most that P(E) − E_Q[e^U; E] can be, over all rules for stopping and all events E.

    Randomized responses at ε lead from a privacy loss l to l ± ε; to stop at l under the reading u, and to count that
    in E, is worth 1 − e^(u − l) under P.
    """
    up = 1 / (1 + np.exp(-epsilon))
    value = np.zeros(steps + 2)
    for asked in range(steps, 0, -1):
        privacy_loss = epsilon * (2 * np.arange(asked + 1) - asked)
        now = -np.expm1(np.minimum(0, read(asked * step) - privacy_loss))
        later = (1 - up) * value[:-1] + up * value[1:]
        value = np.maximum(now, later) if asked < steps else now
    return float((1 - up) * value[0] + up * value[1])


def check_holds_whenever(read: Callable[[Loss], float]) -> None:
    assert best_stopping(STEP, 0.1, 800, read) <= DELTA


@pytest.mark.long
@pytest.mark.parametrize(
    "odometer",
    [
        Odometer(first=STEP, ratio=Fraction(3, 2), delta=DELTA),
        Odometer(first=20 * STEP, ratio=Fraction(11, 10), delta=DELTA),
        Odometer.up_to(800 * STEP, DELTA),
        Odometer.up_to(800 * STEP, DELTA, steps=1),
    ],
)
def test_readings_hold_whenever_one_stops(odometer: Odometer) -> None:
    check_holds_whenever(lambda spent: odometer.reading(spent).epsilon)


def test_twin_the_figure_of_a_cap_does_not() -> None:
    """It gives away 2.1 times its δ to someone who stops when the answers suit."""
    with pytest.raises(AssertionError):
        check_holds_whenever(lambda spent: as_if_cap(spent, DELTA).epsilon)


def test_what_a_reading_says() -> None:
    odometer = Odometer(first=STEP, ratio=Fraction(3, 2), delta=DELTA)
    spent = 100 * STEP
    assert as_if_cap(spent, DELTA).holds == AS_IF_CAP
    assert odometer.reading(spent).holds == WHENEVER
    assert as_if_cap(spent, DELTA).epsilon < odometer.reading(spent).epsilon
    assert odometer.reading(spent).delta == DELTA
    readings = [odometer.reading(n * STEP).epsilon for n in range(1, 60)]
    assert readings == sorted(readings)


def test_pure_needs_no_odometer() -> None:
    odometer = Odometer(first=PureDP(1), ratio=Fraction(2), delta=DELTA)
    assert odometer.reading(PureDP(3)) == as_if_cap(PureDP(3), DELTA)
    assert odometer.reading(PureDP(3)).epsilon == 3
    assert odometer.reading(PureDP(3)).delta == 0
    assert odometer.reading(PureDP(3)).holds == WHENEVER


def test_shares_add_up_to_delta_and_caps_reach_the_budget() -> None:
    endless = Odometer(first=STEP, ratio=Fraction(3, 2), delta=DELTA)
    assert sum(endless.share(step) for step in range(1000)) == DELTA * Fraction(1000, 1001)
    budget = loss_for("gdp", Fraction(3), DELTA)
    ending = Odometer.up_to(budget, DELTA, steps=9)
    assert sum(ending.share(step) for step in range(9)) == DELTA
    assert ending.cap(8) == budget
    assert ending.reading(budget).epsilon >= 3
    with pytest.raises(InvalidParameter, match="beyond the last cap"):
        ending.reading(budget + budget)


@pytest.mark.parametrize("times", [1, 2, 3, 7, 10**3, 10**12])
def test_the_smallest_cap_that_holds_a_total_is_read(times: int) -> None:
    odometer = Odometer(first=GaussianDP(Fraction(1, 10**6)), ratio=Fraction(5, 4), delta=DELTA)
    spent = times * odometer.first
    step = next(step for step in range(1000) if spent <= odometer.cap(step))
    assert odometer.reading(spent).epsilon == odometer.cap(step).to_epsilon(delta=odometer.share(step))


def test_what_is_refused() -> None:
    for arguments in (
        {"first": ZeroConcentratedDP(0)},
        {"ratio": Fraction(1)},
        {"delta": Fraction(0)},
        {"steps": 0},
        {"steps": True},
    ):
        with pytest.raises(InvalidParameter):
            Odometer(**{"first": STEP, "ratio": Fraction(2), "delta": DELTA, **arguments})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Odometer.up_to(STEP, DELTA, steps=0)
    with pytest.raises(InvalidParameter, match="do not add or compare"):
        Odometer(first=STEP, ratio=Fraction(2), delta=DELTA).reading(GaussianDP(1))
