"""What all mechanisms that add noise share: exact sums, scales, half-widths, and searches for a scale."""

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Integral
from typing import Final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Bounds, dyadic_unit
from lapwing.mechanisms.parameters import integers, whole_number
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.search import largest

SCALE_BITS: Final = 45
TAIL_BITS: Final = 128
NOTHING: Final = Bounds(Fraction(0), Fraction(0))
"""The probability of an event that cannot happen."""
MOST_HALF_WIDTH: Final = 1 << 128

_INT64 = np.iinfo(np.int64)


def add(values: int | IntArray, draw: Callable[[int], IntArray]) -> int | IntArray:
    """Return values plus independent noise, exactly: an int for an int, else int64 if every sum fits, else Python ints.

    The type of the result depends on the noisy sums only, so that it tells nothing that they do not.

    Args: values: an int, a list of them, or an array of any shape; draw: returns so many independent numbers.
    Raises: InvalidParameter if the values are not integers; nothing is drawn then.
    """
    if isinstance(values, list | tuple):
        values = integers(values, "The values")
    if not isinstance(values, np.ndarray):
        if isinstance(values, bool) or not isinstance(values, Integral):
            raise InvalidParameter(
                f"The value is of type {type(values).__name__}; noise is added to an int, or to a list or array of it."
            )
        return int(values) + int(draw(1)[0])
    whole = integers(values.reshape(-1), "The values")
    return _sum(whole, draw(whole.size)).reshape(values.shape)


def _sum(values: IntArray, noise: IntArray) -> IntArray:
    if values.size == 0:
        return values.astype(np.int64)
    lowest, highest = int(values.min()) + int(noise.min()), int(values.max()) + int(noise.max())
    if _INT64.min <= lowest and highest <= _INT64.max:
        return values.astype(np.int64) + noise.astype(np.int64)
    noisy: IntArray = values.astype(np.object_) + noise.astype(np.object_)
    fits = _INT64.min <= noisy.min() and noisy.max() <= _INT64.max
    return noisy.astype(np.int64) if fits else noisy


def complement(tail: Bounds) -> Bounds:
    """Return bounds on 1 − p from those on p."""
    return Bounds(1 - tail.upper, 1 - tail.lower)


def largest_scale(test: Callable[[Fraction], bool], guess: Fraction) -> Fraction:
    """Return the largest scale of about 45 binary digits that passes a test which fails beyond some scale."""
    unit = dyadic_unit(guess, SCALE_BITS)
    return unit * largest(lambda n: test(n * unit), guess=math.floor(guess / unit), least=1)


def wanted_half_width(h: int, *, least: int = 0) -> int:
    """Return a half-width in steps as an int, up to far beyond what noise of the largest scale needs."""
    return whole_number(h, "The half-width", least=least, most=MOST_HALF_WIDTH)


def check_positive(loss: Loss) -> None:
    """Refuse a loss of zero, and what is no loss of the three measures."""
    if not isinstance(loss, PureDP | GaussianDP | ZeroConcentratedDP):
        raise InvalidParameter(
            f"The loss is of type {type(loss).__name__}; give a PureDP, GaussianDP or ZeroConcentratedDP, such as "
            "PureDP(1)."
        )
    if loss.amount == 0:
        raise InvalidParameter("The loss is 0; no finite noise keeps it: give a loss above 0.")
