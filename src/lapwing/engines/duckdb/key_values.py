"""Keys as SQL: their values, and the condition that a row has one of them."""

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Final

from lapwing.engines.duckdb.expressions import expression, text
from lapwing.query.expressions.conversion import in_calendar
from lapwing.query.expressions.expression import Constant, Literal
from lapwing.query.expressions.types import Fixed, Type, is_temporal
from lapwing.query.keys import Key

FEW: Final = 256
"""Up to so many values are looked through one by one: that is faster than the join that IN becomes."""


def key_value(key: Key) -> str:
    """Return a key, with everything unlisted gathered under its `other` where it has one."""
    column = expression(key.expression)
    if key.other is None:
        return column
    return f"CASE WHEN {listed(key)} THEN {column} ELSE {text(key.other)} END"


def listed(key: Key) -> str:
    """Return the condition that a key is one of its public values, or known if they are private.

    A private day or moment outside the years 1 to 9999 counts as unknown: an answer could not hold it.
    """
    if key.values is None:
        value = in_calendar(key.expression) if is_temporal(key.expression.type) else key.expression
        return f"{expression(value)} IS NOT NULL"
    kind = key.expression.type
    if len(key.values) > 1 and _consecutive(key.values, kind):
        low, high = (expression(_constant(value, kind)) for value in (key.values[0], key.values[-1]))
        return f"({expression(key.expression)} BETWEEN {low} AND {high})"
    values = ", ".join(expression(_constant(value, key.expression.type)) for value in key.values)
    if len(key.values) > FEW:
        return f"{expression(key.expression)} IN ({values})"
    return f"list_contains([{values}], {expression(key.expression)})"


def _consecutive(values: Sequence[Constant], kind: Type) -> bool:
    """Tell whether values are whole steps, or days, each one above the one before."""
    if isinstance(kind, Fixed):
        steps = [value / kind.step for value in values if isinstance(value, Fraction)]
    else:
        steps = [Fraction(value.toordinal()) for value in values if type(value) is date]
    return len(steps) == len(values) and all(b - a == 1 for a, b in pairwise(steps))


def _constant(value: object, kind: Type) -> Literal:
    return Literal(value=value, type=kind)  # type: ignore[arg-type]  # the catalog has checked the values
