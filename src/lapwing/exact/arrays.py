"""Integer arrays that never wrap: int64 where the values fit, Python integers where they do not."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64] | NDArray[np.object_]

# Chunks of this many numbers stay in the processor's cache.
_CHUNK = 1 << 16
_FEW = 32  # of so many, Python finds the largest sooner than NumPy begins
_INT64 = range(-(1 << 63), 1 << 63)

_FITS: Final = 1 << 63
"""An integer that is smaller in size fits 64 bits."""
ROOM: Final = 1 << 62
"""Integers are stored in 64 bits before noise is added, while they are smaller than this in size."""


def largest(values: IntArray) -> int:
    """Return the largest magnitude in an int64 array."""
    if values.size == 1:  # most often: one number for all cells
        return abs(int(values.item()))
    if values.size <= _FEW:
        return max(map(abs, values.ravel().tolist()), default=0)
    return max(abs(int(values.min())), abs(int(values.max())))


def integer_array(values: Sequence[int] | IntArray, *, below: int = 1 << 63) -> IntArray:
    """Return integers as int64 where all are smaller than `below` in size, else as Python's own.

    Unless told otherwise, an int64 array then has a negative that is int64, too.
    """
    if isinstance(values, np.ndarray):
        array: IntArray = values
    else:
        try:
            array = np.array(values, dtype=np.int64)
        except OverflowError:
            array = np.array(values, dtype=object)
    return array.astype(object) if array.dtype == np.int64 and largest(array) >= below else array


def assign(array: IntArray, index: int, value: int) -> IntArray:
    """Set one element, after widening the array to Python integers if the value does not fit."""
    if array.dtype == np.int64 and value not in _INT64:
        array = array.astype(object)
    array[index] = value
    return array


def product(x: IntArray, y: IntArray) -> IntArray:
    """Multiply exactly, entry by entry."""
    if x.dtype == y.dtype == np.int64 and largest(x) * largest(y) < _FITS:
        narrow: IntArray = x * y
        return narrow
    exact: IntArray = x.astype(object) * y.astype(object)
    return exact


def total(x: IntArray, y: IntArray) -> IntArray:
    """Add exactly, entry by entry."""
    if x.dtype == y.dtype == np.int64 and largest(x) + largest(y) < _FITS:
        narrow: IntArray = x + y
        return narrow
    exact: IntArray = x.astype(object) + y.astype(object)
    return exact


def in_chunks(draw: Callable[[int], IntArray], size: int) -> IntArray:
    """Return `size` numbers from a function that draws any number of them, in pieces that fit the cache.

    The pieces are int64 or object; the result is object if one of them is.
    """
    if size <= _CHUNK:
        return draw(size)
    result: IntArray = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        piece = draw(stop - start)
        if piece.dtype != result.dtype:
            result = result.astype(object)
        result[start:stop] = piece
    return result


def single(value: int, *, wide: bool) -> IntArray:
    """Return an array of one number: of Python integers if `wide` or where it does not fit int64."""
    array: IntArray = np.empty(1, dtype=object if wide or value not in _INT64 else np.int64)
    array[0] = value
    return array
