"""What the bounds of a group say of values whose own bounds nobody knows: of a unit's sum, and of its mean.

`AVG(x, contribution_bounds_per_group => (0, 100))` is GoogleSQL's average: of what each unit has on average in the
group, kept between the bounds. A unit counts once in a group, whatever rows it has there.

Guarantee:
    Both are sums over units of one number a cell, kept between the two ends of a clamp, so that they move by what
    `stability` says of clamped sums; nothing there rests on the values of single rows. A mean of integers is rounded
    half up to an integer, and clamped after that. (What is proven there by rows holds of means, too: a mean lies
    between the least and the greatest of 0 and the values, and a unit has one in as many cells as it has rows, at
    most.) Where the values have no bounds of their own, each is first kept within ±2³⁹ steps: sums of 10⁶ rows then fit
    128 bits, so that nothing can overflow. That is no bound that anybody would notice: half a million times the bounds
    of the group, or 2³⁹ of the column's own steps.

The number of units with a value is a count that is clamped to 0 and 1, so that it moves by one a cell. Their quotient
is post-processing.
"""

from fractions import Fraction
from math import ceil, floor
from typing import Final, cast

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.scope import SelectScope
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions import conversion, logic
from lapwing.query.expressions.expression import Expression, Operation
from lapwing.query.expressions.types import Fixed, Real, inside
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.relations.contribution import kept_inside, per_row, require_units
from lapwing.query.relations.relation import of_several_units, units_of_row
from lapwing.query.text.privacy_options import NamedArguments

REACH: Final = 2 ** (conversion.SUMMABLE_BITS - 1)
"""How many steps a value without bounds of its own may be away from 0."""
FURTHEST: Final = Fraction(10**30)
"""The largest constant that a plan may hold."""
FINER: Final = 20
"""How often a column's step is halved at most for the sake of means."""


def within_reach(argument: Expression, named: NamedArguments) -> Expression:
    """Return a value without bounds as whole steps that can be summed, where the bounds of the group are numbers."""
    bounds = _numbers(named)
    if isinstance(argument.type, Real):
        return _in_steps(argument, _fine(bounds))
    return _reached(argument, cast(Fixed, argument.type).step)


def average_of_units(argument: Expression, named: NamedArguments, scope: SelectScope) -> Derived:
    """Return the average over units of each unit's average in the group, kept between the bounds of the group.

    Raises:
        QueryRefused: Where rows are units, or several units share one.
    """
    if units_of_row(scope.selection.relation) > 1:
        raise of_several_units()
    require_units(scope.selection)
    low, high = _numbers(named)
    value = logic.only_where(conversion.summable(_averaged(per_row(argument, named), (low, high))), scope.condition)
    step = cast(Fixed, value.type).step
    ends = ceil(low / step), floor(high / step)
    if ends[0] > ends[1]:
        raise QueryRefused(
            "No value lies between the contribution bounds", cause=RefusalCause.INVALID_BOUNDS, remedy="Widen them."
        )
    origin = sum(ends) // 2
    total = Sum(argument=value, origin=origin, clamp=(ends[0] - origin, ends[1] - origin), averaged=True)
    return Average(total=total, count=Count(argument=value if conversion.nullable(value) else None, clamp=(0, 1)))


def _numbers(named: NamedArguments) -> tuple[Fraction, Fraction]:
    bounds = named.contribution_bounds_per_group
    if not isinstance(bounds, tuple):
        remedy = "Write (0, 100), or contribution_bounds_per_row => AUTO for the average of rows."
        raise QueryRefused(
            "AVG needs numbers for contribution_bounds_per_group", cause=RefusalCause.INVALID_BOUNDS, remedy=remedy
        )
    return bounds


def _fine(bounds: tuple[Fraction, Fraction]) -> Fraction:
    """Return a step of which there are about 2²⁰ within bounds."""
    low, high = bounds
    span = max(high - low, abs(low), abs(high)) or Fraction(1)
    return Fraction(2) ** conversion.log2_up(span / conversion.REAL_STEPS)


def _averaged(argument: Expression, bounds: tuple[Fraction, Fraction]) -> Expression:
    """Return a value in steps so fine that rounding a mean to them changes nothing that noise would not hide."""
    kind, fine = argument.type, _fine(bounds)
    if isinstance(kind, Real):
        return argument if kind.bounded else _in_steps(argument, fine)
    step = cast(Fixed, kind).step
    halvings = max(0, min(FINER, conversion.log2_up(step / fine)))
    return conversion.rescale(_reached(argument, step / 2**halvings), step / 2**halvings)


def _reached(argument: Expression, step: Fraction) -> Expression:
    """Return a fixed-point value within reach of 0, counted in some steps."""
    return _kept(argument, REACH * step)


def _in_steps(argument: Expression, step: Fraction) -> Expression:
    """Return a real without bounds as steps within reach of 0."""
    near = _kept(argument, REACH * step)
    return Operation(function="to_fixed", arguments=(near,), type=inside(cast(Real, near.type), step))


def _kept(argument: Expression, most: Fraction) -> Expression:
    if cast(Fixed | Real, argument.type).bounded:
        return argument
    most = min(most, FURTHEST)
    return kept_inside(argument, (-most, most))
