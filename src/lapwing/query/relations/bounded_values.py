"""Values that stand for all that a bounded column can have, as far as some expressions can tell them apart."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from lapwing.query.expressions.days import DAY, count, moment_at
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal, Operation, columns_of
from lapwing.query.expressions.types import BOOLEAN, Fixed, Plain
from lapwing.query.relations.public_rows import ListedValues

MOST_VALUES: Final = 250_000
MOST_DAYS: Final = 20_000
_COMPARISONS: Final = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "member", "between", "is_null"}
)
_OF_DAYS: Final = frozenset({"year", "isoyear", "quarter", "month", "week", "day", "dayofyear", "dayofweek", "isodow"})
"""Parts and units of time that are the same all day long."""
_UNKNOWN: Final = "?"
"""No moment, and no unit of time."""


def all_values(variable: ColumnReference, expressions: Sequence[Expression]) -> ListedValues | None:
    """Return every value between the bounds of a variable, of a timestamp those of `_moments`; None if there are many.

    Args:
        expressions: What looks at it.
    """
    kind = variable.type
    if kind == BOOLEAN:
        return ListedValues(variable=variable, values=(False, True))
    if not isinstance(kind, Fixed | Plain) or kind.low is None or kind.high is None:
        return None
    if isinstance(kind, Plain) and kind.name == "timestamp":
        return _moments(variable, kind.low, kind.high, expressions)
    if kind.high - kind.low >= MOST_VALUES:
        return None
    return ListedValues(variable=variable, between=(kind.low, kind.high))


def _moments(variable: ColumnReference, low: int, high: int, expressions: Sequence[Expression]) -> ListedValues | None:
    """Return moments that stand for all others, if expressions compare them with constants or look at the day alone.

    What such an expression is changes at most where a day begins, at a constant it is compared with, or right after
    it. So it is the same from one of these moments to the next, and each stands for all up to there.
    """
    constants = set[int]()
    if (high - low) // DAY >= MOST_DAYS or not all(_by_day(part, variable.name, constants) for part in expressions):
        return None
    days = range(-(-low // DAY) * DAY, high + 1, DAY)
    changes = {low, *days, *(moment for at in constants for moment in (at, at + 1))}
    found = sorted(moment for moment in changes if low <= moment <= high)
    return ListedValues(variable=variable, values=tuple(map(moment_at, found)))


def _by_day(node: Expression, name: str, constants: set[int]) -> bool:
    """Tell whether an expression looks at a variable in these ways alone; add what it is compared with."""
    if not isinstance(node, Operation):
        return not isinstance(node, ColumnReference) or node.name != name
    direct = [part for part in node.arguments if isinstance(part, ColumnReference) and part.name == name]
    if not direct:
        return all(_by_day(part, name, constants) for part in node.arguments)
    others = [part for part in node.arguments if part not in direct]
    values = [_constant(part) for part in others if not columns_of(part)]
    if len(values) < len(others):
        return False
    if node.function in _COMPARISONS:
        moments = [value for value in values if isinstance(value, datetime)]  # of others nothing is known
        constants |= set(map(count, moments))
        return len(moments) == len([value for value in values if value is not None])
    if node.function in ("truncate", "part"):
        return all(value in _OF_DAYS for value in values)
    return node.function == "to_date"


def _constant(part: Expression) -> Constant:
    """Return what a constant is worth, a date as the moment at which it begins."""
    inner = part.arguments[0] if isinstance(part, Operation) and part.function == "to_timestamp" else part
    if not isinstance(inner, Literal):
        return _UNKNOWN
    value = inner.value
    return datetime(value.year, value.month, value.day) if type(value) is date else value
