"""Values that stand for all that a bounded column can have, as far as some expressions can tell them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final

from lapwing.query.expressions.days import CALENDAR, DAY, FIXED, count, microseconds, moment_at
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
_OF_A_DAY: Final = frozenset({"hour", "minute", "second"})
_SHIFTS: Final = {"add_days": DAY, "add_microseconds": 1}
_ENDS: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "greater_equal": (0, None), "greater": (1, None), "less_equal": (None, 0), "less": (None, -1), "equal": (0, 0),
}  # fmt: skip
"""How far from a constant the first and the last value are for which a comparison with it holds."""
_UNKNOWN: Final = "?"
"""No moment, and no unit of time."""


def all_values(
    variable: ColumnReference,
    expressions: Sequence[Expression],
    conditions: Sequence[Expression] = (),
    *,
    by_day: bool = False,
) -> ListedValues | None:
    """Return every value between the bounds of a variable, or `_moments` of a timestamp; None if there are many.

    Args:
        expressions: All that look at it, conditions too.
        conditions: Those that hold in every row.
        by_day: List timestamps as earlier versions did, which looked only at days.
    """
    kind = variable.type
    if kind == BOOLEAN:
        return ListedValues(variable=variable, values=(False, True))
    if not isinstance(kind, Fixed | Plain) or kind.low is None or kind.high is None:
        return None
    if isinstance(kind, Plain) and kind.name == "timestamp":
        return _moments(variable, _within(variable.name, kind.low, kind.high, conditions), expressions, by_day)
    if kind.high - kind.low >= MOST_VALUES:
        return None
    return ListedValues(variable=variable, between=(kind.low, kind.high))


# ---- timestamps ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Changes:
    """The moments at which expressions of a timestamp change, and spans, of a size and a phase, at whose beginnings."""

    at: set[int] = field(default_factory=set)
    spans: set[tuple[int, int]] = field(default_factory=set)
    moved: bool = False


def _moments(
    variable: ColumnReference, within: tuple[int, int], expressions: Sequence[Expression], by_day: bool
) -> ListedValues | None:
    """Return moments that stand for all others, if it is known when expressions change.

    An expression is the same from one of its changes to the next. So each of these moments stands for all times up to
    the next one. The first moment is the lower bound.
    """
    (low, high), changes = within, _Changes()
    if not all(_note_changes(part, variable.name, changes) for part in expressions):
        return None
    if by_day and (changes.moved or changes.spans - {(DAY, 0)}):
        return None
    if sum((high - low) // size for size, _ in changes.spans) >= MOST_DAYS:
        return None
    spans = (range(low + (phase - low) % size, high + 1, size) for size, phase in changes.spans)
    found = sorted({low, *changes.at, *(moment for span in spans for moment in span)})
    return ListedValues(variable=variable, values=tuple(moment_at(at) for at in found if low <= at <= high))


def _note_changes(node: Expression, name: str, changes: _Changes) -> bool:
    """Note when an expression of a variable changes; False if that is unknown."""
    if _moved(node, name) is not None:
        return False
    if not isinstance(node, Operation):
        return True
    looks = [shift for part in node.arguments if (shift := _moved(part, name)) is not None]
    if not looks:
        return all(_note_changes(part, name, changes) for part in node.arguments)
    others = [part for part in node.arguments if _moved(part, name) is None]
    if any(columns_of(part) for part in others):
        return False
    values = [_constant(part) for part in others]
    changes.moved |= any(looks) or any(
        isinstance(part, Operation) and part.function != "to_timestamp" for part in others
    )
    if node.function in _COMPARISONS:
        moments = [count(value) for value in values if isinstance(value, datetime)]  # of others nothing is known
        changes.at |= {at - shift + beside for at in moments for shift in looks for beside in (0, 1)}
        return len(moments) == len([value for value in values if value is not None])
    span = _span(node.function, values)
    if span is not None:
        size, start = span
        changes.spans |= {(size, (start - shift) % size) for shift in looks}
    return span is not None


def _span(function: str, words: Sequence[Constant]) -> tuple[int, int] | None:
    """Return the length of the spans in which a function stays the same, and where one begins; None if unknown."""
    match function, *words:
        case "to_date", *_:
            return DAY, 0
        case "bucket", str(width), str(start):
            return int(width), int(start)
        case "truncate" | "part", str(unit) if unit in _OF_DAYS:
            return DAY, 0
        case "truncate" | "part", str(unit) if unit in _OF_A_DAY:
            return FIXED[unit], 0
    return None


def _moved(node: Expression, name: str) -> int | None:
    """Return by how many microseconds a variable is moved, if the expression is that and nothing else."""
    if isinstance(node, ColumnReference):
        return 0 if node.name == name else None
    if not isinstance(node, Operation) or node.function not in _SHIFTS:
        return None
    moved, kind = _moved(node.arguments[0], name), node.arguments[1].type
    if moved is None or columns_of(node.arguments[1]) or not isinstance(kind, Fixed) or kind.low != kind.high:
        return None
    return moved + int((kind.low or 0) * kind.step) * _SHIFTS[node.function]  # whose bounds say what it is


def _within(name: str, low: int, high: int, conditions: Sequence[Expression]) -> tuple[int, int]:
    """Return the bounds of a timestamp in rows in which conditions are true."""
    for condition in conditions:
        if not isinstance(condition, Operation) or condition.function not in _ENDS:
            continue
        left, right = condition.arguments
        shift, value = _moved(left, name), _constant(right)
        if shift is None or not isinstance(value, datetime):
            continue
        first, last = _ENDS[condition.function]
        at = count(value) - shift
        low = low if first is None else max(low, at + first)
        high = high if last is None else min(high, at + last)
    return low, high


def _constant(part: Expression) -> Constant:
    """Return what a constant is worth, a date as the moment at which it begins."""
    kind = part.type
    if isinstance(part, Literal) and part.value is None:
        return None
    if isinstance(kind, Plain) and kind.low is not None and kind.low == kind.high and not columns_of(part):
        at, (first, last) = microseconds(kind)[0], CALENDAR["timestamp"]
        return moment_at(at) if first <= at <= last else _UNKNOWN  # computed of constants: its bounds say what it is
    return part.value if isinstance(part, Literal) and type(part.value) is not date else _UNKNOWN
