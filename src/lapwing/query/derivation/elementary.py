"""Square roots, logarithms and exponentials of exact rationals: values that are doubles, the same on every machine.

A value is a function of the rational alone: the square root of a double is correctly rounded by IEEE 754, and the
others are rounded from certified bounds. Ends of intervals are moved outwards by more than any of these roundings.
"""

from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt
from typing import Final

import numpy as np

from lapwing.exact import bounds
from lapwing.exact.bounds import Enclosure, square_root_up
from lapwing.exact.floats import float_near
from lapwing.query.derivation import rationals
from lapwing.query.derivation.columns import Rationals, some
from lapwing.query.derivation.columns_of_values import of_numbers
from lapwing.query.derivation.rationals import either

End = Fraction | float
"""An end of an interval: a rational, or an infinity, which is the only float among ends."""

SMALLEST: Final = 2.0**-1000
"""Doubles from here on have 53 binary digits, and so has their square root."""

OUTWARDS: Final = Fraction(1, 2**50)
"""More than the relative error of any value here, which is below 2^−51."""

MOST_EXPONENT: Final = 709
"""e^x of a larger whole number may exceed every double."""
_LEAST_EXPONENT: Final = -700


def square_root(x: Fraction) -> Fraction | None:
    """Return √x, NULL below 0, with a relative error below 2^−51.

    Proof: the nearest double of x errs by a factor within 1 ± 2^−53, of which the root takes the square root, and
    IEEE's root errs by as much again. Where x has no double of full precision, the root is rounded up at 64 bits.
    """
    if x < 0:
        return None
    near = float_near(x)
    if SMALLEST <= near < inf:
        return Fraction(sqrt(near))
    return square_root_up(x)


def square_roots(x: Rationals) -> Rationals:
    """Return √x in every cell, NULL below 0: NumPy's root of the nearest double, which is IEEE's too."""
    near = rationals.floats(x)
    regular = (near >= SMALLEST) & (near < inf)
    roots = rationals.of_floats(np.sqrt(np.where(regular, near, 0.0)))
    negative = rationals.signs(x) < 0
    odd = ~regular & (rationals.signs(x) > 0)
    if odd.any():
        full = x.expanded(len(near))
        places = np.flatnonzero(odd)
        exact = of_numbers([v if v is None else square_root(v) for v in full.taken(places).values()])
        spread = np.zeros(len(near), dtype=np.int64)
        spread[places] = np.arange(len(places))
        roots = rationals.choose(odd, exact.taken(spread), roots)
    return replace(roots, null=either(x.null, some(negative)))


def logarithm(x: Fraction) -> Fraction | None:
    """Return ln x, NULL unless x > 0; the error is below 2^−52·max(1, |ln x|)."""
    return _middle(bounds.log(x)) if x > 0 else None


def logarithm_below(x: End) -> End:
    """Return a number below ln x, for the low end of an interval; −∞ where x has no logarithm."""
    near = None if isinstance(x, float) else logarithm(x)
    return -inf if near is None else near - OUTWARDS * max(Fraction(1), abs(near))


def logarithm_above(x: End) -> End:
    """Return a number above ln x, for the high end of an interval; ∞ where x has no logarithm."""
    near = None if isinstance(x, float) else logarithm(x)
    return inf if near is None else near + OUTWARDS * max(Fraction(1), abs(near))


def exponential(x: Fraction) -> Fraction | None:
    """Return e^x, NULL above 709, where there may be no double for it; 0 below −700."""
    if x > MOST_EXPONENT:
        return None
    return _middle(bounds.exp(x)) if x >= _LEAST_EXPONENT else Fraction(0)


def exponential_below(x: End) -> End:
    """Return a number below e^x, for the low end of an interval of the x ≤ 709."""
    near = None if isinstance(x, float) else exponential(x)
    return Fraction(0) if near is None else near * (1 - OUTWARDS)


def exponential_above(x: End) -> End:
    """Return a number above e^x, for the high end of an interval; ∞ where there is no double for it."""
    if x == -inf:
        return OUTWARDS
    near = None if isinstance(x, float) else exponential(x)
    return inf if near is None else max(near * (1 + OUTWARDS), OUTWARDS**20)


def _middle(enclosure: Enclosure) -> Fraction:
    return Fraction(float((enclosure.lower + enclosure.upper) / 2))
