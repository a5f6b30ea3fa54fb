"""The tables of an answer by several grouping sets, and which of them are parts of which.

Theory of operation. Cells come set by set, in each the product of its keys, so that the numbers of a set are an array
with one axis a key of the question, of length 1 for a key that the set does not have. Rows in the cells of a set are
those with a value of each of its keys. Call a key *open* if it is not exhaustive (`exhaustive_keys`), and keep only
rows with a value of given open keys: over those, sums along exhaustive keys are the sums over all rows. So

- two sets with the same open keys are margins of one table: over the keys that both have, their sums are equal. They
  are *tied*.
- where a set has more open keys than another, it has fewer rows: over the keys that both have, its sums of what is
  never negative are at most the other's. It is *beneath* the other.

Tied sets must have margins in whole numbers, too, and have them if each set shares with all before it no more keys than
with one of them (the running intersection property: such tables always have a common one). A set that would close a
cycle, as (a, c) after (a, b) and (b, c), is not tied to the others, so that nothing is said of how they add up. Neither
is one over which sets with more open keys say more than over what it shares with those before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.answer.exhaustive_keys import is_exhaustive
from lapwing.exact.arrays import IntArray, largest
from lapwing.query.plan.plan import Question

Axes = frozenset[int]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tied:
    """Sets that are margins of one table.

    Args:
        open: Their keys that are not exhaustive.
        largest: Sets that hold all others, each with the one before it that has all keys which it shares with those
            before (None for the first), and these keys.
        others: The rest, each with a larger set of which it is a margin.
    """

    open: Axes
    largest: tuple[tuple[int, int | None, Axes], ...]
    others: tuple[tuple[int, int], ...]

    @property
    def ties(self) -> tuple[tuple[int, int, Axes | None], ...]:
        """Pairs of a set and one that says what it adds up to over some keys; None: over all that the first has."""
        chained = ((place, before, keys) for place, before, keys in self.largest if before is not None)
        return (*chained, *((place, larger, None) for place, larger in self.others))

    @property
    def sets(self) -> tuple[int, ...]:
        """The places of all sets."""
        return (*(place for place, _, _ in self.largest), *(place for place, _ in self.others))


@final
@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class MarginTables:
    """The grouping sets of a question.

    Args:
        sizes: The number of values of each key.
        sets: The keys of each set, by their places.
        exhaustive: The places of exhaustive keys.
    """

    sizes: tuple[int, ...]
    sets: tuple[Axes, ...]
    exhaustive: Axes

    @classmethod
    def of(cls, question: Question) -> Self:
        """Return the sets of a question with several, whose keys are all public."""
        relation = question.selection.relation
        places = {key: place for place, key in enumerate(question.keys)}
        return cls(
            sizes=tuple(len(key.domain) for key in question.keys),
            sets=tuple(frozenset(places[key] for key in keys) for keys in question.sets),
            exhaustive=frozenset(place for key, place in places.items() if is_exhaustive(key, relation)),
        )

    def shape(self, place: int) -> tuple[int, ...]:
        """Return the shape of a set's array."""
        return tuple(size if axis in self.sets[place] else 1 for axis, size in enumerate(self.sizes))

    def split(self, values: IntArray) -> list[IntArray]:
        """Return the numbers of an answer as an array a set."""
        tables: list[IntArray] = []
        start = 0
        for place in range(len(self.sets)):
            shape = self.shape(place)
            tables.append(values[start : start + prod(shape)].reshape(shape))
            start += prod(shape)
        return tables

    @cached_property
    def tied(self) -> tuple[Tied, ...]:
        """Which sets are margins of one table; those with more open keys come first."""
        by_open: dict[Axes, list[int]] = {}
        for place in sorted(range(len(self.sets)), key=lambda place: (-len(self.sets[place]), place)):
            by_open.setdefault(self.sets[place] - self.exhaustive, []).append(place)
        opens = sorted(by_open, key=lambda axes: (-len(axes), sorted(axes)))
        return tuple(tied for axes in opens for tied in self._tied(axes, by_open[axes]))

    def _tied(self, open_keys: Axes, places: Sequence[int]) -> Iterator[Tied]:
        """Tie sets with the same open keys, as many as go together, then those that are left."""
        finer = [keys for keys in self.sets if keys - self.exhaustive > open_keys]
        while places:
            chief: list[tuple[int, int | None, Axes]] = []
            others: list[tuple[int, int]] = []
            left: list[int] = []
            for place in places:
                keys = self.sets[place]
                whole = next((other for other, _, _ in chief if keys < self.sets[other]), None)
                if whole is not None:
                    others.append((place, whole))
                    continue
                seen = frozenset[int]().union(*(self.sets[other] for other, _, _ in chief))
                holder = next((other for other, _, _ in chief if keys & seen <= self.sets[other]), None)
                if not chief:
                    chief.append((place, None, frozenset()))
                elif holder is not None and all(more & keys <= keys & seen for more in finer):
                    chief.append((place, holder, keys & seen))
                else:
                    left.append(place)
            yield Tied(open=open_keys, largest=tuple(chief), others=tuple(others))
            places = left

    @cached_property
    def beneath(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a set and one that has all of its rows and more; other such pairs follow from these."""
        return tuple(
            (part, whole)
            for finer in self.tied
            for coarser in self.tied
            if finer.open > coarser.open
            for part, _, _ in finer.largest
            for whole, _, _ in coarser.largest
        )

    @cached_property
    def within(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a set and one of fewer keys whose cells have all rows of their parts' cells, next to each other."""
        tie = {place: number for number, tied in enumerate(self.tied) for place in tied.sets}
        pairs = [
            (part, whole)
            for part, keys in enumerate(self.sets)
            for whole, fewer in enumerate(self.sets)
            if fewer < keys and (tie[part] == tie[whole] or keys - self.exhaustive > fewer - self.exhaustive)
        ]
        every = set(pairs)
        between = {(a, c) for a, b in pairs for b2, c in pairs if b == b2 and (a, c) in every}
        return tuple(pair for pair in pairs if pair not in between)

    def summed_to(self, values: IntArray, place: int, keys: Axes) -> IntArray:
        """Return the sums of a set's numbers over all its keys but some, exactly."""
        axes = tuple(sorted(self.sets[place] - keys))
        if values.dtype == np.int64 and largest(values) * values.size > np.iinfo(np.int64).max:
            values = values.astype(object)
        total: IntArray = values.sum(axis=axes, keepdims=True) if axes else values
        return total

    def nearest_margins(self, tables: list[Floats]) -> None:
        """Move the numbers of tied sets, in place, to the nearest that are margins of one table.

        A table is the sum of one part for every set S of its exhaustive keys: an array over S that adds up to 0 along
        every axis. Parts are orthogonal. In the table of the keys T, a part u of S is spread evenly over n cells, the
        product of the other sizes, and has the squared length |u|²/n there. So by least squares u is the mean of what
        the tables have for it, weighted by 1/n, each S by itself.
        """
        for tied in self.tied:
            if len(tied.sets) > 1:
                self._nearest(tied, tables)

    def _nearest(self, tied: Tied, tables: list[Floats]) -> None:
        nearest = {place: np.zeros(tables[place].shape) for place in tied.sets}
        for axes in {some for place in tied.sets for some in _subsets(self.sets[place] - tied.open)}:
            holders = [place for place in tied.sets if axes <= self.sets[place]]
            spread = [prod(self.sizes[axis] for axis in self.sets[place] - tied.open - axes) for place in holders]
            mean: Floats = np.zeros(())
            for place, cells in zip(holders, spread, strict=True):
                rest = tuple(sorted(self.sets[place] - tied.open - axes))
                mean = mean + tables[place].sum(axis=rest, keepdims=True) / cells
            mean = mean / sum(1 / cells for cells in spread)
            for axis in axes:
                mean = mean - mean.mean(axis=axis, keepdims=True)
            for place, cells in zip(holders, spread, strict=True):
                nearest[place] += mean / cells
        for place, table in nearest.items():
            tables[place][...] = table


def _subsets(axes: Axes) -> Iterator[Axes]:
    ordered = sorted(axes)
    for bits in range(1 << len(ordered)):
        yield frozenset(axis for place, axis in enumerate(ordered) if bits >> place & 1)
