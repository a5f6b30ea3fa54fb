"""The numbers that one row adds to several measures at once: fewer vectors than their ranges allow, taken one by one.

Rows are of one or two kinds: those where an expression s is NULL, and the others. A row of a kind adds to each group of
measures a point, and the points listed for a group have all of these in their convex hull:

- COUNT(*) gets 1 from each row; COUNT(e) gets 1 where e has a value, 0 where it is NULL, and from 0 to 1 if the kind
  does not say which. A sum gets e less its origin where e has a value, which lies between the bounds of e, and 0 where
  it is NULL.
- Sums of the same e, or of −e, form a group: as e goes from its low bound to its high one all of them move along a
  line, so that its two ends have every point between them in their hull. Any other measure is a group by itself.
- Sums that are NULL in the same rows form a group, if one is of a product f(e)·g(e') with f and g linear. In a row of
  such a group let each of its e be k whole steps, low ≤ k ≤ high. Cut that range into pieces [a, b]. With u between 0
  and 1 let k = (1 − u)·a + u·b. Then f(k)·g(k) = (1 − u)²·f(a)·g(a) + 2u(1 − u)·(f(a)·g(b) + f(b)·g(a))/2 +
  u²·f(b)·g(b), and a linear f(k) is that with g = 1. The weights are the same for all measures, not below 0, and add up
  to 1. So (a, a), (a, b) and (b, b) give three points, with what k adds in their hull. Weights of several e multiply,
  which holds for f(e)·g(e') of two of them, and gives a point for each choice. Between neighbouring integers there is
  no k, so that the points (a, a) and (b, b) are enough there.
- Whether e is NULL is known where it is NULL in the rows where s is, as with another sign, in other steps or in a sum
  or product of the same columns (`_presence`); where it is a constant; and where it is a CASE that asks for it, or a
  COALESCE of such. Of all else it is not known, and 0 is one of the points.

So a row's vector over all measures is in the hull of the products of the points of its kind, and it is 0 of a row that
is filtered out. The bounds of an expression hold for all values that are summed (`expressions`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import Final, cast, final

from lapwing.errors import InvalidParameter
from lapwing.query.expressions.conversion import nullable
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import Count, Sum

Point = tuple[int, ...]
"""The numbers that a row adds to each measure of a group, in steps."""
Kind = tuple[tuple[Point, ...], ...]
"""For each group, points with all that a row of a kind adds to it in their hull."""
RowMeasure = Count | Sum
Presence = frozenset[tuple[str, Expression]]
"""Conditions on a row: an expression has a value in the rows that fulfil all of them, and is NULL in the others."""
Factors = tuple[tuple[Expression, Fraction, Fraction], ...]
"""One number or the product of two: each a public multiple of an expression, and a public number more."""

_PIECES: Final = 4
"""Of the range of an expression that is multiplied by itself."""
_MOST_POINTS: Final = 50
"""Of a group. Where there would be more, sums of different expressions are taken one by one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowKinds:
    """The kinds of rows, as measures see them.

    Args:
        groups: of measures, by their places.
        kinds: what a row of each adds.
    """

    groups: tuple[tuple[int, ...], ...]
    kinds: tuple[Kind, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _KindOfRows:
    """The rows of a kind: all, or those in which `whole` is NULL, or is not.

    Args:
        products: whether what is computed of columns is NULL where these are, and squares and products are looked at.
    """

    whole: Presence | None = None
    null: bool = False
    products: bool

    def know(self, expression: Expression) -> bool:
        """Tell whether it is known of an expression if it is NULL."""
        return self.whole is not None and _presence(expression, self.products) == self.whole


def row_kinds(measures: Sequence[RowMeasure], *, products: bool = False) -> Iterator[RowKinds]:
    """Yield what a row adds to measures: of all rows, and by whether what one of them is of is NULL. All are true.

    Args:
        products: whether squares and products are looked at. Vectors that earlier versions sold have no use of it.
    """
    if any(measure.clamp is not None or (isinstance(measure, Sum) and measure.averaged) for measure in measures):
        raise InvalidParameter("A clamped measure is no sum over rows; this is a bug in Lapwing")
    groups: dict[object, list[int]] = {}
    for place, measure in enumerate(measures):
        groups.setdefault(_signed(measure.argument)[0] if isinstance(measure, Sum) else place, []).append(place)
    points = dict[tuple[int, ...], tuple[Point, ...]]()
    if products:
        groups, points = _with_products(measures, groups)
    places = tuple(map(tuple, groups.values()))
    wheres = (_presence(m.argument, products) for m in measures if m.argument is not None and nullable(m.argument))
    seen = dict.fromkeys(where for where in wheres if where)
    for rows, nulls in ((None, (False,)), *((where, (False, True)) for where in seen)):
        kinds = []
        for null in nulls:
            of = _KindOfRows(whole=rows, null=null, products=products)
            each = ((group, [measures[place] for place in group]) for group in places)
            kinds.append(
                tuple(on_curves(points[g], own[0], of) if g in points else _points(own, of) for g, own in each)
            )
        yield RowKinds(groups=places, kinds=tuple(kinds))


def _with_products(
    measures: Sequence[RowMeasure], groups: Mapping[object, list[int]]
) -> tuple[dict[object, list[int]], dict[tuple[int, ...], tuple[Point, ...]]]:
    """Return groups in which sums that are NULL together are one, if one is of a product; and the points of these."""
    alike: dict[object, list[int]] = {}
    for place, measure in enumerate(measures):
        if isinstance(measure, Sum):
            alike.setdefault(_presence(measure.argument, True), []).append(place)
    found = {where: _of_products([cast(Sum, measures[place]) for place in own]) for where, own in alike.items()}
    taken = {place for where, own in alike.items() if found[where] for place in own}
    merged: dict[object, list[int]] = {where: own for where, own in alike.items() if found[where]}
    merged |= {key: own for key, own in groups.items() if not taken.intersection(own)}
    return merged, {tuple(own): points for where, own in alike.items() if (points := found[where])}


def on_curves(points: tuple[Point, ...], one: RowMeasure, rows: _KindOfRows) -> tuple[Point, ...]:
    """Return what a row of a kind adds to sums that are NULL where one of them is."""
    none = (0,) * len(points[0])
    if rows.know(cast(Sum, one).argument):
        return (none,) if rows.null else points
    return tuple(dict.fromkeys((*points, none)))


def _of_products(group: Sequence[Sum]) -> tuple[Point, ...] | None:
    """Return points with all in their hull that a row adds to sums; None where they are taken one by one."""
    written = [factors_of(measure.argument) for measure in group]
    if len(group) < 2 or all(len(factors) < 2 for factors in written):
        return None
    squared = {base for factors in written for base in _bases(factors) if _bases(factors).count(base) > 1}
    corners = {base: corners_of(base, base in squared) for factors in written for base in _bases(factors)}
    if prod(map(len, corners.values())) > _MOST_POINTS or not all(corners.values()):
        return None
    found = dict[Point, None]()
    for chosen in product(*corners.values()):
        at = dict(zip(corners, chosen, strict=True))
        added = [
            _at(factors, at) / measure.step - measure.origin for factors, measure in zip(written, group, strict=True)
        ]
        if any(number.denominator != 1 for number in added):
            return None
        found[tuple(map(int, added))] = None
    return tuple(found)


def _bases(factors: Factors) -> list[Expression]:
    return [one for one, _, _ in factors]


def corners_of(expression: Expression, squared: bool) -> list[tuple[Fraction, Fraction]]:
    """Return (a, b) of the pieces of a range, in whole steps: a and b are both odd or both even, or are neighbours."""
    kind = expression.type
    if not isinstance(kind, Fixed) or kind.low is None or kind.high is None:
        return []
    low, high = kind.low, kind.high
    ends = [(low, low), (high, high)]
    if squared:
        last = high - (high - low) % 2
        cuts = [low, *(low + 2 * ((last - low) * part // (2 * _PIECES)) for part in range(1, _PIECES)), last]
        # A point between two pieces is in the hull of those of both, as a line touches the curve there.
        ends += [*pairwise(dict.fromkeys(cuts)), (last, last)]
    return [(a * kind.step, b * kind.step) for a, b in dict.fromkeys(ends)]


def _at(factors: Factors, corners: Mapping[Expression, tuple[Fraction, Fraction]]) -> Fraction:
    """Return the product of factors at the chosen points of their expressions."""
    ends = [tuple(times * end + more for end in corners[one]) for one, times, more in factors]
    if len(set(_bases(factors))) == len(factors):
        return prod((sum(pair, Fraction(0)) / 2 for pair in ends), start=Fraction(1))
    (a, b), (c, d) = ends
    return (a * d + b * c) / 2


def factors_of(argument: Expression) -> Factors:
    """Write what is summed as one number or a product of two; a CASE ... ELSE NULL as where it has a value."""
    match argument:
        case Operation(function="case", arguments=(_, value, Literal(value=None))):
            return factors_of(value)
        case Operation(function="rescale", arguments=(inner,)):
            return factors_of(inner)
        case Operation(function="negate", arguments=(inner,)):
            (one, times, more), *others = factors_of(inner)
            return ((one, -times, -more), *others)
        case Operation(function="multiply", arguments=(first, second)) if isinstance(argument.type, Fixed):
            return (_linear(first), _linear(second))
    return (_linear(argument),)


def _linear(expression: Expression) -> tuple[Expression, Fraction, Fraction]:
    match expression:
        case Operation(function="rescale", arguments=(inner,)):
            return _linear(inner)
        case Operation(function="negate", arguments=(inner,)):
            one, times, more = _linear(inner)
            return one, -times, -more
        case Operation(function="subtract", arguments=(inner, Literal(value=Fraction() as less))) if isinstance(
            expression.type, Fixed
        ):
            one, times, more = _linear(inner)
            return one, times, more - less
    return expression, Fraction(1), Fraction(0)


def _points(group: Sequence[RowMeasure], rows: _KindOfRows) -> tuple[Point, ...]:
    """Return what a row of a kind adds to the measures of a group: its ends, and 0 where they may be NULL."""
    each = [_ends(measure, rows) for measure in group]
    return tuple(dict.fromkeys(zip(*each, strict=True)))


def _ends(measure: RowMeasure, rows: _KindOfRows) -> tuple[int, ...]:
    """Return what a measure gets at the low end of its expression, at the high one, and where it is NULL if it may be.

    Where it is not known whether it is NULL, a third end says so; where it is known, that end is another one again. Of
    −e the low end is that of e.
    """
    if measure.argument is None:
        return (1, 1, 1)
    sign = _signed(measure.argument)[1] if isinstance(measure, Sum) else 1
    low, high, missing = _range(measure.argument, rows)
    if low is None or high is None:
        return (0, 0, 0)
    if isinstance(measure, Count):
        return (1, 1, 0 if missing else 1)
    low, high = low / measure.step - measure.origin, high / measure.step - measure.origin
    if low.denominator != 1 or high.denominator != 1:
        raise InvalidParameter("The ends of a sum are no whole steps; this is a bug in Lapwing")
    first, last = (int(low), int(high)) if sign > 0 else (int(high), int(low))
    return (first, last, 0 if missing else first)


def _range(expression: Expression, rows: _KindOfRows) -> tuple[Fraction | None, Fraction | None, bool]:
    """Return the bounds of an expression in rows of a kind, and whether it may be NULL; no bounds if it is NULL."""
    if rows.null and rows.know(expression):
        return None, None, True
    match expression:
        case Literal(value=None):
            return None, None, True
        case Operation(function="rescale", arguments=(inner,)):
            return _range(inner, rows)
        case Operation(function="negate", arguments=(inner,)):
            low, high, missing = _range(inner, rows)
            return None if high is None else -high, None if low is None else -low, missing
        case Operation(function="case", arguments=(Operation(function="is_null", arguments=(asked,)), first, rest)) if (
            rows.know(asked)
        ):
            return _range(first if rows.null else rest, rows)
        case Operation(function="coalesce", arguments=(first, *rest)) if rows.know(first):
            return _range(rest[0] if rows.null else first, rows) if len(rest) == 1 else _declared(expression, True)
    return _declared(expression, nullable(expression) and not rows.know(expression))


def _declared(expression: Expression, missing: bool) -> tuple[Fraction | None, Fraction | None, bool]:
    kind = expression.type
    low, high, step = getattr(kind, "low", None), getattr(kind, "high", None), getattr(kind, "step", Fraction(1))
    if low is None or high is None:  # only counted, and not summed
        return Fraction(0), Fraction(0), missing
    return low * step, high * step, missing


def _presence(expression: Expression | None, products: bool) -> Presence:
    """Return what must have a value, or be true, in the rows where an expression has a value.

    Args:
        products: whether what is computed is NULL where what it is computed of is; else signs and steps alone are.
    """
    match expression:
        case None:
            return frozenset()
        case Operation(function="rescale" | "negate", arguments=(inner,)):
            return _presence(inner, products)
        case Operation(function="add" | "subtract" | "multiply", arguments=arguments, type=Fixed()) if products:
            return frozenset[tuple[str, Expression]]().union(*(_presence(part, products) for part in arguments))
        case Operation(function="case", arguments=(condition, value, Literal(value=None))) if products:
            return _true(condition) | _presence(value, products)
    return frozenset([("value", expression)] if nullable(expression) else [])


def _true(condition: Expression) -> Presence:
    match condition:
        case Operation(function="and", arguments=arguments):
            return frozenset[tuple[str, Expression]]().union(*map(_true, arguments))
        case Operation(function="not", arguments=(Operation(function="is_null", arguments=(asked,)),)):
            return _presence(asked, products=True)
    return frozenset([("true", condition)])


def _signed(expression: Expression) -> tuple[Expression, int]:
    """Return an expression without its sign, and that sign."""
    sign = 1
    while isinstance(expression, Operation) and expression.function == "negate":
        (expression,), sign = expression.arguments, -sign
    return expression, sign
