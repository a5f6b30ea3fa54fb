"""Amounts as text for people: rounded in messages, as a Python literal in `repr`."""

import math
from fractions import Fraction

from lapwing.privacy.amounts import written


def short(amount: Fraction) -> str:
    """Return a text for people: four significant digits, rounded up in size.

    >>> short(Fraction(1, 3)), short(Fraction(1, 10)), short(Fraction(1, 10**6))
    ('0.3334', '0.1', '1e-06')
    """
    if amount <= 0:
        return f"-{short(-amount)}" if amount else "0"
    places = 4 - (len(str(amount.numerator)) - len(str(amount.denominator)))
    step = Fraction(10) ** -places
    while amount / step >= 10**4:
        step *= 10
    while amount / step < 10**3:
        step /= 10
    return f"{float(math.ceil(amount / step) * step):.4g}"


def literal(amount: Fraction) -> str:
    """Return Python text for the amount: the float or int that reads as it, else an exact Fraction."""
    if amount.denominator == 1:
        return str(amount.numerator)
    nearest = float(amount)
    return repr(nearest) if Fraction(str(nearest)) == amount else f"Fraction('{written(amount)}')"
