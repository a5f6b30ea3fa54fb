"""Values as constants of SQL."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause


def literal(value: object) -> exp.Expression:
    """Return a value as a constant of SQL."""
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "timestamp")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "date")
    if isinstance(value, str):
        return exp.Literal.string(value)
    exact = _decimal(value)
    number = exp.Literal.number(format(abs(exact), "f"))
    return exp.Neg(this=number) if exact < 0 else number


def _decimal(value: object) -> Decimal:
    if isinstance(value, Fraction):
        return Decimal(value.numerator) / Decimal(value.denominator)
    if isinstance(value, float):
        return Decimal(repr(value))  # as it is shown
    if isinstance(value, int | Decimal):
        return Decimal(value)
    raise QueryRefused(f"A {type(value).__name__} cannot stand in a condition", cause=RefusalCause.UNUSABLE_VALUE)
