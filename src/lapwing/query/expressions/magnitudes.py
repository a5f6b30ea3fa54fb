"""The magnitudes of a number: public candidates for its bounds, and the class of a value among them.

The candidates are 0 and, on either side of it, a ladder: a unit, its double, and so on, up to a last one. The ladder of
a number with steps starts from the step. The last candidate is the declared bound, or far out if none is declared.
Between neighbouring candidates lies a class of values; a row is in the class of its value, or in none if that is NULL.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import conversion
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.types import Fixed, Real
from lapwing.query.expressions.weight import bearable

MOST_DOUBLINGS: Final = 90
"""How many classes a ladder has at most; the upper ones, if there were more."""
WHOLE_DOUBLINGS: Final = 52
"""How far a ladder of steps goes where no bound is declared: a double holds all whole numbers up to there."""
REAL_EXPONENTS: Final = (-30, 60)
"""From which power of two to which a ladder of numbers without steps goes, if none is declared: 10⁻⁹ to 10¹⁸."""

ValueBounds = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublingLadder:
    """unit, 2·unit, 4·unit, … as many as `doublings`, then `last`, which is above them; nothing if `last` is 0."""

    unit: Fraction
    doublings: int
    last: Fraction

    @property
    def rungs(self) -> tuple[Fraction, ...]:
        """The candidates, ascending."""
        return (*(self.unit * 2**k for k in range(self.doublings)), *([self.last] if self.last else []))

    @property
    def length(self) -> int:
        """How many candidates there are."""
        return self.doublings + bool(self.last)


NO_LADDER: Final = DoublingLadder(unit=Fraction(1), doublings=0, last=Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """The candidates for the bounds of a value.

    Class i is of the values that edge i is the nearest bound of: those between it and its neighbour towards 0, itself
    included, and for the outermost what lies beyond it too. The class of 0 is of 0 alone.
    """

    below: DoublingLadder
    above: DoublingLadder

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The candidates, ascending; 0 is one of them."""
        return (*(-rung for rung in reversed(self.below.rungs)), Fraction(0), *self.above.rungs)

    @property
    def classes(self) -> int:
        """How many candidates there are, and so how many classes."""
        return self.below.length + 1 + self.above.length

    @property
    def widest(self) -> ValueBounds:
        """The widest bounds that may be found."""
        return (-self.below.last, self.above.last)

    def reaching(self, classes: Sequence[int]) -> ValueBounds:
        """Return the bounds that reach from 0 to some classes, and to one of the least if they reach nowhere."""
        edges = self.edges
        origin = bisect_left(edges, 0)
        low, high = min([*classes, origin]), max([*classes, origin])
        if low == high:
            low, high = (low, high + 1) if high + 1 < len(edges) else (low - 1, high)
        return (edges[low], edges[high])


def magnitudes_of(argument: Expression) -> Magnitudes:
    """Return the candidates for the bounds of a number, from its type alone."""
    kind = argument.type
    if isinstance(kind, Fixed):
        below = _of_steps(kind.step, None if kind.low is None else -kind.low)
        return Magnitudes(below=below, above=_of_steps(kind.step, kind.high))
    if isinstance(kind, Real):
        return Magnitudes(below=_of_powers(None if kind.low is None else -kind.low), above=_of_powers(kind.high))
    raise QueryRefused("Bounds are found of numbers only", cause=RefusalCause.BOUNDS_NOT_SEARCHABLE)


def _of_steps(step: Fraction, limit: int | None) -> DoublingLadder:
    limit = 1 << WHOLE_DOUBLINGS if limit is None else limit
    if limit <= 0:
        return NO_LADDER
    last = (limit - 1).bit_length()  # the first power of two that is the limit or above it
    first = max(0, last - MOST_DOUBLINGS)
    return DoublingLadder(unit=step * 2**first, doublings=last - first, last=step * limit)


def _of_powers(limit: Fraction | None) -> DoublingLadder:
    first, last = REAL_EXPONENTS
    if limit is not None:
        if limit <= 0:
            return NO_LADDER
        last = conversion.log2_up(limit)
        first = max(min(first, last - 1), last - MOST_DOUBLINGS)
    return DoublingLadder(unit=Fraction(2) ** first, doublings=last - first, last=Fraction(2) ** last)


def class_of(argument: Expression, magnitudes: Magnitudes) -> Expression:
    """Return the number of a value's class, from 0; NULL for NULL."""
    ladders = (magnitudes.below, magnitudes.above)
    facts = [fact for ladder in ladders for fact in (ladder.unit, Fraction(ladder.doublings), ladder.last)]
    constants = [conversion.number(fact) for fact in facts]
    kind = Fixed(step=Fraction(1), low=0, high=magnitudes.classes - 1)
    return bearable(Operation(function="magnitude", arguments=(argument, *constants), type=kind))


def magnitudes_in(node: Operation) -> Magnitudes:
    """Return the candidates that `class_of` has put into an expression."""
    facts = [cast(Fraction, cast(Literal, constant).value) for constant in node.arguments[1:]]
    below, above = (DoublingLadder(unit=facts[i], doublings=int(facts[i + 1]), last=facts[i + 2]) for i in (0, 3))
    return Magnitudes(below=below, above=above)
