"""Truncate a sum over rows that several units share, so that no unit moves it far: a packing linear program.

Setting. Each row k has a weight ψ_k ≥ 0, an integer, and belongs to a set of units: it is there if and only if all of
them are. So when a unit is removed exactly its rows vanish, and all others stay as they are. For a level τ let

    Q(τ) = max Σ w_k   where   Σ_{k ∋ u} w_k ≤ τ for every unit u,   0 ≤ w_k ≤ ψ_k.

Guarantee:
    Removing unit u changes Q(τ) by at most τ, and never upwards; and Q(τ) ≤ Σ ψ_k. Proof. Write Q' for the value
    without u. Weights that are allowed for the rows without u are allowed for all rows, if those of u get 0: Q' ≤ Q.
    Take the best weights for all rows and leave those of u out: they are allowed, and Σ_{k ∋ u} w_k ≤ τ is lost, so
    that Q ≤ Q' + τ. ∎ If one unit is replaced by another, Q goes down and then up, by at most τ each: it moves by at
    most τ.

Integers. Levels and weights are integers of steps. For levels of 2³⁰ and more they are made coarser: with the grid
q = ⌈τ/2³⁰⌉, a function of τ alone, every set of units has the weight ⌊ψ/q⌋ of all its rows together, and the level is
⌊τ/q⌋. That is again such a program, as the weight of a set is a function of its own rows: it moves by at most ⌊τ/q⌋,
hence q times its value by at most τ, and it loses less than q for each set of units. What is released is q·⌊Q⌋. For
integers τ the inequalities Q' ≤ Q ≤ Q' + τ hold of the floors too, so that rounding costs nothing.

Where at most two units share a row the value is ⌊Q⌋. Where three or more do it is, with θ = .38, s = slack(τ) and in
units of the grid, s·⌊(Q + θ)/s⌋ (`exact_programs.rounded`): an integer v with Q − s < v ≤ Q + ½. If a unit is added,
removed or replaced, Q moves by at most τ, hence v by less than τ + s + ½, so by at most τ + s, as all three are
integers. And v is at most the integer Σ ⌊ψ/q⌋, because Q is, and θ < 1. Either is a function of Q alone, and is
always found: a solver in floating point proposes, integers prove, and what is left open is computed in fractions
(`packing_solvers`). So nothing that a unit holds decides whether there is a value.

What is settled before any solver is asked, until nothing more is:
  - A row's weight never exceeds what is left of the level in any of its units, so it may be cut to that.
  - A unit whose rows together weigh no more than is left in it limits nothing, and is forgotten.
  - A row without units that limit it gets its whole weight.
  - Rows limited by one unit alone get all they can, before others of that unit: what is taken from another row of it
    to make room lowers that row by as much and no other limit is passed, so that the best value stays the best.
  - A row with a unit in which nothing is left gets 0.
So only rows among heavy units are left, which are few where the level is near the one that wins.

At low levels there are many rows to choose from, and usually every unit at one of the places in a row gets all that it
may. So a part of the rows is tried first: for each of these units, rows of a few times the level. The rows of one never
weigh more than the level together, so that Q ≤ B = Σ min(τ, Σ ψ_k) over the units at one place, the inner sum being
over the rows that it has there. If the program of the part has the value B, then so has the whole, as it is between
the two; and as rounding keeps the order, it is enough that the rounded values are the same. Else the whole is computed.
Which rows are tried changes the time that it takes, and nothing else.

Source:
    Dong, Fang, Yi, Tao and Machanavajjhala 2022 (R2T: Instance-optimal truncation for differentially private query
    evaluation with foreign keys), whose program this is; grid, settling and proofs in integers are worked out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.mechanisms.exact_programs import rounded
from lapwing.mechanisms.packing_solvers import paired_value, shared_value

Integers = NDArray[np.int64]

MOST_SETS: Final = 1 << 25
"""The most sets of units that are taken into memory: beyond it the limit of work ends what is under way."""
_LOW: Final = 1 << 26
"""Weights are added up as two halves, each exact as a double."""
MOST_LEVEL: Final = 1 << 53
FINEST: Final = 1 << 30
"""The largest level of a program whose flows fit the 32 bits of a solver."""
MOST_UNITS: Final = 4
"""The most units that a row may belong to."""
NOBODY: Final = -1
_AMPLE: Final = (4, 32)
"""Of a unit's rows are tried first: so many times the level, and so many of the heaviest."""
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""Its multiples modulo 2⁶⁴ are spread evenly."""


def slack(level: int, units: int) -> int:
    """Return how far below the best value the released one may be, where so many units share a row: a public fact."""
    return 0 if units <= 2 else max(1, level >> 10)


def require_solver() -> None:
    """Refuse where SciPy, which solves these programs, is not installed."""
    if find_spec("scipy") is None:
        raise QueryRefused(
            "Joins in which rows of different units meet need SciPy, which is not installed",
            cause=RefusalCause.MISSING_EXTRA,
            remedy="Install it with: pip install 'lapwing-dp[joins]'.",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SharedRows:
    """Sets of units, each once, and the weight of the rows that belong to it. Private data: nothing shows in `repr`.

    Args:
        units: A row a set, ascending, `NOBODY` in front where it has fewer.
        weights: 1 to 2⁶¹.
        count: Of all units.
        owners: For each place, which of its units a set has there.
        heaviest: The most that all rows of a unit weigh.
    """

    units: Integers
    weights: Integers
    count: int
    owners: tuple[Integers, ...]
    heaviest: int

    @classmethod
    def of(cls, units: Sequence[Integers], weights: Integers, count: int) -> "SharedRows":
        """Return rows by their sets of units: the order, and one unit that is named twice, make no difference.

        Args:
            units: For every place in a row, the unit of each row, from 0 to below `count`.
            weights: 0 or more, and those above 2⁵³ count as that, which no level exceeds.

        Raises:
            MemoryError: If there are more than 2²⁵ sets.
            InvalidParameter: If a weight is negative.
        """
        if weights.size and int(weights.min()) < 0:
            raise InvalidParameter("A weight is negative; rows of a packing weigh 0 or more.")
        present = weights > 0
        table = np.sort(np.stack(units, axis=1)[present].astype(np.int64), axis=1)
        table[:, 1:][table[:, 1:] == table[:, :-1]] = NOBODY  # a unit that is named again
        merged, totals = _merged(np.sort(table, axis=1), np.minimum(weights[present], MOST_LEVEL))
        if len(totals) > MOST_SETS:
            raise MemoryError
        owners = tuple(_owners(merged, place[present], count) for place in units)
        weights = np.minimum(totals, MOST_LEVEL)
        heaviest = _heaviest(merged, weights, count)
        return cls(units=merged, weights=weights, count=count, owners=owners, heaviest=heaviest)

    def value(self, level: int) -> int:
        """Return the truncated sum at a level from 1 to 2⁵³: it is at most the sum.

        Guarantee:
            Adding, removing or replacing one unit changes it by at most level + slack(level, most units a row). There
            is a value for all rows.
        """
        if not 1 <= level <= MOST_LEVEL:
            raise InvalidParameter(f"The level is {level}; it must be from 1 to 2^53.")
        grid = -(-level // FINEST)
        if self.heaviest <= level:  # ⌊ψ/q⌋ of a unit's sets add up to ⌊τ/q⌋ at most: no unit limits anything
            return grid * int((self.weights // grid).sum())
        capacity = level // grid
        weights = np.minimum(self.weights // grid, capacity)
        loads_of = [_added(owner, weights, self.count) for owner in self.owners]
        most, tight = _most(loads_of, capacity)
        few = _few(self.owners[tight], loads_of[tight], _AMPLE[0] * capacity + _AMPLE[1] * int(weights.max(initial=0)))
        step = max(1, slack(level, self.units.shape[1]) // grid)
        if 2 * len(few) < len(weights) and self._packed(few, weights, capacity, step) == rounded(most, step):
            return grid * rounded(most, step)
        return grid * self._packed(np.arange(len(weights)), weights, capacity, step)

    def _packed(self, rows: Integers, weights: Integers, capacity: int, step: int) -> int:
        """Return the value of the program of some rows, rounded to a step."""
        room = np.full(self.count, capacity, dtype=np.int64)
        units, weights, room, settled = peeled(self.units[rows], weights[rows], room)
        if not len(weights):
            return rounded(settled, step)
        units, weights = _merged(units, weights)
        weights = np.minimum(weights, capacity)
        codes, units = np.unique(units, return_inverse=True)
        units = units.reshape(len(weights), -1) - int(codes[0] == NOBODY)
        room = room[codes[codes != NOBODY]]
        if not (units[:, :-2] != NOBODY).any():
            return rounded(settled + Fraction(paired_value(units[:, -2:], weights, room), 2), step)
        return shared_value(units, weights, room, settled, step)


def _heaviest(units: Integers, weights: Integers, count: int) -> int:
    """Return the most that the rows of a unit weigh, or more than any level where doubles may not add up exactly."""
    if weights.sum(dtype=np.float64) > 2.0**52:
        return MOST_LEVEL + 1
    return int(loads(units, weights, count).max(initial=0))


def _owners(units: Integers, place: Integers, count: int) -> Integers:
    """Return for each set of units one of those that are at a place of some row; there is one in each."""
    there = np.zeros(count + 1, dtype=bool)  # the last one stands for nobody
    there[place] = True
    first = there[units].argmax(axis=1)
    owners: Integers = units[np.arange(len(units)), first]
    return owners


def _most(loads_of: Sequence[NDArray[Any]], capacity: int) -> tuple[int, int]:
    """Return the least bound on the value of a program, and the place in a row that it is of."""
    return min((int(np.minimum(load, capacity).sum()), place) for place, load in enumerate(loads_of))


def _few(owners: Integers, loads_of: NDArray[Any], enough: int) -> Integers:
    """Return some rows of every unit, spread evenly, that weigh about enough."""
    numbers = np.arange(len(owners), dtype=np.uint64) * _SPREAD
    spread = (numbers >> np.uint64(40)).astype(np.float64) / 2.0**24
    return np.flatnonzero(spread < (enough / np.maximum(loads_of, 1))[owners])


def peeled(units: Integers, weights: Integers, room: Integers) -> tuple[Integers, Integers, Integers, int]:
    """Settle what needs no solver; return the rows that remain, the room left in each unit, and the settled value.

    Every row that is left has two units or more, each of which its rows would overfill.
    """
    total, room = 0, room.copy()
    while len(weights):
        there = units != NOBODY
        weights = np.minimum(weights, np.where(there, room[units], np.iinfo(np.int64).max).min(axis=1))
        binding = loads(units, weights, len(room)) > room
        left = there & binding[units]
        many = left.sum(axis=1)
        total += int(weights[many == 0].sum())
        alone = many == 1
        taken = np.minimum(loads(np.where(left, units, NOBODY)[alone], weights[alone], len(room)), room)
        total += int(taken.sum())
        room -= taken
        keep = (many > 1) & ~(left & (room[units] == 0)).any(axis=1)
        if keep.all() and left.sum() == there.sum():
            break
        units, weights = np.where(left, units, NOBODY)[keep], weights[keep]
    return units, weights, room, total


def loads(units: Integers, weights: Integers, count: int) -> Integers:
    """Return the weight of all rows of each unit."""
    found = np.zeros(count, dtype=np.int64)
    for column in units.T:
        there = column != NOBODY
        found += _added(column[there], weights[there], count)
    return found


def _added(units: Integers, weights: Integers, count: int) -> Integers:
    """Return the sum of the weights of each unit, exactly: of 2²⁵ rows the halves add up to less than 2⁵³."""
    high, low = np.divmod(weights, _LOW)
    parts = (np.bincount(units, weights=part, minlength=count).astype(np.int64) for part in (high, low))
    high, low = parts
    total: Integers = high * _LOW + low
    return total


def _merged(units: Integers, weights: Integers) -> tuple[Integers, Integers]:
    """Return the sets of units, each once, and the sums of their weights."""
    units = np.sort(units, axis=1)
    base, width = int(units.max(initial=NOBODY)) + 2, units.shape[1]
    if base**width < 1 << 62:
        order = np.argsort(sum((units[:, place] + 1) * base**place for place in range(width)), kind="stable")
    else:
        order = np.lexsort(units.T)
    units, weights = units[order], weights[order]
    first = np.ones(len(weights), dtype=bool)
    first[1:] = (units[1:] != units[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    return units[starts], np.add.reduceat(weights, starts) if len(starts) else weights[:0]
