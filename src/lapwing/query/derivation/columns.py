"""Columns of derived values: numbers, conditions, and whatever else keys are.

A column has one entry a cell, or a single one that stands for all.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, cast, final
from typing import Literal as Choice

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.query.derivation import rationals
from lapwing.query.derivation.rationals import BoolArray, FloatArray, Rationals, bottoms_of, mask_of, product, some
from lapwing.query.expressions.expression import Constant

IndexArray = NDArray[np.int64]
Value = Constant
Shape = Choice["integer", "decimal", "real", "text", "boolean", "date", "timestamp", "null"]
"""The SQL type of a column of the answer, as the analyst sees it."""
NUMERIC: Final[tuple[Shape, ...]] = ("integer", "decimal", "real")
TEMPORAL: Final[tuple[Shape, ...]] = ("date", "timestamp")


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


Column = Rationals | Truths | Labels


def of_labels(values: Sequence[Value]) -> Labels:
    """Return a column of labels, each held once."""
    distinct: dict[Value, int] = {}
    places = [-1 if value is None else distinct.setdefault(value, len(distinct)) for value in values]
    return Labels(places=np.array(places, dtype=np.int64), labels=tuple(distinct))


def of_values(values: Sequence[Value], shape: Shape) -> Column:
    """Return a column of a type from its entries."""
    if shape in NUMERIC:
        return rationals.of_values(cast(Sequence[Fraction | None], values))
    if shape == "boolean":
        truths = np.array([value is True for value in values], dtype=np.bool_)
        return Truths(truths=truths, null=some(np.array([value is None for value in values], dtype=np.bool_)))
    return of_labels(values)


def as_numbers(column: Column) -> Rationals:
    """Return a numeric column as it is, and one of NULL alone as rationals."""
    return column if isinstance(column, Rationals) else rationals.of_values([None])


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
        return rationals.choose(mask, as_numbers(first), as_numbers(second))
    if shape == "boolean":
        x, y = as_truths(first), as_truths(second)
        null = np.where(mask, mask_of(x.null), mask_of(y.null))
        return Truths(truths=np.where(mask, x.truths, y.truths), null=some(null))
    a, b = as_labels(first), as_labels(second)
    moved = np.where(b.places < 0, -1, b.places + len(a.labels))
    return Labels(places=np.where(mask, a.places, moved), labels=(*a.labels, *b.labels))


def differ(x: Column, y: Column) -> bool:
    """Tell whether two expanded columns differ in some cell."""
    if isinstance(x, Rationals) and isinstance(y, Rationals):
        one, other = mask_of(x.null), mask_of(y.null)
        unequal = rationals.compared(operator.ne, x, y) & ~one
        return bool((one != other).any() or unequal.any())
    return x.values() != y.values()


def _comparable(value: Value) -> Any:
    """Return a label as what it is: those of one key are all of one type."""
    return value


# ---- order -----------------------------------------------------------------------------------------------------------


def sortable(column: Column) -> NDArray[np.int64] | NDArray[np.object_] | FloatArray:
    """Return what sorts as an expanded column does, ties included; what is NULL sorts somehow."""
    match column:
        case Rationals():
            return exact_ranks(column)
        case Truths():
            return column.truths.astype(np.int64)
        case Labels():
            return column.ranks()


def exact_ranks(x: Rationals) -> IntArray | FloatArray:
    """Return what sorts as an expanded column does, ties included; what is NULL sorts somehow.

    Proof: rounding to doubles never turns two numbers around, so that only numbers of one double are left to compare;
    they are sorted as fractions wherever two neighbours among them differ.
    """
    if x.bottoms is None:
        return x.tops
    near = x.floats()
    order = np.argsort(near, kind="stable")
    sorted_near, sorted_x = near[order], x.taken(order)
    tied = sorted_near[1:] == sorted_near[:-1]
    differ = _neighbours_differ(sorted_x)
    if not (tied & differ).any():
        return near
    starts = np.flatnonzero(np.concatenate(([True], ~tied)))
    mixed = np.unique(np.searchsorted(starts, np.flatnonzero(tied & differ), side="right") - 1)
    stops = np.append(starts[1:], len(order))
    for start, stop in zip(starts[mixed].tolist(), stops[mixed].tolist(), strict=True):
        run = order[start:stop]
        fractions = [value or Fraction(0) for value in x.taken(run).values()]
        order[start:stop] = run[sorted(range(len(run)), key=fractions.__getitem__)]
    steps = np.concatenate(([0], np.cumsum(_neighbours_differ(x.taken(order)))))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = steps[: len(order)]
    return ranks


def _neighbours_differ(x: Rationals) -> BoolArray:
    later, earlier = (
        replace(x, tops=x.tops[part], bottoms=None if x.bottoms is None else x.bottoms[part], null=None)
        for part in (slice(1, None), slice(None, -1))
    )
    if x.bottoms is None:
        return np.asarray(later.tops != earlier.tops, dtype=np.bool_)
    left, right = product(later.tops, bottoms_of(earlier.bottoms)), product(earlier.tops, bottoms_of(later.bottoms))
    return np.asarray(left != right, dtype=np.bool_)
