"""From the events of a tick to what changes in each cell, so that no unit changes more than it may.

Theory of operation. `KINDS` are ways of counting; each keeps something of every unit (how many of its events counted,
where it was seen last) and at each tick makes changes of the events that arrived for it.

Guarantee:
    The changes of a stream are Σ_u x(u) over the units u, tick by tick, where x(u) at a tick is a function of u's own
    events that arrived for this tick and the ticks before it, and of nothing else: not of other units, of the order in
    which events arrived, or of what was released, but through what u itself does. And x(u) is one of the streams that
    the participation of its kind allows (`planning`). Proof, kind by kind, beside the code; what is kept of a unit is
    in arrays, one entry a unit, and no line mixes entries of different units but for the last, which adds them up.

So two histories that differ by one unit's events have streams that differ by x(u), for the same ticks of arrival: what
`mechanisms.continual` needs. Where u's events depend on what was released, they are bounded on every path all the same.

Events of a unit and a tick are taken in the order of their time, then of their cell and values: equal ones are
interchangeable. An event of a unit that is beyond its limit does not exist, whatever it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray, integer_array
from lapwing.mechanisms.trees import levels_above

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
NEVER: Final = -1
_NARROW: Final = 1 << 62


class Arrivals(NamedTuple):
    """The events that arrived for a tick: one entry an event.

    Args:
        unit: Its number.
        cell: Or −1 for none.
        values: One array a stream, and where there is none.
    """

    unit: Integers
    time: Integers
    cell: Integers
    values: Sequence[tuple[Integers, Flags]]

    def taken(self, places: NDArray[np.intp] | Flags) -> "Arrivals":
        """Return some of the events, in this order."""
        values = [(value[places], null[places]) for value, null in self.values]
        return Arrivals(self.unit[places], self.time[places], self.cell[places], values)

    def ordered(self) -> "Arrivals":
        """Return the events unit by unit, in the order in which they are counted."""
        further = [column for value, null in self.values for column in (value, null)]
        return self.taken(np.lexsort((*further, self.cell, self.time, self.unit)))


class KeptUnit(NamedTuple):
    """What is kept of a unit, or of a unit in a cell: `used` of its limit, where it is (`place`), and when it was seen.

    Args:
        seen: The tick of its last event.
        time: Of its last event.
    """

    unit: int
    cell: int
    used: int
    place: int
    seen: int
    time: int


class CountingMethod(Protocol):
    """A way of counting."""

    def advance(self, tick: int, arrivals: Arrivals) -> list[IntArray]:
        """Take what arrived for the next tick, in order (`Arrivals.ordered`); return what changes of each stream."""
        ...

    def changed(self) -> Iterator[KeptUnit]:
        """Yield what is kept and has changed since this was last asked."""
        ...

    def restore(self, kept: Sequence[KeptUnit]) -> None:
        """Take up what was kept."""
        ...

    def renew(self) -> None:
        """Begin another horizon, in which units have what is left of their limits."""
        ...


@final
class _Numbers:
    """One integer for each unit, however many units there come to be."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.of = np.full(1024, first, dtype=np.int64)

    def reach(self, size: int) -> Integers:
        """Return the array, at least so long."""
        if size > len(self.of):
            more = np.full(max(size, 2 * len(self.of)) - len(self.of), self._first, dtype=np.int64)
            self.of = np.concatenate((self.of, more))
        return self.of


def place_within(groups: Integers) -> Integers:
    """Return the place of each entry among those of its group, from 0; entries of a group are neighbours."""
    starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1]))) if len(groups) else np.zeros(0, int)
    lengths = np.diff(np.append(starts, len(groups)))
    places: Integers = np.arange(len(groups)) - np.repeat(starts, lengths)
    return places


def sums_of(cells: Integers, values: Integers, size: int, most: int) -> IntArray:
    """Add values up, cell by cell, exactly; `most` is the largest size of a value."""
    if len(values) * most < _NARROW:
        sums = np.zeros(size, dtype=np.int64)
        np.add.at(sums, cells, values)
        return sums
    wide = [0] * size
    for cell, value in zip(cells.tolist(), values.tolist(), strict=True):
        wide[cell] += value
    return integer_array(wide)


@final
class Range(NamedTuple):
    """What an event adds to its cell: a value between two ends."""

    low: int
    high: int

    def changes(self, cells: Integers, values: Integers, size: int) -> IntArray:
        """Return the sums of values by cell, each inside the range whatever an engine returned."""
        return sums_of(cells, np.clip(values, self.low, self.high), size, max(-self.low, self.high))


@final
class Tree(NamedTuple):
    """What an event adds to its cell: 1 in one node of each level, from the top down to leaves of `width` steps."""

    width: int
    branching: int
    leaves: int

    def changes(self, cells: Integers, values: Integers, size: int) -> IntArray:
        """Return the numbers of events in all nodes of all cells, a cell's after the other's."""
        leaf = np.clip(values // self.width, 0, self.leaves - 1)
        counts = np.bincount(cells * self.leaves + leaf, minlength=size * self.leaves).reshape(size, self.leaves)
        return np.concatenate(levels_above(counts, self.branching), axis=-1).ravel()


@final
class CountedRows:
    """Events, or sums of what they have: all streams of one question count the same events.

    Of a unit the first `most` count, and at most `per_tick` at each tick: so x(u) is made of at most so many vectors,
    each of one entry inside the range of its stream. An event counts for all streams or for none.

    Of a distribution an event adds 1 to one node of each level of its cell's tree, whatever its value: its leaf is
    `value // width`, moved to the nearest one there is.

    Args:
        most: None if each event is a unit of its own.
        forms: What an event adds, a range or a tree.
    """

    def __init__(self, cells: int, most: int | None, per_tick: int | None, forms: Sequence[Range | Tree]) -> None:
        self._cells, self._most, self._per_tick, self._forms = cells, most, per_tick, forms
        self._used, self._dirty = _Numbers(0), set[int]()

    def advance(self, tick: int, arrivals: Arrivals) -> list[IntArray]:
        """Count what is inside the limits."""
        events = arrivals.taken(arrivals.cell >= 0)
        if self._most is not None and len(events.unit):
            place = place_within(events.unit)
            if self._per_tick is not None:
                events = events.taken(place < self._per_tick)
                place = place[place < self._per_tick]
            used = self._used.reach(int(events.unit[-1]) + 1)
            counts = used[events.unit] + place < self._most
            events = events.taken(counts)
            np.add.at(used, events.unit, 1)
            self._dirty.update(np.unique(events.unit).tolist())
        changes = []
        for (value, null), form in zip(events.values, self._forms, strict=True):
            changes.append(form.changes(events.cell[~null], value[~null], self._cells))
        return changes

    def changed(self) -> Iterator[KeptUnit]:
        """Yield how many events of a unit counted."""
        dirty, self._dirty = self._dirty, set()
        for unit in sorted(dirty):
            yield KeptUnit(unit, NEVER, int(self._used.of[unit]), NEVER, NEVER, NEVER)

    def restore(self, kept: Sequence[KeptUnit]) -> None:
        """Take up how many events of a unit counted."""
        for each in kept:
            self._used.reach(each.unit + 1)[each.unit] = each.used

    def renew(self) -> None:
        """Keep how many events counted, which is all that there is."""


@final
class Present:
    """People where they are at the end of a tick: where their last event was, for `within` ticks after it or for ever.

    An event of no cell ends a stay. A unit begins `most` stays at most; what would be one more ends the last, and it is
    nowhere from then on. So x(u) is +1 at the beginning and −1 at the end of stays, of which one begins no earlier than
    the one before has ended: a unit has one place. An event that happened before the last one that was seen is passed
    over, as people are where they were last.
    """

    def __init__(self, cells: int, most: int, within: int | None) -> None:
        self._cells, self._most, self._within = cells, most, within
        self._used, self._place, self._seen, self._time = (_Numbers(first) for first in (0, NEVER, NEVER, -(1 << 62)))
        self._dirty = set[int]()

    def advance(self, tick: int, arrivals: Arrivals) -> list[IntArray]:
        """Move people, and let those go of whom nothing was heard for too long."""
        size = int(arrivals.unit[-1]) + 1 if len(arrivals.unit) else 0
        used, place, seen, time = (each.reach(size) for each in (self._used, self._place, self._seen, self._time))
        before = place.copy()
        # Only the last event of each unit matters at the end of a tick, if it is later than what was seen before.
        last = np.flatnonzero(np.append(arrivals.unit[1:] != arrivals.unit[:-1], True)) if size else np.zeros(0, int)
        newer = last[arrivals.time[last] >= time[arrivals.unit[last]]]
        units, cells = arrivals.unit[newer], arrivals.cell[newer]
        time[units], seen[units] = arrivals.time[newer], tick
        if self._within is not None:
            gone = (place != NEVER) & (seen <= tick - self._within)
            place[gone] = NEVER
        moves = (cells != NEVER) & (cells != place[units])
        begins = moves & (used[units] < self._most)
        place[units] = np.where(begins | (cells == place[units]), cells, NEVER)
        np.add.at(used, units[begins], 1)
        touched = np.flatnonzero(before != place)
        self._dirty.update(touched.tolist(), units.tolist())
        there, left = place[touched], before[touched]
        entered = np.bincount(there[there != NEVER], minlength=self._cells)
        gone_from = np.bincount(left[left != NEVER], minlength=self._cells)
        return [entered - gone_from]

    def changed(self) -> Iterator[KeptUnit]:
        """Yield where a unit is."""
        dirty, self._dirty = self._dirty, set()
        for unit in sorted(dirty):
            used, place, seen, time = (int(each.of[unit]) for each in self._all)
            yield KeptUnit(unit, NEVER, used, place, seen, time)

    @property
    def _all(self) -> tuple[_Numbers, ...]:
        return self._used, self._place, self._seen, self._time

    def restore(self, kept: Sequence[KeptUnit]) -> None:
        """Take up where units are."""
        for each in kept:
            for numbers, value in zip(self._all, (each.used, each.place, each.seen, each.time), strict=True):
                numbers.reach(each.unit + 1)[each.unit] = value

    def renew(self) -> None:
        """Let everybody be nowhere; whoever is heard of begins another stay."""
        self._dirty.update(np.flatnonzero(self._place.of != NEVER).tolist())
        self._place.of[:] = NEVER


@final
class DistinctPeople:
    """Different people in each cell: so far, in the last `window` ticks, or in each tick by itself.

    Of a unit `most` begin: so far, its first appearances in a cell, each in another one, as a pair that was seen begins
    nothing again. In a window, stays, each of a pair of unit and cell that was not in the window: it ends when the pair
    was not seen for `window` ticks, so that stays of a pair do not overlap. At single ticks, pairs of tick and cell.
    A pair that begins nothing because the limit is reached does not exist, and is not kept: later it is beyond it, too.
    """

    def __init__(self, cells: int, most: int, window: int | None) -> None:
        self._cells, self._most, self._window = cells, most, window
        self._used, self._dirty = _Numbers(0), set[tuple[int, int]]()
        self._pairs = dict[tuple[int, int], int]()  # those that count, with the tick at which they were last seen
        self._ends = dict[int, list[tuple[int, int]]]()  # pairs that may end at a tick

    def advance(self, tick: int, arrivals: Arrivals) -> list[IntArray]:
        """Count pairs of a unit and a cell that begin and end."""
        changes = np.zeros(self._cells, dtype=np.int64)
        known = arrivals.cell >= 0
        units, cells = arrivals.unit[known], arrivals.cell[known]
        used = self._used.reach(int(units[-1]) + 1 if len(units) else 0)
        pairs = dict.fromkeys(zip(units.tolist(), cells.tolist(), strict=True))
        for pair in pairs:
            if self._window != 1 and pair in self._pairs:
                self._see(pair, tick)
            elif used[pair[0]] < self._most:
                used[pair[0]] += 1
                changes[pair[1]] += 1
                self._dirty.add((pair[0], NEVER))
                if self._window != 1:
                    self._see(pair, tick)
        for pair in self._ends.pop(tick, ()):
            if self._window is not None and self._pairs.get(pair, tick) <= tick - self._window:
                del self._pairs[pair]
                changes[pair[1]] -= 1
                self._dirty.add(pair)
        return [changes]

    def _see(self, pair: tuple[int, int], tick: int) -> None:
        if self._window is None and pair in self._pairs:
            return
        self._pairs[pair] = tick
        self._dirty.add(pair)
        if self._window is not None:
            self._ends.setdefault(tick + self._window, []).append(pair)

    def changed(self) -> Iterator[KeptUnit]:
        """Yield how many pairs of a unit began, and when a pair was last seen; never, of one that ended."""
        dirty, self._dirty = self._dirty, set()
        for unit, cell in sorted(dirty):
            used = int(self._used.of[unit]) if cell == NEVER else 0
            yield KeptUnit(unit, cell, used, NEVER, self._pairs.get((unit, cell), NEVER), NEVER)

    def restore(self, kept: Sequence[KeptUnit]) -> None:
        """Take up pairs."""
        for each in kept:
            if each.cell == NEVER:
                self._used.reach(each.unit + 1)[each.unit] = each.used
            elif each.seen != NEVER:
                self._see((each.unit, each.cell), each.seen)
        self._dirty.clear()

    def renew(self) -> None:
        """Let every pair have ended."""
        self._dirty.update(self._pairs)
        self._pairs.clear()
        self._ends.clear()


Maker = Callable[[int, int, int | None], CountingMethod]
KINDS: Final[Mapping[str, Maker]] = {
    "present": Present,
    "people so far": lambda cells, most, window: DistinctPeople(cells, most, None),
    "people in window": DistinctPeople,
    "people in tick": lambda cells, most, window: DistinctPeople(cells, most, 1),
}
"""How each kind but `rows` is counted, of cells, the limit of a unit, and ticks that something lasts."""
