"""Dates and timestamps that are certain to lie in the calendar, and the casts between them."""

from typing import cast

from lapwing.errors import QueryRefused
from lapwing.query.expressions import days
from lapwing.query.expressions.expression import Expression, Operation
from lapwing.query.expressions.types import Plain, describe, is_temporal


def require_temporal(name: str, argument: Expression) -> Plain:
    """Return the type of a date or timestamp, or refuse what is neither."""
    if not is_temporal(argument.type):
        raise QueryRefused(
            f"{name} needs a date or timestamp, not {describe(argument.type)}",
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
    """Leave the time of day away."""
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


def read(text: Expression, target: Plain) -> Expression:
    """Read a date or timestamp from text; NULL where there is none."""
    function = "try_date" if target.name == "date" else "try_timestamp"
    return Operation(function=function, arguments=(text,), type=Plain(name=target.name))
