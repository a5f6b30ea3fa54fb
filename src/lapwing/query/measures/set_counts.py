"""The measure of COUNT(*) over INTERSECT and EXCEPT across units; how far one unit moves it is in `set_stability`.

Each row has a value and may be in some sides, as its conditions say. A value is in a side if any row, of whichever
unit, is in it with that value. So a value has a set of sides, none where no row has it; it is counted if that set is
one of those that are `held`, of which none is empty. A ∩ B holds {A, B}, A ∖ B holds {A}.

|⋃ S|, the number of values in any of the sides S, is a number of distinct values, and every such count a sum of them,
Σ c_S·|⋃ S|, as |A ∩ B| = |A| + |B| − |A ∪ B|: so an engine computes it, exactly, and one noise is added to the sum.
With n_T = 1 where m ⊆ T, else 0, [m = T] = Σ over T' ⊆ T of (−1)^|T ∖ T'|·n_T', and n_T' is 1 − [v in ⋃ S], S all sides
but T'; the constants add up to [∅ held] = 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

from lapwing.query.expressions import logic
from lapwing.query.expressions.expression import Expression

Sides = frozenset[int]
"""Sides by their places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOfSets:
    """The number of distinct values, NULL not counted, whose set of sides is one of several.

    Args:
        sides: The conditions by which a row is in each side.
        held: The sets of sides whose values are counted.
    """

    value: Expression
    sides: tuple[Expression, ...]
    held: frozenset[Sides]

    construct: ClassVar[str] = "counts of set operations"
    step: ClassVar[Fraction] = Fraction(1)
    clamp: ClassVar[None] = None

    def __post_init__(self) -> None:
        everywhere = frozenset(range(len(self.sides)))
        if not self.held or any(not sides or not sides <= everywhere for sides in self.held):
            raise ValueError("values are counted that are in some of the sides")

    def __str__(self) -> str:
        held = ", ".join(" + ".join(map(str, sorted(sides))) for sides in sorted(self.held, key=sorted))
        return f"COUNT(DISTINCT {self.value} IN {held} OF {', '.join(map(str, self.sides))})"

    def label(self, columns: str, factors: str) -> str:
        """Name it for people."""
        return f"count of distinct values of {len(self.sides)} sides"

    @property
    def terms(self) -> tuple[tuple[int, Expression], ...]:
        """The counts of distinct values that it is the sum of, each with its factor."""
        everywhere = frozenset(range(len(self.sides)))
        factors = dict.fromkeys(subsets(everywhere), 0)
        for held in self.held:
            for within in subsets(held):
                factors[everywhere - within] -= (-1) ** len(held - within)
        return tuple((factor, self._in_any(sides)) for sides, factor in factors.items() if sides and factor)

    def _in_any(self, sides: Sides) -> Expression:
        return logic.only_where(self.value, logic.either(*(self.sides[side] for side in sorted(sides))))

    @property
    def argument(self) -> Expression:
        """An expression of all that is computed of a row."""
        return logic.coalesce(*(term for _, term in self.terms))

    @property
    def row_range(self) -> tuple[int, int]:
        """The least and the greatest integer by which a row moves a cell, whatever sides it is in."""
        return self.ends(frozenset(range(len(self.sides))))

    def ends(self, possible: Sides) -> tuple[int, int]:
        """Return by how much a row moves the number that is in none but these sides."""
        sets, rows = subsets(frozenset(range(len(self.sides)))), list(subsets(possible))
        moves = [((m | row) in self.held) - (m in self.held) for m in sets for row in rows]
        return min(moves), max(moves)


def subsets(sides: Sides) -> Iterator[Sides]:
    """Yield all sets of some of the sides, the empty one first."""
    return (frozenset(some) for size in range(len(sides) + 1) for some in combinations(sorted(sides), size))
