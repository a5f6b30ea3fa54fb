"""Whole numbers close to given ones, for which all conditions hold exactly.

Theory of operation. Sets with more open keys come first, wholes before what they limit, and every number is chosen
between ends that what was chosen before leaves open. There is always room:

- the first of tied sets has, in each cell, the room that its limits leave, [0, n] or [n·least, n·most], and must add up
  to at least what sets beneath it add up to. Those hold the same limits with numbers n that add up to no more than
  these, so that the greatest that a cell may be, summed, reaches what is asked.
- another largest set must add up exactly to what one before it says over the keys that both have. There the limits hold
  for sums, hence within the sums of the ends. Sets beneath ask nothing more (`marginals`).
- a margin is a sum of numbers for which linear limits hold, so they hold for it.
- units and distinct values are at least what they are in any part, at most what limits them: the whole that limits them
  is no smaller than what limits the part.

Each number is rounded up or down, in all measures of a cell alike, so that what is at most another stays so. Then sums
are brought back to what they were, where there is room, an even share of it each.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.answer.constraints import Limit, adds_up, is_count, sign
from lapwing.answer.marginals import Floats, MarginTables, Tied
from lapwing.answer.projection import Tables
from lapwing.exact.arrays import IntArray, largest
from lapwing.query.measures.measures import Measure

_GOLDEN: Final = (5**0.5 - 1) / 2
"""Multiples of it, less their whole parts, lie evenly between 0 and 1, any stretch of them and any stride."""
_SPREAD: Final = 1 - 2**-20
"""A whole number, but for the error of a double, stays itself."""
_ROUNDS: Final = 4

Wholes = dict[Measure, list[IntArray]]
Ends = tuple[IntArray | None, IntArray | None]


def in_whole_numbers(tables: Tables, limits: Sequence[Limit], groupings: MarginTables | None) -> Wholes:
    """Return whole numbers for which all conditions hold, close to the given ones."""
    chosen: Wholes = {}
    for measure in dict.fromkeys([*(limit.measure for limit in limits), *tables]):
        own = [limit for limit in limits if limit.measure == measure]
        chosen[measure] = [_integers(np.rint(part)) if groupings is None else rounded(part) for part in tables[measure]]
        if groupings is None:
            chosen[measure] = [_between(chosen[measure][0], *_ends(own, chosen, 0))]
        elif adds_up(measure):
            for tied in groupings.tied:
                _add_up(measure, tables[measure], own, chosen, groupings, tied)
        elif is_count(measure):
            for place in sorted(range(len(groupings.sets)), key=lambda place: -len(groupings.sets[place])):
                _at_least_parts(measure, own, chosen, groupings, place)
    return chosen


def rounded(values: Floats) -> IntArray:
    """Return whole numbers next to given ones: each up or down by its place in the table, so that order is kept."""
    turns = np.arange(values.size).reshape(values.shape) * _GOLDEN % 1.0
    return _integers(np.floor(values + 0.5 + (turns - 0.5) * _SPREAD))


def _with_running_total(values: Floats) -> IntArray:
    """Return whole numbers next to given ones whose running total is within ½ of theirs."""
    below = np.floor(values)
    rest = np.cumsum((values - below).reshape(-1))
    return _integers(below + np.diff(np.floor(rest + 0.5), prepend=0.0).reshape(values.shape))


def _integers(numbers: Floats) -> IntArray:
    if np.abs(numbers).max(initial=0) < 2.0**62:
        return numbers.astype(np.int64)
    wide: IntArray = np.array([int(value) for value in numbers.reshape(-1).tolist()], dtype=object)
    return wide.reshape(numbers.shape)


def _between(values: IntArray, low: IntArray | None, high: IntArray | None) -> IntArray:
    above = values if low is None else np.maximum(values, low)
    return above if high is None else np.minimum(above, high)


def _ends(own: Sequence[Limit], chosen: Wholes, place: int) -> Ends:
    """Return the least and the greatest that a measure may be in the cells of a set."""
    wholes = {limit.whole: chosen[limit.whole][place] for limit in own if limit.whole is not None}
    low: IntArray | None = None
    high: IntArray | None = None
    for limit in own:
        bound = limit.bound(wholes)
        if limit.least:
            low = bound if low is None else np.maximum(low, bound)
        else:
            high = bound if high is None else np.minimum(high, bound)
    return low, high


def _at_least_parts(
    measure: Measure, own: Sequence[Limit], chosen: Wholes, groupings: MarginTables, place: int
) -> None:
    low, high = _ends(own, chosen, place)
    for part, whole in groupings.within:
        if whole == place:
            added = tuple(sorted(groupings.sets[part] - groupings.sets[whole]))
            most = chosen[measure][part].max(axis=added, keepdims=True)
            low = most if low is None else np.maximum(low, most)
    chosen[measure][place] = _between(chosen[measure][place], low, high)


def _add_up(
    measure: Measure, table: Sequence[Floats], own: Sequence[Limit], chosen: Wholes, groupings: MarginTables, tied: Tied
) -> None:
    """Choose the numbers of tied sets."""
    mine = chosen[measure]
    for place, before, keys in tied.largest:
        ends = _ends(own, chosen, place)
        values = _between(mine[place], *ends)
        for margin, larger in reversed(tied.others):
            # Cells rounded one by one err in their sums; these go back to what they should be if there is room.
            if larger == place:
                values = _adding_up_to(values, _with_running_total(table[margin]), ends)
        if before is not None:
            values = _adding_up_to(values, groupings.summed_to(mine[before], before, keys), ends)
        for part, whole in groupings.beneath if before is None else ():
            if whole == place and sign(measure):
                common = groupings.sets[part] & groupings.sets[whole]
                target = groupings.summed_to(mine[part], part, common)
                values = _reaching(values, target, sign(measure), ends)
        mine[place] = values
    for place, larger in tied.others:
        mine[place] = groupings.summed_to(mine[larger], larger, groupings.sets[place])


def _adding_up_to(values: IntArray, target: IntArray, ends: Ends) -> IntArray:
    return _reaching(_reaching(values, target, 1, ends), target, -1, ends)


def _reaching(values: IntArray, target: IntArray, side: int, ends: Ends) -> IntArray:
    """Raise (side 1) or lower (side −1) numbers, as far as their ends allow, until they add up to the target.

    Each takes an even share as long as there is room, beginning elsewhere in every sum, so that other sums do not all
    move in the same places. `target` has an axis of length 1 where sums run.
    """
    if values.dtype == np.int64 and largest(values) * values.size > np.iinfo(np.int64).max // 4:
        values = values.astype(object)
    summed = frozenset(axis for axis, size in enumerate(target.shape) if size == 1)
    order = sorted(range(values.ndim), key=lambda axis: (axis in summed, axis))
    shape = [values.shape[axis] for axis in order]
    rows: IntArray = side * values.transpose(order).reshape(target.size, -1)
    targets: IntArray = side * target.reshape(-1, 1)
    short = np.flatnonzero(rows.sum(axis=1) < targets[:, 0])
    if not short.size:
        return values
    end = ends[1 if side > 0 else 0]
    most: IntArray | None = None
    if end is not None:
        every: IntArray = np.broadcast_to(end, values.shape)  # type: ignore[assignment]  # int64 or object
        most = side * every.transpose(order).reshape(rows.shape)
    rows[short] = _raised(rows[short], targets[short], None if most is None else most[short])
    result: IntArray = (side * rows).reshape(shape).transpose(np.argsort(order))
    return result


def _raised(rows: IntArray, targets: IntArray, most: IntArray | None) -> IntArray:
    """Raise the numbers of each row until they add up to its target."""
    count = rows.shape[1]
    turned = (
        np.arange(count) + np.floor(np.arange(len(rows)) * _GOLDEN % 1.0 * count).astype(np.int64)[:, None]
    ) % count
    rows = _along(rows, turned)
    most = None if most is None else _along(most, turned)
    for _ in range(_ROUNDS):
        missing = np.maximum(0, targets - rows.sum(axis=1, keepdims=True))
        if not missing.any():
            break
        room = np.broadcast_to(missing, rows.shape) if most is None else np.minimum(most - rows, missing)
        open_ = np.maximum(1, (room > 0).sum(axis=1, keepdims=True))
        rows = rows + _taken(np.minimum(room, -(-missing // open_)), missing)
    missing = np.maximum(0, targets - rows.sum(axis=1, keepdims=True))
    room = np.broadcast_to(missing, rows.shape) if most is None else np.minimum(most - rows, missing)
    rows = rows + _taken(room, missing)
    return _along(rows, np.argsort(turned, axis=1))


def _along(rows: IntArray, places: NDArray[np.int64]) -> IntArray:
    along: IntArray = np.take_along_axis(rows, places, axis=1)  # type: ignore[assignment]  # int64 or object
    return along


def _taken(room: IntArray, missing: IntArray) -> IntArray:
    """Return what each number of a row takes of what is missing, one after the other, up to its room."""
    taken: IntArray = np.diff(np.minimum(np.cumsum(room, axis=1), missing), axis=1, prepend=0)
    return taken
