"""The matrices of sums over time, written out by their definitions, and all that one unit can do in a small horizon."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms import BufferedToeplitz, Events, Stays

Matrix = NDArray[np.float64]


def counting(ticks: int, window: int | None = None) -> Matrix:
    ones = np.tril(np.ones((ticks, ticks)))
    return ones - np.tril(np.ones((ticks, ticks)), -(window or ticks))


def toeplitz(column: list[float] | Matrix) -> Matrix:
    n = len(column)
    return np.array([[column[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])


def column(matrix: BufferedToeplitz) -> list[Fraction]:
    """c_0, c_1, …, exactly."""
    parts = list(zip(matrix.omegas, matrix.thetas, strict=True))
    behind = (sum((w * theta**k for w, theta in parts), Fraction(0)) for k in range(matrix.ticks - 1))
    return [Fraction(1), *behind]


def streams_of_events(events: Events, ticks: int) -> Iterator[Matrix]:
    """What a unit may add, of shape (ticks, cells): each event adds or takes 1 in one of two cells."""
    for when in combinations_with_replacement(range(ticks), events.most):
        used = sorted(set(when))
        if any(b - a < events.spacing for a, b in pairwise(used)):
            continue
        if max(when.count(tick) for tick in used) > (events.per_tick or events.most):
            continue
        for signs in product((1, -1), repeat=events.most - 1):
            for cells in product((0, 1), repeat=events.most - 1):
                stream = np.zeros((ticks, 2))
                for tick, sign, cell in zip(when, (1, *signs), (0, *cells), strict=True):
                    stream[tick, cell] += sign
                yield stream


def streams_of_stays(stays: Stays, ticks: int, cells: int = 2) -> Iterator[Matrix]:
    """What a unit's presence changes at each tick, over all ways to be in one of the cells, or nowhere."""
    for where in product(range(cells + 1), repeat=ticks):
        begun = sum(now != 0 and now != before for before, now in zip((0, *where), where, strict=False))
        if begun > stays.most:
            continue
        present = np.array([[float(place == cell + 1) for cell in range(cells)] for place in (0, *where)])
        yield np.diff(present, axis=0)
