"""How many rows of a unit a condition on their numbers lets through.

Where the rows of a unit have the numbers 1, 2, 3 and so on, each once, at most as many rows fulfil a condition as it
admits numbers. A condition is read for what it admits in each column: more than it lets through, never less.

Proof. By induction over the condition C, let A be what `admitted` returns for a column x. Whenever C is true of a row
in which x is a whole number n from 1 up, n is in A. A comparison of a·x + b with 0, all in exact numbers, is solved for
x: for a > 0, a·x + b ≤ 0 says x ≤ −b/a, hence n ≤ ⌊−b/a⌋, and so on; for a < 0 it is turned. `member` is true where x
is one of its values. Any other comparison is tried with each number that x may be: where x is n, both sides lie within
the bounds that the typing rules prove of them if x has the type of n alone (`narrowed`), and what cannot hold of any
two numbers within these bounds is not true. An AND is true where all of its parts are, which gives the intersection;
an OR where one is, which gives the union, if each part says something of x. Any other condition admits every number.
What is NULL fulfils none of these. ∎

So a limit is a fact of rows, which every relation hands on as far as it can (`rows_within`): the rows of a join that
fulfil a condition on a number are made of rows of its sources that fulfil it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import ceil, floor, inf
from typing import Final, cast

from lapwing.errors import QueryRefused
from lapwing.query.expressions import arithmetic, conversion, numeric
from lapwing.query.expressions.attempts import VALUES
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation, walk
from lapwing.query.expressions.rows import attempted
from lapwing.query.expressions.types import Fixed, Real

Numbers = tuple[tuple[int, int | None], ...]
"""Ranges of whole numbers from 1 up, both ends included, apart and in order; None: without end."""
Admitted = Mapping[str, Numbers]
"""What numbers may stand in columns, by name; any in those that are not named."""

Interval = tuple[Fraction | float, Fraction | float]
"""The least and the greatest value, infinite where none is known."""

_MOST_VALUES: Final = 1_000
_MOST_TRIED: Final = 100
"""Numbers that one comparison is tried with."""
_MOST_NODES: Final = 30
_TURNED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def admitted(condition: Expression | None) -> Admitted:
    """Return which numbers may stand in columns of the rows for which a condition is true."""
    if not isinstance(condition, Operation):
        return {}
    if condition.function == "and":
        return reduce(both, map(admitted, condition.arguments))
    if condition.function == "or":
        return _any([admitted(argument) for argument in condition.arguments])
    if condition.function == "member":
        return _member(condition)
    return _comparison(condition) if len(condition.arguments) == 2 else {}


def both(first: Admitted, second: Admitted) -> Admitted:
    """Return what may stand where both hold."""
    shared = {name: _intersection(first[name], second[name]) for name in first.keys() & second.keys()}
    return {**first, **second, **shared}


def named_in(values: Sequence[Expression], columns: Sequence[ColumnReference], numbers: Admitted) -> Admitted:
    """Return the numbers in columns as those in the columns that they are: what is computed says nothing."""
    found: Admitted = {}
    for value, column in zip(values, columns, strict=True):
        if isinstance(value, ColumnReference) and column.name in numbers:
            found = both(found, {value.name: numbers[column.name]})
    return found


def count(numbers: Numbers) -> int | None:
    """Return how many numbers there are, None without end; none counts as 1, so that bounds of it are in order."""
    if any(last is None for _, last in numbers):
        return None
    return max(1, sum((last or 0) - first + 1 for first, last in numbers))


def _any(each: Sequence[Admitted]) -> Admitted:
    """Return what may stand where one of them holds: lists are long, so all are united at once."""
    shared = set(each[0]).intersection(*each[1:]) if each else set()
    return {name: _united([numbers for one in each for numbers in one[name]]) for name in shared}


def _intersection(first: Numbers, second: Numbers) -> Numbers:
    """Walk along both, as they are in order: after each pair goes the range that ends first."""
    found, one, other = list[tuple[int, int | None]](), 0, 0
    while one < len(first) and other < len(second):
        (low, high), (start, end) = first[one], second[other]
        least = _least(high, end)
        if least is None or max(low, start) <= least:
            found.append((max(low, start), least))
        if high == least:
            one += 1
        if end == least:
            other += 1
    return tuple(found)


def _least(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else min(first, second)


def _united(ranges: Sequence[tuple[int, int | None]]) -> Numbers:
    found = list[tuple[int, int | None]]()
    for low, high in sorted(ranges, key=lambda one: one[0]):
        if found and (found[-1][1] is None or low <= found[-1][1] + 1):
            before, last = found[-1]
            found[-1] = before, None if last is None or high is None else max(last, high)
        else:
            found.append((low, high))
    return tuple(found)


def _member(condition: Operation) -> Admitted:
    left, *values = condition.arguments
    if len(values) > _MOST_VALUES:
        return {}
    each = [_solved("equal", left, value) for value in values]
    if each and None not in each:
        return _any([one for one in each if one is not None])
    tried = [_tried("equal", left, value) for value in values] if len(values) <= _MOST_NODES else []
    return _any(tried)


def _comparison(condition: Operation) -> Admitted:
    solved = _solved(condition.function, *condition.arguments)
    return _tried(condition.function, *condition.arguments) if solved is None else solved


def _solved(function: str, left: Expression, right: Expression) -> Admitted | None:
    """Return what a comparison admits in the one column that it is of; None where it says nothing."""
    one, other = _line(left), _line(right)
    if one is None or other is None or len({one[0], other[0]} - {None}) != 1:
        return None
    slope, shift = one[1] - other[1], one[2] - other[2]
    if not slope:
        return None
    end, name = -shift / slope, one[0] or other[0] or ""
    match _TURNED.get(function, function) if slope < 0 else function:
        case "equal":
            return {name: ((int(end), int(end)),) if end.denominator == 1 and end >= 1 else ()}
        case "less_equal":
            return {name: ((1, floor(end)),) if end >= 1 else ()}
        case "less":
            return {name: ((1, ceil(end) - 1),) if end > 1 else ()}
        case "greater_equal":
            return {name: ((max(1, ceil(end)), None),)}
        case "greater":
            return {name: ((max(1, floor(end) + 1), None),)}
    return None


def _line(value: Expression) -> tuple[str | None, Fraction, Fraction] | None:
    """Return the column x, a and b of which a value is a·x + b in exact numbers; no column for a constant."""
    if not isinstance(value.type, Fixed):  # doubles are rounded
        return None
    if isinstance(value, ColumnReference):
        return value.name, Fraction(1), Fraction(0)
    if isinstance(value, Literal):
        return (None, Fraction(0), value.value) if isinstance(value.value, Fraction) else None
    if not isinstance(value, Operation):
        return None
    lines = [_line(argument) for argument in value.arguments]
    match value.function, lines:
        case "rescale", [(name, a, b)]:
            return name, a, b
        case "negate", [(name, a, b)]:
            return name, -a, -b
        case "add", [(name, a, b), (None, _, c)]:
            return name, a, b + c
        case "add", [(None, _, c), (name, a, b)]:
            return name, a, b + c
        case "subtract", [(name, a, b), (None, _, c)]:
            return name, a, b - c
        case "subtract", [(None, _, c), (name, a, b)]:
            return name, -a, c - b
        case "multiply", [(name, a, b), (None, _, c)]:
            return name, a * c, b * c
        case "multiply", [(None, _, c), (name, a, b)]:
            return name, a * c, b * c
    return None


# ---- what is no line -------------------------------------------------------------------------------------------------


def _remainder(left: Expression, right: Expression) -> Expression:
    """Type a remainder; of one number by another one, it is that one alone: with the sign of the dividend."""
    value = cast(Operation, numeric.remainder(left, right))
    (a, b), (c, d) = (conversion.interval_of(argument) for argument in value.arguments)
    if not isinstance(value.type, Fixed) or a != b or c != d or not c:
        return value
    count = int((abs(a) % abs(c)) / value.type.step) * (1 if a >= 0 else -1)
    return replace(value, type=Fixed(step=value.type.step, low=count, high=count))


_HOLDS: Final[Mapping[str, Callable[[Interval, Interval], bool]]] = {
    "equal": lambda one, other: one[0] <= other[1] and other[0] <= one[1],
    "not_equal": lambda one, other: not one[0] == one[1] == other[0] == other[1],
    "less": lambda one, other: one[0] < other[1],
    "less_equal": lambda one, other: one[0] <= other[1],
    "greater": lambda one, other: one[1] > other[0],
    "greater_equal": lambda one, other: one[1] >= other[0],
}
"""Whether a comparison holds of some two numbers in two intervals."""
_RULES: Final[Mapping[str, Callable[..., Expression]]] = {
    "add": arithmetic.add, "subtract": arithmetic.subtract, "multiply": arithmetic.multiply,
    "divide": arithmetic.divide, "negate": arithmetic.negate, "absolute": arithmetic.absolute,
    "remainder": _remainder, "quotient": numeric.quotient, "to_real": conversion.to_real,
}  # fmt: skip
"""The typing rules of functions, whose bounds are proven where they are."""


def _tried(function: str, left: Expression, right: Expression) -> Admitted:
    """Return which row numbers may stand in their columns where a comparison holds, by trying each."""
    if function not in _HOLDS or sum(1 for side in (left, right) for _ in walk(side)) > _MOST_NODES:
        return {}
    columns = {node for side in (left, right) for node in walk(side) if isinstance(node, ColumnReference)}
    found: Admitted = {}
    for column in columns:
        match column.type:
            case Fixed(step=1, low=1, high=int(most)) if most <= _MOST_TRIED:
                holding = [(n, n) for n in range(1, most + 1) if _may_hold(function, left, right, column.name, n)]
                found = {**found, column.name: _united(tuple(holding))}
    return found


def _may_hold(function: str, left: Expression, right: Expression, name: str, number: int) -> bool:
    sides = attempted(VALUES, lambda: [narrowed(side, name, number).type for side in (left, right)])
    if isinstance(sides, QueryRefused):  # its bounds are too wide for a type of their own
        return True
    intervals = [_interval(kind) for kind in sides if isinstance(kind, Fixed | Real)]
    return len(intervals) < 2 or _HOLDS[function](*intervals)


def _interval(kind: Fixed | Real) -> Interval:
    low, high = kind.interval()
    return -inf if low is None else low, inf if high is None else high


def narrowed(value: Expression, name: str, number: int) -> Expression:
    """Return an expression, with the bounds that it has in rows in which a number stands in a column.

    What no rule types anew keeps its own bounds, which hold in all rows.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
    """
    if isinstance(value, ColumnReference) and value.name == name:
        return ColumnReference(name=name, type=Fixed(step=Fraction(1), low=number, high=number))
    if not isinstance(value, Operation):
        return value
    arguments = [narrowed(argument, name, number) for argument in value.arguments]
    if value.function in _RULES:
        return _RULES[value.function](*arguments)
    if value.function == "rescale" and isinstance(value.type, Fixed):
        return conversion.rescale(arguments[0], value.type.step)
    if value.function == "floor_to" and isinstance(value.type, Fixed):
        return arithmetic.floor_multiple(arguments[0], value.type.step)
    return value
