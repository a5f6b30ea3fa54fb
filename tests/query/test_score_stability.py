"""How far differences of scores move, by brute force over small units: no pair of cells further than is claimed."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Count, NumberMeasure, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity import score_stability
from tests.query.test_stability import vectors
from tests.support.effort import one_in

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:v.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {rows}
[tables.visits.columns]
plan = {{ type = "integer", values = {cells} }}
"""
NEIGHBOURING = ("add_remove", "replace_one")


def question_of(rows: int, cells: int, measure: NumberMeasure) -> Question:
    catalog: Catalog = loads(CATALOG.format(rows=rows, cells=list(range(cells))), file="visits", folder=Path())
    question = bind("SELECT plan, COUNT(*) FROM visits GROUP BY plan", catalog).question
    return Question(selection=question.selection, keys=question.keys, measures=(measure,))


def summed(low: int, high: int) -> Sum:
    return Sum(argument=ColumnReference(name="x", type=Fixed(step=Fraction(1), low=low, high=high)))


def clamped(
    measure: Sum, clamp: tuple[int, int], vector: tuple[int, ...], reached: tuple[bool, ...]
) -> tuple[int, ...]:
    low, high = clamp
    return tuple(min(max(x, low), high) if met else 0 for x, met in zip(vector, reached, strict=True))


def moves(measure: NumberMeasure, rows: int, cells: int, neighbouring: str) -> int:
    """Return the most by which the difference of two cells moves."""
    found = vectors(measure, rows, cells)
    if isinstance(measure, Sum) and measure.clamp is not None:
        # A cell that a unit's rows reach may hold any sum of them, 0 too; one that they do not reach holds 0.
        found = {
            clamped(measure, measure.clamp, vector, reached)
            for vector in found
            for reached in product((True, False), repeat=cells)
            if all(met or not x for met, x in zip(reached, vector, strict=True)) and sum(reached) <= rows
        }
    others = found if neighbouring == "replace_one" else {(0,) * cells}
    changes = [[x - y for x, y in zip(one, other, strict=True)] for one in found for other in others]
    return max(max(change) - min(change) for change in changes)


MEASURES: list[NumberMeasure] = [
    Count(),
    CountUnits(),
    *(summed(low, high) for low, high in [(0, 3), (-2, 1), (-3, -1), (1, 2), (0, 0)]),
    *(
        Sum(argument=summed(-2, 3).argument, clamp=clamp)
        for clamp in [(0, 4), (-1, 1), (-3, 0), (1, 2), (-2, -1), (0, 1)]
    ),
    Sum(argument=summed(0, 2).argument, clamp=(-1, 3)),
]
TIGHT = [measure for measure in MEASURES if not isinstance(measure, Sum)] + [summed(0, 3), summed(-3, -1)]


@pytest.mark.parametrize("neighbouring", NEIGHBOURING)
@pytest.mark.parametrize("measure", one_in(2, MEASURES), ids=str)
def test_no_difference_moves_further_than_is_claimed(measure: NumberMeasure, neighbouring: str) -> None:
    for rows, cells in product((1, 2, 3), (2, 3)):
        claimed = score_stability.score_bound(question_of(rows, cells, measure), measure, neighbouring)
        assert moves(measure, rows, cells, neighbouring) <= claimed.range


@pytest.mark.parametrize("neighbouring", NEIGHBOURING)
@pytest.mark.parametrize("measure", TIGHT, ids=str)
def test_some_unit_moves_it_so_far(measure: NumberMeasure, neighbouring: str) -> None:
    for rows, cells in product((1, 2, 3), (2, 3)):
        claimed = score_stability.score_bound(question_of(rows, cells, measure), measure, neighbouring)
        assert moves(measure, rows, cells, neighbouring) == claimed.range


def test_taking_signed_sums_to_move_one_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug, where a limit on groups lets a unit move two cells in two directions."""
    measure = Sum(argument=summed(-2, 3).argument, clamp=(-1, 1))
    question = question_of(2, 2, measure)
    honest = score_stability.score_bound(question, measure, "add_remove")
    monkeypatch.setattr(score_stability, "direction", lambda _measure: 1)
    bugged = score_stability.score_bound(question, measure, "add_remove")
    assert bugged.range < moves(measure, 2, 2, "add_remove") <= honest.range


def test_what_is_chosen_does_not_rest_on_what_moves_elsewhere() -> None:
    """A person in many groups moves each of them by one: numbers pay for all of them, a choice for one."""
    for rows in (1, 5, 20):
        assert score_stability.score_bound(question_of(rows, 30, CountUnits()), CountUnits(), "add_remove").range == 1


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_what_moves_one_way_does(measure: NumberMeasure) -> None:
    """Of rows alone: a clamp that is on one side of 0 only makes a unit add something of that sign."""
    added = {number for vector in vectors(measure, 3, 2) for number in vector}
    claimed = score_stability.direction(measure)
    if measure.clamp is None:
        assert all(number * claimed >= 0 for number in added)
        assert claimed or (min(added) < 0 < max(added))
    else:
        assert not claimed or all(min(max(x, measure.clamp[0]), measure.clamp[1]) * claimed >= 0 for x in added)
