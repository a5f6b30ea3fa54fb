"""Times as tools write them: buckets, spans between two times, ages, seconds since 1970, zones, texts by a format.

Guarantee:
    All of it is total, as in `temporal`: what might leave the calendar, or 128 bits, is refused or NULL. The rules of a
    time zone are public. They become constants of the query, so that both engines compute the same.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import arithmetic, conversion, days, logic, numeric, temporal
from lapwing.query.expressions.conversion import bounds_of, require_temporal, to_timestamp
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.types import TIMESTAMP, Fixed, Number, Plain, Type

SECOND: Final = 1_000_000
MONDAY: Final = days.count(datetime(2000, 1, 3))
"""Where buckets begin unless a query says it, as in DuckDB: a Monday."""
MOST_SECONDS: Final = 1_000 * 366 * 86_400
"""How far from 1970 a number of seconds may lead."""
_FIRST: Final = days.CALENDAR["timestamp"][0]
_PART: Final[Mapping[str, tuple[int, int | None]]] = {
    "day": (86_400, None), "hour": (3_600, 24), "minute": (60, 60),
}  # fmt: skip
"""Of a part of a span, the seconds that it is of, and how many make the next part."""


# ---- buckets ---------------------------------------------------------------------------------------------------------


def bucket(width: int, argument: Expression, origin: int = MONDAY) -> Expression:
    """Return the beginning of the span of `width` microseconds that a time lies in; one span begins at `origin`."""
    require_temporal("TIME_BUCKET", argument)
    argument, start = to_timestamp(argument), origin - -(-(origin - _FIRST) // width) * width
    low, high = (start + (end - start) // width * width for end in bounds_of(argument))
    words = (temporal.word(str(width)), temporal.word(str(start)))
    kind = Plain(name="timestamp", low=low, high=high)
    # The first span of all may begin before the calendar does.
    return conversion.in_calendar(Operation(function="bucket", arguments=(*words, argument), type=kind))


# ---- spans -----------------------------------------------------------------------------------------------------------


def seconds_between(later: Expression, earlier: Expression) -> Expression:
    """Subtract two times: the seconds between them, to the microsecond."""
    first, second = (temporal.part("epoch", to_timestamp(argument)) for argument in (later, earlier))
    return arithmetic.subtract(first, second)


def part_of_span(unit: str, seconds: Expression) -> Expression:
    """Return the days of a span, or what hours, minutes or seconds it has beside; or all of it, in seconds."""
    name = temporal.unit_of(unit)
    if name == "epoch":
        return seconds
    if name == "second":
        return numeric.remainder(seconds, conversion.number(Fraction(60)))
    if name not in _PART:
        raise QueryRefused(
            f"The part '{unit[:40]}' of a difference of times is not supported",
            cause=RefusalCause.UNKNOWN_TIME_UNIT,
            remedy="Use day, hour, minute, second or epoch.",
        )
    size, most = _PART[name]
    whole = numeric.truncate(arithmetic.multiply(seconds, conversion.number(Fraction(1, size))))
    return whole if most is None else numeric.remainder(whole, conversion.number(Fraction(most)))


def part_of_age(unit: str, later: Expression, earlier: Expression) -> Expression:
    """Return the whole years of AGE(later, earlier), or the months beside: by birthdays, as PostgreSQL counts.

    A year is over on the same day and time of the next year; for February 29 on March 1 in years without one. An age
    is less than 0 where `earlier` is the later one.
    """
    name, arguments = temporal.unit_of(unit), (later, earlier)
    for argument in arguments:
        require_temporal("AGE", argument)
    if name not in ("year", "month"):
        raise QueryRefused(
            f"The part '{unit[:40]}' of AGE is not supported",
            cause=RefusalCause.UNKNOWN_TIME_UNIT,
            remedy="Use year or month, or DATE_DIFF('day', x, y).",
        )
    if any(cast(Plain, argument.type).name == "timestamp" for argument in arguments):
        later, earlier = map(to_timestamp, arguments)
    low, high = (_age(*ends) for ends in _ends(later, earlier))
    forwards = _months(later, earlier)
    if low < 0:
        backwards = arithmetic.negate(_months(earlier, later))
        forwards = logic.case([logic.compare(">=", later, earlier)], [forwards], backwards)
    exact = Operation(
        function="inside",
        arguments=(forwards, *map(_whole, (low, high))),
        type=conversion.fixed(Fraction(1), low, high),
    )
    if name == "year":
        return numeric.quotient(exact, _whole(12))
    return numeric.remainder(exact, _whole(12))


def _whole(value: int) -> Literal:
    return conversion.number(Fraction(value))


def _months(later: Expression, earlier: Expression) -> Expression:
    """Return the whole months between two times of which the first is the later one."""
    part, twelve = temporal.part, _whole(12)

    def month(argument: Expression) -> Expression:
        return arithmetic.add(arithmetic.multiply(part("year", argument), twelve), part("month", argument))

    def rest(argument: Expression) -> Expression:  # what decides whether the last month is over
        if cast(Plain, argument.type).name == "date":
            return part("day", argument)
        day = arithmetic.multiply(part("day", argument), conversion.number(Fraction(86_400)))
        return arithmetic.add(day, seconds_between(argument, temporal.truncate("day", argument)))

    early = logic.case([logic.compare("<", rest(later), rest(earlier))], [_whole(1)], _whole(0))
    return arithmetic.subtract(arithmetic.subtract(month(later), month(earlier)), early)


def _ends(later: Expression, earlier: Expression) -> tuple[tuple[int, int], tuple[int, int]]:
    (a, b), (c, d) = (days.microseconds(cast(Plain, conversion.in_calendar(x).type)) for x in (later, earlier))
    return (a, d), (b, c)


def _age(later: int, earlier: int) -> int:
    """Return the whole months between two moments, in microseconds; an age only grows with the first of them."""
    if later < earlier:
        return -_age(earlier, later)
    a, b = days.moment_at(later), days.moment_at(earlier)
    early = (a.day, a.time()) < (b.day, b.time())
    return 12 * (a.year - b.year) + a.month - b.month - int(early)


# ---- seconds since 1970 ----------------------------------------------------------------------------------------------


def of_epoch(argument: Expression) -> Expression:
    """Return the time a number of seconds after 1970-01-01, to the microsecond; NULL more than 1,000 years away."""
    arithmetic.require_numbers("TO_TIMESTAMP", (argument,))
    value, low, high = conversion.alike((argument, _whole(-MOST_SECONDS), _whole(MOST_SECONDS)))
    near = logic.between(value, low, high)
    inside = Operation(function="inside", arguments=(value, low, high), type=_near(cast(Number, value.type)))
    micros = arithmetic.round_to(arithmetic.multiply(inside, _whole(SECOND)))
    moved = temporal.shift(_moment(0), "microsecond", micros, +1)
    return logic.case([near], [moved], logic.NULL_LITERAL)


def _near(kind: Number) -> Type:
    """Return the type of a number that is brought to at most so many seconds on either side."""
    most = int(MOST_SECONDS / kind.step) if isinstance(kind, Fixed) else Fraction(MOST_SECONDS)
    low, high = (-most if end is None else min(max(end, -most), most) for end in (kind.low, kind.high))
    return conversion.with_bounds(kind, low, most if kind.high is None else high)


# ---- zones -----------------------------------------------------------------------------------------------------------

_UTC: Final = frozenset({"utc", "gmt", "z", "etc/utc", "etc/gmt", "zulu", "+00", "+00:00"})
LONGEST_RULES: Final = 40
"""Years whose rules of a zone a query may look up."""
_STEP: Final = days.DAY
"""How far apart changes are looked for: less than any zone keeps an offset. Freetown kept one for four days in 1939."""


def is_utc(zone: str) -> bool:
    """Tell whether a name is one of UTC."""
    return zone.strip().lower() in _UTC


def in_zone(argument: Expression, zone: str) -> Expression:
    """Return what clocks in a zone show at a time in UTC."""
    require_temporal("AT TIME ZONE", argument)
    argument = to_timestamp(argument)
    if is_utc(zone):
        return argument
    offsets = zone_offsets(_rules(zone), *bounds_of(argument), zone)
    (_, last), earlier = offsets[-1], offsets[:-1]
    conditions = [logic.compare("<", argument, _moment(until)) for until, _ in earlier]
    amount = logic.case(conditions, [_whole(offset) for _, offset in earlier], _whole(last))
    return temporal.shift(argument, "second", amount if earlier else _whole(last), +1)


def from_zone(argument: Expression, zone: str) -> Expression:
    """Return the time in UTC at which clocks in a zone show a constant."""
    require_temporal("AT TIME ZONE", argument)
    if is_utc(zone):
        return to_timestamp(argument)
    rules, value = _rules(zone), argument.value if isinstance(argument, Literal) else None
    if not isinstance(value, datetime):
        raise QueryRefused(
            f"Times of {zone} in a column are not supported: some of them are there twice a year",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy=f"Columns are in UTC. For the time in {zone} write x AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'.",
        )
    try:
        early, late = (value.replace(tzinfo=rules, fold=fold).astimezone(UTC).replace(tzinfo=None) for fold in (0, 1))
    except OverflowError:
        raise QueryRefused(
            f"{value} in {zone} is outside the years 1 to 9999 in UTC",
            cause=RefusalCause.INVALID_DATE,
            remedy="Write a time inside them.",
        ) from None
    if early != late:
        raise QueryRefused(
            f"Clocks in {zone} show {value} twice, or never",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Write the time in UTC, as TIMESTAMPTZ '…Z'.",
        )
    return _moment(days.count(early))


def _moment(microseconds: int) -> Literal:
    return conversion.temporal(days.moment_at(microseconds).isoformat(sep=" "), TIMESTAMP)


def _rules(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise QueryRefused(
            f"There are no rules of the time zone '{zone[:40]}'",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Write 'UTC', or one like 'Europe/Berlin'.",
        ) from None


@lru_cache(maxsize=64)
def zone_offsets(rules: ZoneInfo, low: int, high: int, zone: str) -> list[tuple[int, int]]:
    """Return the offsets of a zone, in seconds, each with the time until which it holds."""
    if high - low > LONGEST_RULES * 366 * days.DAY:
        raise QueryRefused(
            f"The rules of {zone} would be looked up for more than {LONGEST_RULES} years",
            cause=RefusalCause.UNBOUNDED_TIME,
            remedy="Keep less: write "
            + conversion.clamp_written("TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2030-01-01 00:00:00'")
            + ".",
            curator_remedy=conversion.DECLARE_BOUNDS,
        )

    first, last_day = _FIRST + days.DAY, days.CALENDAR["timestamp"][1] - days.DAY

    def offset(at: int) -> int:  # a day inside the calendar, so that the time there is in it, too
        moment = days.moment_at(min(max(at, first), last_day)).replace(tzinfo=UTC).astimezone(rules)
        span = moment.utcoffset()
        return 0 if span is None else int(span.total_seconds())

    found, at, last = list[tuple[int, int]](), low, offset(low)
    while at < high:
        following = min(at + _STEP, high)
        if offset(following) != last:
            before, after = at // SECOND, -(-following // SECOND)
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (middle, after) if offset(middle * SECOND) == last else (before, middle)
            found.append((after * SECOND, last))
            last = offset(following)
        at = following
    return [*found, (high, last)]


# ---- texts by a format -----------------------------------------------------------------------------------------------

_OF_POSTGRES: Final[Mapping[str, str]] = {
    "YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S", "US": "%f", "MS": "%f",
    "Mon": "%b", "MON": "%b", "Month": "%B", "TZH": "", "DDD": "%j",
}  # fmt: skip
_DIRECTIVES: Final = re.compile("|".join(sorted(_OF_POSTGRES, key=len, reverse=True)), re.IGNORECASE)
_PLAIN: Final = re.compile(r"[-/:., TZ]")
_DIGITS: Final[Mapping[str, str]] = {"Y": "[0-9]{4}", "m": "[0-9]{1,2}", "d": "[0-9]{1,2}", "H": "[0-9]{1,2}",
                                     "M": "[0-9]{1,2}", "S": "[0-9]{1,2}"}  # fmt: skip
_RANGES: Final[Mapping[str, tuple[int, int]]] = {"Y": (1, 9999), "m": (1, 12), "d": (1, 31), "H": (0, 23),
                                                 "M": (0, 59), "S": (0, 59)}  # fmt: skip


def template_of(text: str) -> str:
    """Return a format of PostgreSQL or Snowflake as one of STRPTIME."""
    found, at = "", 0
    text = text.replace('"', "")
    while at < len(text):
        name = _DIRECTIVES.match(text, at)
        known = None if name is None else _OF_POSTGRES.get(name[0], _OF_POSTGRES.get(name[0].upper()))
        if name is not None and known:
            found, at = found + known, name.end()
        elif _PLAIN.match(text, at):
            found, at = found + text[at], at + 1
        else:
            raise QueryRefused(
                f"The format is not understood at '{text[at : at + 10]}'",
                cause=RefusalCause.INVALID_FORMAT,
                remedy="Write STRPTIME(x, '%Y-%m-%d').",
            )
    return found


def read_by_format(argument: Expression, template: str, kind: Plain) -> Expression:
    """Read a date or a timestamp from a text by a format of STRPTIME; NULL where a text of a row is none."""
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        try:
            moment = datetime.strptime(argument.value, template)
        except (ValueError, OverflowError, re.error):
            raise QueryRefused(
                f"'{argument.value[:40]}' is not written as '{template[:40]}' says",
                cause=RefusalCause.INVALID_DATE,
                remedy="Write DATE '2026-03-31'.",
            ) from None
        return conversion.temporal(moment.isoformat(sep=" "), kind)
    return _read(argument, template, kind)


def _read(argument: Expression, template: str, kind: Plain) -> Expression:
    """Read the numbers of a text one by one, so that both engines do the same; out of range is NULL."""
    from lapwing.query.expressions import casts, strings  # here: casts need this file

    parts = re.findall(r"%(.)|([^%])", template)
    names = [name for name, _ in parts if name]
    if set(names) - set(_DIGITS) or len(set(names)) < len(names) or "Y" not in names:
        raise QueryRefused(
            f"The format '{template[:40]}' is not supported for a column",
            cause=RefusalCause.INVALID_FORMAT,
            remedy="Use %Y, %m, %d, %H, %M and %S, each once.",
        )
    pattern = "".join(f"({_DIGITS[name]})" if name else re.escape(plain) for name, plain in parts)
    whole = strings.matches(argument, temporal.word(pattern), fully=True)

    def field(name: str) -> Expression:
        if name not in names:
            return _whole(1 if name in "md" else 0)
        digits = strings.extract(argument, temporal.word(f"^{pattern}$"), _whole(names.index(name) + 1))
        value, ends = casts.try_integer(digits, "INTEGER"), [_whole(end) for end in _RANGES[name]]
        inside = Operation(
            function="inside", arguments=(value, *ends), type=conversion.fixed(Fraction(1), *_RANGES[name])
        )
        return logic.case([logic.between(value, *ends)], [inside], logic.NULL_LITERAL)

    day = temporal.make_date(*map(field, "Ymd"))
    if kind.name == "timestamp" and any(name in names for name in "HMS"):
        sizes = zip("HMS", (3_600, 60, 1), strict=True)
        parts_of_day = [arithmetic.multiply(field(name), _whole(size)) for name, size in sizes]
        seconds = arithmetic.add(arithmetic.add(*parts_of_day[:2]), parts_of_day[2])
        day = temporal.shift(day, "second", seconds, +1)
    read = day if kind.name == "date" else to_timestamp(day)
    return logic.case([whole], [read], logic.NULL_LITERAL)
