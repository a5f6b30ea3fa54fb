"""Exact numbers at the border: how a loss is read, rounded and written exactly (`amount_texts` has it for people).

A float means its shortest decimal, the one a person typed: 0.1 is one tenth, so that ten queries of 0.1 fit a budget of
1. A ledger rounds each charge up to a grid of 10⁻²⁴, so that its records stay short and its sums exact.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral

from lapwing.errors import InvalidParameter

Number = int | float | Decimal | Fraction

GRID = Fraction(1, 10**24)
"""The step of charged amounts."""

_LARGEST = 10**100
_MOST_DIGITS = 400
_MOST_BITS = 1 << 13
_GRID_STEPS = 10**24
_MOST_PROBABLE = 10**300
# Long enough for every number that `exact` takes: 10¹⁰⁰ · 2⁸¹⁹² has 2,567 digits.
_WRITTEN = re.compile(r"[0-9]{1,2567}(\.[0-9]{1,2567}|/(?=0*[1-9])[0-9]{1,2567})?")


def exact(value: Number, name: str) -> Fraction:
    """Return a finite number as a fraction; a float is read as its shortest decimal.

    Raises:
        InvalidParameter: For a bool, a string, NaN, an infinity or anything that is not a number.
    """
    number = _read(value)
    if number is None:
        raise InvalidParameter(
            f"{name} is {value!r:.60}; it must be a finite number (int, float, Decimal, Fraction): 0.5, without quotes."
        )
    top, bottom = number.as_integer_ratio()
    if not -_LARGEST * bottom <= top <= _LARGEST * bottom or bottom.bit_length() > _MOST_BITS:
        raise InvalidParameter(
            f"{name} is too large or too fine; its size must be at most 1e100, with 8192 binary digits after the point."
        )
    return number


def _read(value: Number) -> Fraction | None:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(str(value))
    if isinstance(value, Decimal) and value.is_finite() and _is_short(value):
        return Fraction(value)
    return None


def _is_short(value: Decimal) -> bool:
    """Tell whether a decimal takes little time to become a fraction; what does not is outside our range anyway."""
    return abs(value.adjusted()) <= _MOST_DIGITS and len(value.as_tuple().digits) <= _MOST_BITS


def non_negative(value: Number, name: str) -> Fraction:
    """Return a finite number ≥ 0 as a fraction."""
    number = exact(value, name)
    if number.numerator < 0:
        raise InvalidParameter(f"{name} is {value}; it must be 0 or more.")
    return number


def positive(value: Number | None, name: str) -> Fraction:
    """Return an exact number above 0."""
    if value is None:
        raise InvalidParameter(f"{name} is missing; give a positive number")
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name} is {value}; it must be above 0")
    return number


def probability(value: Number, name: str) -> Fraction:
    """Return a number strictly between 0 and 1, by 10⁻³⁰⁰ at least, as a fraction."""
    number = exact(value, name)
    top, bottom = number.as_integer_ratio()
    if min(top, bottom - top) * _MOST_PROBABLE < bottom:
        raise InvalidParameter(f"{name} is {value}; it must be above 0 and below 1 (by 1e-300 at least).")
    return number


def share(value: Number, name: str, *, most: int | None = None) -> Fraction:
    """Return a number from 0 to below 1, or to 1 if that is the most, as a fraction."""
    number = non_negative(value, name)
    if number > 1 or (number == 1 and most != 1):
        allowed = "from 0 to 1" if most == 1 else "at least 0 and below 1"
        raise InvalidParameter(f"{name} is {value}; it must be {allowed}.")
    return number


def count(value: int, *, least: int = 1) -> int:
    """Return a whole number from `least` upwards."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidParameter(f"The number is {value!r:.60}; it must be a whole number from {least} upwards.")
    return value


def grid_up(amount: Fraction) -> Fraction:
    """Return the smallest multiple of GRID that is at least `amount`."""
    return Fraction(-(-amount.numerator * _GRID_STEPS // amount.denominator), _GRID_STEPS)


def grid_down(amount: Fraction) -> Fraction:
    """Return the largest multiple of GRID that is at most `amount`."""
    return Fraction(amount.numerator * _GRID_STEPS // amount.denominator, _GRID_STEPS)


def written(amount: Fraction) -> str:
    """Return an exact text: a decimal if the fraction has one of at most 40 places, else "p/q".

    >>> written(Fraction(1, 8)), written(Fraction(1, 3)), written(Fraction(3))
    ('0.125', '1/3', '3')
    """
    for places in (0, 6, 12, 24, 40):
        scaled, rest = divmod(amount.numerator * 10**places, amount.denominator)
        if not rest:
            digits = f"{scaled:0{places + 1}d}"
            return f"{digits[:-places]}.{digits[-places:].rstrip('0')}" if places else digits
    return f"{amount.numerator}/{amount.denominator}"


def read(text: str, name: str) -> Fraction:
    """Return the amount ≥ 0 that `written` wrote.

    Raises:
        InvalidParameter: For any other text.
    """
    if not isinstance(text, str) or not _WRITTEN.fullmatch(text):
        raise InvalidParameter(f"{name} is {text!r}; it must be a decimal such as 0.125 or a fraction such as 1/3.")
    return Fraction(text)
