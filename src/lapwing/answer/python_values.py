"""Columns as Python values: ints, Decimals, floats, texts, dates, None.

Arithmetic over an answer is exact and may grow without end. A number beyond 10^308 is shown as a double, which is
infinite if it is beyond every double. Nothing here raises on any released number.
"""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import product
from lapwing.exact.floats import float_near
from lapwing.query.derivation import rationals
from lapwing.query.derivation.columns import Column, Rationals, Shape, Value

Cell = bool | int | float | Decimal | str | date | datetime | None
MOST_PLACES: Final = 38
_LARGEST: Final = 10**308
_FAST_PLACES: Final = 18


def cells(column: Column, shape: Shape) -> list[Cell]:
    """Return an expanded column as Python values: integers, Decimals or floats by its type, NULL as None."""
    if not isinstance(column, Rationals):
        return cast(list[Cell], column.values())
    return _cells_at_once(column, shape) or [cell(value, shape) for value in column.values()]


def _cells_at_once(column: Rationals, shape: Shape) -> list[Cell] | None:
    """Return the values of common columns at once; None if there is no such form."""
    entries: list[Cell]
    if shape == "real":
        entries = rationals.floats(column).tolist()
    elif shape == "integer" and is_whole(column):
        entries = product(column.tops, np.array([int(column.scale)])).tolist()
    elif shape == "decimal" and (scaled := scaled_to_places(column)) is not None:
        values, places = scaled
        trimmed, exponents = _trimmed(values, places)
        entries = [Decimal(f"{v}e-{e}") for v, e in zip(trimmed.tolist(), exponents.tolist(), strict=True)]
    else:
        return None
    return (
        entries
        if column.null is None
        else [None if n else v for v, n in zip(entries, column.null.tolist(), strict=True)]
    )


def is_whole(column: Rationals) -> bool:
    """Tell whether a column is of whole numbers of at most 64 bits."""
    return (
        column.bottoms is None
        and column.scale.denominator == 1
        and column.scale < 2**62
        and product(column.tops, np.array([int(column.scale)])).dtype == np.int64
    )


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


def _trimmed(values: NDArray[np.int64], places: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each number without trailing zeros behind the point, and its own number of places."""
    values, exponents = values.copy(), np.full(len(values), places)
    open_ = np.arange(len(values))
    for _ in range(places):
        open_ = open_[values[open_] % 10 == 0]
        values[open_] //= 10
        exponents[open_] -= 1
    return values, exponents


def cell(value: Value, shape: Shape) -> Cell:
    """Return one value as Python has it."""
    if not isinstance(value, Fraction):
        return value
    if abs(value) > _LARGEST:
        return float_near(value)
    if shape == "integer":
        return int(value)
    return float(value) if shape == "real" else _decimal(value)


def _decimal(value: Fraction) -> Decimal | float:
    """Return an exact decimal where there is one of at most 38 places."""
    for places in range(MOST_PLACES + 1):
        scaled = value * 10**places
        if scaled.denominator == 1:
            return Decimal((int(scaled < 0), tuple(map(int, str(abs(scaled.numerator)))), -places))
    return float(value)
