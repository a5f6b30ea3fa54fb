"""Functions over the rows of an answer: totals, numbers of rows, and ranks.

They are computed from released numbers and keys, of the rows that HAVING keeps and before LIMIT, hence post-processing
like all that is derived. Rows that tie are numbered in the order of the keys. No interval follows: errors of several
cells are added, and ranks depend on which is larger.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from lapwing.exact.arrays import integer_array, largest
from lapwing.query.derivation import numbers
from lapwing.query.derivation.columns import Column, IndexArray, sortable
from lapwing.query.derivation.derived import Compute, Derived, IntervalEnd, Order, Over
from lapwing.query.derivation.frame import Frame, column
from lapwing.query.derivation.numbers import Numbers, mask_of


def over_in(derived: Derived) -> Iterator[Over]:
    """Yield the functions over rows in a derived value."""
    match derived:
        case Over():
            yield derived
        case IntervalEnd():
            yield from over_in(derived.value)
        case Compute():
            for argument in derived.arguments:
                yield from over_in(argument)


def with_over(frame: Frame, values: Iterable[Derived]) -> Frame:
    """Return the rows of an answer with the functions over them that some values use."""
    found = dict.fromkeys(over for value in values for over in over_in(value))
    return replace(frame, over={over: _computed(over, frame).expanded(frame.size) for over in found})


def _computed(over: Over, frame: Frame) -> Column:
    groups = _groups(over, frame)
    match over.function:
        case "sum":
            return _total(over, frame, groups)
        case "rows":
            return Numbers(tops=np.bincount(groups, minlength=1)[groups])
        case _:
            return Numbers(tops=_ranks(over, frame, groups))


def _groups(over: Over, frame: Frame) -> IndexArray:
    """Return the number of each row's part of the partition; NULL is a value of its own."""
    codes = [_codes(part, frame) for part in over.partition]
    if not codes:
        return np.zeros(frame.size, dtype=np.int64)
    found: IndexArray = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].reshape(-1)
    return found


def _codes(derived: Derived, frame: Frame) -> IndexArray:
    """Return small integers that sort as values do; NULL is −1."""
    values = column(derived, frame)
    null = np.broadcast_to(mask_of(values.null), frame.size)
    codes = np.full(frame.size, -1, dtype=np.int64)
    codes[~null] = np.unique(sortable(values)[~null], return_inverse=True)[1].reshape(-1)
    return codes


def _total(over: Over, frame: Frame, groups: IndexArray) -> Numbers:
    """Add up exactly; NULLs are skipped, and the sum of nothing else is NULL."""
    values = numbers.of_values([None]) if over.argument is None else column(over.argument, frame)
    if not isinstance(values, Numbers):
        raise ValueError("a sum is of numbers")
    count = int(groups.max(initial=-1)) + 1
    if values.bottoms is None and values.null is None and values.tops.dtype == np.int64:
        wide = largest(values.tops) * max(1, frame.size) >= 1 << 62
        sums = np.zeros(count, dtype=object if wide else np.int64)
        np.add.at(sums, groups, values.tops.astype(object) if wide else values.tops)
        return Numbers(tops=integer_array(sums.tolist())[groups], scale=values.scale)
    totals: list[Fraction | None] = [None] * count
    for group, value in zip(groups.tolist(), values.values(), strict=True):
        if value is not None:
            totals[group] = value + (totals[group] or 0)
    return numbers.of_values([totals[group] for group in groups.tolist()])


def _ranks(over: Over, frame: Frame, groups: IndexArray) -> IndexArray:
    terms = [_sorting(term, frame) for term in over.order]
    places = np.lexsort([*terms[::-1], groups])
    here = np.arange(frame.size)
    starts = _changes([groups], places)
    differs = _changes([groups, *terms], places)
    first = np.maximum.accumulate(np.where(starts, here, 0))
    ranks: IndexArray
    if over.function == "row_number":
        ranks = here - first + 1
    elif over.function == "rank":
        ranks = np.maximum.accumulate(np.where(differs, here, 0)) - first + 1
    else:
        counted = np.cumsum(differs)
        ranks = np.asarray(counted - counted[first] + 1, dtype=np.int64)
    found = np.empty(frame.size, dtype=np.int64)
    found[places] = ranks
    return found


def _sorting(term: Order, frame: Frame) -> IndexArray:
    codes = _codes(term.value, frame)
    last = frame.size + 1
    signed = -codes if term.descending else codes
    return np.where(codes < 0, -last if term.nulls_first else last, signed)


def _changes(keys: Iterable[IndexArray], places: IndexArray) -> np.typing.NDArray[np.bool_]:
    """Tell which rows differ from the one before, in this order."""
    found = np.zeros(len(places), dtype=np.bool_)
    found[:1] = True
    for key in keys:
        found[1:] |= np.diff(key[places]) != 0
    return found
