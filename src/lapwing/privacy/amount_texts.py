"""Amounts as text for people: rounded outward in messages, as a Python literal in `repr`.

A loss is shown as no less than it is, and what is left as no more. An amount below 1, by 1e-9 or more, is not shown as
1: a chance of 0.9999999 is not certainty, and a loss is no rounder than it was chosen.
"""

import math
from fractions import Fraction
from typing import Final

from lapwing.privacy.amounts import written

_MOST_PLACES: Final = 9


def short(amount: Fraction, digits: int = 4, *, down: bool = False) -> str:
    """Return a text for people: so many significant digits, rounded up in size; or down, of what is left.

    More digits stand where fewer would make 1 of what is below 1.

    >>> short(Fraction(1, 3)), short(Fraction(1, 10)), short(Fraction(1, 10**6))
    ('0.3334', '0.1', '1e-6')
    >>> short(Fraction(1, 3), down=True), short(1 - Fraction(1, 10**7)), short(1 - Fraction(1, 10**13))
    ('0.3333', '0.9999999', '1')
    """
    if amount <= 0:
        return f"-{short(-amount, digits, down=down)}" if amount else "0"
    places = digits - (len(str(amount.numerator)) - len(str(amount.denominator)))
    step = Fraction(10) ** -places
    while amount / step >= 10**digits:
        step *= 10
    while amount / step < 10 ** (digits - 1):
        step /= 10
    rounded = (math.floor(amount / step) if down else math.ceil(amount / step)) * step
    if amount < 1 <= rounded:
        for places in range(1, _MOST_PLACES + 1):
            if (1 - amount) * 10**places >= 1:
                return f"{math.ceil(amount * 10**places) / 10**places:.{places}f}"
    mantissa, _, exponent = f"{float(rounded):.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def computed(value: float, digits: int) -> Fraction:
    """Return a bound that was computed, to be shown with so many digits: what a float is off by is no part of it.

    That is 1e-12 of it, so that of what was asked for 0.5 the reading of 0.5000000000000001 is shown as 0.5.

    Args:
        value: Finite.
    """
    exact, near = Fraction(str(value)), Fraction(f"{value:.{digits}g}")
    return near if abs(exact - near) * 10**12 <= abs(exact) else exact


def literal(amount: Fraction) -> str:
    """Return Python text for the amount: the float or int that reads as it, else an exact Fraction."""
    if amount.denominator == 1:
        return str(amount.numerator)
    nearest = float(amount)
    return repr(nearest) if Fraction(str(nearest)) == amount else f"Fraction('{written(amount)}')"
