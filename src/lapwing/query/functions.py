"""The functions an analyst may use in an expression, each with its typing rule and its bounds by interval arithmetic.

A rule takes checked arguments and returns a checked expression, or refuses. What a rule lets through is *total*: no
engine raises on any row, because integers stay inside 128 bits by their bounds, divisions are guarded, and casts that
could fail do not exist. Bounds are proven from the bounds of the arguments; NULL arguments are accounted for.
"""

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from math import floor
from typing import cast

from lapwing.errors import QueryRefused
from lapwing.query.doubles import in_steps, nearest
from lapwing.query.expression import Expression, Literal, Operation, is_number
from lapwing.query.types import (
    BOOLEAN,
    DATE,
    LARGEST_INTEGER,
    LARGEST_REAL,
    NULL,
    TEXT,
    TIMESTAMP,
    UNBOUNDED_REAL,
    Fixed,
    Number,
    Real,
    Type,
    common_step,
    describe,
    greatest,
    inside,
    least,
)

# An unbounded 64-bit integer stays inside 128 bits when it is counted in steps down to this.
FINEST_STEP = Fraction(1, 10**18)
# Steps beyond these come only from long products; they stay far inside what doubles can hold.
STEPS = (Fraction(1, 10**100), Fraction(10**100))
# A Real is rounded to this many steps over its range before it is summed.
REAL_STEPS = 2**20
# The widest integers that are summed: noise of their scale still fits 64 bits, and sums of 10²⁰ rows fit 128.
SUMMABLE_BITS = 40

GUARDED_CAST = "Write TRY_CAST(x AS DOUBLE): it is NULL where there is no number."
NEEDS_BOUNDS = "Declare `lower` and `upper` for its columns in the catalog, or write LEAST(GREATEST(x, 0), 100)."


# ---- literals and conversions ---------------------------------------------------------------------------------------


def number(value: Fraction) -> Literal:
    """Return an exact numeric constant."""
    if abs(value) > 10**30 or value.denominator > 10**18:
        raise QueryRefused("A number has more than 18 decimals or is above 1e30", remedy="Write it with fewer digits.")
    return Literal(value=value, type=fixed(Fraction(1, value.denominator), value.numerator, value.numerator))


def fixed(step: Fraction, low: int | None, high: int | None) -> Fixed:
    """Return a fixed-point type, refusing integers that would not stay inside 128 bits."""
    if max(abs(low or 0), abs(high or 0)) > LARGEST_INTEGER or not STEPS[0] <= step <= STEPS[1]:
        raise _too_wide()
    return Fixed(step=step, low=low, high=high)


def _too_wide() -> QueryRefused:
    return QueryRefused(
        "An expression may grow beyond 128-bit integers",
        remedy="Declare coarser steps or narrower bounds in the catalog, or shorten the product.",
    )


def _multiple(coarse: Fraction, fine: Fraction) -> int:
    """Return how many fine steps a coarse one has, refusing what 128 bits could not hold."""
    if coarse / fine > LARGEST_INTEGER:
        raise _too_wide()
    return int(coarse / fine)


def real(low: Fraction | None, high: Fraction | None) -> Real:
    """Return a real type whose bounds are doubles, refusing what doubles could not hold.

    A result of + − * / is rounded to the nearest double; so are its bounds, and rounding keeps order (`doubles`).
    """
    if any(abs(end) > LARGEST_REAL for end in (low, high) if end is not None):
        raise QueryRefused("An expression may grow beyond 1e150", remedy="Narrow the bounds of its columns.")
    return Real(low=None if low is None else nearest(low), high=None if high is None else nearest(high))


def rescale(argument: Expression, step: Fraction) -> Expression:
    """Express a fixed-point value in a finer step of which its own is a whole multiple."""
    kind = cast(Fixed, argument.type)
    if kind.step == step:
        return argument
    if not kind.bounded and step < FINEST_STEP:
        raise QueryRefused("An unbounded number is compared at more than 18 decimals", remedy=NEEDS_BOUNDS)
    factor = _multiple(kind.step, step)
    low = None if kind.low is None else kind.low * factor
    high = None if kind.high is None else kind.high * factor
    finer = fixed(step, low, high)
    if isinstance(argument, Literal):
        return Literal(value=argument.value, type=finer)
    return Operation(function="rescale", arguments=(argument,), type=finer)


def to_real(argument: Expression) -> Expression:
    """Convert a number to a double."""
    if isinstance(argument.type, Real):
        return argument
    kind = cast(Fixed, argument.type)
    if isinstance(argument, Literal):
        return Literal(value=argument.value, type=real(*kind.interval()))
    low = None if kind.low is None else _as_double(kind.low - _last_bits(kind.low), kind.step)
    high = None if kind.high is None else _as_double(kind.high + _last_bits(kind.high), kind.step)
    return Operation(function="to_real", arguments=(argument,), type=real(low, high))


def _as_double(count: int, step: Fraction) -> Fraction:
    return in_steps(nearest(Fraction(count)), 1 / step)


def _last_bits(count: int) -> int:
    """Return more than what engines differ by when an integer above 2⁵³ becomes a double."""
    return abs(count) >> 50 if abs(count) > 2**53 else 0


def to_fixed(argument: Expression) -> Expression:
    """Round a bounded real half up to 2²⁰ steps over its range; a fixed-point value stays as it is.

    The least and greatest values may round to a step beyond the bounds; whoever sums them clamps (`render.measured`).
    """
    kind = argument.type
    if isinstance(kind, Fixed):
        return argument
    if not isinstance(kind, Real) or kind.low is None or kind.high is None:
        raise QueryRefused("The bounds of an expression are not known", remedy=NEEDS_BOUNDS)
    span = max(kind.high - kind.low, abs(kind.high), abs(kind.low))
    # A power of two just above range/2²⁰ keeps the step short and exact as a double.
    step = Fraction(2) ** _log2_up(span / REAL_STEPS) if span else Fraction(1)
    if step < STEPS[0]:
        raise QueryRefused("An expression is never larger than 1e-94", remedy="Multiply it by a constant.")
    return Operation(function="to_fixed", arguments=(argument,), type=inside(kind, step))


def summable(argument: Expression) -> Expression:
    """Return a bounded fixed-point value of at most 2⁴⁰ steps, rounding to a coarser step where it has more."""
    argument = to_fixed(argument)
    kind = cast(Fixed, argument.type)
    if not kind.bounded:
        raise QueryRefused("The bounds of a column are not declared", remedy=NEEDS_BOUNDS)
    widest = max(map(abs, _integers(argument)))
    excess = widest.bit_length() - SUMMABLE_BITS
    if excess <= 0:
        return argument
    step = kind.step * 2**excess
    low, high = (floor(k / Fraction(2) ** excess + Fraction(1, 2)) for k in _integers(argument))
    return Operation(function="round_to", arguments=(argument,), type=fixed(step, low, high))


def _log2_up(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - 1
    while Fraction(2) ** exponent < value:
        exponent += 1
    return exponent


def alike(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    """Bring arguments to one type: numbers to a common step or to doubles, text constants to dates beside dates."""
    typed = [argument for argument in arguments if argument.type != NULL]
    kinds = {describe(argument.type) for argument in typed}
    for temporal in (DATE, TIMESTAMP):
        if kinds == {"text", temporal.name}:
            typed = [argument if argument.type == temporal else _temporal(argument, temporal) for argument in typed]
            kinds = {temporal.name}
    if len(kinds) > 1:
        raise QueryRefused(f"{' and '.join(sorted(kinds))} do not go together", remedy="Compare values of one type.")
    if kinds == {"number"}:
        if any(isinstance(argument.type, Real) for argument in typed):
            typed = [to_real(argument) for argument in typed]
        else:
            step = cast(Fixed, typed[0].type).step
            for argument in typed[1:]:
                step = common_step(step, cast(Fixed, argument.type).step)
            typed = [rescale(argument, step) for argument in typed]
    known = typed[0].type if typed else NULL
    remaining = iter(typed)
    return tuple(
        Literal(value=None, type=_null_of(known)) if argument.type == NULL else next(remaining)
        for argument in arguments
    )


def _null_of(kind: Type) -> Type:
    if isinstance(kind, Fixed):
        return Fixed(step=kind.step, low=0, high=0)
    return Real(low=Fraction(0), high=Fraction(0)) if isinstance(kind, Real) else kind


def _temporal(argument: Expression, kind: Type) -> Expression:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise QueryRefused("A text column is compared with a date", remedy="Compare it with a date constant.")
    return temporal(argument.value, kind)


def temporal(text: str, kind: Type) -> Literal:
    """Read an ISO date or timestamp (UTC) constant."""
    try:
        if kind == DATE:
            return Literal(value=date.fromisoformat(text), type=DATE)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise QueryRefused(
            f"'{text}' is not a {describe(kind)}", remedy="Write 2026-03-31 or 2026-03-31 12:00:00."
        ) from None
    if moment.tzinfo is not None:
        raise QueryRefused("A timestamp constant has a time zone", remedy="Timestamps are UTC: leave the zone out.")
    return Literal(value=moment, type=TIMESTAMP)


def nullable(argument: Expression) -> bool:
    """Tell whether an expression may be NULL."""
    if isinstance(argument, Literal):
        return argument.value is None
    if isinstance(argument, Operation):
        match argument.function:
            case "coalesce" | "least" | "greatest":
                return all(map(nullable, argument.arguments))
            case "case":
                return any(map(nullable, (*argument.arguments[1::2], argument.arguments[-1])))
            case "is_null":
                return False
            case "rescale" | "to_real" | "to_fixed" | "round_to" | "floor_to" | "negate" | "absolute" | "from_boolean":
                return nullable(argument.arguments[0])
    return True


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def _numbers(name: str, arguments: Sequence[Expression]) -> None:
    for argument in arguments:
        if not is_number(argument.type):
            raise QueryRefused(f"{name} needs numbers, not {describe(argument.type)}")
        if not cast(Number, argument.type).bounded:
            raise QueryRefused(f"{name} needs numbers with known bounds", remedy=NEEDS_BOUNDS)


def _interval(argument: Expression) -> tuple[Fraction, Fraction]:
    """Return the bounds of a number that `_numbers` has checked."""
    return cast(tuple[Fraction, Fraction], cast(Number, argument.type).interval())


def _integers(argument: Expression) -> tuple[int, int]:
    kind = cast(Fixed, argument.type)
    return cast(tuple[int, int], (kind.low, kind.high))


def _sum(name: str, left: Expression, right: Expression, sign: int) -> Expression:
    _numbers("+" if sign > 0 else "-", (left, right))
    left, right = alike((left, right))
    if isinstance(left.type, Real):
        (a, b), (c, d) = _interval(left), _interval(right)
        kind: Type = real(a + c, b + d) if sign > 0 else real(a - d, b - c)
    else:
        (i, j), (k, m) = _integers(left), _integers(right)
        step = cast(Fixed, left.type).step
        kind = fixed(step, i + k, j + m) if sign > 0 else fixed(step, i - m, j - k)
    return Operation(function=name, arguments=(left, right), type=kind)


def add(left: Expression, right: Expression) -> Expression:
    """Add two numbers."""
    return _sum("add", left, right, +1)


def subtract(left: Expression, right: Expression) -> Expression:
    """Subtract the second number from the first."""
    return _sum("subtract", left, right, -1)


def multiply(left: Expression, right: Expression) -> Expression:
    """Multiply two numbers."""
    _numbers("*", (left, right))
    if isinstance(left.type, Real) or isinstance(right.type, Real):
        left, right = to_real(left), to_real(right)
        corners = [x * y for x, y in product(_interval(left), _interval(right))]
        return Operation(function="multiply", arguments=(left, right), type=real(min(corners), max(corners)))
    whole = [x * y for x, y in product(_integers(left), _integers(right))]
    step = cast(Fixed, left.type).step * cast(Fixed, right.type).step
    return Operation(function="multiply", arguments=(left, right), type=fixed(step, min(whole), max(whole)))


def divide(left: Expression, right: Expression) -> Expression:
    """Divide as reals; a zero divisor gives NULL.

    A fixed-point divisor that is not zero is at least one step away from zero, which bounds the quotient.
    """
    _numbers("/", (left, right))
    least_step = _as_double(1, right.type.step) if isinstance(right.type, Fixed) else None
    left, right = to_real(left), to_real(right)
    kind: Real = UNBOUNDED_REAL
    low, high = _interval(right)
    if least_step is not None:
        low, high = (least_step if low == 0 else low), (-least_step if high == 0 else high)
    if low > high:  # the divisor is always zero
        kind = Real(low=Fraction(0), high=Fraction(0))
    elif low > 0 or high < 0:
        corners = [x / y for x, y in product(_interval(left), (low, high))]
        kind = real(min(corners), max(corners))
    elif least_step is not None:
        widest = max(map(abs, _interval(left))) / least_step
        kind = real(-widest, widest)
    return Operation(function="divide", arguments=(left, right), type=kind)


def negate(argument: Expression) -> Expression:
    """Change the sign."""
    if isinstance(argument, Literal) and isinstance(argument.value, Fraction):
        return number(-argument.value)
    _numbers("-", (argument,))
    if isinstance(argument.type, Real):
        low, high = _interval(argument)
        return Operation(function="negate", arguments=(argument,), type=real(-high, -low))
    first, last = _integers(argument)
    kind = fixed(cast(Fixed, argument.type).step, -last, -first)
    return Operation(function="negate", arguments=(argument,), type=kind)


def absolute(argument: Expression) -> Expression:
    """Take the absolute value."""
    _numbers("ABS", (argument,))
    kind: Type
    if isinstance(argument.type, Real):
        low, high = _interval(argument)
        kind = real(max(low, -high, Fraction(0)), max(-low, high))
    else:
        first, last = _integers(argument)
        kind = fixed(cast(Fixed, argument.type).step, max(first, -last, 0), max(-first, last))
    return Operation(function="absolute", arguments=(argument,), type=kind)


def _extreme(name: str, arguments: tuple[Expression, ...], smallest: bool) -> Expression:
    """Type LEAST or GREATEST, which skip NULLs: an argument bounds the result for certain only if it is never NULL."""
    if not arguments or not all(is_number(argument.type) for argument in arguments):
        raise QueryRefused(f"{name.upper()} needs numbers")
    arguments = alike(arguments)
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
    kind = arguments[0].type
    if isinstance(kind, Fixed):
        result: Type = fixed(kind.step, cast(int | None, low), cast(int | None, high))
    else:
        result = real(cast(Fraction | None, low), cast(Fraction | None, high))
    return Operation(function=name, arguments=arguments, type=result)


def smallest(*arguments: Expression) -> Expression:
    """Return the least argument that is not NULL."""
    return _extreme("least", arguments, smallest=True)


def largest(*arguments: Expression) -> Expression:
    """Return the greatest argument that is not NULL."""
    return _extreme("greatest", arguments, smallest=False)


def _round(name: str, argument: Expression, digits: Expression | None) -> Expression:
    places = Fraction(0)
    if digits is not None:
        if not isinstance(digits, Literal) or not isinstance(digits.value, Fraction) or digits.value.denominator != 1:
            raise QueryRefused("The number of digits is not a whole constant", remedy="Write ROUND(x, 2).")
        places = digits.value
    if abs(places) > 12:
        raise QueryRefused("Rounding goes beyond 12 digits", remedy="Use between -12 and 12 digits.")
    step = Fraction(10) ** -int(places)
    if isinstance(argument.type, Fixed) and argument.type.step % step == 0:
        return argument
    _numbers("ROUND" if name == "round_to" else "FLOOR", (argument,))
    half = Fraction(1, 2) if name == "round_to" else Fraction(0)
    if isinstance(argument.type, Fixed):
        argument = rescale(argument, common_step(argument.type.step, step))
        ratio = _multiple(step, cast(Fixed, argument.type).step)
        low, high = (floor(Fraction(k, ratio) + half) for k in _integers(argument))
    else:
        low, high = (floor(nearest(in_steps(end, step) + half)) for end in _interval(argument))
        if max(abs(low), abs(high)) > 2**53:
            raise QueryRefused("A rounded quotient has more than 53 bits", remedy="Round to fewer digits.")
    return Operation(function=name, arguments=(argument,), type=fixed(step, low, high))


def round_to(argument: Expression, digits: Expression | None = None) -> Expression:
    """Round half up to a number of decimals."""
    return _round("round_to", argument, digits)


def floor_to(argument: Expression) -> Expression:
    """Round down to a whole number."""
    return _round("floor_to", argument, None)


def ceiling(argument: Expression) -> Expression:
    """Round up to a whole number."""
    return negate(floor_to(negate(argument)))


# ---- choice, comparison, logic --------------------------------------------------------------------------------------


def _hull(arguments: Sequence[Expression]) -> Type:
    """Return the type that holds any of the values; NULL constants do not widen it."""
    real_values = [a for a in arguments if not (isinstance(a, Literal) and a.value is None)] or list(arguments)
    kind = real_values[0].type
    for argument in real_values[1:]:
        other = argument.type
        if isinstance(kind, Fixed) and isinstance(other, Fixed):
            low, high = least(kind.low, other.low), greatest(kind.high, other.high)
            kind = fixed(kind.step, cast(int | None, low), cast(int | None, high))
        elif isinstance(kind, Real) and isinstance(other, Real):
            kind = real(
                cast(Fraction | None, least(kind.low, other.low)),
                cast(Fraction | None, greatest(kind.high, other.high)),
            )
    return kind


def coalesce(*arguments: Expression) -> Expression:
    """Return the first argument that is not NULL."""
    arguments = alike(arguments)
    return Operation(function="coalesce", arguments=arguments, type=_hull(arguments))


def case(conditions: Sequence[Expression], values: Sequence[Expression], default: Expression) -> Expression:
    """Choose the value of the first condition that holds."""
    for condition in conditions:
        _boolean("CASE WHEN", condition)
    chosen = alike((*values, default))
    pairs = [part for pair in zip(conditions, chosen[:-1], strict=True) for part in pair]
    return Operation(function="case", arguments=(*pairs, chosen[-1]), type=_hull(chosen))


COMPARISONS = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def compare(symbol: str, left: Expression, right: Expression) -> Expression:
    """Compare two values of one type: numbers by value, strings by bytes."""
    if NULL in (left.type, right.type):
        raise QueryRefused("A comparison with NULL is never true", remedy="Write IS NULL or IS NOT NULL.")
    left, right = alike((left, right))
    return Operation(function=COMPARISONS[symbol], arguments=(left, right), type=BOOLEAN)


def between(argument: Expression, low: Expression, high: Expression) -> Expression:
    """Tell whether a value lies between two others, ends included."""
    if NULL in (argument.type, low.type, high.type):
        raise QueryRefused("A comparison with NULL is never true", remedy="Write IS NULL or IS NOT NULL.")
    return Operation(function="between", arguments=alike((argument, low, high)), type=BOOLEAN)


def member(argument: Expression, choices: Sequence[Expression]) -> Expression:
    """Tell whether a value is one of a list of constants."""
    if not choices or not all(isinstance(choice, Literal) and choice.value is not None for choice in choices):
        raise QueryRefused("IN takes a list of constants", remedy="Write x IN (1, 2, 3), without NULL.")
    together = alike((argument, *choices))
    ordered = sorted(set(together[1:]), key=str)
    return Operation(function="member", arguments=(together[0], *ordered), type=BOOLEAN)


def like(argument: Expression, pattern: Expression) -> Expression:
    """Match a text against a constant pattern of % and _; upper and lower case differ."""
    if argument.type != TEXT or not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise QueryRefused("LIKE takes a text and a constant pattern", remedy="Write name LIKE 'A%'.")
    if len(pattern.value) > 1000 or pattern.value.count("%") > 10:
        raise QueryRefused("A pattern is too long", remedy="Use at most 1,000 characters and ten %.")
    return Operation(function="like", arguments=(argument, pattern), type=BOOLEAN)


def is_null(argument: Expression) -> Expression:
    """Tell whether a value is NULL."""
    return Operation(function="is_null", arguments=(argument,), type=BOOLEAN)


def _boolean(name: str, argument: Expression) -> None:
    if argument.type not in (BOOLEAN, NULL):
        raise QueryRefused(f"{name} needs a condition, not {describe(argument.type)}", remedy="Write a comparison.")


def both(left: Expression, right: Expression) -> Expression:
    """Conjoin two conditions."""
    _boolean("AND", left)
    _boolean("AND", right)
    return Operation(function="and", arguments=(left, right), type=BOOLEAN)


def either(left: Expression, right: Expression) -> Expression:
    """Disjoin two conditions."""
    _boolean("OR", left)
    _boolean("OR", right)
    return Operation(function="or", arguments=(left, right), type=BOOLEAN)


def negation(argument: Expression) -> Expression:
    """Deny a condition."""
    _boolean("NOT", argument)
    return Operation(function="not", arguments=(argument,), type=BOOLEAN)


# ---- casts ----------------------------------------------------------------------------------------------------------


def to_number(argument: Expression) -> Expression:
    """Cast what can always be cast to a double: numbers and booleans."""
    if argument.type == BOOLEAN:
        kind = fixed(Fraction(1), 0, 1)
        return Operation(function="from_boolean", arguments=(argument,), type=kind)
    if not is_number(argument.type):
        raise QueryRefused(f"A cast of {describe(argument.type)} to a number can fail", remedy=GUARDED_CAST)
    return argument


def to_integer(argument: Expression, target: str, low: int, high: int) -> Expression:
    """Cast a number or a boolean to a whole number, rounding half up; it must fit the integer type for certain."""
    rounded = round_to(to_number(argument))
    _numbers(f"A cast to {target}", (rounded,))
    least_value, greatest_value = _interval(rounded)
    if not low <= least_value <= greatest_value <= high:
        raise QueryRefused(
            f"A cast to {target} can fail: the number may be {least_value if least_value < low else greatest_value}",
            remedy="Cast to a wider integer type, or to DOUBLE.",
        )
    return rounded


def try_number(argument: Expression) -> Expression:
    """Read a number from text; NULL where there is none. Its bounds are unknown."""
    if argument.type != TEXT:
        return to_real(to_number(argument))
    return Operation(function="try_number", arguments=(argument,), type=UNBOUNDED_REAL)


NULL_LITERAL = Literal(value=None, type=NULL)
