"""The bounds of a type as constants, to compare public values with."""

from fractions import Fraction

from lapwing.query.expressions import days
from lapwing.query.expressions.expression import Literal
from lapwing.query.expressions.types import Fixed, Plain, Type


def ends_of(kind: Type) -> tuple[Literal | None, Literal | None]:
    """Return the least and the greatest value of a type; None where it has none, and for doubles."""
    return _end(kind, kind.low), _end(kind, kind.high)


def _end(kind: Type, end: Fraction | int | None) -> Literal | None:
    if end is None:
        return None
    if isinstance(kind, Fixed):
        return Literal(value=end * kind.step, type=kind)
    if not isinstance(kind, Plain) or kind.name not in days.CALENDAR:
        return None
    first, last = days.CALENDAR[kind.name]
    at = days.date_at if kind.name == "date" else days.moment_at
    return Literal(value=at(int(end)), type=kind) if first <= end <= last else None
