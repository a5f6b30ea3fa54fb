"""Arithmetic over the numbers of one row: typing rules, with bounds by interval arithmetic (see `logic`)."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import floor
from typing import cast

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.conversion import (
    alike,
    as_double,
    fixed,
    integers_of,
    interval_of,
    multiple,
    nullable,
    number,
    real,
    rescale,
    to_real,
    with_bounds,
    without_bounds,
)
from lapwing.query.expressions.expression import (
    ColumnReference,
    Expression,
    Literal,
    Operation,
    is_number,
)
from lapwing.query.expressions.normal_forms import commuting, in_order
from lapwing.query.expressions.types import (
    UNBOUNDED_REAL,
    Fixed,
    Number,
    Real,
    Type,
    common_step,
    describe,
    greatest,
    in_steps,
    is_temporal,
    least,
    nearest,
)


def require_numbers(name: str, arguments: Sequence[Expression]) -> None:
    """Refuse arguments that are not numbers with known bounds."""
    for argument in arguments:
        if not is_number(argument.type):
            raise QueryRefused(f"{name} needs numbers, not {describe(argument.type)}", cause=RefusalCause.WRONG_TYPE)
        if not cast(Number, argument.type).bounded:
            raise without_bounds(argument, f"{name} needs numbers with known bounds")


def _sum(name: str, left: Expression, right: Expression, sign: int) -> Expression:
    require_numbers("+" if sign > 0 else "-", (left, right))
    left, right = alike((left, right))
    if isinstance(left.type, Real):
        (a, b), (c, d) = interval_of(left), interval_of(right)
        kind: Type = real(a + c, b + d) if sign > 0 else real(a - d, b - c)
    else:
        (i, j), (k, m) = integers_of(left), integers_of(right)
        step = cast(Fixed, left.type).step
        kind = fixed(step, i + k, j + m) if sign > 0 else fixed(step, i - m, j - k)
    return Operation(function=name, arguments=in_order((left, right)) if sign > 0 else (left, right), type=kind)


def add(left: Expression, right: Expression) -> Expression:
    """Add two numbers."""
    return _sum("add", left, right, +1)


def subtract(left: Expression, right: Expression) -> Expression:
    """Subtract the second number from the first."""
    return _sum("subtract", left, right, -1)


def multiply(left: Expression, right: Expression) -> Expression:
    """Multiply two numbers; a number times itself is not below 0."""
    require_numbers("*", (left, right))
    square = left == right
    if isinstance(left.type, Real) or isinstance(right.type, Real):
        left, right = to_real(left), to_real(right)
        corners = [x * y for x, y in product(interval_of(left), interval_of(right))]
        least_corner = max(Fraction(0), min(corners)) if square else min(corners)
        return commuting("multiply", (left, right), real(least_corner, max(corners)))
    whole = [x * y for x, y in product(integers_of(left), integers_of(right))]
    least_whole = max(0, min(whole)) if square else min(whole)
    step = cast(Fixed, left.type).step * cast(Fixed, right.type).step
    return commuting("multiply", (left, right), fixed(step, least_whole, max(whole)))


def divide(left: Expression, right: Expression) -> Expression:
    """Divide as reals; a zero divisor gives NULL.

    A fixed-point divisor that is not zero is at least one step away from zero, which bounds the quotient.
    """
    require_numbers("/", (left, right))
    least_step = as_double(1, right.type.step) if isinstance(right.type, Fixed) else None
    left, right = to_real(left), to_real(right)
    kind: Real = UNBOUNDED_REAL
    low, high = interval_of(right)
    if least_step is not None:
        low, high = (least_step if low == 0 else low), (-least_step if high == 0 else high)
    if low > high:  # the divisor is always zero
        kind = Real(low=Fraction(0), high=Fraction(0))
    elif low > 0 or high < 0:
        corners = [x / y for x, y in product(interval_of(left), (low, high))]
        kind = real(min(corners), max(corners))
    elif least_step is not None:
        widest = max(map(abs, interval_of(left))) / least_step
        kind = real(-widest, widest)
    return Operation(function="divide", arguments=(left, right), type=kind)


def negate(argument: Expression) -> Expression:
    """Change the sign."""
    if isinstance(argument, Literal) and isinstance(argument.type, Fixed) and isinstance(argument.value, Fraction):
        return number(-argument.value)
    require_numbers("-", (argument,))
    if isinstance(argument.type, Real):
        low, high = interval_of(argument)
        return Operation(function="negate", arguments=(argument,), type=real(-high, -low))
    first, last = integers_of(argument)
    kind = fixed(cast(Fixed, argument.type).step, -last, -first)
    return Operation(function="negate", arguments=(argument,), type=kind)


def absolute(argument: Expression) -> Expression:
    """Take the absolute value."""
    require_numbers("ABS", (argument,))
    kind: Type
    if isinstance(argument.type, Real):
        low, high = interval_of(argument)
        kind = real(max(low, -high, Fraction(0)), max(-low, high))
    else:
        first, last = integers_of(argument)
        kind = fixed(cast(Fixed, argument.type).step, max(first, -last, 0), max(-first, last))
    return Operation(function="absolute", arguments=(argument,), type=kind)


def _is_text(argument: Expression) -> bool:
    """Tell whether an argument is a text constant, which beside a date is a date."""
    return isinstance(argument, Literal) and isinstance(argument.value, str)


def _extreme(name: str, arguments: tuple[Expression, ...], smallest: bool) -> Expression:
    """Type LEAST or GREATEST, which skip NULLs: an argument bounds the result for certain only if it is never NULL."""
    if not arguments or not all(is_number(a.type) or is_temporal(a.type) or _is_text(a) for a in arguments):
        raise QueryRefused(f"{name.upper()} needs numbers or dates", cause=RefusalCause.WRONG_TYPE)
    arguments = alike(arguments)
    if not is_number(arguments[0].type) and not is_temporal(arguments[0].type):
        raise QueryRefused(f"{name.upper()} needs numbers or dates", cause=RefusalCause.WRONG_TYPE)
    intervals = [(kind.low, kind.high) for kind in (cast(Number, argument.type) for argument in arguments)]
    certain = [i for i, argument in zip(intervals, arguments, strict=True) if not nullable(argument)]
    low, high = intervals[0]
    for other in intervals[1:]:
        low, high = least(low, other[0]), greatest(high, other[1])
    for sure_low, sure_high in certain:
        if smallest and sure_high is not None:
            high = sure_high if high is None else min(high, sure_high)
        if not smallest and sure_low is not None:
            low = sure_low if low is None else max(low, sure_low)
    return commuting(name, arguments, with_bounds(arguments[0].type, low, high))


def smallest(*arguments: Expression) -> Expression:
    """Return the least argument that is not NULL."""
    return _extreme("least", arguments, smallest=True)


def largest(*arguments: Expression) -> Expression:
    """Return the greatest argument that is not NULL."""
    return _extreme("greatest", arguments, smallest=False)


def _step_of(digits: Expression | None) -> Fraction:
    places = Fraction(0)
    if digits is not None:
        if not isinstance(digits, Literal) or not isinstance(digits.value, Fraction) or digits.value.denominator != 1:
            raise QueryRefused(
                "The number of digits is not a whole constant",
                cause=RefusalCause.NOT_CONSTANT,
                remedy="Write ROUND(x, 2).",
            )
        places = digits.value
    if abs(places) > 12:
        raise QueryRefused(
            "Rounding goes beyond 12 digits",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Use between -12 and 12 digits.",
        )
    return Fraction(10) ** -int(places)


def _round(name: str, argument: Expression, step: Fraction) -> Expression:
    if isinstance(argument.type, Fixed) and argument.type.step % step == 0:
        return argument
    require_numbers("ROUND" if name == "round_to" else "FLOOR", (argument,))
    half = Fraction(1, 2) if name == "round_to" else Fraction(0)
    if isinstance(argument.type, Fixed):
        argument = rescale(argument, common_step(argument.type.step, step))
        ratio = multiple(step, cast(Fixed, argument.type).step)
        low, high = (floor(Fraction(k, ratio) + half) for k in integers_of(argument))
    else:
        low, high = (floor(nearest(in_steps(end, step) + half)) for end in interval_of(argument))
        if reads_far(argument):  # a number of steps as a double, which is whole
            name = {"round_to": "round_real"}.get(name, "floor_real")
            ends = (nearest(low * step), nearest(high * step))
            return Operation(function=name, arguments=(argument, _double(step)), type=real(min(ends), max(ends)))
        if max(abs(low), abs(high)) > 2**53:
            raise QueryRefused(
                "A rounded quotient has more than 53 bits",
                cause=RefusalCause.NUMBER_OVERFLOW,
                remedy="Round to fewer digits.",
            )
    return Operation(function=name, arguments=(argument,), type=fixed(step, low, high))


def reads_far(argument: Expression) -> bool:
    """Tell whether a double is computed of what was read and lies beyond what whole numbers of 53 bits hold."""
    return isinstance(argument.type, Real) and max(map(abs, interval_of(argument))) > 2**53 and reads(argument)


def reads(argument: Expression) -> bool:
    """Tell whether a value is computed of what was read, and not yet kept within the bounds of the catalog."""
    if isinstance(argument, Operation):
        return argument.function != "inside" and any(map(reads, argument.arguments))
    return isinstance(argument, ColumnReference) and argument.cleaned is not None


def _double(value: Fraction) -> Literal:
    return Literal(value=value, type=real(value, value))


def round_to(argument: Expression, digits: Expression | None = None) -> Expression:
    """Round half up to a number of decimals."""
    return _round("round_to", argument, _step_of(digits))


def floor_to(argument: Expression) -> Expression:
    """Round down to a whole number."""
    return _round("floor_to", argument, Fraction(1))


def ceiling(argument: Expression) -> Expression:
    """Round up to a whole number."""
    return negate(floor_to(negate(argument)))


def floor_digits(argument: Expression, digits: Expression | None) -> Expression:
    """Round down to a number of decimals."""
    return _round("floor_to", argument, _step_of(digits))


def floor_multiple(argument: Expression, step: Fraction) -> Expression:
    """Round a fixed-point number down to a multiple of any step."""
    return _round("floor_to", argument, step)
