"""Sorting columns of exact numbers by their doubles, and exactly where doubles do not tell them apart."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from lapwing.exact.arrays import IntArray
from lapwing.query.derivation.integers import product
from lapwing.query.derivation.numbers import BoolArray, FloatArray, Numbers, bottoms_of


def ranks(x: Numbers) -> IntArray | FloatArray:
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
    found = np.empty(len(order), dtype=np.int64)
    found[order] = steps[: len(order)]
    return found


def _neighbours_differ(x: Numbers) -> BoolArray:
    later, earlier = (
        replace(x, tops=x.tops[part], bottoms=None if x.bottoms is None else x.bottoms[part], null=None)
        for part in (slice(1, None), slice(None, -1))
    )
    if x.bottoms is None:
        return np.asarray(later.tops != earlier.tops, dtype=np.bool_)
    left, right = product(later.tops, bottoms_of(earlier.bottoms)), product(earlier.tops, bottoms_of(later.bottoms))
    return np.asarray(left != right, dtype=np.bool_)
