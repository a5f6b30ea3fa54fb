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


def null_of(kind: str) -> exp.Expression:
    """Return NULL as a value of a type: by itself it has none, and is compared with nothing.

    Args:
        kind: boolean, text, date or timestamp; anything else is a number.
    """
    example = {"boolean": False, "text": "", "date": date(1970, 1, 1), "timestamp": datetime(1970, 1, 1)}.get(kind, 0)
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=exp.Boolean(this=False), true=literal(example))]))


def is_readable(value: object) -> bool:
    """Tell whether a value that is written as a constant can be read again: a number needs a size of constants."""
    return isinstance(value, str | date | bool) or has_size_of_constants(_decimal(value))


def has_size_of_constants(value: Decimal) -> bool:
    """Tell whether the size of a finite number is from 1e-40 to below 1e41, or 0: all constants of questions are."""
    return not value or abs(value.adjusted()) <= 40


def _decimal(value: object) -> Decimal:
    if isinstance(value, Fraction):
        return Decimal(value.numerator) / Decimal(value.denominator)
    if isinstance(value, float):
        return Decimal(repr(value))  # as it is shown
    if isinstance(value, int | Decimal):
        return Decimal(value)
    raise QueryRefused(f"A {type(value).__name__} cannot stand in a condition", cause=RefusalCause.UNUSABLE_VALUE)
