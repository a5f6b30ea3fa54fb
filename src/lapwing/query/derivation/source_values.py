"""Columns of other answers: what a question shows that is asked of the answers to several others.

Each row of such an answer is made of rows of others, its sources: of every one it has a row or none (`SourceCells`).
All of these were released, so that what is computed from them is post-processing, as all derived values are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, cast, final

import numpy as np

from lapwing.query.derivation import intervals
from lapwing.query.derivation.answer_functions import FUNCTIONS
from lapwing.query.derivation.columns import NUMERIC, Column, IndexArray, Shape, Truths
from lapwing.query.derivation.columns_of_values import taken_or_null
from lapwing.query.derivation.derive import degree_of, rests_on_ends
from lapwing.query.derivation.derived import KeyValue, NoisyCells, measures_of
from lapwing.query.derivation.intervals import Endpoints, Interval
from lapwing.query.derivation.node import Derived, Part
from lapwing.query.measures.measures import Measure


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceCells:
    """The rows of a source that the rows of an answer are made of.

    Args:
        rows: Those that the source shows.
        places: Which of them each row has, −1 for none.
        margins: Within which all that a value of the source rests on is at once, with a confidence.
    """

    rows: NoisyCells
    places: IndexArray
    margins: Callable[[Derived, Fraction], Mapping[Measure, Fraction]]

    @property
    def missing(self) -> np.typing.NDArray[np.bool_]:
        """Where there is none."""
        return np.asarray(self.places < 0, dtype=np.bool_)

    def taken(self, places: IndexArray) -> "SourceCells":
        """Return the rows of some rows of the answer."""
        return replace(self, places=self.places[places])

    def column(self, derived: Derived) -> Column:
        """Return a value of the source in every row of the answer, NULL where it has no row of the source."""
        return taken_or_null(self.rows.column(derived), self.places, derived.shape)

    def interval(self, derived: Derived, confidence: Fraction) -> Interval | None:
        """Return where the true value is in every row of the answer, anywhere where it has no row of the source."""
        within = derived.interval(self.rows, self.margins(derived, confidence)) if self.rows.size else None
        if within is None:
            return None
        low, high = within
        return self._ends(low, -1), self._ends(high, 1)

    def _ends(self, ends: Endpoints, outside: int) -> Endpoints:
        places = np.maximum(self.places, 0)
        infinite = np.zeros(self.rows.size, dtype=np.int64) if ends.infinite is None else ends.infinite
        infinite = np.where(self.missing, outside, np.broadcast_to(infinite, self.rows.size)[places])
        return Endpoints(numbers=ends.numbers.expanded(self.rows.size).taken(places), infinite=infinite)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceValue:
    """A column of a source, by its number.

    Args:
        optional: Whether a row of the answer may have no row of the source.
    """

    source: int
    value: Derived
    optional: bool = False

    children: ClassVar[tuple[Derived, ...]] = ()

    @property
    def shape(self) -> Shape:
        """The type of the value as the analyst sees it."""
        return self.value.shape

    @property
    def degree(self) -> int:
        """How many released numbers are multiplied in it."""
        return degree_of(self.value)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Itself, if it is noisy: with all that it rests on it misses the truth as one released number does.

        The same number in another row or source is a number of its own here, so that a union bound holds for rows
        that are made of several rows of one source.
        """
        return (cast(Part, self),) if measures_of(self.value) and not rests_on_ends(self.value) else ()

    @property
    def has_interval(self) -> bool:
        """Whether it has one in the source."""
        return self.value.has_interval

    @property
    def never_null(self) -> bool:
        """Whether it is a number that every row has."""
        return self.value.never_null and not self.optional

    def column(self, cells: NoisyCells) -> Column:
        """Return its value in every row."""
        return cells.sources[self.source].column(self.value)

    def interval(self, cells: NoisyCells, margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return where the true value is in every row; of a noisy one `margins` holds the chance that it is not."""
        chance = margins[cast(Measure, self)] if self.parts else Fraction(1, 2)
        return cells.sources[self.source].interval(self.value, 1 - chance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnionValue:
    """A column of UNION ALL: in every row that of the one source which it is of."""

    values: tuple[SourceValue, ...]
    shape: Shape

    children: ClassVar[tuple[Derived, ...]] = ()

    @property
    def degree(self) -> int:
        """How many released numbers are multiplied in it, at most."""
        return max(map(degree_of, self.values))

    @property
    def parts(self) -> tuple[Part, ...]:
        """Itself, if any of its values is noisy: a row has but one of them."""
        return (cast(Part, self),) if any(value.parts for value in self.values) else ()

    @property
    def has_interval(self) -> bool:
        """Whether every one has an interval."""
        return self.shape in NUMERIC and all(value.has_interval for value in self.values)

    @property
    def never_null(self) -> bool:
        """Whether it is a number in every row of every source."""
        return all(value.value.never_null for value in self.values)

    def column(self, cells: NoisyCells) -> Column:
        """Return its value in every row."""
        *others, last = self.values
        chosen: list[Column] = []
        for value in others:
            chosen += [Truths(truths=~cells.sources[value.source].missing), value.column(cells)]
        return FUNCTIONS["case"].column([*chosen, last.column(cells)], self.shape)

    def interval(self, cells: NoisyCells, margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return where the true value is in every row; `margins` holds the chance that it is not."""
        confidence = 1 - (margins[cast(Measure, self)] if self.parts else Fraction(1, 2))
        every = [cells.sources[value.source].interval(value.value, confidence) for value in self.values]
        found = [part for part in every if part is not None]
        if len(found) < len(every):
            return None
        low, high = found[-1]
        for value, part in zip(self.values[:-1], found, strict=False):
            here = ~cells.sources[value.source].missing
            low, high = intervals.choose(here, part[0], low), intervals.choose(here, part[1], high)
        return low, high


def shows_key(value: Derived) -> bool:
    """Tell whether a value is that of a key, of this answer or of one that it is made of."""
    if isinstance(value, SourceValue):
        return shows_key(value.value)
    if isinstance(value, UnionValue):
        return all(map(shows_key, value.values))
    return isinstance(value, KeyValue)
