"""The measure of a distribution: a vector of integers a cell, where other measures are one (`measures`)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.mechanisms.trees import sizes_of
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.types import Fixed


def fixed_point(argument: Expression) -> Fixed:
    """Return the fixed-point type of an argument.

    Raises:
        QueryRefused: If it has none: what FILTER leaves of it is NULL in every row.
    """
    if not isinstance(argument.type, Fixed):
        raise QueryRefused(
            "FILTER leaves no number to an aggregate, so that it is always NULL",
            cause=RefusalCause.EMPTY_CONDITION,
            remedy="Leave it out.",
        )
    return argument.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How the argument is distributed: the numbers of rows in all nodes of a tree over its range, a vector a cell.

    A leaf holds the rows whose argument is one of `width` neighbouring steps, counted from the lower bound; NULL is in
    no leaf. Each level above joins `branching` nodes (`mechanisms.trees`).
    """

    argument: Expression
    width: int = 1
    branching: int = 4

    construct: ClassVar[str] = "distributions"
    step: ClassVar[Fraction] = Fraction(1)
    clamp: ClassVar[None] = None

    def __str__(self) -> str:
        return f"DISTRIBUTION({self.argument}; {self.width}; {self.branching})"

    @property
    def type(self) -> Fixed:
        """The fixed-point type of the argument."""
        return fixed_point(self.argument)

    @property
    def low(self) -> int:
        """The least step of the argument."""
        return self.type.low or 0

    @property
    def high(self) -> int:
        """The greatest step of the argument."""
        return self.type.high or 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level, from the top down to the leaves."""
        return sizes_of((self.high - self.low) // self.width + 1, self.branching)

    def label(self, columns: str, factors: str) -> str:
        """Name it for people, by the columns of its argument."""
        return f"ranks of {columns or 'values'}"
