"""Casts that cannot fail: to a number with room for it, to a truth value, a text, a date, a timestamp.

Those of texts are TRY_CASTs, NULL where the text is none; a plain CAST of them is refused, as it would raise. A text
that stands in the query is read at once.
"""

import re
from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import arithmetic, conversion, logic, strings
from lapwing.query.expressions.expression import Expression, Literal, Operation, is_number
from lapwing.query.expressions.types import (
    BOOLEAN,
    DATE,
    TEXT,
    TIMESTAMP,
    UNBOUNDED_INTEGER,
    UNBOUNDED_REAL,
    Plain,
    describe,
    is_temporal,
)

_CASTS = "Cast numbers to DOUBLE, DECIMAL, integers or VARCHAR, dates to TIMESTAMP or VARCHAR; TRY_CAST texts."
_TEMPORAL: Mapping[exp.DType, Plain] = {
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP,
    exp.DType.DATETIME: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
}
ZONED = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_INTEGERS = {
    kind: (name, -(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1)
    for kind, name, bits, signed in (
        (exp.DType.TINYINT, "TINYINT", 8, True),
        (exp.DType.SMALLINT, "SMALLINT", 16, True),
        (exp.DType.INT, "INTEGER", 32, True),
        (exp.DType.BIGINT, "BIGINT", 64, True),
        (exp.DType.INT128, "HUGEINT", 128, True),
        (exp.DType.UTINYINT, "UTINYINT", 8, False),
        (exp.DType.USMALLINT, "USMALLINT", 16, False),
        (exp.DType.UINT, "UINTEGER", 32, False),
        (exp.DType.UBIGINT, "UBIGINT", 64, False),
    )
}
# The integers that a TRY_CAST reads from a text: those of at most 64 bits that fit a signed one.
_INTEGERS_READ = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_PLAIN_DECIMAL = (18, 3)  # as in DuckDB
_NUMBERS = frozenset((*_INTEGERS, exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL))
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,18})?")
_TIMES = {exp.DType.TIME: "TIME", exp.DType.TIMETZ: "TIME"}


def rounds(node: exp.Expression) -> bool:
    """Tell whether a node is a cast to a type of whole numbers or of decimals."""
    target = node.args["to"].this if isinstance(node, exp.Cast) else None
    return target in _INTEGERS or target == exp.DType.DECIMAL


def cast(argument: Expression, kind: object, parameters: list[int], *, attempt: bool) -> Expression:
    """Convert an expression to a type, given its parameters, or refuse a cast that could fail on some row.

    Args:
        attempt: Whether it is a TRY_CAST.
    """
    if argument == logic.NULL_LITERAL:
        return argument
    if not attempt:
        argument = _read_constant(argument, kind, parameters)
    if attempt and argument.type == TEXT and kind in _INTEGERS:
        return try_integer(argument, _INTEGERS[kind][0])
    if kind in _INTEGERS:
        return to_integer(argument, *_INTEGERS[kind])
    if kind in (exp.DType.DOUBLE, exp.DType.FLOAT):
        return try_number(argument) if attempt else to_number(argument)
    if kind == exp.DType.DECIMAL:
        return _to_decimal(argument, *(parameters or _PLAIN_DECIMAL))
    if kind in (exp.DType.TEXT, exp.DType.VARCHAR):
        return strings.to_text(argument)
    if kind == exp.DType.BOOLEAN and (argument.type == BOOLEAN or is_number(argument.type)):
        return argument if argument.type == BOOLEAN else logic.compare("<>", argument, conversion.number(Fraction(0)))
    if isinstance(kind, exp.DType) and kind in _TEMPORAL:
        if kind in ZONED and isinstance(argument, Literal) and isinstance(argument.value, str):
            return conversion.temporal(argument.value, TIMESTAMP, zoned=True)
        return _to_temporal(argument, _TEMPORAL[kind], attempt=attempt and kind not in ZONED)
    name = kind.value if isinstance(kind, exp.DType) else "that type"
    remedy = "Timestamps are in UTC: cast to TIMESTAMP, or use HOUR(x) and MINUTE(x)." if kind in _TIMES else _CASTS
    raise QueryRefused(
        f"A cast of {describe(argument.type)} to {name} is not supported",
        cause=RefusalCause.CAST_NOT_SUPPORTED,
        remedy=remedy,
    )


def _read_constant(argument: Expression, kind: object, parameters: list[int]) -> Expression:
    """Return the number or the truth value that a constant text is, as drivers write them: `'5'::int4`.

    The text is a part of the query, so whether it is one depends on no row. If databases disagree about a text,
    such as `'5.5'` for a whole number, the cast is refused.
    """
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return argument
    if kind == exp.DType.BOOLEAN and argument.value.lower() in ("true", "false"):
        return Literal(value=argument.value.lower() == "true", type=BOOLEAN)
    if kind not in _NUMBERS or not _NUMBER.fullmatch(argument.value):
        return argument
    value = Fraction(argument.value)
    scale = (parameters or _PLAIN_DECIMAL)[1:] if kind == exp.DType.DECIMAL else ()
    decimals = 18 if kind in (exp.DType.DOUBLE, exp.DType.FLOAT) else sum(scale)
    return conversion.number(value) if (value * 10**decimals).denominator == 1 else argument


def _to_temporal(argument: Expression, kind: Plain, *, attempt: bool) -> Expression:
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        return conversion.temporal(argument.value, kind)
    if is_temporal(argument.type):
        return conversion.to_date(argument) if kind == DATE else conversion.to_timestamp(argument)
    if argument.type == TEXT and attempt:
        return conversion.read_temporal(argument, kind)
    wanted = kind.name
    if argument.type == TEXT:
        raise QueryRefused(
            f"A cast of text to {wanted} can fail",
            cause=RefusalCause.CAST_CAN_FAIL,
            remedy=f"Write TRY_CAST(x AS {wanted.upper()}).",
        )
    raise QueryRefused(
        f"A cast of {describe(argument.type)} to {wanted.upper()} is not supported",
        cause=RefusalCause.CAST_NOT_SUPPORTED,
        remedy=_CASTS,
    )


def _to_decimal(argument: Expression, width: int, scale: int = 0) -> Expression:
    """Round half up to `scale` decimals; `width` digits must hold the number for certain."""
    if argument.type == TEXT:
        raise QueryRefused(
            "A cast of text to DECIMAL can fail",
            cause=RefusalCause.CAST_CAN_FAIL,
            remedy="Write TRY_CAST(x AS DOUBLE).",
        )
    rounded = arithmetic.round_to(to_number(argument), conversion.number(Fraction(scale)))
    arithmetic.require_numbers("A cast to DECIMAL", (rounded,))
    if not arithmetic.reads(rounded) and max(map(abs, conversion.interval_of(rounded))) >= Fraction(10) ** (
        width - scale
    ):
        raise QueryRefused(
            f"A cast to DECIMAL({width}, {scale}) can fail: the number may be larger",
            cause=RefusalCause.CAST_CAN_FAIL,
            remedy="Use more digits.",
        )
    return rounded


def to_number(argument: Expression) -> Expression:
    """Cast what can always be cast to a double: numbers and booleans."""
    if argument.type == BOOLEAN:
        kind = conversion.fixed(Fraction(1), 0, 1)
        return Operation(function="from_boolean", arguments=(argument,), type=kind)
    if not is_number(argument.type):
        raise QueryRefused(
            f"A cast of {describe(argument.type)} to a number can fail",
            cause=RefusalCause.CAST_CAN_FAIL,
            remedy=conversion.GUARDED_CAST,
        )
    return argument


def truth_as_number(argument: Expression) -> Expression:
    """Return a condition as a number, 1 where it is true and 0 where it is false; anything else as it is."""
    return to_number(argument) if argument.type == BOOLEAN else argument


def to_integer(argument: Expression, target: str, low: int, high: int) -> Expression:
    """Cast a number or a boolean to a whole number, rounding half up; it must fit the integer type for certain."""
    if argument.type == TEXT:
        raise QueryRefused(
            "A cast of text to a number can fail",
            cause=RefusalCause.CAST_CAN_FAIL,
            remedy=f"Write TRY_CAST(x AS {target}).",
        )
    rounded = arithmetic.round_to(to_number(argument))
    arithmetic.require_numbers(f"A cast to {target}", (rounded,))
    if arithmetic.reads(rounded):  # what bounds rule out is no reason to refuse it
        return rounded
    least_value, greatest_value = conversion.interval_of(rounded)
    if not low <= least_value <= greatest_value <= high:
        raise QueryRefused(
            f"A cast to {target} can fail: the number may be {least_value if least_value < low else greatest_value}",
            cause=RefusalCause.CAST_CAN_FAIL,
            remedy="Cast to a wider integer type, or to DOUBLE.",
        )
    return rounded


def try_number(argument: Expression) -> Expression:
    """Read a number from text; NULL where there is none. Its bounds are unknown."""
    if argument.type != TEXT:
        return conversion.to_real(to_number(argument))
    return Operation(function="try_number", arguments=(argument,), type=UNBOUNDED_REAL)


def try_integer(argument: Expression, target: str) -> Expression:
    """Read a whole number of at most 64 bits from text; NULL where there is none. Its bounds are not used."""
    if target not in _INTEGERS_READ:
        raise QueryRefused(
            f"A cast of text to {target} is not supported",
            cause=RefusalCause.CAST_NOT_SUPPORTED,
            remedy="Write TRY_CAST(x AS BIGINT).",
        )
    name = Literal(value=target, type=TEXT)
    return Operation(function="try_integer", arguments=(argument, name), type=UNBOUNDED_INTEGER)
