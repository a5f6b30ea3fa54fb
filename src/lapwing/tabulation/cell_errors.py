"""Errors of released cells against cells without noise: size, sign, and order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]
SHIFTS: Final = 40
"""How many other cells each cell is compared with for the order, at most."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellErrors:
    """The errors of one number, over the cells of all repetitions. Parts are None where nothing could be compared.

    Args:
        cells: How many were compared.
        half_width: 95 % of the errors are at most this.
        standard_error: The root of the mean square of the errors.
        within_interval: The part of cells whose 95 % interval has the number without noise.
        right_sign: The part of cells with the sign of the number without noise, where that is not 0.
        right_order: The part of pairs of cells, of one repetition, that have the order that they have without noise.
    """

    cells: int
    half_width: float | None
    standard_error: float | None
    within_interval: float | None
    right_sign: float | None
    right_order: float | None

    @classmethod
    def of(cls, truth: Sequence[Floats], released: Sequence[Floats], within: Sequence[Truths] | None) -> Self:
        """Return the errors of repetitions, each an array of the same cells without noise and as released.

        Args:
            within: Whether each interval has the number without noise; None where there are no intervals.
        """
        without, noisy = np.concatenate(truth), np.concatenate(released)
        errors = np.abs(noisy - without)
        signs = without != 0
        pairs = [_order(own, other) for own, other in zip(truth, released, strict=True)]
        right, compared = (sum(counts) for counts in zip(*pairs, strict=True))
        return cls(
            cells=len(errors),
            half_width=float(np.quantile(errors, 0.95)) if len(errors) else None,
            standard_error=float(np.sqrt(np.mean(errors**2))) if len(errors) else None,
            within_interval=None if within is None else _part(np.concatenate(within)),
            right_sign=_part(np.sign(noisy[signs]) == np.sign(without[signs])),
            right_order=right / compared if compared else None,
        )


def _part(holds: Truths) -> float | None:
    return float(np.mean(holds)) if len(holds) else None


def _order(truth: Floats, released: Floats) -> tuple[int, int]:
    """Return how many pairs have the right order, and how many were compared.

    Each cell is compared with the cells at some distances from it in the table, all of them in small tables. Equal
    cells have no order. A released tie is not the right order.
    """
    size, right, compared = len(truth), 0, 0
    distances = range(1, size // 2 + 1) if size <= 2 * SHIFTS else np.linspace(1, size // 2, SHIFTS).astype(int)
    for distance in distances:
        own, other = np.sign(truth - np.roll(truth, distance)), np.sign(released - np.roll(released, distance))
        differ = own != 0
        right += int(np.count_nonzero(own[differ] == other[differ]))
        compared += int(np.count_nonzero(differ))
    return right, compared
