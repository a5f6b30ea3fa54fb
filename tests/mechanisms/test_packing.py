"""Truncated sums of shared rows: the values of small programs by enumeration, and how far a unit moves them.

Nothing here is random but the instances, which are the same in every run: no test can fail by chance.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import linprog

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import packing, packing_solvers
from lapwing.mechanisms.exact_programs import rounded
from lapwing.mechanisms.packing import MOST_LEVEL, NOBODY, SharedRows, peeled, require_solver, slack
from tests.support.effort import one_in
from tests.support.refusals import refused_as

Row = tuple[tuple[int, ...], int]
"""The units of a row, and its weight."""
LEVELS = (1, 2, 3, 5, 8, 13)


def shared(rows: Sequence[Row], arity: int, count: int) -> SharedRows:
    units = np.array([units for units, _ in rows], dtype=np.int64).reshape(len(rows), arity)
    return SharedRows.of(list(units.T), np.array([weight for _, weight in rows], dtype=np.int64), count)


def values(rows: Sequence[Row], arity: int, count: int) -> list[int]:
    found = shared(rows, arity, count)
    return [found.value(level) for level in LEVELS]


def instances(arity: int, number: int, most_rows: int = 14) -> Iterable[tuple[list[Row], int]]:
    random = Random(arity)
    for _ in range(number):
        count = random.randint(2, 7)
        units = [tuple(random.randrange(count) for _ in range(arity)) for _ in range(random.randint(1, most_rows))]
        yield [(members, random.randint(0, 5)) for members in units], count


def best(rows: Sequence[Row], level: int, count: int, room: Sequence[int] | None = None) -> float:
    """Solve a program as it is written, in floating point: to within 1e-6 of its value."""
    limits = np.zeros((count, len(rows)))
    for place, (members, _) in enumerate(rows):
        limits[[unit for unit in members if unit != NOBODY], place] = 1
    ends = [(0, weight) for _, weight in rows]
    result = linprog(-np.ones(len(rows)), A_ub=limits, b_ub=room or [level] * count, bounds=ends, method="highs")
    return -float(result.fun)


def halves(rows: Sequence[Row], level: int, count: int) -> Fraction:
    """Solve a program of pairs by enumeration: it has a best solution in halves (Balinski 1965)."""
    most = Fraction(0)
    for parts in product(*(range(2 * weight + 1) for _, weight in rows)):
        borne = [
            sum(part for part, (members, _) in zip(parts, rows, strict=True) if u in members) for u in range(count)
        ]
        if max(borne) <= 2 * level:
            most = max(most, Fraction(sum(parts), 2))
    return most


def check_moves(arity: int, number: int, value: Callable[[Sequence[Row], int, int], list[int]] = values) -> None:
    """Take out every unit with all rows that it shares: no level may move by more than is said, nor exceed the sum."""
    for rows, count in instances(arity, number):
        whole = value(rows, arity, count)
        assert all(found <= sum(weight for _, weight in rows) for found in whole)
        for unit in range(count):
            rest = value([row for row in rows if unit not in row[0]], arity, count)
            for level, before, after in zip(LEVELS, whole, rest, strict=True):
                assert abs(before - after) <= level + slack(level, arity), (rows, unit, level)


# ---- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_pairs_have_the_value_that_enumeration_finds() -> None:
    random = Random(7)
    for _ in range(60):
        count = random.randint(2, 4)
        rows = [((random.randrange(count), random.randrange(count)), random.randint(0, 2)) for _ in range(4)]
        for level in (1, 2, 3):
            assert shared(rows, 2, count).value(level) == int(halves(rows, level, count))


def test_a_triangle_is_worth_a_half_more_than_whole_weights_give() -> None:
    rows = [((0, 1), 9), ((1, 2), 9), ((2, 0), 9)]
    assert [shared(rows, 2, 3).value(level) for level in (2, 4, 5)] == [3, 6, 7]


@pytest.mark.parametrize("number", [4, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("arity", one_in(3, [1, 2, 3, 4]))
def test_values_are_those_of_the_program_as_it_is_written(arity: int, number: int) -> None:
    for rows, count in instances(arity, number, 25):
        for level in LEVELS:
            wanted, found = best(rows, level, count), shared(rows, arity, count).value(level)
            below = max(1, slack(level, arity))
            assert wanted - below - 1e-6 < found <= wanted + 0.5 + 1e-6
            if arity <= 2:
                assert found == int(wanted + 1e-6)


def test_a_unit_that_meets_itself_bears_the_row_once() -> None:
    assert shared([((0, 0), 9)], 2, 1).value(4) == 4
    assert shared([((0, 0), 4), ((0, 1), 2)], 2, 2).value(5) == 5
    assert shared([((0, 0, 1), 4), ((1, 1, 1), 1)], 3, 2).value(3) == 3


@pytest.mark.long
@pytest.mark.parametrize("number", [8, pytest.param(60, marks=pytest.mark.long)])
def test_pairs_of_two_kinds_of_units_have_the_same_value_as_any(number: int) -> None:
    random = Random(3)
    for _ in range(number):
        rows = [((random.randrange(4), 4 + random.randrange(3)), random.randint(0, 5)) for _ in range(16)]
        for level in LEVELS:
            assert shared(rows, 2, 7).value(level) == int(best(rows, level, 7) + 1e-6)


@pytest.mark.long
@pytest.mark.parametrize("number", [10, pytest.param(30, marks=pytest.mark.long)])
def test_the_order_of_rows_and_units_and_one_named_twice_make_no_difference(number: int) -> None:
    random = Random(5)
    for rows, count in instances(2, number):
        other = [(tuple(random.sample(members, 2)), weight) for members, weight in rows]
        random.shuffle(other)
        assert values(rows, 2, count) == values(other, 2, count)
        split = [row for members, weight in rows for row in ((members, weight // 2), (members, weight - weight // 2))]
        assert values(rows, 2, count) == values(split, 2, count)
        thrice = [((*members, members[0]), weight) for members, weight in rows]
        wanted = [best(rows, level, count) for level in LEVELS]
        for found, want in zip(values(thrice, 3, count), wanted, strict=True):
            assert found == int(want + 1e-6)


@pytest.mark.long
@pytest.mark.parametrize("number", [8, pytest.param(60, marks=pytest.mark.long)])
def test_what_is_settled_leaves_a_program_of_the_same_value(number: int) -> None:
    for arity in (2, 3):
        for rows, count in instances(arity, number, 25):
            merged = shared(rows, arity, count)
            for level in LEVELS:
                room = np.full(count, level, dtype=np.int64)
                units, weights, left, settled = peeled(merged.units, merged.weights, room)
                rest = [(tuple(row), int(weight)) for row, weight in zip(units.tolist(), weights, strict=True)]
                value = best(rest, level, count, left.tolist()) if rest else 0.0
                assert settled + value == pytest.approx(best(rows, level, count), abs=1e-6)


def test_large_levels_are_computed_on_a_grid_that_follows_from_the_level() -> None:
    huge = 1 << 40
    rows = [((0, 1), huge), ((1, 2), huge), ((2, 0), huge), ((0, 0), 3)]
    level = huge + 12345
    grid = -(-level // packing.FINEST)
    found = shared(rows, 2, 3).value(level)
    assert found % grid == 0
    assert 3 * level // 2 - 4 * grid <= found <= 3 * level // 2
    assert shared(rows, 2, 3).value(MOST_LEVEL) <= 3 * huge + 3
    assert found - shared(rows[:1], 2, 3).value(level) <= level


def test_nothing_is_worth_nothing() -> None:
    assert SharedRows.of([np.empty(0, dtype=np.int64)] * 2, np.empty(0, dtype=np.int64), 0).value(5) == 0
    assert shared([((0, 1), 0)], 2, 2).value(5) == 0


# ---- how far a unit moves them ---------------------------------------------------------------------------------------


FEW = 15
"""How many programs are tried; all bugs planted here show in them."""


@pytest.mark.parametrize("number", [8, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("arity", one_in(2, [2, 3, 4]))
def test_no_unit_moves_a_value_by_more_than_its_level(arity: int, number: int) -> None:
    check_moves(arity, number)


def test_twin_cutting_units_one_by_one_is_found() -> None:
    """What each row keeps of its units' cuts does not hide them: a unit's partners are cut anew when it leaves."""

    def cut(rows: Sequence[Row], arity: int, count: int) -> list[int]:
        heavy = [sum(weight for members, weight in rows if unit in members) for unit in range(count)]
        return [
            sum(weight for members, weight in rows if all(heavy[unit] <= level for unit in members)) for level in LEVELS
        ]

    with pytest.raises(AssertionError):
        check_moves(2, FEW, cut)


def test_twin_a_level_that_is_one_too_high_is_found() -> None:
    def higher(rows: Sequence[Row], arity: int, count: int) -> list[int]:
        found = shared(rows, arity, count)
        return [found.value(level + 1) for level in LEVELS]

    with pytest.raises(AssertionError):
        check_moves(2, FEW, higher)


def test_twin_a_unit_that_is_lost_is_found() -> None:
    def lost(rows: Sequence[Row], arity: int, count: int) -> list[int]:
        return values([((members[0],), weight) for members, weight in rows], 1, count)

    with pytest.raises(AssertionError):
        check_moves(2, FEW, lost)


def test_twin_settling_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit is forgotten although its rows weigh one more than is left in it."""
    monkeypatch.setattr(packing, "loads", lambda *arguments, loads=packing.loads: np.maximum(loads(*arguments) - 1, 0))
    with pytest.raises(AssertionError):
        check_moves(2, FEW)


# ---- proofs of what solvers say --------------------------------------------------------------------------------------

CORE: list[Row] = [((0, 1, 2), 3), ((0, 1, 3), 3), ((1, 2, 3), 3), ((0, 2, 3), 3)]


PROPOSALS = {
    "no weights": lambda w, y: (w * 0, y),
    "no prices": lambda w, y: (w, y * 0),
    "high prices": lambda w, y: (w, y * 3),
    "no numbers": lambda w, y: (w * np.nan, y),
    "too much": lambda w, y: (w + 1e-3, y),
    "nothing": None,
}


@pytest.mark.long
@pytest.mark.parametrize("spoilt", one_in(6, PROPOSALS.values()), ids=PROPOSALS)
def test_whatever_a_solver_proposes_the_values_are_the_same(
    monkeypatch: pytest.MonkeyPatch, spoilt: Callable[[Any, Any], Any] | None
) -> None:
    """A value is a function of the rows: a bad proposal costs time, and there is a value all the same."""
    asked: list[tuple[list[Row], int]] = [(list(CORE), 4), *((rows, count) for rows, count in instances(3, 5, 25))]
    wanted = [values(rows, 3, count) for rows, count in asked]

    def proposed(*arguments: Any, **named: Any) -> Any:
        found = linprog(*arguments, **named)
        if spoilt is None or found.status:
            return scipy.optimize.OptimizeResult(status=4, x=None)
        found.x, found.eqlin.marginals = spoilt(found.x, found.eqlin.marginals)
        return found

    monkeypatch.setattr(scipy.optimize, "linprog", proposed)
    assert [values(rows, 3, count) for rows, count in asked] == wanted
    assert wanted[0][2] == 4


def test_fractions_and_corrections_find_the_same_value() -> None:
    """Of programs with large weights, whose value a solver knows to seven digits or so at first."""
    random = Random(11)
    for _ in range(6):
        count = random.randint(4, 7)
        units = np.array([sorted(random.sample(range(count), 3)) for _ in range(12)])
        weights = np.array([random.randrange(1, 1 << 30) for _ in range(12)])
        room = np.array([random.randrange(1, 1 << 30) for _ in range(count)])
        program = packing_solvers._Program(units=units, weights=weights, room=room)
        exact, proofs = packing_solvers._exact(program), list(packing_solvers._proofs(program))
        assert all(proof.low <= exact <= proof.high for proof in proofs)
        assert proofs[-1].high - proofs[-1].low < Fraction(1, 1000)
        assert packing_solvers.shared_value(units, weights, room, 5, 1) == rounded(5 + exact, 1)


def test_twin_a_tolerance_in_place_of_the_value_fails_by_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: there is a value only if what a solver proposes proves it."""
    monkeypatch.setattr(packing_solvers, "_exact", lambda _: 1 / 0)
    monkeypatch.setattr(packing_solvers, "_proofs", lambda _: iter(()))
    with pytest.raises(ZeroDivisionError):
        shared(CORE, 3, 4).value(4)
    assert shared(CORE[:1], 3, 4).value(4) == 3


def test_weights_are_lowered_in_whatever_row_there_are_any() -> None:
    """The first row of the unit that bears too much weighs nothing."""
    units, weights, room = np.array([[0, 1, 2], [0, 1, 3], [-1, 0, 3]]), np.full(3, 5), np.array([1, 9, 9, 9])
    program = packing_solvers._Program(units=units, weights=weights, room=room)
    lowered = packing_solvers._lowered(program, np.array([0, 4, 1], dtype=object), 2)
    assert lowered.tolist() == [0, 1, 1]


@pytest.mark.parametrize("part", [0, 2], ids=["no flow", "twice the flow"])
def test_a_flow_that_is_not_greatest_changes_nothing(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    from scipy.sparse import csgraph

    greatest = csgraph.maximum_flow

    def spoilt(*arguments: Any) -> Any:
        result = greatest(*arguments)
        result.flow = result.flow * part
        return result

    rows = [((0, 1), 9), ((1, 2), 9), ((2, 0), 9)]
    monkeypatch.setattr(csgraph, "maximum_flow", spoilt)
    assert shared(rows, 2, 3).value(4) == 6


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, -1, MOST_LEVEL + 1])
def test_levels_have_a_range(level: int) -> None:
    with pytest.raises(InvalidParameter):
        shared(CORE, 3, 4).value(level)


def test_weights_are_not_negative() -> None:
    with pytest.raises(InvalidParameter):
        shared([((0, 1), -1)], 2, 2)


def test_too_many_sets_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_SETS", 3)
    with pytest.raises(MemoryError):
        shared(CORE, 3, 4)


def test_nothing_private_shows() -> None:
    assert "9" not in repr(shared([((0, 1), 99)], 2, 2)).split(" at ")[0]


def test_without_a_solver_the_question_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "find_spec", lambda _: None)
    with refused_as("missing_extra", saying=r"lapwing-dp\[joins\]"):
        require_solver()


def test_levels_above_all_units_need_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are the same without that short cut; and taken at a lower level it is found."""
    asked = [(rows, count) for rows, count in instances(2, 30)]
    found = [values(rows, 2, count) for rows, count in asked]
    monkeypatch.setattr(packing, "_heaviest", lambda *_: MOST_LEVEL + 1)
    assert [values(rows, 2, count) for rows, count in asked] == found
    monkeypatch.setattr(packing, "_heaviest", lambda *_: 3)
    assert [values(rows, 2, count) for rows, count in asked] != found


def test_weights_that_doubles_may_not_add_up_are_not_added_up() -> None:
    units, weights = np.array([[0, 1], [0, 2]]), np.array([1 << 52, 1 << 52])
    assert packing._heaviest(units, weights, 3) > MOST_LEVEL
    assert packing._heaviest(units, weights // 2, 3) == 1 << 52
