"""The matrix with few buffers whose estimates have the least noise, found by descent: the last, or all of them.

Nothing here is a matter of privacy: whatever is found, `BufferedToeplitz` states exactly what it is and what it costs.

The decays are x = 1/(1 + e^−u) with u_1 < u_2 < … so that each step stays a matrix; the search is over u_1 and the
logarithms of the gaps. It begins with decays that are evenly spaced in the logarithm between 1/n and 1, as the best
rational approximations of 1/√(1 − s) nearly are; where events are spaced, between 1/spacing and 1, as columns should be
short by the next event. It goes on by quasi-Newton steps (BFGS; Nocedal and Wright 2006,
Algorithm 6.1) with numerical gradients.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.continual.buffered import BufferedToeplitz
from lapwing.mechanisms.continual.mixtures import Floats
from lapwing.mechanisms.continual.participation import Participation

MOST_BUFFERS: Final = 5
_STEPS: Final = 200
_DIFFERENCE: Final = 1e-5
_WORTH: Final = 1e-4
"""What one more buffer has to take off the error for another to be tried."""
_ENOUGH: Final = 1e-9
"""Improvements of the logarithm of the error below it end the search."""


@lru_cache(maxsize=64)
def fitted(
    ticks: int, window: int | None, participation: Participation, buffers: int, *, of_all: bool = False
) -> BufferedToeplitz:
    """Return the matrix of at most so many buffers with the least error, for counts so far or in a window.

    Args:
        of_all: Whether it is the root mean square over all ticks that is to be small, of counts so far, and not the
            error at the last tick.
    """
    best = BufferedToeplitz(ticks, window)
    for number in range(1, buffers + 1 if ticks > 1 and window != 1 else 1):
        matrix = _descended(ticks, window, participation, number, of_all)
        gained = best.error(participation, of_all=of_all) / matrix.error(participation, of_all=of_all) - 1
        if gained > 0:
            best = matrix
        if gained < _WORTH:
            break
    return best


def _descended(
    ticks: int, window: int | None, participation: Participation, buffers: int, of_all: bool
) -> BufferedToeplitz:
    def error(place: Floats) -> float:
        try:
            return float(np.log(_matrix(ticks, window, place).error(participation, roughly=True, of_all=of_all)))
        except (InvalidParameter, ZeroDivisionError, FloatingPointError):
            return np.inf

    span = float(np.log(min(window or ticks, ticks, *participation.gaps) + 1))
    even = -span + span * (np.arange(2 * buffers) + 0.5) / (2 * buffers) * 1.2
    start = np.concatenate(([even[0]], np.log(np.diff(even))))
    return _matrix(ticks, window, _least(error, start))


def _matrix(ticks: int, window: int | None, place: Floats) -> BufferedToeplitz:
    u = np.cumsum(np.concatenate((place[:1], np.exp(place[1:]))))
    return BufferedToeplitz(ticks, window, tuple(Fraction(float(decay)) for decay in 1 / (1 + np.exp(-u))))


def _least(value: Callable[[Floats], float], start: Floats) -> Floats:
    place, here = start, value(start)
    slope, inverse = _gradient(value, place), np.eye(len(start))
    for _ in range(_STEPS):
        direction = -inverse @ slope
        if slope @ direction >= 0:
            inverse, direction = np.eye(len(start)), -slope
        length = min(1.0, 2 / float(np.abs(direction).max() or 1))
        while (there := value(place + length * direction)) > here + 1e-4 * length * float(slope @ direction):
            length /= 2
            if length < 1e-8:
                return place
        step = length * direction
        changed = _gradient(value, place + step)
        if not np.isfinite(changed).all():
            return place + step
        inverse = _updated(inverse, step, changed - slope)
        improved, place, here, slope = here - there, place + step, there, changed
        if improved < _ENOUGH:
            break
    return place


def _updated(inverse: NDArray[np.float64], step: Floats, change: Floats) -> NDArray[np.float64]:
    curvature = float(step @ change)
    if not 1e-14 < curvature < np.inf:
        return inverse
    left = np.eye(len(step)) - np.outer(step, change) / curvature
    updated: NDArray[np.float64] = left @ inverse @ left.T + np.outer(step, step) / curvature
    return updated


def _gradient(value: Callable[[Floats], float], place: Floats) -> Floats:
    units = np.eye(len(place)) * _DIFFERENCE
    return np.array([(value(place + unit) - value(place - unit)) / (2 * _DIFFERENCE) for unit in units])
