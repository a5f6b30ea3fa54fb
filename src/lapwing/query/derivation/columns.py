"""Columns of derived values: exact numbers, conditions, and keys of any other kind.

A column has one entry a cell, or a single one that stands for all.

Numbers are fractions, many at once: integers over integers times one scale, tops/bottoms·scale, bottoms positive.
Integers are int64 as long as they surely fit, and beyond that Python's own, of any size; so nothing ever wraps or
rounds. What is computed from them is in `rationals`; how columns are made of values, in `columns_of_values`; how they
sort and are told apart, in `comparing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, cast, final
from typing import Literal as Choice

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.query.expressions.expression import Constant

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
Value = Constant
Shape = Choice["integer", "decimal", "real", "text", "boolean", "date", "timestamp", "null"]
"""The SQL type of a column of the answer, as the analyst sees it."""
NUMERIC: Final[tuple[Shape, ...]] = ("integer", "decimal", "real")
TEMPORAL: Final[tuple[Shape, ...]] = ("date", "timestamp")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rationals:
    """tops/bottoms·scale in every cell, and NULL where `null` says so (tops and bottoms are valid there, too).

    Args:
        tops: Integers.
        bottoms: Positive integers, None for 1.
        scale: > 0.
        null: None for nowhere.
    """

    tops: IntArray
    bottoms: IntArray | None = None
    scale: Fraction = Fraction(1)
    null: BoolArray | None = None

    def expanded(self, size: int) -> "Rationals":
        """Return the column with one entry a cell."""
        return replace(
            self,
            tops=spread(self.tops, (size,)),
            bottoms=None if self.bottoms is None else spread(self.bottoms, (size,)),
            null=None if self.null is None else np.broadcast_to(self.null, size),
        )

    def taken(self, places: NDArray[np.int64]) -> "Rationals":
        """Return the entries at some places of an expanded column."""
        return replace(
            self,
            tops=self.tops[places],
            bottoms=None if self.bottoms is None else self.bottoms[places],
            null=None if self.null is None else self.null[places],
        )

    @property
    def size(self) -> int:
        """The number of entries."""
        arrays = (array for array in (self.tops, self.bottoms, self.null) if array is not None)
        return int(np.broadcast_shapes(*(array.shape for array in arrays))[0])

    def values(self) -> list[Fraction | None]:
        """Return every entry as a Fraction, or None."""
        p, q = self.scale.numerator, self.scale.denominator
        full = self.expanded(self.size)
        tops: list[int] = full.tops.tolist()
        bottoms: list[int] = [1] * len(tops) if full.bottoms is None else full.bottoms.tolist()
        values: list[Fraction | None] = [Fraction(t * p, b * q) for t, b in zip(tops, bottoms, strict=True)]
        return values if full.null is None else [None if n else v for v, n in zip(values, full.null, strict=True)]


def spread(values: IntArray, shape: tuple[int, ...]) -> IntArray:
    """Return integers with as many entries as there are cells."""
    return values if values.shape == shape else cast(IntArray, np.broadcast_to(values, shape))


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
        return self if self.size == size else Labels(places=np.broadcast_to(self.places, size), labels=self.labels)

    def taken(self, places: IndexArray) -> "Labels":
        """Return the entries at some places of an expanded column."""
        return Labels(places=self.places[places], labels=self.labels)

    def values(self) -> list[Value]:
        """Return every entry."""
        labels = [*self.labels, None]  # where place −1 is
        return [labels[place] for place in self.places.tolist()]


Column = Rationals | Truths | Labels


# ---- NULL ------------------------------------------------------------------------------------------------------------


def mask_of(mask: BoolArray | None) -> BoolArray:
    """Return a mask as an array."""
    return np.zeros(1, dtype=np.bool_) if mask is None else mask


def some(mask: BoolArray) -> BoolArray | None:
    """Return a mask, None if it is empty."""
    return mask if mask.any() else None


# ---- making columns --------------------------------------------------------------------------------------------------


def constant(value: Fraction | None) -> Rationals:
    """Return the same number in every cell."""
    if value is None:
        return replace(constant(Fraction(0)), null=np.ones(1, dtype=np.bool_))
    sign = (value > 0) - (value < 0)
    return Rationals(tops=np.full(1, sign, dtype=np.int64), scale=abs(value) if value else Fraction(1))


def of_labels(values: Sequence[Value]) -> Labels:
    """Return a column of labels, each held once."""
    distinct: dict[Value, int] = {}
    places = [-1 if value is None else distinct.setdefault(value, len(distinct)) for value in values]
    return Labels(places=np.array(places, dtype=np.int64), labels=tuple(distinct))


def as_numbers(column: Column) -> Rationals:
    """Return a numeric column as it is, and one of NULL alone as rationals."""
    return column if isinstance(column, Rationals) else constant(None)


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
