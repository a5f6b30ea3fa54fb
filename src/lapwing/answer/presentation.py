"""Columns as people and programs read them: Python values and text.

Arithmetic over an answer is exact and may grow without end. A number beyond 10^308 is shown as a double, which is
infinite if it is beyond every double. Nothing here raises on any released number.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.floats import float_near
from lapwing.query.derivation.columns import Column, Shape, Value
from lapwing.query.derivation.rationals import Rationals, product

Cell = bool | int | float | Decimal | str | date | datetime | None
_LARGEST: Final = 10**308
MOST_PLACES: Final = 38
_FAST_PLACES: Final = 18

EndArray = NDArray[Any]
"""Ends of intervals: float64, or datetime64 of dates and timestamps, with NaN or NaT where there is none.

Which it is follows from the question, which no type knows: a union would make every comparison of two ends an error.
"""


def ends_shown(ends: NDArray[np.float64], shape: Shape) -> EndArray:
    """Return ends as what they stand for: of a date they are whole days, of a timestamp seconds, since 1970-01-01.

    Seconds of the years 1 to 9999 are fewer than 2³⁹ to either side, so that doubles hold them to a tenth of a
    millisecond, and whole ones, which ends are, exactly.
    """
    if shape not in ("date", "timestamp"):
        return ends
    unknown = np.isnan(ends)
    whole = np.where(unknown, 0, ends).astype(np.int64)
    times: NDArray[np.datetime64] = whole.astype("datetime64[D]" if shape == "date" else "datetime64[s]")
    times = times if shape == "date" else times.astype("datetime64[us]")
    times[unknown] = np.datetime64("NaT")
    return times


# ---- Python values ---------------------------------------------------------------------------------------------------


def cells(column: Column, shape: Shape) -> list[Cell]:
    """Return an expanded column as Python values: integers, Decimals or floats by its type, NULL as None."""
    if not isinstance(column, Rationals):
        return cast(list[Cell], column.values())
    return _cells_at_once(column, shape) or [cell(value, shape) for value in column.values()]


def _cells_at_once(column: Rationals, shape: Shape) -> list[Cell] | None:
    """Return the values of common columns at once; None if there is no such form."""
    entries: list[Cell]
    if shape == "real":
        entries = column.floats().tolist()
    elif shape == "integer" and is_whole(column):
        entries = product(column.tops, np.array([int(column.scale)])).tolist()
    elif shape == "decimal" and (found := scaled(column)) is not None:
        values, places = found
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


def scaled(column: Rationals) -> tuple[NDArray[np.int64], int] | None:
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


# ---- text ------------------------------------------------------------------------------------------------------------


def show(value: Cell) -> str:
    """Return a value as people read it: thousands separated, real numbers to five digits."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float() | Decimal():
            number = float(value)
            return (
                f"{number:,.0f}"
                if abs(number) >= 100_000
                else f"{number:,.5g}"
                if abs(number) < 1000
                else f"{number:,.1f}"
            )
        case _:
            return str(value)


def html_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    *,
    caption: str,
) -> str:
    """Return an answer as notebooks show it, noisy values with the ends of their intervals."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = []
    for i, row in enumerate(rows):
        cells = []
        for name, value in row.items():
            text = escape(show(value))
            if name in intervals:
                low, high = (show(ends[i].item()) for ends in intervals[name])
                text += f" <small>[{escape(low)}, {escape(high)}]</small>"
            cells.append(f"<td>{text}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    caption = escape(caption)
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
