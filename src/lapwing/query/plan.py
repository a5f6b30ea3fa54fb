"""What a question means: noisy measures per cell of public keys, and what is derived from them afterwards.

A `Question` is the part that touches data and is paid for; it is also what identifies a stored answer. A `Plan` adds
the names, order and arithmetic of the answer, which are post-processing of released numbers and cost nothing.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Literal as Choice

from lapwing.catalog.model import Table
from lapwing.query.expression import Column, Constant, Expression, columns_of
from lapwing.query.types import Fixed

# ---- what is measured: each is an integer per cell, to which a mechanism adds noise ----------------------------------


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A grouping column whose values are public; `other` names the cell of all unlisted and NULL values."""

    column: Column
    values: tuple[Constant, ...]
    other: str | None = None

    def __str__(self) -> str:
        return str(self.column)

    @property
    def domain(self) -> tuple[Constant, ...]:
        """Every value of the key that appears in the answer, in order."""
        return self.values if self.other is None else (*self.values, self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The part of a plan that touches data: measures of one table's rows, filtered, in cells of public keys."""

    table: Table
    where: Expression | None
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]

    def __str__(self) -> str:
        """Return the canonical text: equal questions, and only they, have equal texts."""
        where = f" WHERE {self.where}" if self.where is not None else ""
        keys = f" GROUP BY {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"SELECT {', '.join(map(str, self.measures))} FROM {json.dumps(self.table.name)}{where}{keys}"

    @property
    def cells(self) -> int:
        """The number of cells in the answer, a public fact."""
        return prod(len(key.domain) for key in self.keys)

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the question reads."""
        arguments = [
            self.where,
            *(measure.argument for measure in self.measures if not isinstance(measure, CountUnits)),
        ]
        return frozenset().union({key.column.name for key in self.keys}, *map(columns_of, arguments))


# ---- what is derived: post-processing of released numbers ------------------------------------------------------------

Shape = Choice["integer", "decimal", "real", "text", "boolean", "date", "timestamp", "null"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The released value of a measure."""

    measure: Measure

    @property
    def shape(self) -> Shape:
        """The type of the value as the analyst sees it."""
        return "integer" if self.measure.step.denominator == 1 else "decimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """origin + sum/count, clamped to the argument's bounds; NULL where the released count is below 1."""

    total: Sum
    count: Count
    shape: Shape = "real"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """The value of a key."""

    key: Key
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """A constant of the question."""

    value: Constant
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """A function of `derive.FUNCTIONS` over derived values."""

    function: str
    arguments: tuple["Derived", ...]
    shape: Shape


Derived = Released | Average | KeyValue | Fixture | Compute


def measures_of(derived: Derived) -> tuple[Measure, ...]:
    """Return the measures that a derived value rests on, each once, in order of appearance."""
    match derived:
        case Released():
            return (derived.measure,)
        case Average():
            return (derived.total, derived.count)
        case Compute():
            return tuple(dict.fromkeys(m for argument in derived.arguments for m in measures_of(argument)))
        case _:
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A column of the answer."""

    name: str
    value: Derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One ORDER BY term."""

    value: Derived
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A bound question and how its answer is shown."""

    question: Question
    keys: tuple[Key, ...]
    outputs: tuple[Output, ...]
    having: Derived | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
