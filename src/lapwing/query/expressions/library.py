"""The functions an analyst may call, by the syntax node that the parser makes of them: their rules and arguments.

A node argument that is not named here is refused. `calls` binds what is. Functions under names of other databases are
made of those that there are: so they are total, and bounded, as these.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import arithmetic, conversion, logic, numeric, strings, temporal
from lapwing.query.expressions.expression import Expression, Literal
from lapwing.query.expressions.types import DATE, TEXT, TIMESTAMP, Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How a node becomes an expression.

    Args:
        rule: Takes words and flags as text, then expressions, None for an optional one that is missing.
        words: Arguments that are a word.
        flags: Arguments that the parser sets to a text.
        needed: Arguments that are expressions.
        optional: Arguments that are expressions.
        rest: Arguments that are lists of them.
        ignored: Arguments whose meaning the dialect fixes.
    """

    rule: Callable[..., Expression]
    words: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    needed: tuple[str, ...] = ("this",)
    optional: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


# ---- functions of other databases, made of those that there are ------------------------------------------------------

_ZERO = conversion.number(Fraction(0))


def _divide_or_zero(left: Expression, right: Expression) -> Expression:
    """Bind DIV0(x, y): 0 where y is zero and x is not NULL."""
    zero = logic.both(logic.compare("=", right, _ZERO), _is_known(left))
    return logic.case([zero], [_ZERO], arithmetic.divide(left, right))


def _divide_or_zero_or_null(left: Expression, right: Expression) -> Expression:
    """Bind DIV0NULL(x, y): 0 where y is zero or NULL and x is not NULL."""
    nothing = logic.either(logic.compare("=", right, _ZERO), logic.is_null(right))
    return logic.case([logic.both(nothing, _is_known(left))], [_ZERO], arithmetic.divide(left, right))


def _alike(left: Expression, right: Expression) -> Expression:
    """Bind x IS NOT DISTINCT FROM y."""
    return logic.negation(logic.distinct(left, right))


def _is_known(argument: Expression) -> Expression:
    return logic.negation(logic.is_null(argument))


def _instant(kind: Plain, argument: Expression) -> Expression:
    """Bind DATE(x), TO_DATE(x) and TIMESTAMP(x): of a timestamp, a date or a constant text."""
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        return conversion.temporal(argument.value, kind)
    if argument.type == TEXT:
        target = kind.name
        raise QueryRefused(
            f"A cast of text to {target} can fail",
            cause=RefusalCause.CAST_CAN_FAIL,
            remedy=f"Write TRY_CAST(x AS {target.upper()}): NULL where it does.",
        )
    return conversion.to_date(argument) if kind == DATE else conversion.to_timestamp(argument)


def _moment(*parts: Expression) -> Expression:
    """Bind MAKE_TIMESTAMP(year, month, day, hour, minute, second) of constants."""
    values = [part.value for part in parts if isinstance(part, Literal) and isinstance(part.value, Fraction)]
    if len(values) != len(parts) or any(value < 0 or value.denominator != 1 for value in values[:-1]):
        raise QueryRefused(
            "MAKE_TIMESTAMP takes constant whole numbers",
            cause=RefusalCause.NOT_CONSTANT,
            remedy="Write TIMESTAMP '2026-01-31 12:00:00'.",
        )
    year, month, day, hour, minute = map(int, values[:-1])
    second, millionths = divmod(values[-1] * 1_000_000, 1_000_000)
    if millionths.denominator != 1:
        raise QueryRefused(
            "The seconds of MAKE_TIMESTAMP go beyond six decimals",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Write fewer.",
        )
    text = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}.{int(millionths):06d}"
    return conversion.temporal(text, TIMESTAMP)


def _date_of(argument: Expression, month: Expression | None = None, *day: Expression) -> Expression:
    """Bind DATE(x) and DATE(year, month, day)."""
    if month is None:
        return _instant(DATE, argument)
    if len(day) != 1:
        raise QueryRefused(
            "DATE takes a timestamp, or a year, a month and a day",
            cause=RefusalCause.WRONG_TYPE,
            remedy="Write CAST(x AS DATE).",
        )
    return temporal.make_date(argument, month, day[0])


def _read(kind: Plain, argument: Expression) -> Expression:
    """Bind TRY_TO_DATE(x) and TRY_TO_TIMESTAMP(x): NULL where a text is none."""
    return conversion.read_temporal(argument, kind) if argument.type == TEXT else _instant(kind, argument)


def _added(unit: str, amount: Expression, argument: Expression) -> Expression:
    """Bind DATEADD(unit, amount, x)."""
    return temporal.shift(argument, unit, amount, +1)


# ---- formats of dates ------------------------------------------------------------------------------------------------
# As PostgreSQL and Snowflake (`YYYY-MM`) or Spark (`yyyy-MM`) write them, turned into those of STRFTIME. Only what
# means the same everywhere is translated, letter for letter; a format with anything else is refused.

_TO_CHAR: Mapping[str, str] = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S",
    "yyyy": "%Y", "yy": "%y", "mm": "%m", "ddd": "%j", "dd": "%d", "hh24": "%H", "mi": "%M", "ss": "%S", "Mon": "%b",
    "Dy": "%a",
}  # fmt: skip
_DATE_FORMAT: Mapping[str, str] = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "MMM": "%b", "MMMM": "%B", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
}  # fmt: skip
_BETWEEN = re.compile(r"[-/:., ]+")


def _to_char(argument: Expression, template: Expression | None = None) -> Expression:
    """Bind TO_CHAR(x), of what has one exact text, and TO_CHAR(date, 'YYYY-MM')."""
    if template is None:
        return strings.to_text(argument)
    # Longest first; a letter that is part of no name is understood by nothing.
    return temporal.formatted(argument, _translated("TO_CHAR", template, re.compile("|".join(_TO_CHAR)), _TO_CHAR))


def _date_format(argument: Expression, template: Expression) -> Expression:
    """Bind DATE_FORMAT(date, 'yyyy-MM'): as many equal letters as there are make one name."""
    return temporal.formatted(
        argument, _translated("DATE_FORMAT", template, re.compile(r"([A-Za-z])\1*"), _DATE_FORMAT)
    )


def _translated(name: str, template: Expression, names: re.Pattern[str], meaning: Mapping[str, str]) -> Expression:
    text = template.value if isinstance(template, Literal) else None
    remedy = "Write STRFTIME(x, '%Y-%m')."
    if not isinstance(text, str) or len(text) > 100:
        raise QueryRefused(f"{name} takes a constant format", cause=RefusalCause.NOT_CONSTANT, remedy=remedy)
    at, written = 0, ""
    while at < len(text):
        between = _BETWEEN.match(text, at)
        part = between or names.match(text, at)
        if part is None or (between is None and part[0] not in meaning):
            raise QueryRefused(
                f"The format is not understood at '{text[at : at + 10]}'",
                cause=RefusalCause.INVALID_FORMAT,
                remedy=remedy,
            )
        written += part[0] if between else meaning[part[0]]
        at = part.end()
    return temporal.word(written)


# ---- the tables ------------------------------------------------------------------------------------------------------

PAIR = ("this", "expression")


LIBRARY: Mapping[type[exp.Expression], Signature] = {
    # numbers
    exp.Round: Signature(rule=arithmetic.round_to, optional=("decimals",)),
    exp.Trunc: Signature(rule=numeric.truncate, optional=("decimals",)),
    exp.Mod: Signature(rule=numeric.remainder, needed=PAIR),
    exp.IntDiv: Signature(rule=numeric.quotient, needed=PAIR),
    exp.Sign: Signature(rule=numeric.sign),
    exp.Pow: Signature(rule=numeric.power, needed=PAIR),
    exp.Sqrt: Signature(rule=numeric.square_root),
    exp.Ln: Signature(rule=numeric.logarithm),
    exp.Log: Signature(  # to base 10; LOG(base, x) has the base first
        rule=lambda x, y: numeric.logarithm(x, numeric.TEN) if y is None else numeric.logarithm(y, x),
        optional=("expression",),
    ),
    exp.Exp: Signature(rule=numeric.exponential),
    exp.Pi: Signature(rule=numeric.pi, needed=()),
    exp.Radians: Signature(rule=numeric.radians),
    exp.Degrees: Signature(rule=numeric.degrees),
    exp.Sin: Signature(rule=partial(numeric.wave, "sine")),
    exp.Cos: Signature(rule=partial(numeric.wave, "cosine")),
    exp.Atan: Signature(rule=numeric.arc_tangent),
    exp.SafeDivide: Signature(rule=arithmetic.divide, needed=PAIR),
    exp.WidthBucket: Signature(rule=numeric.width_bucket, needed=("this", "min_value", "max_value", "num_buckets")),
    # choice and comparison
    exp.NullSafeEQ: Signature(rule=_alike, needed=PAIR),
    exp.NullSafeNEQ: Signature(rule=logic.distinct, needed=PAIR),
    exp.EqualNull: Signature(rule=_alike, needed=PAIR),
    exp.Nvl2: Signature(
        rule=lambda x, known, null: logic.case([_is_known(x)], [known], null), needed=("this", "true", "false")
    ),
    exp.BitwiseXor: Signature(rule=logic.exclusive, needed=PAIR),
    # dates and timestamps
    exp.Extract: Signature(rule=temporal.part, words=("this",), needed=("expression",)),
    exp.Year: Signature(rule=partial(temporal.part, "year")),
    exp.Quarter: Signature(rule=partial(temporal.part, "quarter")),
    exp.Month: Signature(rule=partial(temporal.part, "month")),
    exp.Week: Signature(rule=partial(temporal.part, "week")),
    exp.WeekOfYear: Signature(rule=partial(temporal.part, "week")),
    exp.Day: Signature(rule=partial(temporal.part, "day")),
    exp.DayOfMonth: Signature(rule=partial(temporal.part, "day")),
    exp.DayOfYear: Signature(rule=partial(temporal.part, "dayofyear")),
    exp.DayOfWeek: Signature(rule=partial(temporal.part, "dayofweek")),
    exp.DayOfWeekIso: Signature(rule=partial(temporal.part, "isodow")),
    exp.Hour: Signature(rule=partial(temporal.part, "hour")),
    exp.Minute: Signature(rule=partial(temporal.part, "minute")),
    exp.Second: Signature(rule=partial(temporal.part, "second")),
    exp.TimeToUnix: Signature(rule=partial(temporal.part, "epoch")),
    exp.DateTrunc: Signature(rule=temporal.truncate, words=("unit",)),
    exp.TimestampTrunc: Signature(rule=temporal.truncate, words=("unit",)),
    exp.Date: Signature(rule=_date_of, optional=("zone",), rest=("expressions",)),
    exp.Timestamp: Signature(rule=partial(_instant, TIMESTAMP)),
    exp.DateDiff: Signature(
        rule=temporal.difference, words=("unit",), needed=("expression", "this"), ignored=("date_part_boundary",)
    ),
    exp.DateFromParts: Signature(rule=temporal.make_date, needed=("year", "month", "day")),
    exp.TimestampFromParts: Signature(rule=_moment, needed=("year", "month", "day", "hour", "min", "sec")),
    exp.LastDay: Signature(rule=temporal.last_day),
    exp.TimeToStr: Signature(rule=temporal.formatted, needed=("this", "format")),
    exp.ToChar: Signature(rule=_to_char, optional=("format",)),
    exp.Monthname: Signature(rule=partial(temporal.name_of, "month")),
    exp.Dayname: Signature(rule=partial(temporal.name_of, "day")),
    # texts
    exp.Upper: Signature(rule=partial(strings.changed, "upper")),
    exp.Lower: Signature(rule=partial(strings.changed, "lower")),
    exp.Reverse: Signature(rule=partial(strings.changed, "reverse")),
    exp.Length: Signature(rule=strings.length),
    exp.Trim: Signature(
        rule=lambda side, *parts: strings.trim(side.lower() or "both", *parts),
        flags=("position",),
        optional=("expression",),
    ),
    exp.Substring: Signature(rule=strings.substring, needed=("this", "start"), optional=("length",)),
    exp.Left: Signature(rule=partial(strings.end_of, "left"), needed=PAIR),
    exp.Right: Signature(rule=partial(strings.end_of, "right"), needed=PAIR),
    exp.Pad: Signature(
        rule=lambda is_left, x, length, fill: strings.pad(
            "left" if is_left else "right", x, length, temporal.word(" ") if fill is None else fill
        ),
        flags=("is_left",),
        needed=PAIR,
        optional=("fill_pattern",),
    ),
    exp.Replace: Signature(  # without a replacement it leaves the text out
        rule=lambda x, searched, by: strings.replace(x, searched, temporal.word("") if by is None else by),
        needed=PAIR,
        optional=("replacement",),
    ),
    exp.SplitPart: Signature(rule=strings.split_part, needed=("this", "delimiter", "part_index")),
    exp.DPipe: Signature(rule=strings.join, needed=PAIR, ignored=("safe",)),
    exp.Concat: Signature(rule=strings.concat, needed=(), rest=("expressions",), ignored=("safe", "coalesce")),
    exp.ConcatWs: Signature(rule=strings.concat_ws, needed=(), rest=("expressions",), ignored=("safe", "coalesce")),
    exp.StrPosition: Signature(rule=strings.position, needed=("this", "substr")),
    exp.Contains: Signature(rule=partial(strings.has, "contains"), needed=PAIR),
    exp.StartsWith: Signature(rule=partial(strings.has, "starts_with"), needed=PAIR),
    exp.EndsWith: Signature(rule=partial(strings.has, "ends_with"), needed=PAIR),
    exp.RegexpLike: Signature(rule=strings.matches, needed=PAIR, optional=("flag",)),
    exp.RegexpILike: Signature(rule=lambda x, pattern: strings.matches(x, pattern, temporal.word("i")), needed=PAIR),
    exp.RegexpFullMatch: Signature(rule=partial(strings.matches, fully=True), needed=PAIR, optional=("options",)),
    exp.RegexpExtract: Signature(
        rule=strings.extract, needed=PAIR, optional=("group", "parameters"), ignored=("null_if_pos_overflow",)
    ),
    exp.RegexpReplace: Signature(
        rule=strings.substitute, needed=(*PAIR, "replacement"), optional=("modifiers",), ignored=("single_replace",)
    ),
}

# Functions that the parser has no node for: the rule, how many words, and how many expressions it may take.
ANONYMOUS: Mapping[str, tuple[Callable[..., Expression], int, tuple[int, ...]]] = {
    "DATE_PART": (temporal.part, 1, (1,)),
    "DATEPART": (temporal.part, 1, (1,)),
    "WEEKDAY": (partial(temporal.part, "dayofweek"), 0, (1,)),
    "ISOYEAR": (partial(temporal.part, "isoyear"), 0, (1,)),
    "DECADE": (partial(temporal.part, "decade"), 0, (1,)),
    "DATEADD": (_added, 1, (2,)),
    "TIMESTAMPADD": (_added, 1, (2,)),
    "TO_DATE": (partial(_instant, DATE), 0, (1,)),
    "TRY_TO_DATE": (partial(_read, DATE), 0, (1,)),
    "TRY_TO_TIMESTAMP": (partial(_read, TIMESTAMP), 0, (1,)),
    "DATE_FORMAT": (_date_format, 0, (2,)),
    "FORMAT_DATE": (temporal.formatted, 0, (2,)),
    "FORMAT_TIMESTAMP": (temporal.formatted, 0, (2,)),
    "PREFIX": (partial(strings.has, "starts_with"), 0, (2,)),
    "SUFFIX": (partial(strings.has, "ends_with"), 0, (2,)),
    "MID": (strings.substring, 0, (2, 3)),
    "BTRIM": (partial(strings.trim, "both"), 0, (1, 2)),
    "REGEXP_CONTAINS": (strings.matches, 0, (2,)),
    "IFF": (lambda condition, x, y: logic.case([condition], [x], y), 0, (3,)),
    "ISNULL": (lambda x, *y: logic.coalesce(x, *y) if y else logic.is_null(x), 0, (1, 2)),
    "ZEROIFNULL": (lambda x: logic.coalesce(x, _ZERO), 0, (1,)),
    "SQUARE": (lambda x: arithmetic.multiply(x, x), 0, (1,)),
    "DIV0": (_divide_or_zero, 0, (2,)),
    "DIV0NULL": (_divide_or_zero_or_null, 0, (2,)),
}

CLOCKS = {"NOW", "GET_CURRENT_TIMESTAMP", "TRANSACTION_TIMESTAMP", "GET_CURRENT_TIME"}
CLOCK_REMEDY = "Write a constant, as in DATE '2026-03-31'."
