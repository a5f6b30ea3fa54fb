"""The values of an expression that follow from the few values of what it is computed from.

The list of a key's values is public, since every one of them appears in the answer. It decides which cells there are,
and a list that is too long or too short discloses nothing. But one that is too short drops rows without need, and one
that is much too long adds cells that hold nothing but noise.
"""

import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Final

from lapwing.query.expressions import days
from lapwing.query.expressions.expression import Constant, Expression, Literal, Operation
from lapwing.query.expressions.types import Fixed, Plain

MAX_VALUES: Final = 10_000
"""The most values of a key that nobody listed: a number's range, or a public column."""

Listed = tuple[Constant, ...]
ValuesOf = Callable[[Expression], Listed | None]

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def range_of(kind: Plain) -> Listed | None:
    """Return the days between the bounds of a date."""
    if kind.name != "date" or kind.low is None or kind.high is None or kind.high - kind.low >= MAX_VALUES:
        return None
    first, last = days.CALENDAR["date"]
    return tuple(map(days.date_at, range(max(kind.low, first), min(kind.high, last) + 1)))


def image(expression: Operation, values_of: ValuesOf) -> Listed | None:
    """Return the values of an operation, in order; None if they are too many, or are not known to be few.

    Args:
        values_of: Gives those of its arguments.
    """
    first = expression.arguments[0] if expression.arguments else None
    match expression.function:
        case "truncate":
            return _beginnings(expression)
        case "bucket":
            return _buckets(expression)
        case "last_day":
            listed = range_of(expression.type) if isinstance(expression.type, Plain) else None
            dates = [day for day in listed or () if isinstance(day, date)]
            return None if listed is None else tuple(d for d in dates if days.last_day(days.count(d)) == days.count(d))
        case "month_name":
            return MONTHS
        case "day_name":
            return DAYS
        case "to_date" if isinstance(first, Operation) and first.function in ("truncate", "bucket"):
            moments = image(first, values_of)
            return None if moments is None else tuple(dict.fromkeys(map(_day, moments)))
        case "formatted":
            return _formatted(expression)
        case function if function in _OPERATORS:
            return _arithmetic(expression, values_of)
        case "upper" | "lower":
            change = str.upper if expression.function == "upper" else str.lower
            return _of_texts(expression.arguments, values_of, lambda parts: change(parts[0]))
        case "written" if first is not None:
            return _as_text(values_of(first))
        case "concat_strict":
            return _of_texts(expression.arguments, values_of, "".join)
    return None


# ---- numbers --------------------------------------------------------------------------------------------------------


def _arithmetic(expression: Operation, values_of: ValuesOf) -> Listed | None:
    """Compute with the values of one whole number and constants, where that leaves out some of the range."""
    kind = expression.type
    changing = [part for part in expression.arguments if not isinstance(part, Literal)]
    if not isinstance(kind, Fixed) or len(changing) != 1 or not isinstance(changing[0].type, Fixed):
        return None
    values = values_of(changing[0])
    if values is None:
        return None
    numbers = [value for value in values if isinstance(value, Fraction)]
    found = [_computed(expression, value) for value in numbers]
    known = sorted({value for value in found if value is not None})
    return tuple(known) if len(numbers) == len(values) and None not in found else None


_OPERATORS: Final[dict[str, Callable[..., Fraction]]] = {
    "multiply": operator.mul,
    "add": operator.add,
    "subtract": operator.sub,
    "negate": operator.neg,
}


def _computed(expression: Operation, value: Fraction) -> Fraction | None:
    parts = [part.value if isinstance(part, Literal) else value for part in expression.arguments]
    numbers = [part for part in parts if isinstance(part, Fraction)]
    return _OPERATORS[expression.function](*numbers) if len(numbers) == len(parts) else None


# ---- dates ----------------------------------------------------------------------------------------------------------


def _beginnings(expression: Operation) -> Listed | None:
    """Return the beginnings of a unit of time between the bounds of what DATE_TRUNC gives, if there are bounds."""
    kind, unit = expression.type, expression.arguments[0]
    if not isinstance(kind, Plain) or kind.low is None or kind.high is None or not isinstance(unit, Literal):
        return None
    name = str(unit.value)
    index = days.INDEX[name]
    unbounded = days.moment_at(kind.low).year == 1 or days.moment_at(kind.high).year == 9999
    if unbounded or index(kind.high) - index(kind.low) >= MAX_VALUES:
        return None
    longest = {"year": 366, "quarter": 92, "month": 31}.get(name)
    found = [kind.low]
    while found[-1] < kind.high:
        size = longest * days.DAY if longest is not None else days.FIXED[name]
        found.append(days.truncated(found[-1] + size, name))
    return tuple(map(days.moment_at, found))


def _buckets(expression: Operation) -> Listed | None:
    """Return the beginnings of the spans between the bounds of what TIME_BUCKET gives, if they are few."""
    kind, width = expression.type, expression.arguments[0]
    if not isinstance(kind, Plain) or kind.low is None or kind.high is None or not isinstance(width, Literal):
        return None
    size = int(str(width.value))
    unbounded = days.moment_at(kind.low).year == 1 or days.moment_at(kind.high).year == 9999
    if unbounded or (kind.high - kind.low) // size >= MAX_VALUES:
        return None
    return tuple(map(days.moment_at, range(kind.low, kind.high + 1, size)))


def _day(moment: Constant) -> Constant:
    return moment.date() if isinstance(moment, datetime) else moment


_DIRECTIVES: Final[dict[str, Callable[[date], str]]] = {
    "%": lambda _day: "%",
    "Y": lambda day: str(day.year),
    "y": lambda day: f"{day.year % 100:02}",
    "m": lambda day: f"{day.month:02}",
    "d": lambda day: f"{day.day:02}",
    "j": lambda day: f"{day.timetuple().tm_yday:03}",
    "b": lambda day: MONTHS[day.month - 1][:3],
    "B": lambda day: MONTHS[day.month - 1],
    "a": lambda day: DAYS[day.weekday()][:3],
    "A": lambda day: DAYS[day.weekday()],
    "u": lambda day: str(day.isoweekday()),
    "w": lambda day: str(day.isoweekday() % 7),
    "V": lambda day: f"{day.isocalendar().week:02}",
    "G": lambda day: str(day.isocalendar().year),
}


def _formatted(expression: Operation) -> Listed | None:
    """Return what STRFTIME makes of the days between bounds, for formats without a time of day, and from year 1000."""
    argument, template = expression.arguments
    kind = argument.type
    if not isinstance(kind, Plain) or kind.low is None or kind.high is None or not isinstance(template, Literal):
        return None
    low, high = (end // days.DAY if kind.name == "timestamp" else end for end in (kind.low, kind.high))
    listed = range_of(Plain(name="date", low=low, high=high))
    parts = _parts(str(template.value))
    if listed is None or parts is None or any(isinstance(day, date) and day.year < 1001 for day in listed[:1]):
        return None
    written = ("".join(part(day) for part in parts) for day in listed if isinstance(day, date))
    return tuple(dict.fromkeys(written))


def _parts(template: str) -> list[Callable[[date], str]] | None:
    """Return what each part of a format writes; None if one is not of the day."""
    parts: list[Callable[[date], str]] = []
    rest = iter(template)
    for character in rest:
        part = _DIRECTIVES.get(next(rest, "")) if character == "%" else partial(_itself, character)
        if part is None:
            return None
        parts.append(part)
    return parts


def _itself(character: str, _day: date) -> str:
    return character


# ---- texts ----------------------------------------------------------------------------------------------------------


def _as_text(values: Listed | None) -> Listed | None:
    """Write whole numbers and dates as texts."""
    found: list[Constant] = []
    for value in values or ():
        if type(value) is date and value.year >= 1000:
            found.append(value.isoformat())
        elif isinstance(value, Fraction) and value.denominator == 1:
            found.append(str(value))
        else:
            return None
    return tuple(found) or None


def _of_texts(
    arguments: Sequence[Expression], values_of: ValuesOf, combined: Callable[[Sequence[str]], str]
) -> Listed | None:
    """Combine every value of one text with every value of the others; none beyond ASCII, where case is a science."""
    found: list[list[str]] = []
    size = 1
    for argument in arguments:
        values = values_of(argument)
        texts = [value for value in values or () if isinstance(value, str) and value.isascii()]
        size *= len(texts)
        if values is None or len(texts) < len(values) or size > MAX_VALUES:
            return None
        found.append(texts)
    return tuple(dict.fromkeys(combined(parts) for parts in product(*found)))
