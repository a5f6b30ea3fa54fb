"""Tables that add up: the numbers of a release, adjusted so that all of them can be true together.

Theory of operation. Tables are adjusted together if they add up the same measure over the same rows
(`release.workloads.rows_and_measure`). Their numbers are then margins of one common table, whose axes are all of their
keys. Nested keys are one attribute (`release.nested_keys`), of which the common table has the finest key. A key that is
not in every table, and may lack rows, has one more place there: for those rows. So a table without the key is at least
what a table with it adds up to. It is exactly that if the key is complete (`complete_keys`). `common_table` finds whole
numbers for the common table, and never negative ones where the measure cannot be. The adjusted tables are sums of it.
Hence they add up exactly, over all tables of the group.

Guarantee:
    Post-processing. Which tables form a group follows from their plans. The numbers follow from the released numbers
    and the public deviations of their noise. So nothing private decides anything here, and it costs nothing. The raw
    numbers and their intervals stay beside the adjusted ones, and keep their guarantee. An adjusted number has no such
    guarantee: `coverage` measures how often it is near, on average over cells.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

import numpy as np

from lapwing.answer.consistent import released_numbers
from lapwing.answer.constraints import adds_up, sign
from lapwing.query.measures.measures import Key
from lapwing.query.plan.plan import Question
from lapwing.release.nested_keys import NestedAttribute, NestedKeys, attributes_of
from lapwing.release.workloads import has_margins, rows_and_measure
from lapwing.tabulation.common_table import Floats, Integers, Margin, Places, nearest, whole_numbers
from lapwing.tabulation.complete_keys import is_complete
from lapwing.tabulation.public_totals import FixedCells, Number, Owners

if TYPE_CHECKING:
    from lapwing.answer import Answer

MOST_CELLS: Final = 4_000_000
"""Of a common table."""
KNOWN: Final = 10
"""How many times as exact as the best table a public total counts, before it is met exactly."""
LARGEST_NUMBER: Final = 2**50
"""Numbers beyond it are no doubles, and are not adjusted."""
NOTHING_FIXED: Final[FixedCells] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableGroup:
    """Tables of one measure that are margins of one common table.

    Args:
        numbers: Each table, with its measure.
        cells: Of the common table.
        margins: Of each table.
        sign: 1 if no number can be below 0, −1 if none can be above, else 0.
        owners: The sums that public totals fix.
    """

    numbers: tuple[Number, ...]
    cells: int
    margins: tuple[Margin, ...]
    sign: int
    owners: Owners | None = None

    def common_table(self, released: Sequence[Floats]) -> Integers:
        """Return a table of whole numbers whose margins are near released ones."""
        side = -1 if self.sign < 0 else 1
        turned, margins = [side * values for values in released], self.margins
        if self.owners is not None:
            deviation = min(margin.deviation for margin in margins) / KNOWN
            margins = (*margins, self.owners.margin(margins[0].shape, deviation))
            turned = [*turned, side * self.owners.amounts.astype(np.float64)]
        numbers = nearest(margins, turned, may_be_negative=not self.sign)
        whole = side * whole_numbers(numbers, margins)
        return whole if self.owners is None else self.owners.met(whole, self.sign)

    def top_down(self) -> "TableGroup":
        """Return the same tables, where a square counts for less the more cells its table has.

        Cells at 0 that noise would make negative move sums upwards. In a table of n cells many such cells together
        outweigh the one total. If each table has the weight of one number, they do not.
        """
        most = max(margin.size for margin in self.margins)
        margins = (replace(one, deviation=one.deviation * sqrt(one.size / most)) for one in self.margins)
        return replace(self, margins=tuple(margins))

    def tables(self, common: Integers) -> list[Integers]:
        """Return the margins of a common table."""
        return [margin.exactly(common) for margin in self.margins]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedGroup:
    """Tables that were adjusted together.

    Args:
        common: The common table; `numbers` are its margins, by table and measure.
    """

    group: TableGroup
    common: Integers
    numbers: Mapping[Number, Integers]


def adjusted_groups(
    answers: Sequence["Answer"],
    nestings: Sequence[NestedKeys] = (),
    fixed: FixedCells | None = None,
    *,
    top_down: bool = False,
) -> list[AdjustedGroup]:
    """Return the tables of a release, adjusted so that they add up. What is in no group stays as it was released.

    Args:
        nestings: Keys that lie inside others.
        top_down: Whether tables with few cells come first.

    Guarantee:
        Post-processing of released numbers. The module has the argument.
    """
    deviations = {
        (place, measure): float(law.standard_deviation)
        for place, answer in enumerate(answers)
        for measure, law in answer.mechanisms.items()
        if law.standard_deviation
    }
    adjusted: list[AdjustedGroup] = []
    for group in groups_of([answer.plan.question for answer in answers], deviations, nestings, fixed or {}):
        released = [released_numbers(answers[place])[measure] for place, measure in group.numbers]
        if max(int(np.abs(values).max(initial=0)) for values in released) >= LARGEST_NUMBER:
            continue
        if top_down:
            group = group.top_down()
        common = group.common_table([values.astype(np.float64) for values in released])
        numbers = dict(zip(group.numbers, group.tables(common), strict=True))
        adjusted.append(AdjustedGroup(group=group, common=common, numbers=numbers))
    return adjusted


def groups_of(
    questions: Sequence[Question],
    deviations: Mapping[Number, float],
    nestings: Sequence[NestedKeys] = (),
    fixed: FixedCells = NOTHING_FIXED,
) -> list[TableGroup]:
    """Return the groups of tables: a function of the plans and of public noise.

    Args:
        deviations: Of the noise of each number.
        nestings: Keys that lie inside others.
        fixed: The cells that public totals fix.

    Raises:
        InvalidParameter: If no table meets the totals.
    """
    return [
        _group(numbers, questions, deviations, nestings, fixed)
        for numbers in _together(questions, deviations, nestings)
    ]


def open_attributes(
    questions: Sequence[Question], deviations: Mapping[Number, float], nestings: Sequence[NestedKeys] = ()
) -> Iterator[tuple[list[Number], tuple[Key, ...]]]:
    """Yield each key, or levels, of adjusted tables that may lack rows, with the numbers of its group."""
    for numbers in _together(questions, deviations, nestings):
        for attribute in _attributes(numbers, questions, nestings):
            if attribute.is_open:
                yield numbers, attribute.levels


def _together(
    questions: Sequence[Question], deviations: Mapping[Number, float], nestings: Sequence[NestedKeys]
) -> Iterator[list[Number]]:
    """Yield the numbers that are margins of one common table."""
    alike: dict[Hashable, list[Number]] = {}
    for place, question in enumerate(questions):
        for measure in question.measures if has_margins(question) else ():
            if adds_up(measure) and (place, measure) in deviations:
                alike.setdefault(rows_and_measure(question, measure), []).append((place, measure))
    for every in alike.values():
        yield from _that_fit(every, questions, nestings)


def _that_fit(
    numbers: Sequence[Number], questions: Sequence[Question], nestings: Sequence[NestedKeys]
) -> list[list[Number]]:
    """Return numbers in parts whose common tables are not too large; those by many keys come first."""
    parts: list[list[Number]] = []
    for number in sorted(numbers, key=lambda one: -(questions[one[0]].cells or 1)):
        for part in parts:
            if prod(map(_size, _attributes([*part, number], questions, nestings))) <= MOST_CELLS:
                part.append(number)
                break
        else:
            if (questions[number[0]].cells or 1) <= MOST_CELLS:
                parts.append([number])
    return [sorted(part, key=lambda one: one[0]) for part in parts]


def _attributes(
    numbers: Sequence[Number], questions: Sequence[Question], nestings: Sequence[NestedKeys]
) -> list[NestedAttribute]:
    """Return the axes of a common table."""
    asked = [questions[place] for place, _ in numbers]
    rows = asked[0].selection
    return list(attributes_of([one.keys for one in asked], nestings, lambda key: is_complete(key, rows, nestings)))


def _size(attribute: NestedAttribute) -> int:
    """Return the length of an axis: the values of its finest key, and the place for rows without one."""
    return len(attribute.levels[-1].domain) + attribute.is_open


def _group(
    numbers: Sequence[Number],
    questions: Sequence[Question],
    deviations: Mapping[Number, float],
    nestings: Sequence[NestedKeys],
    fixed: FixedCells,
) -> TableGroup:
    attributes = _attributes(numbers, questions, nestings)
    margins = [_margin(questions[place], attributes, deviations[place, measure]) for place, measure in numbers]
    cells, side = prod(map(_size, attributes)), sign(numbers[0][1])
    totals = [(margin, fixed[number]) for margin, number in zip(margins, numbers, strict=True) if number in fixed]
    return TableGroup(
        numbers=tuple(numbers),
        cells=cells,
        margins=tuple(margins),
        sign=side,
        owners=Owners.of(totals, cells, side),
    )


def _margin(question: Question, attributes: Sequence[NestedAttribute], deviation: float) -> Margin:
    """Return a table as sums of the common table."""
    axes = {key: axis for key in question.keys for axis, one in enumerate(attributes) if key in one.levels}
    kept, sizes = sorted(set(axes.values())), [_size(attribute) for attribute in attributes]
    size = prod(len(key.domain) for key in question.keys)
    into, outside = np.zeros((1,) * len(kept), dtype=np.int64), np.zeros((1,) * len(kept), dtype=bool)
    for key in question.keys:
        attribute = attributes[axes[key]]
        along = np.full(sizes[axes[key]], len(key.domain))  # which is for rows without a value
        along[: len(attribute.levels[-1].domain)] = attribute.above(key)
        along = along.reshape([-1 if axis == axes[key] else 1 for axis in kept])
        into = into * len(key.domain) + along
        outside = outside | (along >= len(key.domain))
    places: Places = np.where(outside, size, into).astype(np.int32).reshape(-1)
    return Margin(shape=tuple(sizes), kept=tuple(kept), places=places, size=size, deviation=deviation)
