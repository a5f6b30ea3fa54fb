"""The functions an analyst may call, by the syntax node that the parser makes of them: their rules and arguments.

A node argument that is not named here is refused. `calls` binds what is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from lapwing.query.expressions import arithmetic, formats, functions, numeric, spellings, strings, temporal
from lapwing.query.expressions.expression import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How a node becomes an expression.

    Args: rule: takes words and flags as text, then expressions, None for an optional one that is missing;
        words: arguments that are a word; flags: arguments that the parser sets to a text;
        needed, optional: arguments that are expressions; rest: arguments that are lists of them;
        ignored: arguments whose meaning the dialect fixes.
    """

    rule: Callable[..., Expression]
    words: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    needed: tuple[str, ...] = ("this",)
    optional: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


PAIR = ("this", "expression")


def _log(argument: Expression, second: Expression | None) -> Expression:
    """Bind LOG(x), to base 10, and LOG(base, x)."""
    if second is None:
        return numeric.logarithm(argument, numeric.TEN)
    return numeric.logarithm(second, argument)


def _trim(side: str, argument: Expression, characters: Expression | None) -> Expression:
    return strings.trim({"LEADING": "leading", "TRAILING": "trailing"}.get(side, "both"), argument, characters)


def _pad(is_left: str, argument: Expression, length: Expression, fill: Expression | None) -> Expression:
    return spellings.pad("left" if is_left else "right", argument, length, fill)


def _part(name: str) -> Call:
    return Call(rule=partial(temporal.part, name))


def _truncate_or_log(call: Callable[..., Expression]) -> Call:
    return Call(rule=call, optional=("decimals",))


LIBRARY: Mapping[type[exp.Expression], Call] = {
    # numbers
    exp.Round: _truncate_or_log(arithmetic.round_to),
    exp.Trunc: _truncate_or_log(numeric.truncate),
    exp.Mod: Call(rule=numeric.remainder, needed=PAIR),
    exp.IntDiv: Call(rule=numeric.quotient, needed=PAIR),
    exp.Sign: Call(rule=numeric.sign),
    exp.Pow: Call(rule=numeric.power, needed=PAIR),
    exp.Sqrt: Call(rule=numeric.square_root),
    exp.Ln: Call(rule=numeric.logarithm),
    exp.Log: Call(rule=_log, optional=("expression",)),
    exp.Exp: Call(rule=numeric.exponential),
    exp.Pi: Call(rule=numeric.pi, needed=()),
    exp.Radians: Call(rule=numeric.radians),
    exp.Degrees: Call(rule=numeric.degrees),
    exp.Sin: Call(rule=numeric.sine),
    exp.Cos: Call(rule=numeric.cosine),
    exp.Atan: Call(rule=numeric.arc_tangent),
    exp.SafeDivide: Call(rule=arithmetic.divide, needed=PAIR),
    exp.WidthBucket: Call(rule=numeric.width_bucket, needed=("this", "min_value", "max_value", "num_buckets")),
    # choice and comparison
    exp.Nullif: Call(rule=functions.null_if, needed=PAIR),
    exp.NullSafeEQ: Call(rule=lambda left, right: functions.negation(functions.distinct(left, right)), needed=PAIR),
    exp.NullSafeNEQ: Call(rule=functions.distinct, needed=PAIR),
    exp.EqualNull: Call(rule=lambda left, right: functions.negation(functions.distinct(left, right)), needed=PAIR),
    exp.Nvl2: Call(rule=spellings.by_null, needed=("this", "true", "false")),
    exp.BitwiseXor: Call(rule=functions.exclusive, needed=PAIR),
    # dates and timestamps
    exp.Extract: Call(rule=temporal.part, words=("this",), needed=("expression",)),
    exp.Year: _part("year"),
    exp.Quarter: _part("quarter"),
    exp.Month: _part("month"),
    exp.Week: _part("week"),
    exp.WeekOfYear: _part("week"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfYear: _part("dayofyear"),
    exp.DayOfWeek: _part("dayofweek"),
    exp.DayOfWeekIso: _part("isodow"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.TimeToUnix: _part("epoch"),
    exp.DateTrunc: Call(rule=temporal.truncate, words=("unit",)),
    exp.TimestampTrunc: Call(rule=temporal.truncate, words=("unit",)),
    exp.Date: Call(rule=spellings.date_of, optional=("zone",), rest=("expressions",)),
    exp.Timestamp: Call(rule=spellings.to_timestamp),
    exp.DateDiff: Call(
        rule=temporal.difference, words=("unit",), needed=("expression", "this"), ignored=("date_part_boundary",)
    ),
    exp.DateFromParts: Call(rule=temporal.make_date, needed=("year", "month", "day")),
    exp.LastDay: Call(rule=temporal.last_day),
    exp.TimeToStr: Call(rule=temporal.formatted, needed=("this", "format")),
    exp.ToChar: Call(rule=formats.to_char, optional=("format",)),
    exp.Monthname: Call(rule=temporal.month_name),
    exp.Dayname: Call(rule=temporal.day_name),
    # texts
    exp.Upper: Call(rule=strings.upper),
    exp.Lower: Call(rule=strings.lower),
    exp.Reverse: Call(rule=strings.reverse),
    exp.Length: Call(rule=strings.length),
    exp.Trim: Call(rule=_trim, flags=("position",), optional=("expression",)),
    exp.Substring: Call(rule=strings.substring, needed=("this", "start"), optional=("length",)),
    exp.Left: Call(rule=strings.left, needed=PAIR),
    exp.Right: Call(rule=strings.right, needed=PAIR),
    exp.Pad: Call(rule=_pad, flags=("is_left",), needed=PAIR, optional=("fill_pattern",)),
    exp.Replace: Call(rule=spellings.without, needed=PAIR, optional=("replacement",)),
    exp.SplitPart: Call(rule=strings.split_part, needed=("this", "delimiter", "part_index")),
    exp.DPipe: Call(rule=strings.join, needed=PAIR, ignored=("safe",)),
    exp.Concat: Call(rule=strings.concat, needed=(), rest=("expressions",), ignored=("safe", "coalesce")),
    exp.ConcatWs: Call(rule=strings.concat_ws, needed=(), rest=("expressions",), ignored=("safe", "coalesce")),
    exp.StrPosition: Call(rule=strings.position, needed=("this", "substr")),
    exp.Contains: Call(rule=strings.contains, needed=PAIR),
    exp.StartsWith: Call(rule=strings.starts_with, needed=PAIR),
    exp.EndsWith: Call(rule=strings.ends_with, needed=PAIR),
    exp.RegexpLike: Call(rule=strings.matches, needed=PAIR, optional=("flag",)),
    exp.RegexpILike: Call(rule=spellings.matches_any_case, needed=PAIR),
    exp.RegexpFullMatch: Call(rule=strings.fully_matches, needed=PAIR, optional=("options",)),
    exp.RegexpExtract: Call(
        rule=strings.extract, needed=PAIR, optional=("group", "parameters"), ignored=("null_if_pos_overflow",)
    ),
    exp.RegexpReplace: Call(
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
    "DATEADD": (spellings.date_add, 1, (2,)),
    "TIMESTAMPADD": (spellings.date_add, 1, (2,)),
    "TO_DATE": (spellings.to_date, 0, (1,)),
    "TRY_TO_DATE": (spellings.try_date, 0, (1,)),
    "TRY_TO_TIMESTAMP": (spellings.try_timestamp, 0, (1,)),
    "DATE_FORMAT": (formats.date_format, 0, (2,)),
    "FORMAT_DATE": (temporal.formatted, 0, (2,)),
    "FORMAT_TIMESTAMP": (temporal.formatted, 0, (2,)),
    "PREFIX": (strings.starts_with, 0, (2,)),
    "SUFFIX": (strings.ends_with, 0, (2,)),
    "MID": (strings.substring, 0, (2, 3)),
    "BTRIM": (spellings.trim_both, 0, (1, 2)),
    "REGEXP_CONTAINS": (strings.matches, 0, (2,)),
    "IFF": (spellings.choose, 0, (3,)),
    "ISNULL": (spellings.is_null_or, 0, (1, 2)),
    "ZEROIFNULL": (spellings.zero_if_null, 0, (1,)),
    "NULLIFZERO": (spellings.null_if_zero, 0, (1,)),
    "SQUARE": (spellings.square, 0, (1,)),
    "DIV0": (spellings.divide_or_zero, 0, (2,)),
    "DIV0NULL": (spellings.divide_or_zero_or_null, 0, (2,)),
}

CLOCKS = {"NOW", "GET_CURRENT_TIMESTAMP", "TRANSACTION_TIMESTAMP", "GET_CURRENT_TIME"}
CLOCK_REMEDY = "Write a constant, as in DATE '2026-03-31'."
