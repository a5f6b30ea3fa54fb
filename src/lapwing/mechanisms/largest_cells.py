"""Which cells are the largest, in order, and none of their numbers: top k and permute-and-flip over the cells.

What is released is a rank for each cell, of whole numbers like those that other mechanisms release: `count` for the
largest, one less for the next, 0 for all that are not shown. Sorted downwards they show the cells that were chosen, in
their order. Of the smallest the ranks are negative, to be sorted upwards. The ranks are a function of the choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar, Self, final

import numpy as np

from lapwing.exact import choice, coins, integers  # what is drawn from: nothing is loaded once a question is paid
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.floats import float_near
from lapwing.mechanisms.additive import LARGEST
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.parameters import scale_of_noise, whole_number
from lapwing.mechanisms.private_selection import PermuteAndFlip
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.mechanisms.top_k import TopK
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss, PureDP

PREPARED = (choice, coins, integers)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LargestCells:
    """Choose the largest of all cells, or the smallest.

    Guarantee:
        That of `PermuteAndFlip` or `TopK`, which depend on differences of numbers only: the L1 distance of a
        sensitivity here is the most by which the difference of any two cells' numbers moves (`query.score_stability`).

    Args:
        law: "permute-and-flip", of one cell, or "top k".
        count: How many cells.
        least: Whether the smallest.
        cells: Of how many, at least `count`.
        scale: In steps of the number.
    """

    name: ClassVar[str] = LARGEST
    law: str
    count: int
    least: bool
    cells: int
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", whole_number(self.cells, "cells", least=1))
        most = 1 if self.law == PermuteAndFlip.name else self.cells
        object.__setattr__(self, "count", whole_number(self.count, "count", least=1, most=most))
        object.__setattr__(self, "scale", scale_of_noise(self.scale))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: Sensitivity, *, count: int, least: bool, cells: int) -> Self:
        """Return the sharpest choice whose loss is at most `loss`.

        One cell is chosen by permute-and-flip for a pure loss; else top k is, whose rounds have bounded ranges.
        """
        moved, chooser = _moved(sensitivity), PermuteAndFlip if count == 1 and isinstance(loss, PureDP) else TopK
        found = PermuteAndFlip.for_loss(loss, moved) if chooser is PermuteAndFlip else TopK.for_loss(loss, moved, count)
        return cls(law=chooser.name, count=count, least=least, cells=cells, scale=found.scale)

    @property
    def chooser(self) -> PermuteAndFlip | TopK:
        """The mechanism that chooses."""
        if self.law == PermuteAndFlip.name:
            return PermuteAndFlip(scale=self.scale)
        return TopK(scale=self.scale, count=self.count)

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return what the choice loses in a measure."""
        return self.chooser.loss(_moved(sensitivity), kind)

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how far one unit moves the difference of two numbers."""
        return float(sensitivity.l1)

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Return the rank of each cell, 0 for those that are not shown."""
        ranks = np.zeros(len(values), dtype=np.int64)
        places = np.atleast_1d(self.chooser.release(-values if self.least else values, entropy))
        ranks[places] = np.arange(self.count, 0, -1)
        return -ranks if self.least else ranks

    @property
    def standard_deviation(self) -> float:
        """The scale, in steps: how far the chosen are from the largest depends on the data."""
        return float_near(self.scale)

    def half_width(self, confidence: Number) -> int:
        """Return an h such that the cell in each place is at most h below the one that belongs there."""
        return ceil(self.chooser.shortfall(self.cells, confidence))

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        return [self.law, str(self.count), str(int(self.least)), str(self.cells), str(self.scale)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        law, count, least, cells, scale = parameters
        return cls(law=law, count=int(count), least=least == "1", cells=int(cells), scale=Fraction(scale))


def _moved(sensitivity: Sensitivity) -> ScoreSensitivity:
    """Return the sensitivity of scores whose differences move by at most the L1 distance."""
    return ScoreSensitivity(bound=Fraction(sensitivity.l1), monotonic=True)
