"""Counts and sums written as others of the same rows, from which they follow; each is a measure like any other."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.query.expressions import logic
from lapwing.query.expressions.arithmetic import negate
from lapwing.query.expressions.conversion import nullable, number, rescale
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.measures.measures import Count, Measure, Sum

Row = Mapping[Measure, Fraction]
"""What a number is: of each measure of which it is computed, how many times it is taken, in steps of both."""
_SAME_NULLS: Final = frozenset({"rescale", "negate", "to_fixed", "round_to", "to_real"})
"""Functions that are NULL where their argument is."""
_WIDE: Final = 64
"""Steps from which a range that has no whole middle is taken around the step below it: a row then adds a 65th more."""


def support(argument: Expression | None, never: frozenset[str]) -> str:
    """Name the rows where an argument is not NULL: none if these are all."""
    if argument is None or not nullable(argument, never):
        return ""
    match argument := same_nulls(argument):
        case Operation(function="case", arguments=(condition, value, Literal(value=None))) if not nullable(
            value, never
        ):
            return str(condition)
    return str(argument)


def same_nulls(argument: Expression) -> Expression:
    """Return a simpler expression that is NULL in the same rows: of values that are rounded, or kept within bounds."""
    match argument:
        case Operation(function=function, arguments=(inner, *_)) if function in _SAME_NULLS:
            return same_nulls(inner)
        case Operation(
            function="case", arguments=(Operation(function="is_null", arguments=(asked,)), Literal(value=None), rest)
        ) if not nullable(rest):
            return same_nulls(asked)
        case Operation(function="case", arguments=(condition, value, Literal(value=None) as none)):
            return replace(argument, arguments=(condition, same_nulls(value), none))
    return argument


def around(measure: Sum, count: Count) -> Row:
    """Return a sum as the centred one and a number of times the count of its rows."""
    low, high = measure.type.low or 0, measure.type.high or 0
    if low + high == 2 * measure.origin:
        return {measure: Fraction(1)}
    if (low + high) % 2 == 0 or high - low > _WIDE:
        middle = (low + high) // 2
        centred, times, part = replace(measure, origin=middle), middle - measure.origin, Fraction(1)
    else:
        halves = rescale(measure.argument, measure.step / 2)
        centred, times, part = Sum(argument=halves, origin=low + high), low + high - 2 * measure.origin, Fraction(1, 2)
    return {centred: part, **({count: times * part} if times else {})}


def around_whole(measure: Sum, count: Count) -> Row:
    """Return a sum as that around the middle, or the step below it, and a whole number of times a count of its rows."""
    middle = ((measure.type.low or 0) + (measure.type.high or 0)) // 2
    times = Fraction(middle - measure.origin)
    return {replace(measure, origin=middle): Fraction(1), **({count: times} if times else {})}


def of_all(measure: Count | Sum, row: Row) -> Row:
    """Return a number of some rows as that of all rows, to which the others add 0; row: as it is without that."""
    if isinstance(measure, Sum):
        count = next((part for part in row if isinstance(part, Count)), None)
        if count is not None:
            times = row[count]
            parts = {part: weight * times for part, weight in of_all(count, {}).items()}
            return {part: weight for part, weight in row.items() if part != count} | parts
        if measure.origin or measure not in row:
            return row
        return around(without_null(measure), Count())
    one, none = number(Fraction(1)), number(Fraction(0))
    match measure.argument:
        case None:
            return {measure: Fraction(1)}
        case Operation(function="case", arguments=(condition, Literal(value=Fraction()), Literal(value=None))):
            return around(Sum(argument=logic.case([condition], [one], none)), Count())
        case argument:
            return around(Sum(argument=logic.case([logic.is_null(argument)], [none], one)), Count())


def parts_of_row(summed: Sum, *, with_null: bool) -> tuple[Sum, Sum] | tuple[Sum, Sum, Count]:
    """Return the sums of x − l and of h − x of a summed x, and if wanted the count of the rows where x is NULL.

    In these a row has one share (`pricing.row_price`).
    """
    argument, kind = summed.argument, summed.type
    if kind.low is None or kind.high is None or kind.low >= kind.high:
        raise InvalidParameter("A row has a share of an expression between two bounds, in steps.")
    above, below = Sum(argument=argument, origin=kind.low), Sum(argument=negate(argument), origin=-kind.high)
    return (above, below, nulls(argument)) if with_null else (above, below)


def nulls(argument: Expression) -> Count:
    """Return the count of the rows where an argument is NULL."""
    return Count(argument=logic.case([logic.is_null(argument)], [number(Fraction(1))], logic.NULL_LITERAL))


def both_counts(argument: Expression) -> tuple[Sum, Sum]:
    """Return COUNT(*) + COUNT(argument), to which a row adds 2, or 1 where that is NULL, and the count of such rows.

    Both are in quarters, so that their noise is many steps wide where it is a few rows wide, and can be sharpened.
    """
    none, one, two = (rescale(number(Fraction(value)), Fraction(1, 4)) for value in range(3))
    where = [logic.is_null(argument)]
    return Sum(argument=logic.case(where, [one], two)), Sum(argument=logic.case(where, [one], none))


def count_and_share(summed: Sum, *, with_null: bool) -> tuple[Measure, ...]:
    """Return as `parts_of_row` does, with h − l more in the first: count and sum, in steps, and their difference."""
    above, *others = parts_of_row(summed, with_null=with_null)
    low, high = summed.type.low or 0, summed.type.high or 0
    return replace(above, origin=2 * low - high), *others


def without_null(measure: Sum) -> Sum:
    """Return a sum around 0 of what is 0 where its argument is NULL."""
    zero = rescale(number(Fraction(0)), measure.step)
    return Sum(argument=logic.coalesce(measure.argument, zero))
