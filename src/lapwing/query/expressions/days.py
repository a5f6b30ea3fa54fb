"""The calendar, for bounds: dates as days and timestamps as microseconds since 1970-01-01, in the Gregorian calendar.

`INDEX`, `truncated` and `last_day` never decrease, so that bounds of the argument give bounds of the result.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

from lapwing.query.expressions.types import Plain

EPOCH = date(1970, 1, 1)
DAY = 86_400_000_000  # microseconds
# Dates and times are computed with inside the years 1 to 9999; what lies outside, infinity too, counts as NULL there.
CALENDAR = {
    "date": ((date.min - EPOCH).days, (date.max - EPOCH).days),
    "timestamp": ((date.min - EPOCH).days * DAY, ((date.max - EPOCH).days + 1) * DAY - 1),
}


def count(value: date) -> int:
    """Return the days, or for a datetime the microseconds, since 1970-01-01."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return (value - EPOCH).days


def date_at(days: int) -> date:
    """Return the date so many days after 1970-01-01."""
    return EPOCH + timedelta(days=days)


def moment_at(microseconds: int) -> datetime:
    """Return the timestamp so many microseconds after 1970-01-01."""
    return datetime(1970, 1, 1) + timedelta(microseconds=microseconds)


def bounded_temporal(name: str, lower: object, upper: object) -> Plain:
    """Return the type of a date or timestamp column with its declared bounds, if it has them."""
    kind = "date" if name == "date" else "timestamp"
    if not isinstance(lower, date) or not isinstance(upper, date):
        return Plain(name="date" if kind == "date" else "timestamp")
    return Plain(name="date" if kind == "date" else "timestamp", low=count(lower), high=count(upper))


def microseconds(kind: Plain) -> tuple[int, int]:
    """Return the bounds of a bounded date or timestamp as timestamps; a date is its midnight."""
    scale = DAY if kind.name == "date" else 1
    return (kind.low or 0) * scale, (kind.high or 0) * scale


FIXED = {
    "week": 7 * DAY, "day": DAY, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1000,
    "microsecond": 1,
}  # fmt: skip
"""The units of time that are always as long, in microseconds."""

# How many units have begun between 1970-01-01 (weeks: 0001-01-01, a Monday) and a time.
INDEX: Mapping[str, Callable[[int], int]] = {
    "year": lambda us: moment_at(us).year,
    "quarter": lambda us: 4 * moment_at(us).year + (moment_at(us).month - 1) // 3,
    "month": lambda us: 12 * moment_at(us).year + moment_at(us).month - 1,
    "week": lambda us: (us // DAY - CALENDAR["date"][0]) // 7,
    "day": lambda us: us // DAY,
    "hour": lambda us: us // 3_600_000_000,
    "minute": lambda us: us // 60_000_000,
    "second": lambda us: us // 1_000_000,
    "millisecond": lambda us: us // 1000,
    "microsecond": lambda us: us,
}


def truncated(us: int, unit: str) -> int:
    """Return the beginning of the unit that a time lies in."""
    moment = moment_at(us)
    match unit:
        case "year":
            return count(datetime(moment.year, 1, 1))
        case "quarter":
            return count(datetime(moment.year, 3 * ((moment.month - 1) // 3) + 1, 1))
        case "month":
            return count(datetime(moment.year, moment.month, 1))
        case "week":
            return us - us % DAY - moment.weekday() * DAY
    return us - us % FIXED[unit]


def last_day(days: int) -> int:
    """Return the last day of the month that a date lies in."""
    at = date_at(days)
    following = count(date(at.year, at.month + 1, 1)) if at.month < 12 else count(date(at.year, 12, 31)) + 1
    return following - 1


PARTS: Mapping[str, Callable[[datetime], int]] = {
    "year": lambda at: at.year,
    "isoyear": lambda at: at.isocalendar().year,
    "quarter": lambda at: (at.month + 2) // 3,
    "month": lambda at: at.month,
    "week": lambda at: at.isocalendar().week,
    "day": lambda at: at.day,
    "dayofyear": lambda at: at.timetuple().tm_yday,
    "dayofweek": lambda at: at.isoweekday() % 7,
    "isodow": lambda at: at.isoweekday(),
    "hour": lambda at: at.hour,
    "minute": lambda at: at.minute,
    "second": lambda at: at.second,
}
"""The parts of a time that EXTRACT takes."""


def part(us: int, unit: str) -> int:
    """Return a part of a time."""
    return PARTS[unit](moment_at(us))


def moved(at: date, unit: str, amount: int) -> datetime | None:
    """Return a time moved by months, days or microseconds; None outside the years 1 to 9999."""
    moment = at if isinstance(at, datetime) else datetime(at.year, at.month, at.day)
    try:
        if unit != "months":
            return moment + timedelta(microseconds=amount * (DAY if unit == "days" else 1))
        year, month = divmod(12 * moment.year + moment.month - 1 + amount, 12)
        first = count(date(year, month + 1, 1))
        return moment.replace(year=year, month=month + 1, day=min(moment.day, date_at(last_day(first)).day))
    except (OverflowError, ValueError):
        return None


def later(us: int, months: int) -> tuple[int, int]:
    """Return bounds of a time moved by months: the day stays, or becomes the last one of a shorter month.

    The least is a bound for every later time too, the greatest for every earlier one. Inside the years 1 to 9999 moving
    by months keeps the order of days, but not that of times: January 30 at 23:00 comes before January 31 at 0:00, and a
    month later after it, on the same last day of February. So the bounds are the ends of the day that is reached.
    Outside, a month has between 28 and 31 days.
    """
    moment = moment_at(us)
    year, month = divmod(12 * moment.year + moment.month - 1 + months, 12)
    if 1 <= year <= 9999:
        first = count(date(year, month + 1, 1))
        day = min(first + moment.day - 1, last_day(first))
        return day * DAY, day * DAY + DAY - 1
    ends = (us + 28 * DAY * months, us + 31 * DAY * months)
    return min(ends), max(ends)
