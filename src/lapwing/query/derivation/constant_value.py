"""A constant among derived values."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from lapwing.query.derivation.columns import Column, Shape, constant, of_labels
from lapwing.query.derivation.columns_of_values import of_values
from lapwing.query.derivation.derived import NoisyCells
from lapwing.query.derivation.intervals import Interval, exactly
from lapwing.query.derivation.node import Derived, Part
from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.measures import Measure


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValue:
    """A constant of the question."""

    value: Constant
    shape: Shape

    children: ClassVar[tuple[Derived, ...]] = ()
    parts: ClassVar[tuple[Part, ...]] = ()

    @property
    def has_interval(self) -> bool:
        """Whether it is a number, which is its own interval."""
        return isinstance(self.value, Fraction)

    @property
    def never_null(self) -> bool:
        """Whether it has a value."""
        return self.value is not None

    def column(self, _cells: NoisyCells) -> Column:
        """Return the constant, which stands for all cells."""
        if self.shape == "null":
            return of_labels([None])
        return constant(self.value) if isinstance(self.value, Fraction) else of_values([self.value], self.shape)

    def interval(self, cells: NoisyCells, _margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return the number itself."""
        return exactly(self.column(cells)) if self.has_interval else None
