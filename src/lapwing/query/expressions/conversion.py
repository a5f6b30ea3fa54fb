"""Constants, and the conversions between the kinds of number: steps, doubles, and what is summed.

What these rules let through is *total* (`logic`): what might not stay inside 128 bits, or inside doubles, is refused.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from math import floor
from typing import Final, cast

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import days
from lapwing.query.expressions.days import bounded_temporal
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation, is_number, walk
from lapwing.query.expressions.types import (
    BOOLEAN,
    DATE,
    LARGEST_INTEGER,
    LARGEST_REAL,
    NULL,
    TEXT,
    TIMESTAMP,
    Fixed,
    Number,
    Plain,
    Real,
    Type,
    common_step,
    describe,
    in_steps,
    inside,
    is_temporal,
    nearest,
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


def clamp_written(low: object, high: object) -> str:
    """Return what to write so that x is bounded and NULL where it was NULL: LEAST and GREATEST pass over that."""
    return f"CASE WHEN x IS NOT NULL THEN LEAST(GREATEST(x, {low}), {high}) END"


_STATE_BOUNDS = (
    "Keep only the rows between bounds: WHERE x BETWEEN 0 AND 100. To clamp instead, give an aggregate "
    f"contribution_bounds_per_row => (0, 100), or write {clamp_written(0, 100)}."
)
DECLARE_BOUNDS: Final = "declare bounds of the columns in the catalog"
"""The remedy of the curator for a value without bounds."""


def interval_of(argument: Expression) -> tuple[Fraction, Fraction]:
    """Return the bounds of a number that is known to be bounded."""
    return cast(tuple[Fraction, Fraction], cast(Number, argument.type).interval())


def integers_of(argument: Expression) -> tuple[int, int]:
    """Return the bounds, in steps, of a fixed-point value that is known to be bounded."""
    kind = cast(Fixed, argument.type)
    return cast(tuple[int, int], (kind.low, kind.high))


def number(value: Fraction) -> Literal:
    """Return an exact numeric constant."""
    if abs(value) > 10**30 or value.denominator > 10**18:
        raise QueryRefused(
            "A number has more than 18 decimals or is above 1e30",
            cause=RefusalCause.INVALID_NUMBER,
            remedy="Write it with fewer digits.",
        )
    return Literal(value=value, type=fixed(Fraction(1, value.denominator), value.numerator, value.numerator))


def fixed(step: Fraction, low: int | None, high: int | None) -> Fixed:
    """Return a fixed-point type, refusing integers that would not stay inside 128 bits."""
    if max(abs(low or 0), abs(high or 0)) > LARGEST_INTEGER or not STEPS[0] <= step <= STEPS[1]:
        raise _too_wide()
    return Fixed(step=step, low=low, high=high)


def _too_wide() -> QueryRefused:
    return QueryRefused(
        "An expression may grow beyond 128-bit integers",
        cause=RefusalCause.NUMBER_OVERFLOW,
        remedy="Shorten the product.",
        curator_remedy="declare coarser steps or narrower bounds in the catalog",
    )


def multiple(coarse: Fraction, fine: Fraction) -> int:
    """Return how many fine steps a coarse one has, refusing what 128 bits could not hold."""
    if coarse / fine > LARGEST_INTEGER:
        raise _too_wide()
    return int(coarse / fine)


def real(low: Fraction | None, high: Fraction | None) -> Real:
    """Return a real type whose bounds are doubles, refusing what doubles could not hold.

    A result of + − * / is rounded to the nearest double; so are its bounds, and rounding keeps order (`types`).
    """
    if any(abs(end) > LARGEST_REAL for end in (low, high) if end is not None):
        raise QueryRefused(
            "An expression may grow beyond 1e150",
            cause=RefusalCause.NUMBER_OVERFLOW,
            remedy="Narrow the bounds of its columns.",
        )
    return Real(low=None if low is None else nearest(low), high=None if high is None else nearest(high))


def with_bounds(kind: Type, low: Fraction | int | None, high: Fraction | int | None) -> Type:
    """Return a type with other bounds, refusing numbers that could not be held."""
    if isinstance(kind, Real):
        return real(cast(Fraction | None, low), cast(Fraction | None, high))
    whole_low, whole_high = cast(int | None, low), cast(int | None, high)
    if isinstance(kind, Fixed):
        return fixed(kind.step, whole_low, whole_high)
    return Plain(name=kind.name, low=whole_low, high=whole_high)


def rescale(argument: Expression, step: Fraction) -> Expression:
    """Express a fixed-point value in a finer step of which its own is a whole multiple."""
    kind = cast(Fixed, argument.type)
    if kind.step == step:
        return argument
    if not kind.bounded and step < FINEST_STEP:
        raise QueryRefused(
            "An unbounded number is compared at more than 18 decimals",
            cause=RefusalCause.NUMBER_OVERFLOW,
            remedy=f"Write {clamp_written(0, 100)}.",
        )
    factor = multiple(kind.step, step)
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
    low = None if kind.low is None else as_double(kind.low - _last_bits(kind.low), kind.step)
    high = None if kind.high is None else as_double(kind.high + _last_bits(kind.high), kind.step)
    return Operation(function="to_real", arguments=(argument,), type=real(low, high))


def as_double(count: int, step: Fraction) -> Fraction:
    """Return the double that a number of steps becomes."""
    return in_steps(nearest(Fraction(count)), 1 / step)


def _last_bits(count: int) -> int:
    """Return more than what engines differ by when an integer above 2⁵³ becomes a double."""
    return abs(count) >> 50 if abs(count) > 2**53 else 0


def unbounded_columns(expression: Expression) -> frozenset[str]:
    """Return the numeric columns in an expression whose bounds are not known, as the question writes them."""
    columns = [node for node in walk(expression) if isinstance(node, ColumnReference)]
    return frozenset(
        column.written or column.name
        for column in columns
        if isinstance(column.type, Fixed | Real) and not column.type.bounded
    )


def without_bounds(argument: Expression, otherwise: str) -> QueryRefused:
    """Return the refusal of an expression that needs bounds, naming the columns that have none."""
    names = sorted(unbounded_columns(argument))
    reason = f"The catalog declares no bounds of {' and '.join(names)}" if names else otherwise
    cause = RefusalCause.UNBOUNDED
    return QueryRefused(reason, remedy=_STATE_BOUNDS, curator_remedy=DECLARE_BOUNDS, cause=cause)


def to_fixed(argument: Expression) -> Expression:
    """Round a bounded real half up to 2²⁰ steps over its range; a fixed-point value stays as it is.

    The least and greatest values may round to a step beyond the bounds; whoever sums them clamps (`render.measured`).
    """
    kind = argument.type
    if isinstance(kind, Fixed):
        return argument
    if not isinstance(kind, Real) or kind.low is None or kind.high is None:
        raise without_bounds(argument, "The bounds of an expression are not known")
    span = max(kind.high - kind.low, abs(kind.high), abs(kind.low))
    # A power of two just above range/2²⁰ keeps the step short and exact as a double.
    step = Fraction(2) ** log2_up(span / REAL_STEPS) if span else Fraction(1)
    if step < STEPS[0]:
        raise QueryRefused(
            "An expression is never larger than 1e-94",
            cause=RefusalCause.NUMBER_OVERFLOW,
            remedy="Multiply it by a constant.",
        )
    return Operation(function="to_fixed", arguments=(argument,), type=inside(kind, step))


def summable(argument: Expression) -> Expression:
    """Return a bounded fixed-point value of at most 2⁴⁰ steps, rounding to a coarser step where it has more."""
    argument = to_fixed(argument)
    kind = cast(Fixed, argument.type)
    if not kind.bounded:
        raise without_bounds(argument, "The bounds of an expression are not known")
    widest = max(map(abs, integers_of(argument)))
    excess = widest.bit_length() - SUMMABLE_BITS
    if excess <= 0:
        return argument
    step = kind.step * 2**excess
    low, high = (floor(k / Fraction(2) ** excess + Fraction(1, 2)) for k in integers_of(argument))
    return Operation(function="round_to", arguments=(argument,), type=fixed(step, low, high))


def coarser_step(argument: Expression) -> Fraction | None:
    """Return the step to which `summable` has rounded a value, None if it left it as it was."""
    if not isinstance(argument, Operation) or argument.function != "round_to":
        return None
    (value,) = argument.arguments
    kind = value.type
    return cast(Fixed, argument.type).step if isinstance(kind, Fixed) and summable(value) == argument else None


def log2_up(value: Fraction) -> int:
    """Return the least exponent of a power of two that is not below a positive value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - 1
    while Fraction(2) ** exponent < value:
        exponent += 1
    return exponent


def alike(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    """Bring arguments to one type: numbers to a common step or to doubles, text constants to dates beside dates."""
    typed = [argument for argument in arguments if argument.type != NULL]
    kinds = {describe(argument.type) for argument in typed}
    if "text" in kinds and kinds & {"date", "timestamp"}:
        kind = DATE if "timestamp" not in kinds else TIMESTAMP
        typed = [_temporal(argument, kind) if argument.type == TEXT else argument for argument in typed]
        kinds = {describe(argument.type) for argument in typed}
    if kinds == {"date", "timestamp"}:
        typed = [to_timestamp(argument) if describe(argument.type) == "date" else argument for argument in typed]
        kinds = {"timestamp"}
    if kinds == {"boolean", "number"}:
        typed = [_truth(argument) for argument in typed]
        kinds = {describe(argument.type) for argument in typed}
    if "text" in kinds and len(kinds) == 2 and kinds & {"number", "boolean"}:
        typed = [_read(argument, (kinds - {"text"}).pop()) for argument in typed]
        kinds = {describe(argument.type) for argument in typed}
    if len(kinds) > 1:
        remedy = _TOGETHER.get(frozenset(kinds), "Compare values of one type.")
        raise QueryRefused(
            f"{' and '.join(sorted(kinds))} do not go together", cause=RefusalCause.INCOMPATIBLE_TYPES, remedy=remedy
        )
    if kinds == {"number"}:
        if any(isinstance(argument.type, Real) for argument in typed):
            typed = [to_real(argument) for argument in typed]
        else:
            step = cast(Fixed, typed[0].type).step
            for argument in typed[1:]:
                step = common_step(step, cast(Fixed, argument.type).step)
            typed = [rescale(argument, step) for argument in typed]
    common = typed[0].type if typed else NULL
    remaining = iter(typed)
    return tuple(
        Literal(value=None, type=_null_of(common)) if argument.type == NULL else next(remaining)
        for argument in arguments
    )


_TOGETHER = {
    frozenset({"number", "text"}): "Write numbers without quotes; TRY_CAST(x AS DOUBLE) reads them from texts.",
    frozenset({"boolean", "number"}): "Write the condition itself, x or NOT x, or CAST(x AS INTEGER).",
    frozenset({"boolean", "text"}): "Write the condition itself, x or NOT x.",
}
_TRUTHS = {"true": True, "false": False}


def folded(argument: Expression) -> Expression:
    """Return a number that is computed from constants alone as a constant: its bounds say what it is."""
    kind = argument.type
    operations = [node for node in walk(argument) if isinstance(node, Operation)]
    plain = operations and all(node.function in ("add", "subtract", "multiply", "negate") for node in operations)
    known = all(isinstance(node, Literal) and node.value is not None for node in walk(argument) if not node.children)
    if not plain or not known or not isinstance(kind, Fixed) or kind.low is None or kind.low != kind.high:
        return argument
    return Literal(value=kind.low * kind.step, type=kind)


def _truth(argument: Expression) -> Expression:
    """Return the constants 1 and 0 beside conditions as what they stand for."""
    known = isinstance(argument, Literal) and argument.value in (0, 1) and is_number(argument.type)
    return Literal(value=argument.value == 1, type=BOOLEAN) if known and isinstance(argument, Literal) else argument


def _read(argument: Expression, kind: str) -> Expression:
    """Return a constant text beside numbers or conditions as what it says, if it is a whole number, true or false."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return argument
    if kind == "number" and _WHOLE.fullmatch(argument.value):
        return number(Fraction(argument.value))
    if kind == "boolean" and argument.value.lower() in _TRUTHS:
        return Literal(value=_TRUTHS[argument.value.lower()], type=BOOLEAN)
    return argument


_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DAY = re.compile(r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})(?![0-9])")
_ZONE = re.compile(r"\s*(UTC|GMT|[zZ])$|\s+(?=[+-][0-9:]+$)")


def _null_of(kind: Type) -> Type:
    if isinstance(kind, Fixed):
        return Fixed(step=kind.step, low=0, high=0)
    if isinstance(kind, Real):
        return Real(low=Fraction(0), high=Fraction(0))
    return Plain(name=kind.name, low=0, high=0) if is_temporal(kind) else kind


def _temporal(argument: Expression, kind: Type) -> Expression:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise QueryRefused(
            "A text column is compared with a date",
            cause=RefusalCause.INCOMPATIBLE_TYPES,
            remedy="Compare it with a date constant.",
        )
    return temporal(argument.value, kind)


def temporal(text: str, kind: Type, *, zoned: bool = False) -> Literal:
    """Read an ISO date or timestamp constant, also 2026/3/1; a date of a timestamp is its day.

    Args:
        zoned: Whether it may be in another zone than UTC, and is moved to UTC then.
    """
    try:
        iso = _DAY.sub(lambda day: f"{day[1]}-{day[3]:0>2}-{day[4]:0>2}", text.strip(), count=1)
        moment = datetime.fromisoformat(_ZONE.sub(lambda zone: "Z" if zone[1] else "", iso))
        if moment.utcoffset() and not zoned:  # databases disagree whether that moves it
            raise QueryRefused(
                f"'{text[:40]}' is not in UTC, as columns are",
                cause=RefusalCause.INVALID_DATE,
                remedy=f"Write TIMESTAMPTZ '{text[:40]}'.",
            )
        moment = (moment if moment.tzinfo is None else moment.astimezone(UTC)).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise QueryRefused(
            f"'{text}' is not a {describe(kind)}",
            cause=RefusalCause.INVALID_DATE,
            remedy="Write 2026-03-31 or 2026-03-31 12:00:00.",
        ) from None
    if kind == DATE:
        return Literal(value=moment.date(), type=bounded_temporal("date", moment.date(), moment.date()))
    return Literal(value=moment, type=bounded_temporal("timestamp", moment, moment))


def nullable(argument: Expression, never: frozenset[str] = frozenset()) -> bool:
    """Tell whether an expression may be NULL; columns may, but for those that are `never`."""
    if isinstance(argument, Literal):
        return argument.value is None
    if isinstance(argument, Operation):
        inner = [nullable(part, never) for part in argument.arguments]
        match argument.function:
            case "coalesce" | "least" | "greatest":
                return all(inner)
            case "case":
                return any((*inner[1::2], inner[-1]))
            case "is_null":
                return False
            case "rescale" | "to_real" | "to_fixed" | "round_to" | "floor_to" | "negate" | "absolute" | "from_boolean":
                return inner[0]
    return not (isinstance(argument, ColumnReference) and argument.name in never)


# ---- dates and timestamps inside the calendar ------------------------------------------------------------------------


def require_temporal(name: str, argument: Expression) -> Plain:
    """Return the type of a date or timestamp, or refuse what is neither."""
    if not is_temporal(argument.type):
        raise QueryRefused(
            f"{name} needs a date or timestamp, not {describe(argument.type)}",
            cause=RefusalCause.WRONG_TYPE,
            remedy="Write DATE '2026-03-31', or TRY_CAST(x AS DATE).",
        )
    return cast(Plain, argument.type)


def in_calendar(argument: Expression) -> Expression:
    """Return a date or timestamp that is certain to lie in the years 1 to 9999, or NULL."""
    kind = cast(Plain, argument.type)
    first, last = days.CALENDAR[kind.name]
    low, high = first if kind.low is None else kind.low, last if kind.high is None else kind.high
    if kind.low is not None and kind.high is not None and first <= low <= high <= last:
        return argument
    low, high = max(first, min(low, last)), min(last, max(high, first))
    return Operation(function="in_calendar", arguments=(argument,), type=Plain(name=kind.name, low=low, high=high))


def bounds_of(argument: Expression) -> tuple[int, int]:
    """Return the bounds of what lies in the calendar, in days or microseconds."""
    kind = cast(Plain, argument.type)
    return cast(tuple[int, int], (kind.low, kind.high))


def to_date(argument: Expression) -> Expression:
    """Drop the time of day."""
    kind = require_temporal("A cast to DATE", argument)
    if kind.name == "date":
        return in_calendar(argument)
    argument = in_calendar(argument)
    low, high = (end // days.DAY for end in bounds_of(argument))
    return Operation(function="to_date", arguments=(argument,), type=Plain(name="date", low=low, high=high))


def to_timestamp(argument: Expression) -> Expression:
    """Return a timestamp; of a date, its midnight."""
    kind = require_temporal("A cast to TIMESTAMP", argument)
    argument = in_calendar(argument)
    if kind.name == "timestamp":
        return argument
    low, high = days.microseconds(cast(Plain, argument.type))
    return Operation(function="to_timestamp", arguments=(argument,), type=Plain(name="timestamp", low=low, high=high))


def read_temporal(text: Expression, target: Plain) -> Expression:
    """Read a date or timestamp from text; NULL where there is none."""
    function = "try_date" if target.name == "date" else "try_timestamp"
    return Operation(function=function, arguments=(text,), type=Plain(name=target.name))
