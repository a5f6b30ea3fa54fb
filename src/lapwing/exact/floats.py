"""Exact numbers as floats, each rounded in the direction that its function names."""

import math
import sys
from decimal import Decimal
from fractions import Fraction


def float_up(x: Fraction) -> float:
    """Return the smallest float that is at least x (infinity if x is beyond them all)."""
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf if x > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def float_down(x: Fraction) -> float:
    """Return the largest float that is at most x."""
    return -float_up(-x)


def float_near(x: Fraction | Decimal | float) -> float:
    """Return the nearest float, an infinity if x is beyond them all (where Python raises OverflowError for an int)."""
    try:
        if isinstance(x, Fraction):  # as `float` does it, in fewer steps
            top, bottom = x.as_integer_ratio()
            return top / bottom
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
