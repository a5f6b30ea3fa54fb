"""Columns of derived values: numbers, conditions, and whatever else keys are.

A column has one entry a cell, or a single one that stands for all.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.query.derivation import numbers, ordering
from lapwing.query.derivation.derivations import Value
from lapwing.query.derivation.derived import NUMERIC, Shape
from lapwing.query.derivation.numbers import BoolArray, FloatArray, Numbers, mask_of, some

IndexArray = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truths:
    """Conditions: true, false, and NULL where `null` says so."""

    truths: BoolArray
    null: BoolArray | None = None

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.broadcast_shapes(self.truths.shape, mask_of(self.null).shape)[0])

    @property
    def holds(self) -> BoolArray:
        """Where the condition is true, and not NULL."""
        return self.truths & ~mask_of(self.null)

    def expanded(self, size: int) -> "Truths":
        """Return the column with one entry a cell."""
        null = None if self.null is None else np.broadcast_to(self.null, size)
        return Truths(truths=np.broadcast_to(self.truths, size), null=null)

    def taken(self, places: IndexArray) -> "Truths":
        """Return the entries at some places of an expanded column."""
        return Truths(truths=self.truths[places], null=None if self.null is None else self.null[places])

    def values(self) -> list[Value]:
        """Return every entry."""
        full = self.expanded(self.size)
        truths: list[bool] = full.truths.tolist()
        if full.null is None:
            return list(truths)
        return [None if n else v for v, n in zip(truths, full.null.tolist(), strict=True)]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """Entries of a list of labels, by their place in it; place −1 is NULL."""

    places: IndexArray
    labels: Sequence[Value]

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.places)

    @property
    def null(self) -> BoolArray | None:
        """Where the entry is NULL; None for nowhere."""
        return some(self.places < 0)

    def expanded(self, size: int) -> "Labels":
        """Return the column with one entry a cell."""
        return Labels(places=np.broadcast_to(self.places, size), labels=self.labels)

    def taken(self, places: IndexArray) -> "Labels":
        """Return the entries at some places of an expanded column."""
        return Labels(places=self.places[places], labels=self.labels)

    def values(self) -> list[Value]:
        """Return every entry."""
        labels = [*self.labels, None]  # where place −1 is
        return [labels[place] for place in self.places.tolist()]

    def ranks(self) -> IndexArray:
        """Return what sorts as the labels do, ties included; what is NULL sorts first."""
        distinct = sorted({label for label in self.labels if label is not None}, key=_comparable)
        rank = {label: i for i, label in enumerate(distinct)}
        by_place = np.array([*(-1 if label is None else rank[label] for label in self.labels), -1], dtype=np.int64)
        return np.asarray(by_place[self.places], dtype=np.int64)


Column = Numbers | Truths | Labels


def of_labels(values: Sequence[Value]) -> Labels:
    """Return a column of labels, each held once."""
    found: dict[Value, int] = {}
    places = [-1 if value is None else found.setdefault(value, len(found)) for value in values]
    return Labels(places=np.array(places, dtype=np.int64), labels=tuple(found))


def of_values(values: Sequence[Value], shape: Shape) -> Column:
    """Return a column of a type from its entries."""
    if shape in NUMERIC:
        return numbers.of_values(cast(Sequence[Fraction | None], values))
    if shape == "boolean":
        truths = np.array([value is True for value in values], dtype=np.bool_)
        return Truths(truths=truths, null=some(np.array([value is None for value in values], dtype=np.bool_)))
    return of_labels(values)


def as_numbers(column: Column) -> Numbers:
    """Return a numeric column as it is, and one of NULL alone as numbers."""
    return column if isinstance(column, Numbers) else numbers.of_values([None])


def as_truths(column: Column) -> Truths:
    """Return a column of conditions as it is, and one of NULL alone as conditions."""
    if isinstance(column, Truths):
        return column
    return Truths(truths=np.zeros(1, dtype=np.bool_), null=np.ones(1, dtype=np.bool_))


def as_labels(column: Column) -> Labels:
    """Return a column of labels as it is, and any other as one."""
    return column if isinstance(column, Labels) else of_labels(column.values())


def as_shape(column: Column, shape: Shape) -> Column:
    """Return a column in the form that columns of a type have; NULL alone is of every type."""
    if shape in NUMERIC:
        return as_numbers(column)
    return as_truths(column) if shape == "boolean" else as_labels(column)


def choose(mask: BoolArray, first: Column, second: Column, shape: Shape) -> Column:
    """Return the first column where the mask says so, else the second, both of one type."""
    if shape in NUMERIC:
        return numbers.choose(mask, as_numbers(first), as_numbers(second))
    if shape == "boolean":
        x, y = as_truths(first), as_truths(second)
        null = np.where(mask, mask_of(x.null), mask_of(y.null))
        return Truths(truths=np.where(mask, x.truths, y.truths), null=some(null))
    a, b = as_labels(first), as_labels(second)
    moved = np.where(b.places < 0, -1, b.places + len(a.labels))
    return Labels(places=np.where(mask, a.places, moved), labels=(*a.labels, *b.labels))


def sortable(column: Column) -> NDArray[np.int64] | NDArray[np.object_] | FloatArray:
    """Return what sorts as an expanded column does, ties included; what is NULL sorts somehow."""
    match column:
        case Numbers():
            return ordering.ranks(column)
        case Truths():
            return column.truths.astype(np.int64)
        case Labels():
            return column.ranks()


def differ(x: Column, y: Column) -> bool:
    """Tell whether two expanded columns differ in some cell."""
    if isinstance(x, Numbers) and isinstance(y, Numbers):
        one, other = mask_of(x.null), mask_of(y.null)
        unequal = numbers.compared(operator.ne, x, y) & ~one
        return bool((one != other).any() or unequal.any())
    return x.values() != y.values()


def _comparable(value: Value) -> Any:
    """Return a label as what it is: those of one key are all of one type."""
    return value
