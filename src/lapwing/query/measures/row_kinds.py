"""The numbers that one row adds to several measures at once: fewer vectors than their ranges allow, taken one by one.

Rows are of one or two kinds: those where an expression s is NULL, and the others. A row of a kind adds to each group of
measures a point, and the points listed for a group have all of these in their convex hull:

- COUNT(*) gets 1 from each row; COUNT(e) gets 1 where e has a value, 0 where it is NULL, and from 0 to 1 if the kind
  does not say which. A sum gets e less its origin where e has a value, which lies between the bounds of e, and 0 where
  it is NULL.
- Sums of the same e, or of −e, form a group: as e goes from its low bound to its high one all of them move along a
  line, so that its two ends have every point between them in their hull. Any other measure is a group by itself.
- Whether e is NULL is known where it is s, with another sign or in other steps; where it is a constant; and where it is
  a CASE that asks for it, or a COALESCE of such. Of all else it is not known, and 0 is one of the points.

So a row's vector over all measures is in the hull of the products of the points of its kind, and it is 0 of a row that
is filtered out. The bounds of an expression hold for all values that are summed (`expressions`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.query.expressions.conversion import nullable
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.measures.measures import Count, Sum

Point = tuple[int, ...]
"""The numbers that a row adds to each measure of a group, in steps."""
Kind = tuple[tuple[Point, ...], ...]
"""For each group, points with all that a row of a kind adds to it in their hull."""
RowMeasure = Count | Sum


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


def row_kinds(measures: Sequence[RowMeasure]) -> Iterator[RowKinds]:
    """Yield what a row adds to measures: of all rows, and by whether what one of them is of is NULL. All are true."""
    if any(measure.clamp is not None or (isinstance(measure, Sum) and measure.averaged) for measure in measures):
        raise InvalidParameter("A clamped measure is no sum over rows; this is a bug in Lapwing")
    groups: dict[object, list[int]] = {}
    for place, measure in enumerate(measures):
        groups.setdefault(_signed(measure.argument)[0] if isinstance(measure, Sum) else place, []).append(place)
    places = tuple(map(tuple, groups.values()))
    seen = dict.fromkeys(_value(m.argument) for m in measures if m.argument is not None and nullable(m.argument))
    for whole, states in ((None, (False,)), *((expression, (False, True)) for expression in seen)):
        kinds = tuple(
            tuple(_points([measures[place] for place in group], whole, null) for group in places) for null in states
        )
        yield RowKinds(groups=places, kinds=kinds)


def _points(group: Sequence[RowMeasure], whole: Expression | None, null: bool) -> tuple[Point, ...]:
    """Return what a row of a kind adds to the measures of a group: its ends, and 0 where they may be NULL."""
    each = [_ends(measure, whole, null) for measure in group]
    return tuple(dict.fromkeys(zip(*each, strict=True)))


def _ends(measure: RowMeasure, whole: Expression | None, null: bool) -> tuple[int, ...]:
    """Return what a measure gets at the low end of its expression, at the high one, and where it is NULL if it may be.

    Where it is not known whether it is NULL, a third end says so; where it is known, that end is another one again. Of
    −e the low end is that of e.
    """
    if measure.argument is None:
        return (1, 1, 1)
    sign = _signed(measure.argument)[1] if isinstance(measure, Sum) else 1
    low, high, missing = _range(measure.argument, whole, null)
    if low is None or high is None:
        return (0, 0, 0)
    if isinstance(measure, Count):
        return (1, 1, 0 if missing else 1)
    low, high = low / measure.step - measure.origin, high / measure.step - measure.origin
    if low.denominator != 1 or high.denominator != 1:
        raise InvalidParameter("The ends of a sum are no whole steps; this is a bug in Lapwing")
    first, last = (int(low), int(high)) if sign > 0 else (int(high), int(low))
    return (first, last, 0 if missing else first)


def _range(
    expression: Expression, whole: Expression | None, null: bool
) -> tuple[Fraction | None, Fraction | None, bool]:
    """Return the bounds of an expression in rows of a kind, and whether it may be NULL; no bounds if it is NULL."""
    if whole is not None and null and _value(expression) == whole:
        return None, None, True
    match expression:
        case Literal(value=None):
            return None, None, True
        case Operation(function="rescale", arguments=(inner,)):
            return _range(inner, whole, null)
        case Operation(function="negate", arguments=(inner,)):
            low, high, missing = _range(inner, whole, null)
            return None if high is None else -high, None if low is None else -low, missing
        case Operation(function="case", arguments=(Operation(function="is_null", arguments=(asked,)), first, rest)) if (
            whole is not None and _value(asked) == whole
        ):
            return _range(first if null else rest, whole, null)
        case Operation(function="coalesce", arguments=(first, *rest)) if whole is not None and _value(first) == whole:
            return _range(rest[0] if null else first, whole, null) if len(rest) == 1 else _declared(expression, True)
    return _declared(expression, nullable(expression) and not (whole is not None and _value(expression) == whole))


def _declared(expression: Expression, missing: bool) -> tuple[Fraction | None, Fraction | None, bool]:
    kind = expression.type
    low, high, step = getattr(kind, "low", None), getattr(kind, "high", None), getattr(kind, "step", Fraction(1))
    if low is None or high is None:  # only counted, and not summed
        return Fraction(0), Fraction(0), missing
    return low * step, high * step, missing


def _value(expression: Expression | None) -> Expression | None:
    """Return an expression without its sign and steps: it is NULL in the same rows."""
    while isinstance(expression, Operation) and expression.function in ("rescale", "negate"):
        (expression,) = expression.arguments
    return expression


def _signed(expression: Expression) -> tuple[Expression, int]:
    """Return an expression without its sign, and that sign."""
    sign = 1
    while isinstance(expression, Operation) and expression.function == "negate":
        (expression,), sign = expression.arguments, -sign
    return expression, sign
