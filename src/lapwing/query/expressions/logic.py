"""Choice, comparison and logic over one row, each with its typing rule, and bounds by interval arithmetic.

A rule takes checked arguments and returns a checked expression, or refuses. What a rule lets through is *total*: no
engine raises on any row, because integers stay inside 128 bits by their bounds, divisions are guarded, and casts that
could fail do not exist. Bounds are proven from the bounds of the arguments; NULL arguments are accounted for. That
holds for the rules of all files beside this one.
"""

from collections.abc import Sequence
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

from lapwing.catalog.suggestions import listed, shown, slip_of
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import as_read, normal_forms
from lapwing.query.expressions.conversion import alike, folded, number, with_bounds
from lapwing.query.expressions.expression import (
    ColumnReference,
    Expression,
    Literal,
    Operation,
    is_number,
    nodes_of,
)
from lapwing.query.expressions.types import BOOLEAN, NULL, Type, describe, greatest, least

NULL_LITERAL = Literal(value=None, type=NULL)


def hull(arguments: Sequence[Expression]) -> Type:
    """Return the type that holds any of the values; NULL constants do not widen it."""
    real_values = [a for a in arguments if not (isinstance(a, Literal) and a.value is None)] or list(arguments)
    kind = real_values[0].type
    for argument in real_values[1:]:
        other = argument.type
        if type(kind) is type(other):
            kind = with_bounds(kind, least(kind.low, other.low), greatest(kind.high, other.high))
    return kind


def coalesce(*arguments: Expression) -> Expression:
    """Return the first argument that is not NULL."""
    arguments = alike(arguments)
    return Operation(function="coalesce", arguments=arguments, type=hull(arguments))


def case(conditions: Sequence[Expression], values: Sequence[Expression], default: Expression) -> Expression:
    """Choose the value of the first condition that holds."""
    for condition in conditions:
        _boolean("CASE WHEN", condition)
    # x where x is NULL is NULL, whatever else x may be.
    null = [condition == is_null(value) for condition, value in zip(conditions, values, strict=True)]
    known = [NULL_LITERAL if is_so else value for is_so, value in zip(null, values, strict=True)]
    chosen = alike((*known, default))
    pairs = [part for pair in zip(conditions, chosen[:-1], strict=True) for part in pair]
    return Operation(function="case", arguments=(*pairs, chosen[-1]), type=hull(chosen))


def only_where(argument: Expression, condition: Expression | None) -> Expression:
    """Return an argument that is NULL for the rows that a FILTER leaves out."""
    return argument if condition is None else case([condition], [argument], NULL_LITERAL)


def one_where(condition: Expression) -> Expression:
    """Return 1 for the rows of a FILTER and NULL for others."""
    return only_where(number(Fraction(1)), condition)


COMPARISONS = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def compare(symbol: str, left: Expression, right: Expression) -> Expression:
    """Compare two values of one type: numbers by value, strings by bytes."""
    if NULL in (left.type, right.type):
        raise QueryRefused(
            "A comparison with NULL is never true",
            cause=RefusalCause.EMPTY_CONDITION,
            remedy="Write IS NULL or IS NOT NULL.",
        )
    if symbol in ("=", "<>"):
        _refuse_slips(left, [right])
        _refuse_slips(right, [left])
    left, right = as_read.as_bounded(symbol, left, right)
    return normal_forms.comparison(COMPARISONS[symbol], *alike((left, right)))


_HOLDS = {"equal": eq, "not_equal": ne, "less": lt, "less_equal": le, "greater": gt, "greater_equal": ge}


def always(condition: Expression) -> bool:
    """Tell whether a condition compares two constant numbers and is true."""
    if not isinstance(condition, Operation) or condition.function not in _HOLDS:
        return False
    sides = [side.value for side in map(folded, condition.arguments) if isinstance(side, Literal)]
    numbers = [side for side in sides if isinstance(side, Fraction)]
    return len(numbers) == 2 and bool(_HOLDS[condition.function](*numbers))


MOST_COMPARED_TWICE = 30
MOST_COMPARISONS = 100
"""Of texts with those that a catalog lists, to find a slip."""


def between(argument: Expression, low: Expression, high: Expression) -> Expression:
    """Tell whether a value lies between two others, ends included: two comparisons, unless the value is long."""
    if NULL in (argument.type, low.type, high.type):
        raise QueryRefused(
            "A comparison with NULL is never true",
            cause=RefusalCause.EMPTY_CONDITION,
            remedy="Write IS NULL or IS NOT NULL.",
        )
    together = alike((argument, low, high))
    if nodes_of(argument) > MOST_COMPARED_TWICE:
        return Operation(function="between", arguments=together, type=BOOLEAN)
    if not is_number(together[0].type):
        argument, low, high = together
    return both(compare(">=", argument, low), compare("<=", argument, high))


def member(argument: Expression, choices: Sequence[Expression]) -> Expression:
    """Tell whether a value is one of a list of constants."""
    if not choices or not all(isinstance(choice, Literal) and choice.value is not None for choice in choices):
        raise QueryRefused(
            "IN takes a list of constants",
            cause=RefusalCause.NOT_CONSTANT,
            remedy="Write x IN (1, 2, 3), without NULL.",
        )
    _refuse_slips(argument, choices)
    together = alike((as_read.settled("=", argument, choices) or argument, *choices))
    return normal_forms.membership(together[0], together[1:])


def _refuse_slips(argument: Expression, choices: Sequence[Expression]) -> None:
    """Refuse to compare a column with a text that must be a slip of one that the catalog lists: it would count nobody.

    Other texts may be in the data though they are no keys. Letters that are nearly the same are looked for in short
    lists alone, so that no question takes long to be bound.
    """
    if not isinstance(argument, ColumnReference) or not argument.listed:
        return
    near = len(choices) * len(argument.listed) <= MOST_COMPARISONS
    for choice in choices:
        if isinstance(choice, Literal) and isinstance(choice.value, str) and choice.value not in argument.listed:
            meant = slip_of(choice.value, argument.listed, near=near)
            if meant is not None:  # what was written may be a parameter, and those are in no message
                reason = f"{argument.written or argument.name} is compared with a text that the catalog does not list"
                raise QueryRefused(
                    reason,
                    cause=RefusalCause.UNLISTED_VALUE,
                    remedy=f"Did you mean '{shown(meant)}'? Values: {listed(argument.listed)}.",
                )


def is_null(argument: Expression) -> Expression:
    """Tell whether a value is NULL."""
    return Operation(function="is_null", arguments=(argument,), type=BOOLEAN)


def distinct(left: Expression, right: Expression) -> Expression:
    """Tell whether two values differ, where NULL is a value of its own: never NULL."""
    left, right = as_read.as_bounded("=", left, right)
    return normal_forms.commuting("distinct", alike((left, right)), BOOLEAN)


def null_if(value: Expression, read: Expression, other: Expression) -> Expression:
    """Return a value, or NULL where what was read of it equals another."""
    if read == other:
        read = other = value
    elif as_read.settled("=", read, (other,)) is not None:
        read = value
    if read == value:
        value, other = alike((value, other))
        return Operation(function="null_if", arguments=(value, other), type=value.type)
    equal = compare("=", read, other)
    return as_read.with_read(case([equal], [NULL_LITERAL], value), case([equal], [NULL_LITERAL], read))


def exclusive(left: Expression, right: Expression) -> Expression:
    """Tell whether exactly one of two conditions holds."""
    _boolean("XOR", left)
    _boolean("XOR", right)
    return normal_forms.comparison("not_equal", *alike((left, right)))


def _boolean(name: str, argument: Expression) -> None:
    if argument.type not in (BOOLEAN, NULL):
        raise QueryRefused(
            f"{name} needs a condition, not {describe(argument.type)}",
            cause=RefusalCause.NOT_A_CONDITION,
            remedy="Write a comparison.",
        )


def both(*conditions: Expression) -> Expression:
    """Conjoin conditions."""
    for condition in conditions:
        _boolean("AND", condition)
    return normal_forms.conjunction(conditions)


def either(*conditions: Expression) -> Expression:
    """Disjoin conditions."""
    for condition in conditions:
        _boolean("OR", condition)
    return normal_forms.disjunction(conditions)


def negation(argument: Expression) -> Expression:
    """Deny a condition."""
    _boolean("NOT", argument)
    return normal_forms.denial(argument)
