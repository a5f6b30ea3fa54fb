"""What is measured: each measure is an integer per cell, to which a mechanism adds noise."""

from dataclasses import dataclass
from fractions import Fraction

from lapwing.query.expression import Expression
from lapwing.query.types import Fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The number of rows; with an argument, of the rows where it is not NULL."""

    argument: Expression | None = None

    def __str__(self) -> str:
        return f"COUNT({'*' if self.argument is None else self.argument})"

    @property
    def step(self) -> Fraction:
        """What one unit of the integer is worth."""
        return Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountUnits:
    """The number of distinct privacy units."""

    def __str__(self) -> str:
        return "COUNT(DISTINCT unit)"

    @property
    def step(self) -> Fraction:
        """What one unit of the integer is worth."""
        return Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The sum of (k − origin) over the rows where the argument, k steps, is not NULL."""

    argument: Expression
    origin: int = 0

    def __str__(self) -> str:
        return f"SUM({self.argument} - {self.origin}; {self.step})"

    @property
    def type(self) -> Fixed:
        """The fixed-point type of the argument."""
        if not isinstance(self.argument.type, Fixed):
            raise TypeError("a sum is taken over fixed-point values")
        return self.argument.type

    @property
    def step(self) -> Fraction:
        """What one unit of the integer is worth."""
        return self.type.step


Measure = Count | CountUnits | Sum
