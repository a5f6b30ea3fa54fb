"""Square roots, logarithms and exponentials of exact rationals: values that are doubles, the same on every machine.

A value is a function of the rational alone: the square root of a double is correctly rounded by IEEE 754, and the
others are rounded from certified bounds. Ends of intervals are moved outwards by more than any of these roundings.
"""

from fractions import Fraction
from math import inf, isinf, sqrt
from typing import Final

from lapwing.exact import bounds
from lapwing.exact.bounds import Bounds, float_near, square_root_up
from lapwing.query.derivation.ends import End, Interval

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


def square_root_ends(part: Interval) -> Interval:
    """Return where √x can be, for the x ≥ 0 of the part."""
    low, high = (_root_of_end(max(end, Fraction(0))) for end in part)
    return (low if isinstance(low, float) else low * (1 - OUTWARDS), high if isinf(high) else high * (1 + OUTWARDS))


def _root_of_end(end: End) -> End:
    return end if isinstance(end, float) else square_root(end) or Fraction(0)


def logarithm(x: Fraction) -> Fraction | None:
    """Return ln x, NULL unless x > 0; the error is below 2^−52·max(1, |ln x|)."""
    return _middle(bounds.log(x)) if x > 0 else None


def logarithm_ends(part: Interval) -> Interval:
    """Return where ln x can be, for the x > 0 of the part."""
    low, high = (None if isinstance(end, float) else logarithm(end) for end in part)
    return (
        -inf if low is None else low - OUTWARDS * max(Fraction(1), abs(low)),
        inf if high is None else high + OUTWARDS * max(Fraction(1), abs(high)),
    )


def exponential(x: Fraction) -> Fraction | None:
    """Return e^x, NULL above 709, where there may be no double for it; 0 below −700."""
    if x > MOST_EXPONENT:
        return None
    return _middle(bounds.exp(x)) if x >= _LEAST_EXPONENT else Fraction(0)


def exponential_ends(part: Interval) -> Interval:
    """Return where e^x can be, for the x ≤ 709 of the part."""
    low, high = (None if isinstance(end, float) else exponential(end) for end in part)
    least = Fraction(0) if low is None else low * (1 - OUTWARDS)
    if part[1] == -inf:
        return (Fraction(0), OUTWARDS)
    return (least, inf if high is None else max(high * (1 + OUTWARDS), OUTWARDS**20))


def _middle(found: Bounds) -> Fraction:
    return Fraction(float((found.lower + found.upper) / 2))
