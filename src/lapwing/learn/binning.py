"""Bins with public edges: what trees and additive models see of a column.

A number falls into one of so many bins of equal width between the bounds of its feature; a category has a bin of its
own, and whatever is none of the listed values has the last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from lapwing.learn.columns import Category, Data, Feature, matrix_of
from lapwing.learn.predictions import row_local
from lapwing.learn.unit_rows import GRID, Integers


@row_local
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """The bins of one column.

    Args:
        features: One of a number, or one for each category, in order.
        place: Of the first of them among all.
    """

    column: str
    features: tuple[Feature, ...]
    place: int
    count: int

    @property
    def categories(self) -> tuple[Category, ...]:
        """The categories, in the order of the bins; none of a number."""
        return tuple(feature.category for feature in self.features if feature.category is not None)

    def of(self, matrix: Integers) -> Integers:
        """Return the bin of each row of features, in parts of 1/GRID."""
        if self.categories:
            last = len(self.features)
            there = matrix[:, self.place : self.place + last] > 0
            return np.where(there.any(axis=1), there.argmax(axis=1), last).astype(np.int64)
        return np.clip((matrix[:, self.place] + GRID) * self.count // (2 * GRID), 0, self.count - 1)

    def edge(self, place: int) -> float:
        """Return where a bin of a number begins, in units of the data."""
        (feature,) = self.features
        return float(feature.centre) + float(feature.spread) * (2 * place / self.count - 1)

    def shown(self, place: int) -> str:
        """Name a bin."""
        if self.categories:
            return str(self.categories[place]) if place < len(self.categories) else "others"
        return f"{self.edge(place):.6g} to {self.edge(place + 1):.6g}"


def bins_of(features: Sequence[Feature], names: Sequence[str], *, bins: int) -> tuple[Bins, ...]:
    """Return the bins of each column, of features that have all categories."""
    found: list[Bins] = []
    for name in names:
        own = tuple(feature for feature in features if feature.column == name)
        steps = int(2 * own[0].spread / own[0].step) + 1
        count = min(bins, steps) if own[0].category is None else len(own) + 1
        found.append(Bins(column=name, features=own, place=features.index(own[0]), count=count))
    return tuple(found)


def codes_of(bins: Sequence[Bins], matrix: Integers) -> Integers:
    """Return the bins of rows of features, a column each."""
    return np.column_stack([one.of(matrix) for one in bins])


def public_codes(features: Sequence[Feature], bins: Sequence[Bins], data: Data) -> Integers:
    """Return the bins of public rows.

    Raises:
        LapwingError: As `matrix_of`.
    """
    return codes_of(bins, np.rint(matrix_of(features, data) * GRID).astype(np.int64))
