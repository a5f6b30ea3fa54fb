"""Integers that never wrap: 64 bits wide as long as a bound on the result says that it fits, else Python's own."""

from typing import Final

import numpy as np

from lapwing.exact.arrays import IntArray, integer_array, largest

_LIMIT: Final = 1 << 63


def product(x: IntArray, y: IntArray) -> IntArray:
    """Multiply exactly."""
    if x.dtype == y.dtype == np.int64 and largest(x) * largest(y) < _LIMIT:
        found: IntArray = x * y
        return found
    exact: IntArray = x.astype(object) * y.astype(object)
    return exact


def total(x: IntArray, y: IntArray) -> IntArray:
    """Add exactly."""
    if x.dtype == y.dtype == np.int64 and largest(x) + largest(y) < _LIMIT:
        found: IntArray = x + y
        return found
    exact: IntArray = x.astype(object) + y.astype(object)
    return exact


def single(value: int) -> IntArray:
    """Return one integer, which stands for the same in every cell."""
    return integer_array([value])


def raised(values: IntArray, k: int) -> IntArray:
    """Raise to a whole power ≥ 0 exactly."""
    if values.dtype == np.int64 and largest(values) ** k < _LIMIT:
        found: IntArray = values**k
        return found
    return values.astype(object) ** k
