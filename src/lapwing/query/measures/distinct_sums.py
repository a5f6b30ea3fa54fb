"""The measure of SUM(DISTINCT x): each value counts once in a cell, whoever has it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distribution import fixed_point


@dataclass(frozen=True, slots=True, kw_only=True)
class SumDistinct:
    """The sum of the distinct values of the argument, in its steps; NULL adds nothing."""

    argument: Expression

    construct: ClassVar[str] = "sums of different values"
    clamp: ClassVar[None] = None
    origin: ClassVar[int] = 0

    def __str__(self) -> str:
        return f"SUM(DISTINCT {self.argument}; {self.step})"

    @property
    def type(self) -> Fixed:
        """The fixed-point type of the argument."""
        return fixed_point(self.argument)

    @property
    def row_range(self) -> tuple[int, int]:
        """The least and the greatest integer that one row adds to a cell; 0 is always between them."""
        return (min(0, self.type.low or 0), max(0, self.type.high or 0))

    @property
    def step(self) -> Fraction:
        """What one unit of the integer is worth."""
        return self.type.step

    def label(self, columns: str, factors: str) -> str:
        """Name it for people, by the columns of its argument."""
        return f"sum of distinct {factors}{columns or 'values'}"
