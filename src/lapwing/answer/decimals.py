"""Exact decimals: of whole columns at once where their digits are few, else number by number."""

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import product
from lapwing.exact.floats import float_near
from lapwing.query.derivation.columns import Rationals, Shape, Value

if TYPE_CHECKING:
    from lapwing.answer.python_values import Cell

MOST_PLACES: Final = 38
_LARGEST: Final = 10**308
_FAST_PLACES: Final = 18


def scaled_to_places(column: Rationals) -> tuple[NDArray[np.int64], int] | None:
    """Return whole numbers of 10^−places that a column consists of, if they are few digits; else None."""
    if column.bottoms is not None or column.scale >= 2**62:
        return None
    for places in range(_FAST_PLACES + 1):
        factor = column.scale * 10**places
        if factor.denominator == 1 and factor < 2**62:
            values = product(column.tops, np.array([int(factor)]))
            return (values, places) if values.dtype == np.int64 else None  # type: ignore[return-value]
    return None


def decimals(values: NDArray[np.int64], places: int) -> list[Decimal]:
    """Return whole numbers of 10^−places as decimals."""
    trimmed, exponents = _trimmed(values, places)
    return [Decimal(f"{v}e-{e}") for v, e in zip(trimmed.tolist(), exponents.tolist(), strict=True)]


def _trimmed(values: NDArray[np.int64], places: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each number without trailing zeros behind the point, and its own number of places."""
    values, exponents = values.copy(), np.full(len(values), places)
    open_ = np.arange(len(values))
    for _ in range(places):
        open_ = open_[values[open_] % 10 == 0]
        values[open_] //= 10
        exponents[open_] -= 1
    return values, exponents


def decimal(value: Fraction) -> Decimal | float:
    """Return an exact decimal where there is one of at most 38 places."""
    for places in range(MOST_PLACES + 1):
        scaled = value * 10**places
        if scaled.denominator == 1:
            return Decimal((int(scaled < 0), tuple(map(int, str(abs(scaled.numerator)))), -places))
    return float(value)


def cell(value: Value, shape: Shape) -> "Cell":
    """Return one value as Python has it."""
    if not isinstance(value, Fraction):
        return value
    if abs(value) > _LARGEST:
        return float_near(value)
    if shape == "integer":
        return int(value)
    return float(value) if shape == "real" else decimal(value)
