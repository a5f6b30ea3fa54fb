"""Noisy numbers as people read them: few digits, thousands separated, and no error made to look smaller than it is."""

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cell = bool | int | float | Decimal | str | date | datetime | None
"""A value of an answer, as Python has it."""
NOTHING: Final = "–"


def plain(value: Cell) -> str:
    """Return a value that carries no noise."""
    match value:
        case None:
            return NOTHING
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case Decimal():
            return f"{value:f}"
        case date():
            return value.isoformat()
        case _:
            return str(value)


def with_margins(values: Sequence[Cell], low: "NDArray[Any]", high: "NDArray[Any]") -> list[tuple[str, str]]:
    """Return noisy values, each with its ±, of equal places, so that values and errors stand under each other.

    Dates and times have the ends of their intervals instead, which need not be as long before them as after them.
    """
    if low.dtype.kind == "M":
        ends = zip(values, low.tolist(), high.tolist(), strict=True)
        return [(plain(value), "" if None in (a, b) else f" [{plain(a)} … {plain(b)}]") for value, a, b in ends]
    cells = [(value, float(least), float(most)) for value, least, most in zip(values, low, high, strict=True)]
    reaches = [reach_of(*cell) for cell in cells]
    places = max((places_of(reach) for reach in reaches if math.isfinite(reach)), default=0)
    pairs = [noisy(*cell, places) for cell in cells]
    width = max((len(margin) for _, margin in pairs), default=0)
    return [(value, f" {margin:>{width}}" if width else "") for value, margin in pairs]


def noisy(value: Cell, low: float, high: float, places: int | None = None) -> tuple[str, str]:
    """Return a released value and its ±: the farther end of its interval, rounded up after the value was rounded.

    Args:
        places: Decimal places; enough for two digits of the ± unless given.

    >>> noisy(1234, 1199.0, 1269.0), noisy(2.9134, 2.4822, 3.3446)
    (('1,234', '±35'), ('2.91', '±0.44'))
    """
    if value is None or isinstance(value, bool | str | date):
        return plain(value), ""
    number, reach = float(value), reach_of(value, low, high)
    if not math.isfinite(reach):
        shown = f"{value:,}" if isinstance(value, int) else f"{number:,.4g}"
        return shown, "" if math.isnan(reach) else "±∞"
    if isinstance(value, int):
        return f"{value:,}", f"±{math.ceil(reach):,}"
    kept = places_of(reach) if places is None else places
    near = round(number, kept) + 0.0  # no negative zero
    return f"{near:,.{kept}f}", f"±{rounded_up(max(high - near, near - low), kept):,.{kept}f}"


def reach_of(value: Cell, low: float, high: float) -> float:
    """Return the distance from a value to the farther end of its interval; NaN where there is none."""
    if value is None or isinstance(value, bool | str | date):
        return math.nan
    return max(high - float(value), float(value) - low)


def places_of(reach: float) -> int:
    """Return the decimal places that leave two digits of an error, none for an error of 10 or more."""
    return max(0, 1 - math.floor(math.log10(reach))) if reach > 0 else 2


def rounded_up(value: float, places: int) -> float:
    """Return a number rounded up to so many places."""
    scaled = value * 10.0**places
    nearest = round(scaled)
    return (nearest if math.isclose(scaled, nearest, rel_tol=1e-12) else math.ceil(scaled)) / 10.0**places
