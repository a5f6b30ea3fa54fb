"""How far one unit can move a measure, by formulas of the audit's own: `docs/theory/sensitivity.md` has the proofs.

Write K for the most rows of a unit, C for the number of cells, G = min(K, C, the limit on groups). A row adds a number
in [a, b] to one cell, and m = max(−a, b). A clamp keeps what a unit adds to a cell in [l, h], and m' = max(−l, h, 0).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from lapwing.audit.loss_formulas import LargestMovement
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.measures.set_counts import CountOfSets
from lapwing.query.plan.plan import Question

ONE_STEP = LargestMovement(l1=1, l2_squared=1)
"""The least that a measure of anybody's rows moves."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitBounds:
    """Public bounds on the rows of a unit in a query.

    Args:
        rows: K.
        cells: C, where private keys count as more than any two units can meet.
        groups: G.
        replaced: Whether neighbours have one unit in the place of another.
        shared: How many units a row may belong to.
    """

    rows: int
    cells: int
    groups: int
    replaced: bool
    shared: int = 1


def movements(question: Question, measure: Measure, *, replaced: bool) -> tuple[LargestMovement, ...]:
    """Return bounds on how far one unit moves a measure of a query, each of them valid."""
    parts = [tuple(_of(measure, unit)) for unit in _units(question, replaced=replaced)]
    return tuple(map(_together, zip(*parts, strict=True)))


def is_sum_of_rows(measure: Measure) -> bool:
    """Tell whether each row adds its own number to a measure, without a clamp on what a unit adds."""
    plain = isinstance(measure, Count) or (isinstance(measure, Sum) and not measure.averaged)
    return plain and measure.clamp is None


def _units(question: Question, *, replaced: bool) -> Iterator[UnitBounds]:
    for part in question.parts:
        rows = part.selection.rows_per_unit if part.units_of_row == 1 else 1  # of shared rows nobody says how many
        cells = 2 * rows + 1 if part.cells is None else part.cells
        limit = part.groups_per_unit
        groups = min(rows, cells) if limit is None else min(rows, cells, limit)
        yield UnitBounds(rows=rows, cells=cells, groups=groups, replaced=replaced, shared=part.units_of_row)


def _of(measure: Measure, unit: UnitBounds) -> Iterator[LargestMovement]:
    if isinstance(measure, CountOfSets):
        yield ONE_STEP  # of what two sets have in common the audit knows no better bound from below
    elif unit.shared > 1:
        level = 1 if measure.clamp is None else max(1, measure.clamp[1])
        yield LargestMovement(l1=unit.cells * level, l2_squared=unit.cells * level**2, cells=unit.cells)
    elif isinstance(measure, CountUnits):
        moved = min(2 * unit.groups, unit.cells) if unit.replaced else unit.groups
        yield LargestMovement(l1=moved, l2_squared=moved, cells=moved)
    elif isinstance(measure, Distribution):
        yield _of_tree(measure, unit)
    else:
        low, high = measure.row_range
        clamp = measure.clamp
        if clamp is None or clamp[0] <= 0 <= clamp[1]:
            yield _of_numbers(unit.rows * low, unit.rows * high, 1, unit)
        if clamp is not None:
            yield _of_numbers(min(clamp[0], 0), max(clamp[1], 0), unit.groups, unit)


def _of_numbers(low: int, high: int, cells: int, unit: UnitBounds) -> LargestMovement:
    """Return the movement of a unit that adds a number from low to high to each of some cells, 0 among them."""
    if low == high:  # nobody moves it, and it is charged as if one step could be moved
        return ONE_STEP
    size, width = max(-low, high), high - low
    if not unit.replaced:
        return LargestMovement(l1=cells * size, l2_squared=cells * size**2, cells=cells)
    if unit.cells == 1:
        return LargestMovement(l1=width, l2_squared=width**2)
    return LargestMovement(l1=2 * cells * size, l2_squared=cells * max(width**2, 2 * size**2), cells=2 * cells)


def _of_tree(measure: Distribution, unit: UnitBounds) -> LargestMovement:
    """Return the movement of the counts in all nodes: a row is in one node of each level."""
    levels = len(measure.sizes)
    twice = 2 if unit.replaced and (unit.cells > 1 or measure.sizes[-1] > 1) else 1
    moved = levels * unit.rows
    return LargestMovement(l1=twice * moved, l2_squared=twice * moved * unit.rows, cells=twice * levels)


def _together(sets: tuple[LargestMovement, ...]) -> LargestMovement:
    """Return the movement of the cells of several grouping sets, one after the other."""
    return LargestMovement(
        l1=sum(one.l1 for one in sets),
        l2_squared=sum(one.l2_squared for one in sets),
        cells=sum(one.cells for one in sets),
    )
