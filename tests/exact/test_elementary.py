"""Elementary functions of float arrays, against 60-digit arithmetic: each is within the error that it states."""

from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpc, mpf
from numpy.typing import NDArray

from lapwing.exact import elementary
from lapwing.exact.elementary import EXP_ERROR, EXPM1_ERROR, LOG1P_ERROR, TURN_ERROR, exp, expm1, log1p, turn
from tests.support.effort import SEED, one_in

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]


def points(low: float, high: float, count: int = 1500) -> Floats:
    return np.random.default_rng(SEED).uniform(low, high, count)


def small(count: int = 500) -> Floats:
    """Numbers of both signs whose sizes have many orders."""
    drawn = np.random.default_rng(SEED + 1)
    return np.asarray(10.0 ** drawn.uniform(-300, -0.6, count) * drawn.choice([-1.0, 1.0], count))


def worst(function: Function, true: Callable[[mpf], mpf], at: Floats) -> float:
    """The largest relative error."""
    with mp.workdps(60):
        pairs = ((mpf(float(y)), true(mpf(float(x)))) for x, y in zip(at, function(at), strict=True))
        return float(max(abs(y - t) / abs(t) if t else abs(y) for y, t in pairs))


FUNCTIONS = {
    "exp": (exp, mp.exp, EXP_ERROR, (points(-700, 700), points(-1, 1), small())),
    "expm1": (expm1, mp.expm1, EXPM1_ERROR, (points(-2, 2), points(-40, 700), points(-0.51, -0.49), small())),
    "log1p": (
        log1p,
        mp.log1p,
        LOG1P_ERROR,
        (
            points(-0.3, -0.28),
            points(0.4, 0.43),
            points(-0.9999, 5),
            1 / np.abs(small()),
            small(),
            -1 + points(0, 1e-9),
        ),
    ),
}


@pytest.mark.parametrize("name", one_in(4, FUNCTIONS))
def test_a_function_is_within_its_error(name: str) -> None:
    function, true, error, places = FUNCTIONS[name]
    for at in places:
        assert worst(function, true, at) <= error


def test_turns_are_within_their_error() -> None:
    for at in (points(-10, 10), points(-(2.0**20), 2.0**20), small(), np.linspace(-40, 40, 81) * (np.pi / 2)):
        values = turn(at)
        with mp.workdps(60):
            assert (
                max(abs(mpc(complex(z)) - mp.expj(mpf(float(x)))) for x, z in zip(at, values, strict=True))
                <= TURN_ERROR
            )


def test_twin_a_constant_in_one_part_only(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = elementary._constants()
    monkeypatch.setattr(elementary, "_constants", lambda: constants._replace(step=(constants.step[0], 0.0)))
    assert worst(exp, mp.exp, points(-700, 700)) > EXP_ERROR


@pytest.mark.parametrize("bad", [701.0, np.inf, np.nan])
def test_what_is_beyond_all_floats_is_refused(bad: float) -> None:
    with pytest.raises(ArithmeticError):
        exp(np.array([0.0, bad]))


@pytest.mark.parametrize("bad", [2.0**21, np.inf, np.nan])
def test_too_large_an_angle_is_refused(bad: float) -> None:
    with pytest.raises(ArithmeticError):
        turn(np.array([0.0, bad]))


def test_the_smallest_are_as_good_as_nothing() -> None:
    assert (exp(np.array([-740.0, -1e9, -np.inf])) < 1e-320).all()
