"""Dates and timestamps: their parts, differences and shifts, with bounds.

Guarantee:
    What these rules let through is total. Before anything is computed from a date or timestamp it is certain to lie in
    the years 1 to 9999: by its bounds, or because `in_calendar` turns what lies outside, and infinity, into NULL. Every
    engine has room for these years, and for 1,000 more on either side, which is as far as a shift goes.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from fractions import Fraction
from typing import cast

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import arithmetic, days
from lapwing.query.expressions.conversion import (
    DECLARE_BOUNDS,
    bounds_of,
    clamp_written,
    fixed,
    in_calendar,
    integers_of,
    number,
    require_temporal,
    rescale,
    to_date,
    to_timestamp,
)
from lapwing.query.expressions.expression import Expression, Literal, Operation, written_in
from lapwing.query.expressions.types import TEXT, Fixed, Plain

ONE = Fraction(1)
LONGEST_SHIFT = 372_000  # days: 12,000 months of 31

# Parts with the least and greatest value that they ever have; the year's are its own.
PARTS: Mapping[str, tuple[int, int]] = {
    "year": (1, 9999),
    "isoyear": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dayofyear": (1, 366),
    "dayofweek": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
SPELLINGS = {
    "years": "year", "yr": "year", "yy": "year", "yyyy": "year", "quarters": "quarter", "qq": "quarter", "q": "quarter",
    "months": "month", "mon": "month", "mm": "month", "weeks": "week", "wk": "week", "ww": "week", "isowk": "week",
    "weekofyear": "week", "isoweek": "week", "week_iso": "week", "weekiso": "week", "isoww": "week",
    "dayofweekiso": "isodow", "dayofweek_iso": "isodow",
    "days": "day", "d": "day", "dd": "day", "dayofmonth": "day", "doy": "dayofyear", "dy": "dayofyear",
    "dow": "dayofweek", "weekday": "dayofweek", "hours": "hour", "h": "hour", "hh": "hour", "minutes": "minute",
    "mi": "minute", "min": "minute", "seconds": "second", "s": "second", "ss": "second", "sec": "second",
    "milliseconds": "millisecond", "ms": "millisecond", "microseconds": "microsecond", "us": "microsecond",
}  # fmt: skip
DISPUTED = {"m": "'month' or 'minute'", "y": "'year' or 'dayofyear'", "w": "'week' or 'weekday'"}
"""Letters that SQL Server reads as another unit than DuckDB and Snowflake do: what to write instead."""
SHIFTS: Mapping[str, tuple[str, int]] = {
    "year": ("months", 12),
    "quarter": ("months", 3),
    "month": ("months", 1),
    "week": ("days", 7),
    "day": ("days", 1),
    **{unit: ("microseconds", days.FIXED[unit]) for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}

# What may stand where a unit or a part of time is meant.
UNITS = frozenset({*PARTS, *days.INDEX, "epoch", "decade", "date"})


def is_unit(name: str) -> bool:
    """Tell whether a word names a unit or a part of time."""
    return unit_of(name) in UNITS


def unit_of(name: str) -> str:
    """Return the one spelling of a unit of time."""
    folded = name.casefold()
    return SPELLINGS.get(folded, folded)


def _one_of(units: Collection[str], name: str) -> str:
    """Return the one spelling of a unit of time, or refuse one that is not among these."""
    unit = unit_of(name)
    if unit not in units:
        raise QueryRefused(
            f"The unit '{name[:40]}' is not supported",
            cause=RefusalCause.UNKNOWN_TIME_UNIT,
            remedy=instead_of(name, units),
        )
    return unit


def instead_of(name: str, units: Iterable[str]) -> str:
    """Return a remedy for a word that is no unit of time."""
    clear = DISPUTED.get(name.casefold())
    return f"Use {', '.join(units)}." if clear is None else f"Databases read '{name}' differently. Write {clear}."


def word(value: str) -> Literal:
    """Return a parameter of a function, as an argument that is part of its canonical text."""
    return Literal(value=value, type=TEXT)


def part(name: str, argument: Expression) -> Expression:
    """Take a part of a date or timestamp; a date is its midnight."""
    require_temporal("EXTRACT", argument)
    unit, argument = unit_of(name), in_calendar(argument)
    if unit == "epoch":
        return _epoch(argument)
    if unit == "date":
        return to_date(argument)
    if unit == "decade":
        return arithmetic.floor_to(arithmetic.multiply(part("year", argument), number(Fraction(1, 10))))
    if unit not in PARTS:
        raise QueryRefused(
            f"The part '{name[:40]}' is not supported",
            cause=RefusalCause.UNKNOWN_TIME_UNIT,
            remedy=instead_of(name, [*PARTS, "decade", "date or epoch"]),
        )
    low, high = PARTS[unit]
    first, last = days.microseconds(cast(Plain, argument.type))
    if unit == "year":
        low, high = days.INDEX["year"](first), days.INDEX["year"](last)
    if unit == "isoyear":  # a week belongs to the year of its Thursday, at most one away from the date's own
        low, high = max(1, days.INDEX["year"](first) - 1), min(9999, days.INDEX["year"](last) + 1)
    return Operation(function="part", arguments=(word(unit), argument), type=fixed(ONE, low, high))


def _epoch(argument: Expression) -> Expression:
    """Return the seconds since 1970-01-01: whole for a date, to the microsecond for a timestamp."""
    low, high = bounds_of(argument)
    if cast(Plain, argument.type).name == "date":
        counted = Operation(function="day_number", arguments=(argument,), type=fixed(ONE, low, high))
        return arithmetic.multiply(counted, number(Fraction(86_400)))
    return Operation(function="microsecond_number", arguments=(argument,), type=fixed(Fraction(1, 10**6), low, high))


def whole_number(argument: Expression) -> Expression:
    """Return the days since 1970-01-01 of a date, the whole seconds of a timestamp; both never decrease with it.

    Inside the years 1 to 9999 there are fewer than 2⁴⁰ seconds on either side, so that they are summable as they are.

    Raises:
        QueryRefused: If nothing bounds it but the calendar.
    """
    kind = require_temporal("A number of days or seconds", argument)
    if kind.low is None or kind.high is None or _is_whole_calendar(kind):
        names = " and ".join(sorted(written_in(argument))) or "an expression"
        word_of = kind.name.upper()
        raise QueryRefused(
            f"The bounds of {names} are not known",
            cause=RefusalCause.UNBOUNDED_TIME,
            remedy="Write " + clamp_written(f"{word_of} '2000-01-01'", f"{word_of} '2030-12-31'") + ".",
            curator_remedy=DECLARE_BOUNDS,
        )
    argument = in_calendar(argument)
    if kind.name == "timestamp":
        return arithmetic.floor_to(_epoch(argument))
    low, high = bounds_of(argument)
    return Operation(function="day_number", arguments=(argument,), type=fixed(ONE, low, high))


def _is_whole_calendar(kind: Plain) -> bool:
    """Tell whether bounds say no more than that a time lies in the calendar, as those of casts may."""
    (low, high), (first, last) = days.microseconds(kind), days.CALENDAR["date"]
    return low // days.DAY <= first and last <= high // days.DAY


def truncate(unit: str, argument: Expression) -> Expression:
    """Return the beginning of the year, quarter, month, …, as a timestamp."""
    require_temporal("DATE_TRUNC", argument)
    name = _one_of(days.INDEX, unit)
    argument = to_timestamp(argument)
    low, high = (days.truncated(end, name) for end in bounds_of(argument))
    kind = Plain(name="timestamp", low=low, high=high)
    return Operation(function="truncate", arguments=(word(name), argument), type=kind)


def last_day(argument: Expression) -> Expression:
    """Return the last day of the month."""
    require_temporal("LAST_DAY", argument)
    argument = to_date(argument)
    low, high = map(days.last_day, bounds_of(argument))
    return Operation(function="last_day", arguments=(argument,), type=Plain(name="date", low=low, high=high))


def difference(unit: str, start: Expression, end: Expression) -> Expression:
    """Count the years, months, weeks (from Monday), … that begin after `start` and not after `end`."""
    require_temporal("DATE_DIFF", start)
    require_temporal("DATE_DIFF", end)
    name = _one_of(days.INDEX, unit)
    start, end = (to_date(a) if name in ("week", "day") else to_timestamp(a) for a in (start, end))
    (a, b), (c, d) = (map(days.INDEX[name], days.microseconds(cast(Plain, part.type))) for part in (start, end))
    return Operation(function="difference", arguments=(word(name), start, end), type=fixed(ONE, c - b, d - a))


def days_between(left: Expression, right: Expression) -> Expression:
    """Subtract two dates: the days between them."""
    kinds = {cast(Plain, left.type).name, cast(Plain, right.type).name}
    if kinds != {"date"}:
        raise QueryRefused(
            "The difference of two timestamps is not supported by -",
            cause=RefusalCause.INCOMPATIBLE_TYPES,
            remedy="Write DATE_DIFF('second', earlier, later).",
        )
    return difference("day", right, left)


def shift(argument: Expression, unit: str, amount: Expression, sign: int) -> Expression:
    """Move a date or timestamp by a number of units; the result is a timestamp, as in DuckDB."""
    require_temporal("An INTERVAL", argument)
    base, factor = SHIFTS[_one_of(SHIFTS, unit)]
    steps = _whole(amount, sign * factor)
    size = {"months": 31 * days.DAY, "days": days.DAY, "microseconds": 1}[base]
    low, high = integers_of(steps)
    _require_short(max(-low, high) * size)
    argument = to_timestamp(argument)
    first, last = bounds_of(argument)
    if base == "months":
        first, last = days.later(first, low)[0], days.later(last, high)[1]
    else:
        first, last = first + low * size, last + high * size
    kind = Plain(name="timestamp", low=first, high=last)
    return Operation(function=f"add_{base}", arguments=(argument, steps), type=kind)


def shift_days(argument: Expression, amount: Expression, sign: int) -> Expression:
    """Move a date by a whole number of days; the result is a date. Of a timestamp it is one, as in SQL Server."""
    if require_temporal("+", argument).name != "date":
        return shift(argument, "day", amount, sign)
    steps = _whole(amount, sign)
    (low, high), argument = integers_of(steps), in_calendar(argument)
    _require_short(max(-low, high) * days.DAY)
    first, last = bounds_of(argument)
    kind = Plain(name="date", low=first + low, high=last + high)
    return Operation(function="shift_days", arguments=(argument, steps), type=kind)


def _whole(amount: Expression, factor: int) -> Expression:
    arithmetic.require_numbers("INTERVAL", (amount,))
    if not isinstance(amount.type, Fixed) or amount.type.step.denominator != 1:
        raise QueryRefused(
            "An INTERVAL takes a whole number",
            cause=RefusalCause.WRONG_TYPE,
            remedy="Write INTERVAL 3 DAY, or FLOOR(x).",
        )
    return rescale(amount, ONE) if factor == 1 else arithmetic.multiply(rescale(amount, ONE), number(Fraction(factor)))


def _require_short(microseconds: int) -> None:
    if microseconds > LONGEST_SHIFT * days.DAY:
        raise QueryRefused(
            "An INTERVAL may be longer than 12,000 months or 372,000 days",
            cause=RefusalCause.NUMBER_OVERFLOW,
            remedy="Narrow the bounds of its number.",
        )


def make_date(year: Expression, month: Expression, day: Expression) -> Expression:
    """Make a date from its parts; NULL where there is no such date."""
    parts = (year, month, day)
    arithmetic.require_numbers("MAKE_DATE", parts)
    for argument, low, high in zip(parts, (1, 0, 0), (9999, 99, 99), strict=True):
        kind = argument.type
        if not isinstance(kind, Fixed) or kind.step.denominator != 1:
            raise QueryRefused("MAKE_DATE takes whole numbers", cause=RefusalCause.WRONG_TYPE, remedy="Write FLOOR(x).")
        ends = [cast(Fraction, end) for end in kind.interval()]
        if not low <= ends[0] <= ends[1] <= high:
            raise QueryRefused(
                f"A part of MAKE_DATE may lie outside {low} to {high}",
                cause=RefusalCause.INVALID_ARGUMENT,
                remedy=f"Write {clamp_written(low, high)}.",
            )
    years, months, month_days = (rescale(argument, ONE) for argument in parts)
    first, last = integers_of(years)
    low, high = days.count(date(first, 1, 1)), days.count(date(last, 12, 31))
    made = Plain(name="date", low=low, high=high)
    return Operation(function="make_date", arguments=(years, months, month_days), type=made)


def name_of(part_of_time: str, argument: Expression) -> Expression:
    """Return the English name of the "month", or of the "day" of the week."""
    require_temporal(f"{part_of_time.upper()}NAME", argument)
    return Operation(function=f"{part_of_time}_name", arguments=(in_calendar(argument),), type=TEXT)


# What each directive prints, in characters; the names of months and days are English.
DIRECTIVES = {
    "Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "y": 2, "j": 3, "b": 3, "B": 9, "a": 3, "A": 9, "u": 1, "w": 1,
    "V": 2, "G": 4, "I": 2, "p": 2, "f": 6, "%": 1,
}  # fmt: skip


def formatted(argument: Expression, template: Expression) -> Expression:
    """Write a date or timestamp by a constant format."""
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        argument, template = template, argument
    require_temporal("STRFTIME", argument)
    if not isinstance(template, Literal) or not isinstance(template.value, str) or len(template.value) > 100:
        raise QueryRefused(
            "STRFTIME takes a constant format",
            cause=RefusalCause.NOT_CONSTANT,
            remedy="Write STRFTIME(x, '%Y-%m'), up to 100 long.",
        )
    length_of_format(template.value)
    return Operation(function="formatted", arguments=(in_calendar(argument), template), type=TEXT)


def length_of_format(text: str) -> int:
    """Return how long a formatted time is at most, or refuse a format with an unknown part."""
    length, rest = 0, iter(text)
    for character in rest:
        directive = next(rest, "") if character == "%" else None
        if directive is not None and directive not in DIRECTIVES:
            raise QueryRefused(
                f"'%{directive}' is not a part of a format that is answered",
                cause=RefusalCause.INVALID_FORMAT,
                remedy=f"Use %{', %'.join(DIRECTIVES)}.",
            )
        length += 1 if directive is None else DIRECTIVES[directive]
    return length
