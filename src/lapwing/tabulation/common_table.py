"""One table of whole numbers whose margins are close to given tables: least squares without negative numbers.

Theory of operation. Cells of a common table are numbered from 0. A margin says into which of its cells each cell of the
common table goes, and what was released there. Two steps follow, `nearest` and `whole_numbers`.

1. Least squares. Minimise Σ_w ‖M_w x − y_w‖²/σ_w² + a small multiple of ‖x‖². If numbers cannot be negative, x ≥ 0.
   Conjugate gradients solve it on the cells that are free. A free cell that comes out negative is set to 0. A
   cell at 0 is free again if the sum would fall with it (block principal pivoting; Portugal, Júdice and Vicente 1994).
   Each round starts at the numbers of the last one. The work ends when what is left is a small part of the noise.
2. Whole numbers. Round one cell after the other up or down. Choose the side at which all margins so far have the
   least errors, by their weighted squares.

Margins are then sums of the common table. So they agree with each other exactly, in whole numbers. The first step
decides only how near they are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod, sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.machine import progress

Floats = NDArray[np.float64]
Places = NDArray[np.int32]
Integers = NDArray[np.int64]

RIDGE: Final = 1e-6
"""Of the largest weight: the weight of the squares of the common table itself. It makes the solution unique."""
STEPS: Final = 300
ACCURACY: Final = 1e-2
"""A part of the noise: how far numbers may be from the nearest ones."""
WITHIN: Final = 1e-3
"""By what a round makes smaller what was left before it: its free cells change anyway."""
DIGITS: Final = 1e-11
"""Of the right side: what floats cannot make smaller."""
ROUNDS: Final = 40
_CLOSE: Final = 1e-4
"""A number that is so near to a whole one is that."""


@final
@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Margin:
    """A released table as sums of a common table.

    Args:
        shape: Of the common table.
        kept: The axes that matter; sums go over all others first.
        places: Of each cell of these axes, the cell of this table that it goes into; `size` if into none.
        size: The number of cells.
        deviation: The standard deviation of the noise in each.
    """

    shape: tuple[int, ...]
    kept: tuple[int, ...]
    places: Places
    size: int
    deviation: float

    @cached_property
    def is_plain(self) -> bool:
        """Whether the cells are in the order of the kept axes."""
        return self.places.size == self.size and bool((self.places == np.arange(self.size)).all())

    @property
    def everywhere(self) -> Places:
        """The cell that each cell of the common table goes into."""
        spread = np.broadcast_to(self.places.reshape(self._kept_shape), self.shape)
        return np.ascontiguousarray(spread).reshape(-1)

    @cached_property
    def _kept_shape(self) -> tuple[int, ...]:
        return tuple(length if axis in self.kept else 1 for axis, length in enumerate(self.shape))

    def of(self, numbers: Floats) -> Floats:
        """Return the sums of a common table."""
        others = tuple(axis for axis in range(len(self.shape)) if axis not in self.kept)
        sums = numbers.reshape(self.shape).sum(axis=others).reshape(-1)
        return sums if self.is_plain else _collected(self.places, sums, self.size)[: self.size]

    def exactly(self, numbers: Integers) -> Integers:
        """Return the sums of a common table of whole numbers."""
        others = tuple(axis for axis in range(len(self.shape)) if axis not in self.kept)
        sums = np.zeros(self.size + 1, dtype=np.int64)
        np.add.at(sums, self.places, numbers.reshape(self.shape).sum(axis=others).reshape(-1))
        return sums[: self.size]

    def spread(self, values: Floats) -> Floats:
        """Return for each cell of the kept axes the value of the cell that it goes into, or 0, ready to broadcast."""
        spread: Floats = values if self.is_plain else np.append(values, 0.0)[self.places]
        return spread.reshape(self._kept_shape)

    def places_from(self, finer: "Margin") -> Places | None:
        """Return into which cell each cell of a table by the same axes goes, if that says it for all of them."""
        into = np.full(finer.size + 1, self.size, dtype=np.int32)
        into[finer.places] = self.places
        if into[finer.size] != self.size or (into[finer.places] != self.places).any():
            return None
        return into[: finer.size] if finer.is_plain else into


@final
class _Sums:
    """Sums over axes, each from the smallest table that has them, and the same way back.

    Only tables that lie in no other one are added up from the common table. So most of the work is on smaller ones.
    Tables by the same axes are levels of hierarchies. A coarser level is added up from the finer one.
    """

    def __init__(self, shape: tuple[int, ...], margins: Sequence[Margin], weights: Sequence[float]) -> None:
        self._shape, self._pairs = shape, list(zip(margins, weights, strict=True))
        whole = frozenset(range(len(shape)))
        sets = sorted({whole, *(frozenset(margin.kept) for margin in margins)}, key=lambda one: (len(one), sorted(one)))
        # The first larger set that contains one is the smallest.
        self._around = {one: next(other for other in sets if one < other) for one in sets if one != whole}
        self._whole = whole
        self._levels = {one: list(_levels(one, self._pairs)) for one in sets}
        self._kept_shapes = {one: tuple(n if axis in one else 1 for axis, n in enumerate(shape)) for one in sets}

    def squared(self, numbers: Floats) -> Floats:
        """Return Σ_w MᵀM x/σ_w² in units of the smallest σ², and a small multiple of x."""
        table = numbers.reshape(self._shape)
        sums = {self._whole: table}
        for kept, around in reversed(self._around.items()):
            sums[kept] = np.asarray(sums[around].sum(axis=tuple(around - kept), keepdims=True))
        parts = {self._whole: RIDGE * table}
        for kept, levels in self._levels.items():
            if levels:
                _add(parts, kept, _squared(sums[kept].reshape(-1), levels).reshape(self._kept_shapes[kept]))
        return self._joined(parts)

    def wanted(self, released: Sequence[Floats]) -> Floats:
        """Return Σ_w Mᵀy/σ_w² in the same units."""
        parts = {self._whole: np.zeros(self._shape)}
        for (margin, weight), values in zip(self._pairs, released, strict=True):
            _add(parts, margin.kept, weight * margin.spread(values))
        return self._joined(parts)

    def _joined(self, parts: dict[frozenset[int], Floats]) -> Floats:
        for kept, around in self._around.items():
            if kept in parts:
                _add(parts, around, parts[kept])
        return parts[self._whole].reshape(-1)


def _add(parts: dict[frozenset[int], Floats], axes: Iterable[int], values: Floats) -> None:
    """Add values to the sum for some axes."""
    kept = frozenset(axes)
    before = parts.get(kept)
    parts[kept] = values if before is None else before + values


_Level = tuple[int, Places | None, int, float]
"""A table by some axes: what it is added up from, where its cells go, how many it has, and its weight.

It is added up from the table of this number, or from the sums by these axes (−1). None: its cells are those."""


def _levels(axes: frozenset[int], pairs: Sequence[tuple[Margin, float]]) -> Iterator[_Level]:
    """Yield the tables by some axes, the finest first."""
    mine = sorted((pair for pair in pairs if frozenset(pair[0].kept) == axes), key=lambda pair: -pair[0].size)
    for place, (margin, weight) in enumerate(mine):
        for finer in reversed(range(place)):
            if (into := margin.places_from(mine[finer][0])) is not None:
                yield finer, into, margin.size, weight
                break
        else:
            yield -1, None if margin.is_plain else margin.places, margin.size, weight


def _collected(into: Places, values: Floats, size: int) -> Floats:
    """Return the sums of what goes into each cell of a table, and 0 for what goes into none."""
    sums = np.asarray(np.bincount(into, weights=values, minlength=size + 1), dtype=np.float64)
    sums[size] = 0.0
    return sums


def _squared(sums: Floats, levels: Sequence[_Level]) -> Floats:
    """Return Σ_w MᵀM s/σ_w² over the tables by some axes, whose sums are s."""
    found: list[Floats] = []
    for finer, into, size, _ in levels:
        start = sums if finer < 0 else found[finer]
        if into is not None:
            start = _collected(into, start, size)
        found.append(start)
    back, whole = [weight * one for one, (*_, weight) in zip(found, levels, strict=True)], np.zeros_like(sums)
    for place in reversed(range(len(levels))):
        finer, into, *_ = levels[place]
        values = back[place] if into is None else back[place][into]
        if finer < 0:
            whole += values
        else:
            back[finer] += values
    return whole


def nearest(margins: Sequence[Margin], released: Sequence[Floats], *, may_be_negative: bool) -> Floats:
    """Return the real common table whose margins are the nearest to released ones.

    Guarantee:
        Post-processing of released numbers.
    """
    least = min(margin.deviation for margin in margins)
    weights = [(least / margin.deviation) ** 2 for margin in margins]
    sums = _Sums(margins[0].shape, margins, weights)
    wanted, squared, cells = sums.wanted(released), sums.squared, prod(margins[0].shape)
    # If each cell of table w is off by its σ_w, the right side is off by least²/σ_w in each cell of the common table.
    noise = least**2 * sqrt(cells) / max(margin.deviation for margin in margins)
    enough = max(ACCURACY * noise, DIGITS * sqrt(_inner(wanted, wanted)))
    even = squared(np.ones(cells))
    numbers = np.full(cells, max(_inner(wanted, even) / _inner(even, even), 0.0))
    slope, least_left, best = squared(numbers) - wanted, inf, numbers
    for turn in range(ROUNDS):
        progress.report(turn / ROUNDS)
        # A cell at 0 is free if the sum would fall with it. The second half frees none, so that the rounds end.
        free = (numbers > 0) | (slope < (-enough / sqrt(cells) if turn < ROUNDS // 2 else -inf)) | may_be_negative
        downhill = -slope * free
        left = sqrt(_inner(downhill, downhill))
        if left < least_left or turn == ROUNDS // 2:
            least_left, best = left, numbers
        if left <= enough:
            break
        numbers = numbers + _solved(squared, downhill, free, max(WITHIN * left, enough / 2))
        numbers = numbers if may_be_negative else np.maximum(numbers, 0.0)
        slope = squared(numbers) - wanted
    return best


def _inner(one: Floats, other: Floats) -> float:
    """Return an inner product that is the same on every machine: a library for matrices may add in another order."""
    return float((one * other).sum())


def _solved(squared: Callable[[Floats], Floats], wanted: Floats, free: NDArray[np.bool_], enough: float) -> Floats:
    """Return the solution on the cells that are free by conjugate gradients; the others stay 0."""
    numbers, rest, direction, length = np.zeros_like(wanted), wanted, wanted, _inner(wanted, wanted)
    for _ in range(STEPS):
        if length <= enough**2:
            break
        product = squared(direction) * free
        step = length / _inner(direction, product)
        numbers = numbers + step * direction
        rest = rest - step * product
        before, length = length, _inner(rest, rest)
        direction = rest + (length / before) * direction
    return numbers


def whole_numbers(numbers: Floats, margins: Sequence[Margin]) -> Integers:
    """Return whole numbers next to given ones: none becomes negative, and margins stay near."""
    below = np.floor(numbers + _CLOSE)
    rest = np.maximum(numbers - below, 0.0)
    chosen: Integers = below.astype(np.int64)
    places = np.flatnonzero(rest > _CLOSE)
    least = min(margin.deviation for margin in margins)
    weights = [(least / margin.deviation) ** 2 for margin in margins]
    half = (RIDGE + sum(weights)) / 2
    errors = [[0.0] * (margin.size + 1) for margin in margins]
    into = [margin.everywhere[places].tolist() for margin in margins]
    for at, part in enumerate(rest[places].tolist()):
        # Up adds 1 − part to each error, down takes part: up is better where Σ w·(error + ½ − part) < 0.
        pull = half * (1 - 2 * part)
        for error, place, weight in zip(errors, into, weights, strict=True):
            pull += weight * error[place[at]]
        change = 1 - part if pull < 0 else -part
        if pull < 0:
            chosen[places[at]] += 1
        for error, place in zip(errors, into, strict=True):
            error[place[at]] += change
    return chosen
