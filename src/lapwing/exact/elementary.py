"""Elementary functions of float arrays, each with a proven error, for sums that are too large for ball arithmetic.

The only facts used about the hardware are those of IEEE 754 doubles: the result of +, −, ·, / is within a relative
u = 2⁻⁵³ of the exact one, and rounding to an integer and scaling by a power of two are exact. No function of the C
library is relied on. Constants come from ball arithmetic. Each docstring states the error; the argument is beside it.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.bounds import Ball, fixed_point, fixed_points

FloatArray = NDArray[np.float64]

UNIT: Final = 2.0**-53

EXP_ERROR: Final = 3 * UNIT
EXPM1_ERROR: Final = 9 * UNIT
LOG1P_ERROR: Final = 10 * UNIT
TURN_ERROR: Final = 9 * UNIT

_STEPS = 64
_MOST_EXPONENT, _LEAST_EXPONENT = 700.0, -745.0
_MOST_ANGLE = 2.0**20


class _Constants(NamedTuple):
    """ln 2/64, ln 2 and π/2 in parts, of which all but the last have few digits, for exact multiples; 2^(j/64)."""

    step: tuple[float, float]
    log_two: tuple[float, float]
    quarter: tuple[float, float, float]
    powers: FloatArray


@lru_cache(maxsize=1)
def _constants() -> _Constants:
    bits = 160
    log_two = Fraction(fixed_point(lambda: Ball(2).log(), bits=bits).lower, 1 << bits)
    quarter = Fraction(fixed_point(lambda: Ball.pi() / 2, bits=bits).lower, 1 << bits)
    rows = fixed_points(lambda j: (j * Ball(2).log()).exp(), [(Fraction(j, _STEPS),) for j in range(_STEPS)], bits=bits)
    step_high, step_low = _split(log_two / _STEPS)
    log_high, log_low = _split(log_two)
    one, rest = _split(quarter)
    two, three = _split(rest)
    powers = np.array([float(Fraction(row.lower, 1 << bits)) for row in rows])
    return _Constants(
        (float(step_high), float(step_low)),
        (float(log_high), float(log_low)),
        (float(one), float(two), float(three)),
        powers,
    )


def _split(value: Fraction) -> tuple[Fraction, Fraction]:
    """Return the first 32 binary digits of a number in (0, 2), and the rest."""
    digits = 32 - (value.numerator.bit_length() - value.denominator.bit_length())
    high = Fraction(int(value * 2**digits), 1) / Fraction(2) ** digits
    return high, value - high


def exp(x: FloatArray) -> FloatArray:
    """Return e^x within a relative EXP_ERROR = 3u, or 2⁻¹⁰⁷⁰.

    With k = round(x·64/ln 2) and r = x − k·ln 2/64, |r| < 0.00543, e^x = 2^(k div 64)·2^((k mod 64)/64)·e^r. Of
    r = (x − k·high) − k·low, k·high is exact as |k| < 2¹⁷, and each subtraction errs by at most 0.0055u: 0.012u in
    all. e^r − 1 by its series up to r⁶ leaves out less than 10⁻³u and is at most 0.0055, of which rounding takes 4u:
    so it is within 0.04u. The table's entry is within u, the product with e^r − 1 adds 0.006u, and the sum u.

    Raises:
        ArithmeticError: For an x above 700, or one that is no number.
    """
    if not (x <= _MOST_EXPONENT).all():
        raise ArithmeticError("an exponent is beyond all floats")
    high, low = _constants().step
    inside = np.maximum(x, _LEAST_EXPONENT)
    k = np.rint(inside * (1 / high))
    r = (inside - k * high) - k * low
    series = r * (1 + r / 2 * (1 + r / 3 * (1 + r / 4 * (1 + r / 5 * (1 + r / 6)))))
    whole, part = np.divmod(k.astype(np.int64), _STEPS)
    entry = _constants().powers[part]
    return np.asarray(np.ldexp(entry + entry * series, whole))


def expm1(x: FloatArray) -> FloatArray:
    """Return e^x − 1 within a relative EXPM1_ERROR = 9u.

    For |x| ≤ ½ by its series up to x¹⁵, which leaves out a relative 10⁻²u. Of the nested factors
    s_k = 1 + x/k·s_(k+1), all in [0.7, 1.3], the errors are E_k ≤ ½/k·(E_(k+1) + 2.6u) + 1.3u, so E_2 ≤ 2.5u, a
    relative 3.3u, and two products more. Beyond, e^x is within 3u of at most 2.55·|e^x − 1|, and the difference adds u.
    """
    near = np.where(np.abs(x) <= 0.5, x, 0.0)
    nested = np.ones_like(near)
    for k in range(15, 1, -1):
        nested = 1 + near / k * nested
    return np.where(np.abs(x) <= 0.5, near * nested, exp(x) - 1)


def log1p(y: FloatArray) -> FloatArray:
    """Return log(1 + y) for y > −1 within a relative LOG1P_ERROR = 10u.

    For y from −0.29 to 0.41 it is 2·artanh(s) with s = y/(2 + y), within 2.1u, and s² ≤ 0.029: the series up to s²³
    leaves out a relative 10⁻²u, and rounding its nested sum adds 0.2u; two products more. Beyond, 1 + y = m within u
    and m = f·2^k with f from √½ to √2, log m = k·ln 2 + 2·artanh((f − 1)/(f + 1)): f − 1 is exact, the series within
    4.4u of at most 0.35, k·high exact, and the sums within u of 0.36 and of the result. So the error is below
    (1 + 1.6 + 0.4)u and u of the result, which is above 0.34 in size.
    """
    is_near = (y >= -0.29) & (y <= 0.41)
    near = np.where(is_near, y, 0.0)
    f, k = np.frexp(1 + np.where(is_near, 0.0, y))
    small = f < 0.7071
    f, k = np.where(small, 2 * f, f), np.where(small, k - 1, k)
    high, low = _constants().log_two
    far = k * high + (k * low + _artanh_twice((f - 1) / (f + 1)))
    return np.where(is_near, _artanh_twice(near / (2 + near)), far)


def _artanh_twice(s: FloatArray) -> FloatArray:
    square = s * s
    nested = np.zeros_like(s)
    for k in range(23, 1, -2):
        nested = square * (1 / k + nested)
    return 2 * s * (1 + nested)


def turn(x: FloatArray) -> NDArray[np.complex128]:
    """Return e^(ix) for |x| ≤ 2²⁰ within TURN_ERROR = 9u.

    With k = round(x·2/π) and r = ((x − k·one) − k·two) − k·three, |r| < 0.786: the first two products are exact as
    |k| < 2²⁰, the third is below 2⁻⁴⁰, and each subtraction errs by at most 0.79u. The series of sine and cosine up to
    r¹⁷ and r¹⁸ leave out less than 10⁻²u, and rounding them adds at most 3u, as of their nested factors all but the
    first two are weighed by less than ⅓. So each coordinate is within 6u; multiplying by i^k is exact.

    Raises:
        ArithmeticError: For an x beyond.
    """
    if not (np.abs(x) <= _MOST_ANGLE).all():
        raise ArithmeticError("an angle is too large")
    one, two, three = _constants().quarter
    k = np.rint(x * (1 / one))
    r = ((x - k * one) - k * two) - k * three
    square = r * r
    sine, cosine = np.ones_like(r), np.ones_like(r)
    for n in range(16, 1, -2):
        sine = 1 - square / (n * (n + 1)) * sine
    for n in range(17, 0, -2):
        cosine = 1 - square / (n * (n + 1)) * cosine
    result = np.empty(x.shape, dtype=np.complex128)
    result.real, result.imag = cosine, r * sine
    return np.asarray(result * _QUARTERS[k.astype(np.int64) & 3])


_QUARTERS = np.array([1, 1j, -1, -1j])
