"""Dates and timestamps of an answer that stand for noisy numbers: days or seconds since 1970-01-01.

A quantile of dates is a quantile of whole numbers, which is written as a date at the end (`date_at`, `moment_at`). So
its interval is that of the number. A formula over two dates is computed from their numbers, so that its interval
follows by the rules for numbers.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.derivation.columns import TEMPORAL
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue, Side, compute, interval_end
from lapwing.query.derivation.derived import measures_of
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.temporal import LONGEST_SHIFT, instead_of, unit_of

_WRITTEN: Final = ("date_at", "moment_at")
_SECONDS: Final[Mapping[str, int]] = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


def date_of(days: Derived) -> FunctionValue:
    """Write days since 1970-01-01 as a date."""
    return compute("date_at", days)


def moment_of(seconds: Derived) -> FunctionValue:
    """Write seconds since 1970-01-01 as a timestamp."""
    return compute("moment_at", seconds)


def midnights(days: Derived) -> FunctionValue:
    """Write days since 1970-01-01, and parts of days, as a timestamp."""
    return moment_of(compute("multiply", days, _exact(Fraction(_SECONDS["day"]))))


def days_between(later: Derived, earlier: Derived) -> FunctionValue:
    """Subtract two dates: the days between them."""
    return compute("subtract", _number(later), _number(earlier))


def seconds_of(value: Derived) -> Derived:
    """Return the seconds since 1970-01-01 of a date or timestamp."""
    number = _number(value)
    return compute("multiply", number, _exact(Fraction(_SECONDS["day"]))) if value.shape == "date" else number


def seconds_between(later: Derived, earlier: Derived) -> FunctionValue:
    """Subtract two times: the seconds between them."""
    return compute("subtract", seconds_of(later), seconds_of(earlier))


def days_later(value: Derived, days: Derived, sign: int) -> Derived:
    """Move a date by a whole number of days.

    Raises:
        QueryRefused: If it is not a constant whole number, of up to 1,000 years.
    """
    number = days.value if isinstance(days, ConstantValue) else None
    if not isinstance(number, Fraction) or number.denominator != 1 or abs(number) > LONGEST_SHIFT:
        raise QueryRefused(
            "A date of the result is moved by a constant number of days",
            cause=RefusalCause.NOT_CONSTANT,
            remedy="Write d + 7.",
        )
    base, moved_by = ConstantValue(value="days", shape="text"), _exact(sign * number)
    return compute("to_date", compute("shift", value, base, moved_by))


def difference(unit: str, start: Derived, end: Derived) -> FunctionValue:
    """Count the seconds, minutes, hours or days that begin after `start` and not after `end`.

    Raises:
        QueryRefused: If it is another unit, or they are no dates and timestamps.
    """
    size = _SECONDS.get(unit_of(unit))
    if size is None:
        reason = f"DATE_DIFF over the result does not count in '{unit[:40]}'"
        raise QueryRefused(reason, cause=RefusalCause.UNKNOWN_TIME_UNIT, remedy=instead_of(unit, _SECONDS))
    if any(part.shape not in TEMPORAL for part in (start, end)):
        raise QueryRefused(
            "DATE_DIFF over the result needs dates or timestamps",
            cause=RefusalCause.WRONG_TYPE,
            remedy="Write MAX(d) - MIN(d).",
        )
    if size == _SECONDS["day"] and start.shape == end.shape == "date":
        return days_between(end, start)
    return compute("subtract", _begun(end, size), _begun(start, size))


def end_of(value: Derived, side: Side) -> Derived:
    """Take an end of the 95 % interval of a noisy number, or of a date or timestamp that stands for one."""
    if isinstance(value, FunctionValue) and value.function in _WRITTEN and measures_of(value):
        return compute(value.function, interval_end(value.arguments[0], side))
    return interval_end(value, side)


def _begun(value: Derived, size: int) -> Derived:
    """Return how many spans of so many seconds have begun since 1970-01-01."""
    per_unit = _SECONDS["day"] if value.shape == "date" else 1
    return compute("floor", compute("multiply", _number(value), _exact(Fraction(per_unit, size))))


def _number(value: Derived) -> Derived:
    """Return the number of days or seconds that a date or timestamp stands for."""
    if isinstance(value, FunctionValue) and value.function in _WRITTEN:
        return value.arguments[0]
    return compute("day_number" if value.shape == "date" else "second_number", value)


def _exact(value: Fraction) -> ConstantValue:
    return ConstantValue(value=value, shape="integer" if value.denominator == 1 else "real")
