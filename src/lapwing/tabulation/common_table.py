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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int32]
Integers = NDArray[np.int64]

RIDGE: Final = 1e-6
"""Of the largest weight: the weight of the squares of the common table itself. It makes the solution unique."""
STEPS: Final = 300
ACCURACY: Final = 1e-10
ROUNDS: Final = 20
_CLOSE: Final = 1e-4
"""A number that is so near to a whole one is that."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A released table as sums of a common table.

    Args:
        places: Of each cell of the common table, the cell of this one that it goes into; `size` if into none.
        size: The number of cells.
        deviation: The standard deviation of the noise in each.
    """

    places: Places
    size: int
    deviation: float

    def of(self, numbers: Floats) -> Floats:
        """Return the sums of a common table."""
        sums = np.bincount(self.places, weights=numbers, minlength=self.size + 1)
        return np.asarray(sums[: self.size], dtype=np.float64)

    def exactly(self, numbers: Integers) -> Integers:
        """Return the sums of a common table of whole numbers."""
        sums = np.zeros(self.size + 1, dtype=np.int64)
        np.add.at(sums, self.places, numbers)
        return sums[: self.size]

    def spread(self, values: Floats) -> Floats:
        """Return for each cell of the common table the value of the cell that it goes into, or 0."""
        spread: Floats = np.append(values, 0.0)[self.places]
        return spread


def nearest_whole_numbers(
    cells: int, margins: Sequence[Margin], released: Sequence[Floats], *, may_be_negative: bool
) -> Integers:
    """Return a common table of whole numbers with margins near released ones.

    Guarantee:
        Post-processing of released numbers.
    """
    return whole_numbers(nearest(cells, margins, released, may_be_negative=may_be_negative), margins)


def nearest(cells: int, margins: Sequence[Margin], released: Sequence[Floats], *, may_be_negative: bool) -> Floats:
    """Return the real common table whose margins are the nearest to released ones."""
    least = min(margin.deviation for margin in margins)
    weights = [(least / margin.deviation) ** 2 for margin in margins]
    wanted = np.zeros(cells)
    for margin, weight, values in zip(margins, weights, released, strict=True):
        wanted += weight * margin.spread(values)

    def squared(x: Floats) -> Floats:
        product = RIDGE * x
        for margin, weight in zip(margins, weights, strict=True):
            product += weight * margin.spread(margin.of(x))
        return product

    numbers, free = np.zeros(cells), np.ones(cells, dtype=bool)
    small = ACCURACY * float(np.abs(wanted).max(initial=0))
    for turn in range(ROUNDS):
        numbers = _solved(squared, wanted, numbers * free, free)
        if may_be_negative:
            return numbers
        negative = free & (numbers < 0)
        wrong = ~free & (squared(numbers) - wanted < -small) if turn < ROUNDS // 2 else np.zeros_like(free)
        if not negative.any() and not wrong.any():
            break
        free = (free & ~negative) | wrong
    return np.maximum(numbers, 0.0)


def _inner(one: Floats, other: Floats) -> float:
    """Return an inner product that is the same on every machine: a library for matrices may add in another order."""
    return float((one * other).sum())


def _solved(squared: Callable[[Floats], Floats], wanted: Floats, start: Floats, free: NDArray[np.bool_]) -> Floats:
    """Return the solution on the cells that are free by conjugate gradients; the others stay 0."""
    numbers = start
    rest = (wanted - squared(numbers)) * free
    direction, length = rest, _inner(rest, rest)
    enough = ACCURACY**2 * _inner(wanted, wanted)
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
    into = [margin.places[places].tolist() for margin in margins]
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
