"""Compare columns: choose between two cell by cell, tell whether they differ, and sort by one."""

import operator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray, product
from lapwing.query.derivation import rationals
from lapwing.query.derivation.columns import (
    NUMERIC,
    BoolArray,
    Column,
    FloatArray,
    IndexArray,
    Labels,
    Rationals,
    Shape,
    Truths,
    Value,
    as_labels,
    as_numbers,
    as_truths,
    mask_of,
    some,
)
from lapwing.query.derivation.rationals import bottoms_of


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


def sortable(column: Column) -> NDArray[np.int64] | NDArray[np.object_] | FloatArray:
    """Return what sorts as an expanded column does, ties included; what is NULL sorts somehow."""
    match column:
        case Rationals():
            return exact_ranks(column)
        case Truths():
            return column.truths.astype(np.int64)
        case Labels():
            return label_ranks(column)


def label_ranks(column: Labels) -> IndexArray:
    """Return what sorts as labels do, ties included; what is NULL sorts first."""
    distinct = sorted({label for label in column.labels if label is not None}, key=_comparable)
    rank = {label: i for i, label in enumerate(distinct)}
    by_place = np.array([*(-1 if label is None else rank[label] for label in column.labels), -1], dtype=np.int64)
    return np.asarray(by_place[column.places], dtype=np.int64)


def _comparable(value: Value) -> Any:
    """Return a label as what it is: those of one key are all of one type."""
    return value


def exact_ranks(x: Rationals) -> IntArray | FloatArray:
    """Return what sorts as an expanded column does, ties included; what is NULL sorts somehow.

    Proof: rounding to doubles never turns two numbers around, so that only numbers of one double are left to compare;
    they are sorted as fractions wherever two neighbours among them differ.
    """
    if x.bottoms is None:
        return x.tops
    near = rationals.floats(x)
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
