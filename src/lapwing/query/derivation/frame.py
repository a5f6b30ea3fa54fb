"""Everything released, and what is derived from it for all cells at once.

`column` and `ends_of` give in every cell exactly what `derive.evaluate` and `derive.bracket` give in that cell.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

import numpy as np

from lapwing.exact.arrays import IntArray
from lapwing.query.derivation import brackets, numbers
from lapwing.query.derivation.brackets import Ends, Pair
from lapwing.query.derivation.column_functions import apply, greater, within
from lapwing.query.derivation.columns import Column, IndexArray, Labels, as_shape, of_labels, of_values
from lapwing.query.derivation.derivations import FUNCTIONS
from lapwing.query.derivation.derive import Margins, has_interval, is_never_null
from lapwing.query.derivation.derived import (
    NUMERIC,
    Average,
    Compute,
    Derived,
    Fixture,
    IntervalEnd,
    KeyValue,
    OrderStatistic,
    Over,
    Released,
    parts_of,
)
from lapwing.query.derivation.integers import product, single, total
from lapwing.query.derivation.noisy_trees import NoisyTrees
from lapwing.query.derivation.numbers import Numbers, constant, either, some
from lapwing.query.measures import Distribution, Measure

_ONE = constant(Fraction(1))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """Released integers and keys, one entry a cell.

    Args: size: the number of cells; measures: integers, in steps of their measure; keys: by the texts of keys;
        margins: of the intervals whose ends a question uses; trees: of the measures that are distributions; over: what
        functions over rows are in each (`over`).
    """

    size: int
    measures: Mapping[Measure, IntArray]
    keys: Mapping[str, Labels]
    margins: Margins
    trees: Mapping[Distribution, NoisyTrees] = field(default_factory=dict)
    over: Mapping[Over, Column] = field(default_factory=dict)

    def taken(self, places: IndexArray) -> "Frame":
        """Return some cells, in the order of `places`."""
        return replace(
            self,
            size=len(places),
            measures={measure: values[places] for measure, values in self.measures.items()},
            keys={name: labels.taken(places) for name, labels in self.keys.items()},
            trees={measure: trees.taken(places) for measure, trees in self.trees.items()},
            over={over: found.taken(places) for over, found in self.over.items()},
        )


def column(derived: Derived, frame: Frame) -> Column:
    """Return a derived value in every cell."""
    return as_shape(_column(derived, frame), derived.shape).expanded(frame.size)


def _column(derived: Derived, frame: Frame) -> Column:
    match derived:
        case Released():
            return _released(derived.measure, frame)
        case Average():
            return _average(derived, frame)
        case OrderStatistic():
            return frame.trees[derived.distribution].values(derived)
        case KeyValue():
            return _key(derived, frame)
        case Fixture():
            if derived.shape == "null":
                return of_labels([None])
            return (
                constant(derived.value)
                if isinstance(derived.value, Fraction)
                else of_values([derived.value], derived.shape)
            )
        case IntervalEnd():
            return _end(derived, frame)
        case Over():
            return frame.over[derived]
        case Compute():
            parts = [_column(argument, frame) for argument in derived.arguments]
            return apply(derived.function, parts, derived.shape)


def _released(measure: Measure, frame: Frame) -> Numbers:
    return Numbers(tops=frame.measures[measure], scale=measure.step)


def _average(average: Average, frame: Frame) -> Numbers:
    """Return origin + sum/count, clamped to the bounds, as integers over the count."""
    sums, counts = frame.measures[average.total], frame.measures[average.count]
    few = counts < 1
    counts = np.where(few, 1, counts)
    low, high = (product(counts, single(bound)) for bound in _bounds(average))
    tops = total(product(counts, single(average.total.origin)), sums)
    return Numbers(
        tops=np.minimum(np.maximum(tops, low), high), bottoms=counts, scale=average.total.step, null=some(few)
    )


def _bounds(average: Average) -> tuple[int, int]:
    """Return the bounds of the argument in steps, which every summed argument has."""
    low, high = average.total.type.low, average.total.type.high
    if low is None or high is None:
        raise ValueError("a sum is taken over bounded values")
    return low, high


def _key(derived: KeyValue, frame: Frame) -> Column:
    labels = frame.keys[str(derived.key)]
    if derived.shape not in NUMERIC and derived.shape != "boolean":
        return labels
    return of_values([*labels.labels, None], derived.shape).taken(labels.places)  # NULL is at place −1


def _end(derived: IntervalEnd, frame: Frame) -> Column:
    pair = ends_of(derived.value, frame, frame.margins(parts_of(derived.value)))
    if pair is None:
        return constant(None)
    end = pair[0 if derived.side == "low" else 1]
    infinite = None if end.infinite is None else some(end.infinite != 0)
    return replace(end.numbers, null=either(end.numbers.null, infinite))


# ---- intervals -------------------------------------------------------------------------------------------------------


def ends_of(derived: Derived, frame: Frame, margins: Mapping[Measure, Fraction]) -> Pair | None:
    """Return the ends of a value's interval in every cell, if every measure is within its margin; None: there are none.

    Where a number of no cell is known (a NULL key), there is none for the column.
    """
    match derived:
        case Released():
            return _around(derived.measure, frame, margins)
        case Average():
            return _average_ends(derived, frame, margins)
        case OrderStatistic():
            low, high = frame.trees[derived.distribution].ends(derived, margins[derived.distribution])
            return (Ends(numbers=low), Ends(numbers=high))
        case KeyValue() | Fixture():
            value = _column(derived, frame)
            if not has_interval(derived) or not isinstance(value, Numbers):
                return None
            return (Ends(numbers=value), Ends(numbers=value))
        case IntervalEnd() | Over():
            return None
        case Compute():
            parts = [ends_of(argument, frame, margins) for argument in derived.arguments]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts) or FUNCTIONS[derived.function].interval is None:
                return None
            if FUNCTIONS[derived.function].skips_null and not all(map(is_never_null, derived.arguments)):
                return brackets.hull(*known)
            return brackets.apply(derived.function, known)


def _around(measure: Measure, frame: Frame, margins: Mapping[Measure, Fraction]) -> Pair:
    middle, margin = _released(measure, frame), constant(margins[measure])
    return (Ends(numbers=numbers.subtract(middle, margin)), Ends(numbers=numbers.add(middle, margin)))


def _average_ends(average: Average, frame: Frame, margins: Mapping[Measure, Fraction]) -> Pair:
    """Divide the sum's interval by the count's, over the counts that are possible (see `derive`)."""
    fewest, most = (end.numbers for end in _around(average.count, frame, margins))
    sums = _around(average.total, frame, margins)
    none = numbers.compared(operator.lt, most, _ONE)
    counts = (Ends(numbers=greater(fewest, _ONE)), Ends(numbers=greater(most, _ONE)))
    ratios = brackets.divide(sums, counts)
    step = average.total.step
    low, high = (constant(bound * step) for bound in _bounds(average))
    origin = constant(average.total.origin * step)
    first, last = (within(numbers.add(origin, ratio.numbers), low, high) for ratio in ratios)
    return (Ends(numbers=numbers.choose(none, low, first)), Ends(numbers=numbers.choose(none, high, last)))
