"""Arithmetic of exact rational numbers: that of `Fraction`, for many cells at once.

Theory of operation. A column is integers over integers times one scale (`columns.Rationals`). Integers are int64 as
long as the bound on a result, computed from the largest entries of its parts, stays below 2^63; beyond, they are
Python's own, of any size. So every operation is exact, and fractions are put into lowest terms only where numbers grow
out of int64. Arrays of one entry stand for the same number in every cell.
"""

import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import gcd, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray, integer_array, largest, product, total
from lapwing.query.derivation.columns import BoolArray, FloatArray, Rationals, Shape, constant, mask_of, some, spread

_EXACT: Final = 1 << 53
"""Integers up to here are doubles."""
PLACES: Final = 9
"""Decimal places of the finest numbers that people write as decimals."""
_FITS: Final = 1 << 63
"""What is smaller in size fits int64, and so does its negative."""


def single(value: int) -> IntArray:
    """Return one integer, which stands for the same in every cell."""
    return np.array([value], dtype=np.int64) if -_FITS < value < _FITS else integer_array([value])


def either(x: BoolArray | None, y: BoolArray | None) -> BoolArray | None:
    """Return where one of two masks says yes; None is nowhere."""
    return y if x is None else x if y is None else x | y


def of_floats(values: FloatArray) -> Rationals:
    """Return a column of the exact values of finite doubles."""
    mantissas, exponents = np.frexp(values)
    digits = (mantissas * 2.0**53).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    digits, exponents = digits // lowest, exponents.astype(np.int64) - 53 + np.frexp(lowest.astype(np.float64))[1] - 1
    used = exponents[digits != 0]
    least = int(used.min()) if used.size else 0
    shifts = np.where(digits == 0, 0, exponents - least)
    if (np.frexp(digits.astype(np.float64))[1] + shifts < 63).all():
        tops: IntArray = digits << shifts
    else:
        tops = digits.astype(object) << shifts.astype(object)
    return Rationals(tops=tops, scale=Fraction(2) ** least)


def _lowest_terms(numbers: Rationals) -> Rationals:
    """Keep fractions small where they have grown out of int64."""
    tops, bottoms = numbers.tops, numbers.bottoms
    if bottoms is None or (tops.dtype == np.int64 and bottoms.dtype == np.int64):
        return numbers
    common = np.gcd(tops.astype(object), bottoms.astype(object))
    return replace(numbers, tops=tops // common, bottoms=bottoms // common)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _scaled(x: Rationals, y: Rationals) -> tuple[IntArray, IntArray, Fraction]:
    """Return the tops of two columns over one scale."""
    if x.scale == y.scale:
        return x.tops, y.tops, x.scale
    # Of a/b and c/d the common step is gcd(ad, bc)/bd, of which they are ad/gcd and bc/gcd times as much: in integers,
    # as dividing fractions takes longer than all else here.
    (a, b), (c, d) = x.scale.as_integer_ratio(), y.scale.as_integer_ratio()
    step = gcd(a * d, b * c)
    return _times(x.tops, a * d // step), _times(y.tops, b * c // step), Fraction(step, b * d)


def _times(values: IntArray, factor: int) -> IntArray:
    """Multiply exactly by one number, which is 1 as often as not."""
    if factor == 1:
        return values
    if values.dtype == np.int64 and -_FITS < factor < _FITS and largest(values) * abs(factor) < _FITS:
        narrow: IntArray = values * factor
        return narrow
    return product(values, single(factor))


def aligned(x: Rationals, y: Rationals) -> tuple[IntArray, IntArray, IntArray | None, Fraction]:
    """Return the tops of two columns over common bottoms and one scale."""
    first, second, scale = _scaled(x, y)
    a, b = x.bottoms, y.bottoms
    if a is b:
        return first, second, a, scale
    if a is None:
        return product(first, bottoms_of(b)), second, b, scale
    if b is None:
        return first, product(second, a), a, scale
    common = np.gcd(a, b)
    left, right = b // common, a // common
    return product(first, left), product(second, right), product(a, left), scale


def bottoms_of(bottoms: IntArray | None) -> IntArray:
    """Return bottoms as an array."""
    return np.ones(1, dtype=np.int64) if bottoms is None else bottoms


def add(x: Rationals, y: Rationals) -> Rationals:
    """Return x + y."""
    first, second, bottoms, scale = aligned(x, y)
    return _lowest_terms(
        Rationals(tops=total(first, second), bottoms=bottoms, scale=scale, null=either(x.null, y.null))
    )


def negate(x: Rationals) -> Rationals:
    """Return −x."""
    return Rationals(tops=_times(x.tops, -1), bottoms=x.bottoms, scale=x.scale, null=x.null)


def subtract(x: Rationals, y: Rationals) -> Rationals:
    """Return x − y."""
    return add(x, negate(y))


def multiply(x: Rationals, y: Rationals) -> Rationals:
    """Return xy."""
    bottoms = y.bottoms if x.bottoms is None else x.bottoms if y.bottoms is None else product(x.bottoms, y.bottoms)
    return _lowest_terms(
        Rationals(tops=product(x.tops, y.tops), bottoms=bottoms, scale=x.scale * y.scale, null=either(x.null, y.null))
    )


def divide(x: Rationals, y: Rationals) -> Rationals:
    """Return x/y, NULL where y is 0."""
    signs = np.sign(y.tops).astype(np.int64)
    zero = signs == 0
    size = np.where(zero, 1, abs(y.tops))
    tops = product(x.tops, product(signs, bottoms_of(y.bottoms)))
    return _lowest_terms(
        Rationals(
            tops=tops,
            bottoms=size if x.bottoms is None else product(x.bottoms, size),
            scale=x.scale / y.scale,
            null=either(either(x.null, y.null), some(zero)),
        )
    )


def absolute(x: Rationals) -> Rationals:
    """Return |x|."""
    return replace(x, tops=product(x.tops, signs(x)))


def signs(x: Rationals) -> NDArray[np.int64]:
    """Return −1, 0 or 1 in every cell."""
    return np.sign(x.tops).astype(np.int64)


def sign(x: Rationals) -> Rationals:
    """Return −1, 0 or 1, NULL where x is."""
    return Rationals(tops=signs(x), null=x.null)


def whole_constant(x: Rationals) -> int:
    """Return the whole number that a constant column holds."""
    (value,) = x.values()
    return 0 if value is None else int(value)


def _raised(values: IntArray, k: int) -> IntArray:
    """Raise to a whole power ≥ 0 exactly."""
    if values.dtype == np.int64 and largest(values) ** k < _FITS:
        narrow: IntArray = values**k
        return narrow
    return values.astype(object) ** k


def power(x: Rationals, k: int) -> Rationals:
    """Return x^k for a whole k, NULL where it divides by 0."""
    if k < 0:
        return divide(constant(Fraction(1)), power(x, -k))
    bottoms = None if x.bottoms is None else _raised(x.bottoms, k)
    return _lowest_terms(Rationals(tops=_raised(x.tops, k), bottoms=bottoms, scale=x.scale**k, null=x.null))


def floor(x: Rationals) -> Rationals:
    """Return the largest whole number that is at most x."""
    tops, bottoms = integers(x)
    return Rationals(tops=tops if bottoms is None else tops // bottoms, null=x.null)


def ceiling(x: Rationals) -> Rationals:
    """Return the smallest whole number that is at least x."""
    return negate(floor(negate(x)))


def rounded(x: Rationals, digits: Rationals | None = None) -> Rationals:
    """Round half up to a number of decimal places, a constant."""
    unit = Fraction(1) if digits is None else Fraction(10) ** -whole_constant(digits)
    halves = add(replace(x, scale=x.scale / unit), constant(Fraction(1, 2)))
    return replace(floor(halves), scale=unit)


# ---- as integers, as doubles -----------------------------------------------------------------------------------------


def integers(x: Rationals) -> tuple[IntArray, IntArray | None]:
    """Return numerators and denominators (None: 1) without a scale, not in lowest terms."""
    bottoms = x.bottoms
    if x.scale.denominator != 1:
        ones: IntArray = np.ones(1, dtype=np.int64)
        bottoms = product(ones if bottoms is None else bottoms, single(x.scale.denominator))
    return _times(x.tops, x.scale.numerator), bottoms


def shape_in_steps(step: Fraction) -> Shape:
    """Return the type of numbers in steps: whole, decimals, or floats if nobody writes decimals so fine.

    A sum of floats has steps of a 2²⁰th of their bounds, unless the curator gave others.
    """
    return "integer" if step.denominator == 1 else "decimal" if 10**PLACES % step.denominator == 0 else "real"


def floats(x: Rationals) -> FloatArray:
    """Return the nearest double of every entry, ±infinity beyond them all; what is NULL has some value."""
    tops, bottoms = integers(x)
    if tops.dtype == object or (bottoms is not None and bottoms.dtype == object):
        return _divided_one_by_one(tops, bottoms)
    if bottoms is None:
        return tops.astype(np.float64)
    divisor = x.scale.denominator
    if x.bottoms is None and divisor & (divisor - 1) == 0 and divisor.bit_length() <= 900:  # a power of two: exact
        return tops.astype(np.float64) / float(divisor)
    near = np.asarray(tops / bottoms, dtype=np.float64)  # of two doubles: rounded once, as IEEE 754 does
    wide = np.broadcast_to((np.abs(tops) > _EXACT) | (bottoms > _EXACT), near.shape)
    if wide.any():
        near[wide] = _divided_one_by_one(spread(tops, near.shape)[wide], spread(bottoms, near.shape)[wide])
    return near


def _divided_one_by_one(tops: IntArray, bottoms: IntArray | None) -> FloatArray:
    """Divide Python's integers, which is rounded correctly at any size."""
    pairs = np.broadcast_arrays(tops, np.ones(1, dtype=np.int64) if bottoms is None else bottoms)
    return np.array([_divided(t, b) for t, b in zip(*(part.tolist() for part in pairs), strict=True)], dtype=np.float64)


def _divided(top: int, bottom: int) -> float:
    try:
        return top / bottom
    except OverflowError:
        return inf if top > 0 else -inf


# ---- order and choice ------------------------------------------------------------------------------------------------


def compared(rule: Callable[[IntArray, IntArray], BoolArray], x: Rationals, y: Rationals) -> BoolArray:
    """Compare exactly; what is NULL compares somehow."""
    first, second, _, _ = aligned(x, y)
    return np.asarray(rule(first, second), dtype=np.bool_)


def at_most(x: Rationals, y: Rationals) -> BoolArray:
    """Return where x ≤ y."""
    return compared(operator.le, x, y)


def choose(mask: BoolArray, x: Rationals, y: Rationals) -> Rationals:
    """Return x where the mask says so, else y."""
    first, second, scale = _scaled(x, y)
    plain = x.bottoms is None and y.bottoms is None
    bottoms = None if plain else np.where(mask, bottoms_of(x.bottoms), bottoms_of(y.bottoms))
    no_null = x.null is None and y.null is None
    null = None if no_null else np.where(mask, mask_of(x.null), mask_of(y.null))
    return Rationals(tops=np.where(mask, first, second), bottoms=bottoms, scale=scale, null=null)


def lesser(x: Rationals, y: Rationals) -> Rationals:
    """Return the lesser of two numbers, of which none is NULL."""
    return choose(at_most(x, y), x, y)


def greater(x: Rationals, y: Rationals) -> Rationals:
    """Return the greater of two numbers, of which none is NULL."""
    return choose(at_most(y, x), x, y)


def within(x: Rationals, low: Rationals, high: Rationals) -> Rationals:
    """Clamp x; NULL if any of the three is."""
    inside = lesser(greater(x, low), high)
    null = either(either(x.null, low.null), high.null)
    return Rationals(tops=inside.tops, bottoms=inside.bottoms, scale=inside.scale, null=null)
