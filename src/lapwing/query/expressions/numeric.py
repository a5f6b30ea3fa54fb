"""Division with remainder, powers, roots, logarithms, buckets: typing rules, with bounds (see `logic`).

Integers of steps are computed exactly. Doubles are computed by the engine's mathematical library, whose results may
lie a few last bits from the true ones; `_outward` widens bounds by 2⁻⁴⁰ of their size, thousands of times as much.
A function that has no value at a place (the root of −1, the logarithm of 0) is NULL there.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import cast

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import arithmetic, logic
from lapwing.query.expressions.arithmetic import require_numbers
from lapwing.query.expressions.conversion import alike, fixed, integers_of, interval_of, number, real, rescale, to_real
from lapwing.query.expressions.expression import Expression, Literal, Operation, is_number
from lapwing.query.expressions.types import LARGEST_REAL, Fixed, Real, describe, is_temporal, nearest

ONE = Fraction(1)
SMALLEST = nearest(Fraction(2) ** -1074)  # the smallest positive double
LARGEST_EXPONENT = 345  # e³⁴⁵ < 10¹⁵⁰
TEN = number(Fraction(10))
MOST_BUCKETS = 1_000_000
MOST_NESTED = 3  # functions that print an argument twice, in one another


# ---- whole results ---------------------------------------------------------------------------------------------------


def remainder(left: Expression, right: Expression) -> Expression:
    """Return what is left after division, with the sign of the dividend; NULL where the divisor is zero.

    |a % b| ≤ |a|, and |a % b| < |b|, for integers at least one step less. Remainders of doubles are exact (IEEE 754).
    """
    require_numbers("%", (left, right))
    left, right = alike((left, right))
    if isinstance(left.type, Fixed):
        (a, b), (c, d) = integers_of(left), integers_of(right)
        most = max(abs(c), abs(d), 1) - 1
        kind: Fixed | Real = fixed(left.type.step, max(min(a, 0), -most), min(max(b, 0), most))
    else:
        (e, f), (g, h) = interval_of(left), interval_of(right)
        size = max(abs(g), abs(h))
        kind = real(max(min(e, Fraction(0)), -size), min(max(f, Fraction(0)), size))
    return Operation(function="remainder", arguments=(left, right), type=kind)


def quotient(left: Expression, right: Expression) -> Expression:
    """Divide and cut towards zero, as DuckDB does with integers; NULL where the divisor is zero."""
    require_numbers("//", (left, right))
    if isinstance(left.type, Real) or isinstance(right.type, Real):
        raise QueryRefused(
            "// divides fixed-point numbers alone", cause=RefusalCause.WRONG_TYPE, remedy="Write TRUNC(x / y)."
        )
    left, right = alike((left, right))
    (a, b), (c, d) = integers_of(left), integers_of(right)
    divisors = [end for end in (c, d, -1, 1) if c <= end <= d and end]
    ends = [_cut(n, m) for n in (a, b) for m in divisors] or [0]
    if c <= 0 <= d or a <= 0 <= b:
        ends.append(0)
    return Operation(function="quotient", arguments=(left, right), type=fixed(ONE, min(ends), max(ends)))


def _cut(dividend: int, divisor: int) -> int:
    size = abs(dividend) // abs(divisor)
    return size if (dividend < 0) == (divisor < 0) else -size


def sign(argument: Expression) -> Expression:
    """Return −1, 0 or 1."""
    if not is_number(argument.type):
        raise QueryRefused(f"SIGN needs a number, not {describe(argument.type)}", cause=RefusalCause.WRONG_TYPE)
    low, high = cast(Fixed | Real, argument.type).interval()
    least = -1 if low is None or low < 0 else 0 if low == 0 else 1
    most = 1 if high is None or high > 0 else 0 if high == 0 else -1
    return Operation(function="sign", arguments=(argument,), type=fixed(ONE, least, most))


def truncate(argument: Expression, digits: Expression | None = None) -> Expression:
    """Cut decimals away, towards zero.

    That is the floor of |x|, with the sign of x; rounding is odd, so the bounds are those of floor and ceiling.
    """
    if is_temporal(argument.type):
        raise QueryRefused(
            "TRUNC needs a number, not a date", cause=RefusalCause.WRONG_TYPE, remedy="Write DATE_TRUNC('month', x)."
        )
    down = arithmetic.floor_digits(argument, digits)
    if down is argument:
        return argument
    if arithmetic.reads_far(argument):
        return replace(cast(Operation, down), function="truncate_real", type=_outermost(down))
    up = arithmetic.negate(arithmetic.floor_digits(arithmetic.negate(argument), digits))
    low, high = integers_of(down)[0], integers_of(up)[1]
    low, high = (low if low >= 0 else integers_of(up)[0]), (high if high <= 0 else integers_of(down)[1])
    inner = cast(Operation, down).arguments[0]
    return Operation(function="truncate_to", arguments=(inner,), type=fixed(cast(Fixed, down.type).step, low, high))


def _outermost(argument: Expression) -> Real:
    most = max(map(abs, interval_of(argument)))
    return real(-most, most)


def width_bucket(argument: Expression, low: Expression, high: Expression, count: Expression) -> Expression:
    """Return the number, from 1, of the one of `count` equal parts of [low, high) that a value lies in.

    0 below, count + 1 from `high` on: x is first kept between half a part below and half a part above the range, and
    the result is floor((x − low)·count / (high − low)) + 1. Exact for fixed-point numbers; a double may fall on the
    other side of an edge by its last bit.
    """
    if not is_number(argument.type):
        raise QueryRefused(f"WIDTH_BUCKET needs a number, not {describe(argument.type)}", cause=RefusalCause.WRONG_TYPE)
    ends = [_constant("WIDTH_BUCKET", end) for end in (low, high, count)]
    first, last, parts = ends
    if not first < last or parts.denominator != 1 or not 1 <= parts <= MOST_BUCKETS:
        raise QueryRefused(
            "WIDTH_BUCKET takes constants: a range, and how many parts it has",
            cause=RefusalCause.NOT_CONSTANT,
            remedy="Write WIDTH_BUCKET(age, 0, 100, 10). For edges of your own, write CASE WHEN x < 18 THEN 1 ….",
        )
    part = (last - first) / parts
    inside = _clamped(argument, first - part / 2, last + part / 2)
    shifted = arithmetic.subtract(inside, number(first))
    if isinstance(shifted.type, Real):
        shifted = arithmetic.divide(shifted, number(part))
        whole = arithmetic.floor_to(shifted)
    else:
        whole = rescale(arithmetic.floor_multiple(shifted, part), part)
        whole = Operation(function="steps_of", arguments=(whole,), type=fixed(ONE, *integers_of(whole)))
    return arithmetic.add(whole, number(ONE))


def _constant(name: str, argument: Expression) -> Fraction:
    if not isinstance(argument, Literal) or not isinstance(argument.value, Fraction):
        example = {"WIDTH_BUCKET": "WIDTH_BUCKET(x, 0, 100, 10)", "LOG": "LOG(2, x)"}.get(name, "POWER(x, 2)")
        raise QueryRefused(
            f"{name} takes constants beside its argument",
            cause=RefusalCause.NOT_CONSTANT,
            remedy=f"Write numbers, as in {example}.",
        )
    return argument.value


def _clamped(argument: Expression, low: Fraction, high: Fraction) -> Expression:
    """Keep a number inside bounds, and NULL where it is NULL."""
    known_low, known_high = cast(Fixed | Real, argument.type).interval()
    if known_low is not None and known_high is not None and low <= known_low <= known_high <= high:
        return argument
    if _nested(argument) >= MOST_NESTED:
        raise QueryRefused(
            "WIDTH_BUCKET is nested too often", cause=RefusalCause.QUERY_TOO_COMPLEX, remedy="Use CASE WHEN …."
        )
    inside = arithmetic.smallest(arithmetic.largest(argument, number(low)), number(high))
    return logic.case([logic.is_null(argument)], [logic.NULL_LITERAL], inside)


def _nested(node: Expression) -> int:
    """Return how many buckets lie in one another."""
    if not isinstance(node, Operation):
        return 0
    return max(map(_nested, node.arguments), default=0) + (
        node.function == "case" and isinstance(node.arguments[0], Operation) and node.arguments[0].function == "is_null"
    )


# ---- doubles ---------------------------------------------------------------------------------------------------------


def _outward(low: float, high: float, *, negative: bool = True) -> Real:
    """Return a type that holds every double an engine may compute between two true values.

    Args:
        negative: Whether the function has negative values at all; no library gives one of a root or a power of e.
    """
    down = Fraction(low) - abs(Fraction(low)) / 2**40 - Fraction(1, 10**300)
    up = Fraction(high) + abs(Fraction(high)) / 2**40 + Fraction(1, 10**300)
    return real(down if negative else max(down, Fraction(0)), up)


def _positive(argument: Expression, *, zero: bool) -> Expression:
    """Return a double that is NULL where it is negative, or also where it is zero."""
    smallest = _least_step(argument)
    value = to_real(argument)
    low, high = interval_of(value)
    if low > 0 or (zero and low >= 0):
        return value
    least = Fraction(0) if zero else smallest
    kind = Real(low=least, high=max(high, least))
    return Operation(function="not_negative" if zero else "above_zero", arguments=(value,), type=kind)


def _least_step(argument: Expression) -> Fraction:
    """Return the smallest positive value that a number can have."""
    if isinstance(argument.type, Fixed):
        return nearest(argument.type.step * (1 - Fraction(1, 2**50)))
    return SMALLEST


def _rising(
    function: str, argument: Expression, rule: Callable[[float], float], *, negative: bool = True
) -> Expression:
    """Apply a function that never decreases."""
    low, high = (rule(float(end)) for end in interval_of(argument))
    return Operation(function=function, arguments=(argument,), type=_outward(low, high, negative=negative))


def square_root(argument: Expression) -> Expression:
    """Take the square root; NULL below zero."""
    require_numbers("SQRT", (argument,))
    return _rising("square_root", _positive(argument, zero=True), math.sqrt, negative=False)


def logarithm(argument: Expression, base: Expression | None = None) -> Expression:
    """Take the natural logarithm, or the one to a constant base; NULL at and below zero."""
    require_numbers("LN", (argument,))
    natural = _rising("logarithm", _positive(argument, zero=False), math.log)
    if base is None:
        return natural
    constant = _constant("LOG", base)
    if constant <= 0 or constant == 1 or not 10**-9 <= constant <= 10**9:
        raise QueryRefused(
            "The base of LOG is a constant above 0, not 1",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Write LOG10(x), LOG2(x) or LN(x).",
        )
    if constant in (2, 10):
        rule = math.log2 if constant == 2 else math.log10
        return _rising(f"logarithm_{constant}", cast(Operation, natural).arguments[0], rule)
    return arithmetic.divide(
        natural, Literal(value=nearest(Fraction(math.log(constant))), type=_point(math.log(constant)))
    )


def exponential(argument: Expression) -> Expression:
    """Raise e to a power that has bounds."""
    require_numbers("EXP", (argument,))
    value = to_real(argument)
    if interval_of(value)[1] > LARGEST_EXPONENT:
        raise QueryRefused(
            "EXP may grow beyond 1e150",
            cause=RefusalCause.NUMBER_OVERFLOW,
            remedy=f"Write EXP(LEAST(x, {LARGEST_EXPONENT})).",
        )
    return _rising("exponential", value, math.exp, negative=False)


def power(base: Expression, exponent: Expression) -> Expression:
    """Raise a number to a constant power; NULL where that has no real value."""
    require_numbers("POWER", (base,))
    constant = _constant("POWER", exponent)
    if abs(constant) > 1000 or constant.denominator > 10**6:
        raise QueryRefused(
            "The exponent of POWER is too large or too long",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Use one like 2 or 0.5.",
        )
    whole = constant.denominator == 1
    if whole and constant >= 0:
        value = to_real(base)
    elif whole:
        value = _not_zero(base)
    else:
        value = _positive(base, zero=constant > 0)
    negative = whole and constant % 2 == 1
    raised = Literal(value=constant, type=_point(float(constant)))
    low, high = interval_of(value)
    ends = [_raised(end, float(constant)) for end in (low, high)]
    if whole and constant % 2 == 0 and low < 0 < high:
        if constant >= 0:
            ends.append(0.0 if constant else 1.0)
        else:
            ends += [_raised(nearest(_least_step(base)), float(constant))]
    elif whole and constant < 0 and low < 0 < high:
        widest = _raised(nearest(_least_step(base)), float(constant))
        ends += [widest, -widest]
    return Operation(
        function="power", arguments=(value, raised), type=_outward(min(ends), max(ends), negative=negative)
    )


def _not_zero(argument: Expression) -> Expression:
    """Return a double that is NULL where it is zero, with bounds that are not zero."""
    least = _least_step(argument)
    value = to_real(argument)
    low, high = interval_of(value)
    if low > 0 or high < 0:
        return value
    low, high = (least if low == 0 else low), (-least if high == 0 else high)
    kind = Real(low=min(low, high), high=max(low, high))
    return Operation(function="not_zero", arguments=(value,), type=kind)


def _raised(base: Fraction, exponent: float) -> float:
    try:
        value = math.pow(float(base), exponent)
    except (OverflowError, ValueError):
        value = math.inf
    if not abs(value) <= float(LARGEST_REAL):
        raise QueryRefused(
            "A power may grow beyond 1e150",
            cause=RefusalCause.NUMBER_OVERFLOW,
            remedy="Narrow the bounds of its base, away from zero.",
        )
    return value


def _point(value: float) -> Real:
    return Real(low=Fraction(value), high=Fraction(value))


def pi() -> Expression:
    """Return the double nearest to π."""
    return _double(math.pi)


def radians(argument: Expression) -> Expression:
    """Turn degrees into radians."""
    return arithmetic.multiply(argument, _double(math.pi / 180))


def degrees(argument: Expression) -> Expression:
    """Turn radians into degrees."""
    return arithmetic.multiply(argument, _double(180 / math.pi))


def _double(value: float) -> Literal:
    return Literal(value=Fraction(value), type=_point(value))


def wave(function: str, argument: Expression) -> Expression:
    """Take the "sine" or the "cosine" of an angle in radians."""
    require_numbers(function[:3].upper(), (argument,))
    return Operation(function=function, arguments=(to_real(argument),), type=_outward(-1.0, 1.0))


def arc_tangent(argument: Expression) -> Expression:
    """Take the angle, in radians, whose tangent a number is."""
    require_numbers("ATAN", (argument,))
    return _rising("arc_tangent", to_real(argument), math.atan)
