"""Numbers in the column of a table: equally many decimal places, so that they can be compared at a glance."""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from math import floor, isfinite, log10
from typing import Final

DIGITS: Final = 3
"""Of the smallest number."""
MOST_PLACES: Final = 12


def aligned(values: Sequence[float], direction: str = ROUND_HALF_EVEN) -> list[str]:
    """Return numbers of at least 0 with the places that the smallest needs for three digits; zeros all end in are cut.

    >>> aligned([0.0136, 0.5, 12.0]), aligned([4.0, 28.0]), aligned([0.25, 0.5])
    (['0.0136', '0.5000', '12.0000'], ['4', '28'], ['0.25', '0.50'])
    """
    least = min((value for value in values if value > 0 and isfinite(value)), default=1.0)
    places = min(max(DIGITS - 1 - floor(log10(least)), 0), MOST_PLACES)
    rounded = [Decimal(value).quantize(_step(places), rounding=direction) for value in values if isfinite(value)]
    while places and all(value == value.quantize(_step(places - 1)) for value in rounded):
        places -= 1
    shown = (f"{value:,.{places}f}" for value in rounded)
    return [next(shown) if isfinite(value) else "∞" for value in values]


def _step(places: int) -> Decimal:
    return Decimal(1).scaleb(-places)
