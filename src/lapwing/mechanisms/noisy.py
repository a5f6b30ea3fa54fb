"""Parts of all mechanisms that add noise: sensitivities, exact sums, half-widths, and searches for a scale."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Final, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Enclosure, dyadic_unit
from lapwing.mechanisms.parameters import integers, whole_number
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.search import largest

SCALE_BITS: Final = 45
TAIL_BITS: Final = 128
NOTHING: Final = Enclosure(Fraction(0), Fraction(0))
"""The probability of an event that cannot happen."""
MOST_HALF_WIDTH: Final = 1 << 128

_INT64 = np.iinfo(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The most that a vector of integers moves between neighbouring data sets.

    Args:
        l1: Bound on the sum of the entries' absolute changes, in steps.
        l2_squared: On the sum of their squares.
    """

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared"):
            object.__setattr__(self, name, whole_number(getattr(self, name), f"The sensitivity {name}"))

    @classmethod
    def from_l1(cls, l1: int) -> Self:
        """Return what follows from only the L1 distance: the sum of squares is at most the square of the sum."""
        l1 = whole_number(l1, "l1")
        return cls(l1=l1, l2_squared=l1**2)

    @classmethod
    def from_l2_squared(cls, l2_squared: int, *, entries: int) -> Self:
        """Return what follows from the squared L2 distance of vectors of this many entries.

        l1 = ⌊√(entries · l2_squared)⌋ by Cauchy and Schwarz; it is whole because the entries are. It is never more than
        l2_squared, because |c| ≤ c² for a whole number.
        """
        squared, entries = whole_number(l2_squared, "l2_squared"), whole_number(entries, "entries", least=1)
        return cls(l1=min(math.isqrt(entries * squared), squared), l2_squared=squared)

    @classmethod
    def from_linf(cls, linf: int, *, entries: int) -> Self:
        """Return what follows if at most `entries` entries change, each by at most `linf`."""
        linf, entries = whole_number(linf, "linf"), whole_number(entries, "entries", least=1)
        return cls(l1=entries * linf, l2_squared=entries * linf**2)


def vector(sensitivity: Sensitivity) -> Sensitivity:
    """Return the sensitivity of a vector that gets noise.

    Raises:
        InvalidParameter: If it is anything else.
    """
    if not isinstance(sensitivity, Sensitivity):
        raise InvalidParameter(
            f"The sensitivity is of type {type(sensitivity).__name__}; numbers that get noise need a Sensitivity, such "
            "as Sensitivity.from_l1(1)."
        )
    return sensitivity


def add(values: int | IntArray, draw: Callable[[int], IntArray]) -> int | IntArray:
    """Return values plus independent noise, exactly: an int for an int, else int64 if every sum fits, else Python ints.

    The type of the result depends on the noisy sums only, so that it tells nothing that they do not.

    Args:
        values: An int, a list of them, or an array of any shape.
        draw: Returns so many independent numbers.

    Raises:
        InvalidParameter: If the values are not integers; nothing is drawn then.
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
    noise = draw(whole.size)
    if whole.size == 0:
        return whole.astype(np.int64).reshape(values.shape)
    lowest, highest = int(whole.min()) + int(noise.min()), int(whole.max()) + int(noise.max())
    if _INT64.min <= lowest and highest <= _INT64.max:  # only quicker: then every sum fits, and the type is the same
        return (whole.astype(np.int64) + noise.astype(np.int64)).reshape(values.shape)
    noisy: IntArray = (whole.astype(np.object_) + noise.astype(np.object_)).reshape(values.shape)
    fits = _INT64.min <= noisy.min() and noisy.max() <= _INT64.max
    return noisy.astype(np.int64) if fits else noisy


def complement(tail: Enclosure) -> Enclosure:
    """Return bounds on 1 − p from those on p."""
    return Enclosure(1 - tail.upper, 1 - tail.lower)


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
