"""How many rows of a unit a condition on their numbers lets through.

Proof. Where the rows of a unit have the numbers 1, 2, 3 and so on, each once, at most n of them have a number of at
most n; and every other condition that stands beside by AND only takes rows away.
"""

from collections.abc import Collection
from fractions import Fraction
from math import ceil, floor

from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation


def limits_of(condition: Expression | None, numbers: Collection[str]) -> list[int]:
    """Return what a condition limits the rows of a unit to, given the names of the columns that number them.

    A limit below 1 counts as 1, so that bounds which follow from it are in order.
    """
    pending, limits = [condition], []
    while pending:
        part = pending.pop()
        if isinstance(part, Operation):
            limit = _limit(part, numbers)
            limits += [] if limit is None else [max(1, limit)]
            pending += part.arguments if part.function == "and" else ()
    return limits


def _limit(condition: Operation, numbers: Collection[str]) -> int | None:
    if len(condition.arguments) != 2:
        return None
    left, right = condition.arguments
    function = condition.function
    if isinstance(left, Literal):
        left, right, function = right, left, _TURNED.get(function, "")
    left, added = _without_constant(left)
    if not isinstance(left, ColumnReference) or left.name not in numbers:
        return None
    if not isinstance(right, Literal) or not isinstance(right.value, Fraction):
        return None
    match function:
        case "equal":
            return 1
        case "less_equal":
            return floor(right.value - added)
        case "less":
            return ceil(right.value - added) - 1
    return None


def _without_constant(number: Expression) -> tuple[Expression, Fraction]:
    """Return what a constant is added to, as in ROW_NUMBER() - 1, which counts from 0; and the constant."""
    if isinstance(number, Operation) and number.function in ("add", "subtract"):
        first, second = number.arguments
        if isinstance(second, Literal) and isinstance(second.value, Fraction):
            return first, second.value if number.function == "add" else -second.value
    return number, Fraction(0)


_TURNED = {"equal": "equal", "greater": "less", "greater_equal": "less_equal"}
