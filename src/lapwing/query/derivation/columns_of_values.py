"""Columns made entry by entry: of fractions, of values of a type, and of another column's entries and NULL."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import cast

import numpy as np

from lapwing.exact.arrays import integer_array
from lapwing.query.derivation.columns import (
    NUMERIC,
    Column,
    IndexArray,
    Labels,
    Rationals,
    Shape,
    Truths,
    Value,
    mask_of,
    of_labels,
    some,
)


def of_numbers(values: Sequence[Fraction | None]) -> Rationals:
    """Return a column of fractions."""
    fractions = [Fraction(0) if value is None else value for value in values]
    denominators = {value.denominator for value in fractions}
    common = lcm(*denominators) if len(denominators) <= 64 else 0
    null = np.array([value is None for value in values], dtype=np.bool_)
    tops = integer_array([v.numerator * (common // v.denominator) if common else v.numerator for v in fractions])
    bottoms = None if common else integer_array([value.denominator for value in fractions])
    scale = Fraction(1, common) if common else Fraction(1)
    return Rationals(tops=tops, bottoms=bottoms, scale=scale, null=null if null.any() else None)


def of_values(values: Sequence[Value], shape: Shape) -> Column:
    """Return a column of a type from its entries."""
    if shape in NUMERIC:
        return of_numbers(cast(Sequence[Fraction | None], values))
    if shape == "boolean":
        truths = np.array([value is True for value in values], dtype=np.bool_)
        return Truths(truths=truths, null=some(np.array([value is None for value in values], dtype=np.bool_)))
    return of_labels(values)


def taken_or_null(column: Column, places: IndexArray, shape: Shape) -> Column:
    """Return the entries at some places of an expanded column, NULL for places below 0."""
    if not column.size:
        return of_values([None] * len(places), shape)
    taken, missing = column.taken(np.maximum(places, 0)), np.asarray(places < 0, dtype=np.bool_)
    if not missing.any():
        return taken
    if isinstance(taken, Labels):
        return replace(taken, places=np.where(missing, -1, taken.places))
    return replace(taken, null=some(mask_of(taken.null) | missing))
