"""The measures of COUNT(DISTINCT …): of privacy units, and of different values."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from lapwing.query.expressions.expression import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class CountUnits:
    """The number of distinct privacy units; with a condition, of those with a row for which it is true."""

    where: Expression | None = None

    construct: ClassVar[str] = "counts of units"
    step: ClassVar[Fraction] = Fraction(1)
    row_range: ClassVar[tuple[int, int]] = (0, 1)
    clamp: ClassVar[None] = None

    def __str__(self) -> str:
        return f"COUNT(DISTINCT unit{'' if self.where is None else f'; {self.where}'})"

    def label(self, columns: str, factors: str) -> str:
        """Name it for people, by the columns of its argument."""
        return f"count of distinct {columns}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDistinct:
    """The number of distinct values of the argument, NULL not counted."""

    argument: Expression

    construct: ClassVar[str] = "counts of different values"
    step: ClassVar[Fraction] = Fraction(1)
    row_range: ClassVar[tuple[int, int]] = (0, 1)
    clamp: ClassVar[None] = None

    def __str__(self) -> str:
        return f"COUNT(DISTINCT {self.argument})"

    def label(self, columns: str, factors: str) -> str:
        """Name it for people, by the columns of its argument."""
        return f"count of distinct {columns or 'values'}"
