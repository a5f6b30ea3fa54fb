"""Derived values: post-processing of released numbers and keys, which costs nothing and cannot leak.

A derived value is a tree. Each node states what it rests on, what it is in every cell of an answer, and where the true
value is in every cell if every released number is within its margin of the true one. `derive` makes trees, and checks
that their parts fit together, so that nothing can fail once the answer is paid.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

from lapwing.exact.arrays import IntArray
from lapwing.query.derivation import rationals
from lapwing.query.derivation.columns import (
    NUMERIC,
    Column,
    IndexArray,
    Labels,
    Rationals,
    Shape,
    as_shape,
    constant,
)
from lapwing.query.derivation.columns_of_values import of_values
from lapwing.query.derivation.intervals import Endpoints, Interval, exactly
from lapwing.query.derivation.node import Derived, Margins, Part
from lapwing.query.derivation.noisy_trees import Ranks
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.expressions.expression import require_bounded
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Key, Measure, argument_of

if TYPE_CHECKING:
    from lapwing.query.derivation.source_values import SourceCells


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureValue:
    """The released value of a measure."""

    measure: Measure

    children: ClassVar[tuple[Derived, ...]] = ()
    has_interval: ClassVar[bool] = True
    never_null: ClassVar[bool] = True

    @property
    def shape(self) -> Shape:
        """The type of the value as the analyst sees it."""
        return "integer" if self.measure.step.denominator == 1 else rationals.shape_in_steps(self.measure.step)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The released numbers that it reads itself."""
        return (self.measure,)

    def column(self, cells: "NoisyCells") -> Rationals:
        """Return its value in every cell."""
        return Rationals(tops=cells.measures[self.measure], scale=self.measure.step)

    def interval(self, cells: "NoisyCells", margins: Mapping[Measure, Fraction]) -> Interval:
        """Return where the true value is in every cell."""
        middle, margin = self.column(cells), constant(margins[self.measure])
        return (Endpoints(numbers=rationals.subtract(middle, margin)), Endpoints(numbers=rationals.add(middle, margin)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """The value of a key."""

    key: Key
    shape: Shape

    children: ClassVar[tuple[Derived, ...]] = ()
    parts: ClassVar[tuple[Part, ...]] = ()
    never_null: ClassVar[bool] = False

    @property
    def has_interval(self) -> bool:
        """Whether it is a number, which is its own interval."""
        return self.shape in NUMERIC

    def column(self, cells: "NoisyCells") -> Column:
        """Return its value in every cell."""
        labels = cells.keys[str(self.key)]
        if self.shape not in NUMERIC and self.shape != "boolean":
            return labels
        return of_values([*labels.labels, None], self.shape).taken(labels.places)  # NULL is at place −1

    def interval(self, cells: "NoisyCells", _margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return the number itself in every cell."""
        return exactly(self.column(cells))


# ---- what a value rests on -------------------------------------------------------------------------------------------


def measures_of(derived: Derived) -> tuple[Measure, ...]:
    """Return the measures that a derived value rests on, each once, in order of appearance."""
    parts = parts_of(derived)
    found = [part.distribution if isinstance(part, OrderStatistic) else part for part in parts]
    return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)


def measures_in(derived: Iterable[Derived]) -> tuple[Measure, ...]:
    """Return the measures of an answer, each once, in canonical order, which the SELECT list does not change.

    Raises:
        QueryRefused: If they are too large together.
    """
    every = [measure for value in derived for measure in measures_of(value)]
    require_bounded(argument for argument in map(argument_of, every) if argument is not None)
    return tuple(sorted(set(every), key=str))


def parts_of(derived: Derived) -> tuple[Part, ...]:
    """Return the parts that a derived value's interval rests on, each once, in order of appearance."""
    found = [part for value in values_in(derived) for part in value.parts]
    return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)


def values_in(derived: Derived) -> Iterator[Derived]:
    """Yield a derived value and those inside it, from left to right; one that is used in many places, once."""
    waiting, seen = [derived], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        waiting.extend(reversed(value.children))


# ---- what it is computed from ----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyCells:
    """Released integers and keys, one entry a cell.

    Args:
        size: The number of cells.
        measures: Integers, in steps of their measure.
        keys: By the texts of keys.
        margins: Of the intervals whose ends a question uses.
        ranks: Of the measures that are distributions.
        over: What window functions are in each (`window_values`).
        sources: Rows of other answers that they are made of.
    """

    size: int
    measures: Mapping[Measure, IntArray]
    keys: Mapping[str, Labels]
    margins: Margins
    ranks: Mapping[Distribution, Ranks] = field(default_factory=dict)
    over: Mapping[Derived, Column] = field(default_factory=dict)
    sources: "tuple[SourceCells, ...]" = ()

    def taken(self, places: IndexArray) -> "NoisyCells":
        """Return some cells, in the order of `places`."""
        if len(places) == self.size and (places[1:] > places[:-1]).all():
            return self  # all of them, in their order
        return replace(
            self,
            size=len(places),
            measures={measure: values[places] for measure, values in self.measures.items()},
            keys={name: labels.taken(places) for name, labels in self.keys.items()},
            ranks={measure: ranks.taken(places) for measure, ranks in self.ranks.items()},
            over={over: column.taken(places) for over, column in self.over.items()},
            sources=tuple(source.taken(places) for source in self.sources),
        )

    def column(self, derived: Derived) -> Column:
        """Return a derived value in every cell."""
        return as_shape(derived.column(self), derived.shape).expanded(self.size)
