"""One form for expressions that mean the same, so that a question asked again in other words is the same question.

Why it is right. Conditions have three values. In the order FALSE < NULL < TRUE, SQL's AND is the minimum, OR the
maximum, and NOT turns the order around. A minimum does not depend on the order of its values, on how they are paired,
or on how often one occurs; nor does a maximum; and turning the order around makes one the other. Every rule here for
AND, OR and NOT follows. A comparison is NULL where a side is. Otherwise exactly one of <, = and > holds, since numbers,
texts, dates and conditions are totally ordered and no number is NaN; so a comparison can be turned around, and denied
by its opposite. IN is = OR =, BETWEEN is >= AND <=. Sums and products of two integers are exact, those of two doubles
are the exact ones rounded (IEEE 754), so the order of the two does not matter. With three doubles it does, and nothing
is paired differently there. The order of −, of /, of the branches of CASE, of COALESCE and of joined texts is part of
what they mean, and stays.

These are statements about values, not about how they are computed. That is enough because expressions are total: an
engine may compute the parts of a condition in any order, or all of them, and nothing raises.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.types import BOOLEAN, Fixed, Type

TRUE, FALSE = (Literal(value=value, type=BOOLEAN) for value in (True, False))
UNKNOWN = Literal(value=None, type=BOOLEAN)

_TURNED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "greater": "less",
    "less_equal": "greater_equal",
    "greater_equal": "less_equal",
}
_OPPOSITE = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "greater_equal": "less",
    "greater": "less_equal",
    "less_equal": "greater",
}
_TESTS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def in_order(arguments: Iterable[Expression]) -> tuple[Expression, ...]:
    """Return arguments of which the order does not matter in one order: by their texts, constants last."""
    return tuple(sorted(arguments, key=lambda argument: (isinstance(argument, Literal), str(argument))))


def commuting(function: str, arguments: Sequence[Expression], kind: Type) -> Operation:
    """Return a function of arguments of which the order does not matter."""
    return Operation(function=function, arguments=in_order(arguments), type=kind)


# ---- comparisons -----------------------------------------------------------------------------------------------------


def comparison(function: str, left: Expression, right: Expression) -> Expression:
    """Compare two values of one type: `3 < x` is `x > 3`, `x = TRUE` is x, and two numbers are compared at once."""
    first, second = in_order((left, right))
    if first is not left or (first == second and function.startswith("greater")):
        function = _TURNED[function]
    if isinstance(second, Literal) and isinstance(second.value, bool) and function in ("equal", "not_equal"):
        return first if second.value is (function == "equal") else denial(first)
    numbers = _exact(first), _exact(second)
    if numbers[0] is not None and numbers[1] is not None:
        return TRUE if _TESTS[function](numbers[0], numbers[1]) else FALSE
    return Operation(function=function, arguments=(first, second), type=BOOLEAN)


def _exact(argument: Expression) -> Fraction | None:
    if isinstance(argument, Literal) and isinstance(argument.value, Fraction) and isinstance(argument.type, Fixed):
        return argument.value
    return None


def membership(value: Expression, choices: Iterable[Expression]) -> Expression:
    """Tell whether a value is one of several constants of its type."""
    distinct = sorted(set(choices), key=str)
    if len(distinct) == 1:
        return comparison("equal", value, distinct[0])
    return Operation(function="member", arguments=(value, *distinct), type=BOOLEAN)


# ---- AND, OR, NOT ----------------------------------------------------------------------------------------------------


def conjunction(conditions: Iterable[Expression]) -> Expression:
    """Return what holds where all conditions do: one AND, its conditions in order and each once."""
    parts = _flat("and", conditions)
    if FALSE in parts:
        return FALSE
    return _joined("and", _merged([part for part in parts if part != TRUE], denied=True), TRUE)


def disjunction(conditions: Iterable[Expression]) -> Expression:
    """Return what holds where any condition does: one OR, its conditions in order and each once."""
    parts = _flat("or", conditions)
    if TRUE in parts:
        return TRUE
    return _joined("or", _merged([part for part in parts if part != FALSE], denied=False), FALSE)


def denial(condition: Expression) -> Expression:
    """Deny a condition: NOT goes inwards, to where it becomes an opposite."""
    if isinstance(condition, Literal):
        return UNKNOWN if condition.value is None else FALSE if condition.value else TRUE
    if isinstance(condition, Operation):
        match condition.function:
            case "not":
                return condition.arguments[0]
            case "and":
                return disjunction(map(denial, condition.arguments))
            case "or":
                return conjunction(map(denial, condition.arguments))
            case function if function in _OPPOSITE:
                return comparison(_OPPOSITE[function], *condition.arguments)
    return Operation(function="not", arguments=(condition,), type=BOOLEAN)


def _flat(function: str, conditions: Iterable[Expression]) -> list[Expression]:
    found: list[Expression] = []
    for condition in conditions:
        nested = isinstance(condition, Operation) and condition.function == function
        found += condition.arguments if nested and isinstance(condition, Operation) else (condition,)
    return [UNKNOWN if isinstance(part, Literal) and part.value is None else part for part in found]


def _joined(function: str, parts: Sequence[Expression], nothing: Literal) -> Expression:
    by_text = {str(part): part for part in parts}
    if len(by_text) < 2:
        return next(iter(by_text.values()), nothing)
    ordered = tuple(by_text[text] for text in sorted(by_text))
    return Operation(function=function, arguments=ordered, type=BOOLEAN)


def _merged(parts: Sequence[Expression], *, denied: bool) -> list[Expression]:
    """Join the values that one expression may have, or may not have, in one IN: x = 1 OR x IN (2, 3)."""
    values: dict[str, tuple[Expression, list[Expression]]] = {}
    others: list[Expression] = []
    for part in parts:
        listed = _listed(part, denied=denied)
        if listed is None:
            others.append(part)
        else:
            values.setdefault(str(listed[0]), (listed[0], []))[1].extend(listed[1:])
    together = [membership(value, choices) for value, choices in values.values()]
    return others + [denial(part) if denied else part for part in together]


def _listed(condition: Expression, *, denied: bool) -> tuple[Expression, ...] | None:
    """Return an expression and the constants that a condition says it is one of, or is none of."""
    if not isinstance(condition, Operation):
        return None
    if condition.function == ("not_equal" if denied else "equal"):
        second = condition.arguments[1]
        return condition.arguments if isinstance(second, Literal) and second.value is not None else None
    if denied:
        inner = condition.arguments[0]
        return _listed(inner, denied=False) if condition.function == "not" and _is_membership(inner) else None
    return condition.arguments if _is_membership(condition) else None


def _is_membership(condition: Expression) -> bool:
    return isinstance(condition, Operation) and condition.function == "member"
