"""Reading the public parameters of a mechanism: exactly, or not at all."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Integral

import numpy as np
from numpy.ma import MaskedArray  # here: NumPy's own late import of it fails when two threads are first at once

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import exact

SMALLEST_SCALE = Fraction(1, 1 << 30)
LARGEST_SCALE = Fraction(1 << 80)

Rational = int | Fraction | Decimal


def rational(value: Rational, name: str) -> Fraction:
    """Return an exact number as a fraction.

    Raises:
        InvalidParameter: For a float, a bool, a string, NaN, an infinity or anything else.
    """
    if isinstance(value, float):
        exactly = f": write Fraction({str(value)!r})" if isfinite(value) else ""
        raise InvalidParameter(
            f"{name} is {_shown(value)}; it must be an int, Fraction or Decimal, because floats are inexact{exactly}."
        )
    if isinstance(value, bool) or not isinstance(value, Fraction | Decimal | Integral):
        raise InvalidParameter(f"{name} is {_shown(value)}; it must be an int, Fraction or Decimal.")
    return exact(value, name)


def positive(value: Rational, name: str) -> Fraction:
    """Return an exact number above 0 as a fraction."""
    number = rational(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name} is {_shown(value)}; it must be above 0.")
    return number


def scale_of_noise(value: Rational, name: str = "scale") -> Fraction:
    """Return a scale from 2⁻³⁰ to 2⁸⁰ as a fraction."""
    scale = positive(value, name)
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise InvalidParameter(
            f"{name} is {short(scale)} steps; it must be from 2^-30 to 2^80: use a coarser or finer step."
        )
    return scale


def whole_number(value: int, name: str, *, least: int = 0, most: int | None = None) -> int:
    """Return a whole number within its range as an int."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or value < least
        or (most is not None and value > most)
    ):
        allowed = f"from {least} to {most}" if most is not None else f"{least} or more"
        raise InvalidParameter(f"{name} is {_shown(value)}; it must be a whole number, {allowed}.")
    return int(value)


def integers(values: IntArray | Sequence[int], name: str) -> IntArray:
    """Return a one-dimensional array of integers: int64, or Python ints where they do not fit.

    The error never shows the values, only their type and shape.

    Raises:
        InvalidParameter: If they are not integers (floats and bools are not), not in one dimension, or masked: the sum
            of a masked array and noise keeps, under the mask, the values as they were.
    """
    array = values if isinstance(values, np.ndarray) else _gathered(values, name)
    if isinstance(array, MaskedArray):
        raise InvalidParameter(f"{name} are a masked array; fill it first, or leave out what is masked.")
    if array.ndim != 1:
        raise InvalidParameter(f"{name} have {array.ndim} dimensions; give a list or an array of one dimension.")
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.dtype.itemsize < 8):
        return array.astype(np.int64, copy=False)
    whole = array.dtype.kind == "u" or (
        array.dtype == np.object_ and all(isinstance(x, Integral) and not isinstance(x, bool) for x in array)
    )
    if not whole and array.size:
        raise InvalidParameter(
            f"{name} are of type {_type_of(array)}; they must be whole numbers: count them in steps of a public grid."
        )
    return _narrowest([int(x) for x in array])


def _gathered(values: Sequence[int], name: str) -> IntArray:
    if isinstance(values, str | bytes | bytearray | set | frozenset | Mapping) or not isinstance(values, Iterable):
        raise InvalidParameter(f"{name} are of type {type(values).__name__}; give a list or an array of integers.")
    items = list(values)
    array = np.empty(len(items), dtype=np.object_)
    array[:] = items
    return array


def _narrowest(items: list[int]) -> IntArray:
    try:
        return np.array(items, dtype=np.int64)
    except OverflowError:
        return np.array(items, dtype=np.object_)


def _type_of(array: IntArray) -> str:
    if array.dtype != np.object_:
        return str(array.dtype)
    return ", ".join(sorted({type(x).__name__ for x in array}))


def _shown(value: object) -> str:
    """Return how a public parameter is written, or what it is where that would be too long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        text = ""
    return text if 0 < len(text) <= 60 else f"a very long {type(value).__name__}"
