"""One table of whole numbers whose margins are close to given tables: least squares without negative numbers.

Theory of operation. Cells of a common table are numbered from 0. A margin says into which of its cells each cell of the
common table goes, and what was released there. `nearest_whole_numbers` takes two steps.

1. Least squares. Minimise Σ_w ‖M_w x − y_w‖²/σ_w² + a small multiple of ‖x‖². If numbers cannot be negative, x ≥ 0.
   Conjugate gradients solve it on the cells that are free. A free cell that comes out negative is set to 0. A
   cell at 0 is free again if the sum would fall with it (block principal pivoting; Portugal, Júdice and Vicente 1994).
2. Whole numbers. Round one cell after the other up or down. Choose the side at which all margins so far have the
   least errors, by their weighted squares.

Margins are then sums of the common table. So they agree with each other exactly, in whole numbers. The first step
decides only how near they are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int32]
Integers = NDArray[np.int64]

RIDGE: Final = 1e-6
"""Of the largest weight: the weight of the squares of the common table itself. It makes the solution unique."""
STEPS: Final = 300
ACCURACY: Final = 1e-7
ROUGH: Final = 1e-5
"""Of the residual, relative to the right side."""
ROUNDS: Final = 20
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

    @property
    def _kept_shape(self) -> list[int]:
        return [length if axis in self.kept else 1 for axis, length in enumerate(self.shape)]

    def of(self, numbers: Floats) -> Floats:
        """Return the sums of a common table."""
        others = tuple(axis for axis in range(len(self.shape)) if axis not in self.kept)
        return self.collected(numbers.reshape(self.shape).sum(axis=others))

    def collected(self, sums: Floats) -> Floats:
        """Return the sums of this table from sums over all other axes."""
        if self.is_plain:
            return np.asarray(sums.reshape(-1), dtype=np.float64)
        found = np.bincount(self.places, weights=sums.reshape(-1), minlength=self.size + 1)
        return np.asarray(found[: self.size], dtype=np.float64)

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


@final
class _Sums:
    """Sums over axes, each from the smallest table that has them, and the same way back.

    Only tables that lie in no other one are added up from the common table. So most of the work is on smaller ones.
    """

    def __init__(self, shape: tuple[int, ...], margins: Sequence[Margin], weights: Sequence[float]) -> None:
        self._shape, self._pairs = shape, list(zip(margins, weights, strict=True))
        whole = frozenset(range(len(shape)))
        sets = sorted({whole, *(frozenset(margin.kept) for margin in margins)}, key=lambda one: (len(one), sorted(one)))
        # The first larger set that contains one is the smallest.
        self._around = {one: next(other for other in sets if one < other) for one in sets if one != whole}
        self._whole = whole

    def squared(self, numbers: Floats) -> Floats:
        """Return Σ_w MᵀM x/σ_w² in units of the smallest σ², and a small multiple of x."""
        table = numbers.reshape(self._shape)
        sums = {self._whole: table}
        for kept, around in reversed(self._around.items()):
            sums[kept] = np.asarray(sums[around].sum(axis=tuple(around - kept), keepdims=True))
        parts = {self._whole: RIDGE * table}
        for margin, weight in self._pairs:
            of_kept = sums[frozenset(margin.kept)]
            _add(
                parts, margin.kept, weight * (of_kept if margin.is_plain else margin.spread(margin.collected(of_kept)))
            )
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


def nearest_whole_numbers(margins: Sequence[Margin], released: Sequence[Floats], *, may_be_negative: bool) -> Integers:
    """Return a common table of whole numbers with margins near released ones.

    Guarantee:
        Post-processing of released numbers.
    """
    return whole_numbers(nearest(margins, released, may_be_negative=may_be_negative), margins)


def nearest(margins: Sequence[Margin], released: Sequence[Floats], *, may_be_negative: bool) -> Floats:
    """Return the real common table whose margins are the nearest to released ones."""
    least = min(margin.deviation for margin in margins)
    weights = [(least / margin.deviation) ** 2 for margin in margins]
    sums = _Sums(margins[0].shape, margins, weights)
    wanted, squared, cells = sums.wanted(released), sums.squared, prod(margins[0].shape)
    numbers, free = np.zeros(cells), np.ones(cells, dtype=bool)
    if may_be_negative:
        return _solved(squared, wanted, numbers, free, ACCURACY)
    # Which cells are 0 is found with less accuracy, and then the numbers with all of it.
    accuracy = ROUGH
    for turn in range(ROUNDS):
        numbers = _solved(squared, wanted, numbers * free, free, accuracy)
        negative = free & (numbers < 0)
        small = accuracy * float(np.abs(wanted).max(initial=0))
        wrong = ~free & (squared(numbers) - wanted < -small) if turn < ROUNDS // 2 else np.zeros_like(free)
        if not negative.any() and not wrong.any():
            if accuracy == ACCURACY:
                break
            accuracy = ACCURACY
        free = (free & ~negative) | wrong
    return np.maximum(numbers, 0.0)


def _inner(one: Floats, other: Floats) -> float:
    """Return an inner product that is the same on every machine: a library for matrices may add in another order."""
    return float((one * other).sum())


def _solved(
    squared: Callable[[Floats], Floats], wanted: Floats, start: Floats, free: NDArray[np.bool_], accuracy: float
) -> Floats:
    """Return the solution on the cells that are free by conjugate gradients; the others stay 0."""
    numbers = start
    rest = (wanted - squared(numbers)) * free
    direction, length = rest, _inner(rest, rest)
    enough = accuracy**2 * _inner(wanted, wanted)
    for _ in range(STEPS):
        if length <= enough:
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
