"""Answers that are one of several cells: 1 in the answer's own cell, and 0 in all others."""

from typing import Final

from lapwing.mechanisms.noisy import Sensitivity

LARGEST_OF_ONE: Final = 1
"""The most that one answer adds to a cell."""
ONE_CELL: Final = Sensitivity(l1=2, l2_squared=2)
"""Another answer empties one cell and fills another, each by 1."""


def one_cell(cell: int, width: int) -> tuple[int, ...]:
    """Return the cells of an answer."""
    return tuple(int(place == cell) for place in range(width))
