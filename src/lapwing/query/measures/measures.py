"""Measures, and their keys: a measure is an integer a cell, or a vector of them, to which noise is added.

A measure states its own facts; its sensitivity is proven in `stability`, and an engine says how it is computed. Its
printed form is part of what stored answers are found by, and never changes. Of every measure, `step` is what one unit
of the integer is worth, and `row_range` the least and the greatest integer that one row adds to a cell, 0 between them.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from lapwing.catalog.model import Table
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, written_in
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distinct_counts import CountDistinct, CountUnits
from lapwing.query.measures.distinct_sums import SumDistinct
from lapwing.query.measures.distribution import Distribution, fixed_point
from lapwing.query.measures.set_counts import CountOfSets


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The number of rows; with an argument, of the rows where it is not NULL.

    With a clamp, the sum over the units of each unit's number of rows in the cell, kept between its two ends.
    """

    argument: Expression | None = None
    clamp: tuple[int, int] | None = None

    construct: ClassVar[str] = "counts"
    step: ClassVar[Fraction] = Fraction(1)
    row_range: ClassVar[tuple[int, int]] = (0, 1)

    def __str__(self) -> str:
        return f"COUNT({'*' if self.argument is None else self.argument}){_clamp(self.clamp)}"

    def label(self, columns: str, factors: str) -> str:
        """Name it for people, by the columns of its argument."""
        return f"count of {columns or 'rows'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The sum of (k − origin) over the rows where the argument, k steps, is not NULL.

    With a clamp, in steps, the sum over the units of each unit's sum in the cell, or mean, kept between its two ends.
    """

    argument: Expression
    origin: int = 0
    clamp: tuple[int, int] | None = None
    averaged: bool = False

    construct: ClassVar[str] = "sums"

    def __str__(self) -> str:
        of_means = " OF MEANS" if self.averaged else ""
        return f"SUM{of_means}({self.argument} - {self.origin}; {self.step}){_clamp(self.clamp)}"

    @property
    def type(self) -> Fixed:
        """The fixed-point type of the argument; of a unit's means, that of what they are kept between."""
        kind, ends = fixed_point(self.argument), self.clamp if self.averaged else None
        return kind if ends is None else Fixed(step=kind.step, low=ends[0] + self.origin, high=ends[1] + self.origin)

    @property
    def row_range(self) -> tuple[int, int]:
        """The least and the greatest integer that one row adds to a cell; 0 is always between them."""
        if self.type.low is None or self.type.high is None:
            raise ValueError("a sum is taken over bounded values")
        return (min(0, self.type.low - self.origin), max(0, self.type.high - self.origin))

    def label(self, columns: str, factors: str) -> str:
        """Name it for people, by the columns of its argument."""
        return f"sum of {'means of ' if self.averaged else ''}{factors}{columns or 'values'}"

    @property
    def step(self) -> Fraction:
        """What one unit of the integer is worth."""
        return self.type.step


OnceEach = CountDistinct | CountOfSets | SumDistinct
"""A measure to which a value counts once, whoever has it: those of disjoint sets of units do not add up."""
NumberMeasure = Count | CountUnits | CountDistinct | CountOfSets | Sum | SumDistinct
"""A measure of one integer a cell."""
Measure = NumberMeasure | Distribution


def _clamp(clamp: tuple[int, int] | None) -> str:
    return "" if clamp is None else f" CLAMPED {clamp[0]} {clamp[1]}"


def argument_of(measure: Measure) -> Expression | None:
    """Return the expression over a row that a measure is of, if it has one."""
    return measure.where if isinstance(measure, CountUnits) else measure.argument


# ---- keys ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The public values of an expression, in order; `other` stands for every value not listed, NULL included."""

    listed: tuple[Constant, ...]
    other: str | None = None


def declared_values(expression: Expression, table: Table) -> Domain | None:
    """Return the values that the catalog declares for a column of a table; None if there are none."""
    column = table.column(expression.name) if isinstance(expression, ColumnReference) else None
    if column is None or not column.values:
        return None
    return Domain(listed=tuple(map(constant, column.values)), other=column.other)


def constant(value: object) -> Constant:
    """Return a declared value as plans hold it: numbers are fractions."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    return value  # type: ignore[return-value]  # the catalog has checked it


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A grouping expression.

    Its values are public, and each of them appears in the answer; `other` names the cell of all unlisted and NULL
    values. Or, if `values` is None, they are private: those that enough units hold are released at a price.
    """

    expression: Expression
    values: tuple[Constant, ...] | None
    other: str | None = None

    def __str__(self) -> str:
        return str(self.expression)

    @property
    def private(self) -> bool:
        """Whether the key's values are private."""
        return self.values is None

    @property
    def name(self) -> str:
        """The key's name for people: of a column what the question calls it, else the columns that it is made of."""
        columns = " and ".join(sorted(written_in(self.expression)))
        return columns if isinstance(self.expression, ColumnReference) else f"an expression of {columns or 'nothing'}"

    @property
    def domain(self) -> tuple[Constant, ...]:
        """Every value of a public key, in order; none of a private one."""
        listed = self.values or ()
        return listed if self.other is None else (*listed, self.other)
