"""Fixed-point numbers: every value has one place on the grid, exactly, and moves no further than is said."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.mechanisms import FixedPoint, Sensitivity
from tests.support.effort import one_in

CENTS = FixedPoint(step=Fraction(1, 100), lower=Fraction(0), upper=Fraction(5000))
GRIDS = (
    CENTS,
    FixedPoint(step=Fraction(1), lower=Fraction(-7), upper=Fraction(110)),
    FixedPoint(step=Fraction(1, 8), lower=Fraction(-3), upper=Fraction(5)),
    FixedPoint(step=Fraction(3), lower=Fraction(-11), upper=Fraction(11)),
    FixedPoint(step=Fraction(1, 3), lower=Fraction(2), upper=Fraction(9)),
    FixedPoint(step=Fraction(7, 10**6), lower=Fraction(-(10**6)), upper=Fraction(10**6)),
    FixedPoint(step=Fraction(1, 2**60), lower=Fraction(-1), upper=Fraction(1)),
    FixedPoint(step=Fraction(1, 10**12), lower=Fraction(-(10**12)), upper=Fraction(10**12)),
)
Steps = Callable[[FixedPoint, Any], Any]


def place(grid: FixedPoint, value: Any) -> int:
    """The place of a number by definition: clamp, the n with n − ½ ≤ x/step < n + ½, clamp."""
    if value == math.inf or value == -math.inf:
        return grid.highest if value > 0 else grid.lowest
    quotient = min(max(Fraction(value), grid.lower), grid.upper) / grid.step
    n = round(quotient)
    n += (quotient >= n + Fraction(1, 2)) - (quotient < n - Fraction(1, 2))
    assert n - Fraction(1, 2) <= quotient < n + Fraction(1, 2)
    return min(max(n, grid.lowest), grid.highest)


def awkward(grid: FixedPoint) -> list[float]:
    """Floats on, and next to, points and middles of the grid, the bounds, and the ends of what a float can be."""
    middles = [(n + shift) * grid.step for n in range(-40, 41) for shift in (Fraction(0), Fraction(1, 2))]
    spots = [float(x) for x in (*middles, *(grid.lower + x for x in middles), *(grid.upper + x for x in middles))]
    near = [y for x in spots for y in (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf))]
    return [*near, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, math.inf, -math.inf, 0.5, 1e-9, 2.0**53 + 2]


def check_steps(steps: Steps, grid: FixedPoint) -> None:
    values = awkward(grid)
    wanted = [place(grid, value) for value in values]
    assert [int(n) for n in steps(grid, np.array(values))] == wanted
    assert [int(n) for n in steps(grid, values)] == wanted


@pytest.mark.parametrize("grid", one_in(8, GRIDS), ids=lambda grid: str(grid.step))
def test_floats_find_their_place(grid: FixedPoint) -> None:
    check_steps(lambda grid, values: grid.steps(values), grid)


def in_floats(grid: FixedPoint, values: Any) -> Any:
    inside = np.clip(np.asarray(values, dtype=float), float(grid.lower), float(grid.upper))
    return np.clip(np.floor(inside / float(grid.step) + 0.5).astype(np.int64), grid.lowest, grid.highest)


def half_to_even(grid: FixedPoint, values: Any) -> Any:
    inside = np.clip(np.asarray(values, dtype=float), float(grid.lower), float(grid.upper))
    return np.clip(np.round(inside / float(grid.step)).astype(np.int64), grid.lowest, grid.highest)


def clamped_once(grid: FixedPoint, values: Any) -> Any:
    inside = np.clip(np.asarray(values, dtype=float), float(grid.lower), float(grid.upper))
    return [math.floor(Fraction(float(x)) / grid.step + Fraction(1, 2)) for x in inside]


@pytest.mark.parametrize(("twin", "grid"), [(in_floats, CENTS), (half_to_even, GRIDS[2]), (clamped_once, GRIDS[3])])
def test_twins_that_round_otherwise_are_caught(twin: Steps, grid: FixedPoint) -> None:
    with pytest.raises(AssertionError):
        check_steps(twin, grid)


@given(st.sampled_from(GRIDS), st.lists(st.floats(allow_nan=False), max_size=20), st.floats(0, 5000))
def test_any_floats_find_their_place(grid: FixedPoint, values: list[float], inside: float) -> None:
    values = [*values, inside]
    assert [int(n) for n in grid.steps(np.array(values))] == [place(grid, value) for value in values]
    single = np.array(values, dtype=np.float32) if all(abs(x) < 1e38 for x in values) else np.zeros(1, np.float32)
    assert [int(n) for n in grid.steps(single)] == [place(grid, float(value)) for value in single]


@pytest.mark.long
@given(st.sampled_from(GRIDS), st.fractions(max_denominator=10**9), st.decimals(allow_nan=False), st.integers())
def test_exact_numbers_find_their_place(grid: FixedPoint, a: Fraction, b: Decimal, c: int) -> None:
    values: list[Fraction | Decimal | int] = [a, b, c]
    wanted = [place(grid, a), place(grid, float(b) if b.is_infinite() else b), place(grid, c)]
    assert [grid.steps(a), grid.steps(b), grid.steps(c)] == wanted
    assert list(grid.steps(values)) == wanted
    assert list(grid.steps(np.array(values, dtype=object))) == wanted


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: str(grid.step))
@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint32, np.uint64])
def test_arrays_of_integers_find_their_place(grid: FixedPoint, kind: type) -> None:
    ends = np.iinfo(kind)
    values = [int(x) for x in (ends.min, ends.max, 0, 1, 2, 3, 4, 5, 10, 100)]
    array: Any = np.array(values, dtype=kind)
    found = grid.steps(array)
    assert [int(n) for n in found] == [place(grid, value) for value in values]


def test_every_value_has_a_place() -> None:
    grid = FixedPoint(step=Fraction(1), lower=Fraction(3), upper=Fraction(9))
    strange: list[Any] = [math.nan, None, Decimal("nan"), Decimal("sNaN"), math.inf]
    strange += [Decimal("-Infinity"), Decimal("1e999999999")]
    wanted = [3, 3, 3, 3, 9, 3, 9]
    assert list(grid.steps(strange)) == wanted
    assert list(grid.steps(np.array([math.nan, math.inf, -math.inf]))) == [3, 9, 3]
    assert grid.steps(Decimal("-1e-999999999")) == 3
    assert CENTS.steps(math.nan) == 0
    assert FixedPoint(step=Fraction(1), lower=Fraction(-9), upper=Fraction(-2)).steps(None) == -2
    assert FixedPoint(step=Fraction(2), lower=Fraction(0), upper=Fraction(9), missing=Fraction(7)).steps(None) == 4


def test_the_result_is_int64_where_the_grid_fits() -> None:
    wide = FixedPoint(step=Fraction(1, 2**70), lower=Fraction(0), upper=Fraction(1))
    assert wide.steps(np.array([0.0, 1.0])).dtype == np.object_
    assert wide.steps([1]).tolist() == [2**70]
    assert CENTS.steps(np.zeros((2, 3))).shape == (2, 3)
    assert CENTS.steps(np.zeros((2, 3))).dtype == np.int64
    assert CENTS.steps(np.zeros((0, 3))).shape == (0, 3)
    assert type(CENTS.steps(0.35)) is int


def test_the_way_back_is_exact() -> None:
    steps = CENTS.steps([0.35, Decimal("12.345"), 7])
    assert CENTS.values(steps) == [Fraction(35, 100), Fraction(1235, 100), Fraction(7)]
    assert [str(x) for x in CENTS.decimals(steps)] == ["0.35", "12.35", "7.00"]
    assert CENTS.floats(steps).tolist() == [0.35, 12.35, 7.0]
    assert CENTS.values(35) == Fraction(35, 100)
    large = np.array([10**40 + 1], dtype=object)
    assert CENTS.decimals(large) == [Decimal(f"{10**40 + 1}e-2")]
    assert FixedPoint(step=Fraction(3, 8), lower=Fraction(0), upper=Fraction(3)).decimals(np.array([1])) == [
        Decimal("0.375")
    ]
    with pytest.raises(InvalidParameter, match="no finite decimal"):
        GRIDS[4].decimals(np.array([1]))
    quartiles = (1235, 35)
    assert CENTS.values(quartiles) == CENTS.values(list(quartiles)) == [Fraction(1235, 100), Fraction(35, 100)]
    assert (
        CENTS.decimals(quartiles) == [CENTS.decimals(1235), CENTS.decimals(35)] == [Decimal("12.35"), Decimal("0.35")]
    )
    assert CENTS.floats(quartiles).tolist() == [CENTS.floats(1235), 0.35] == [12.35, 0.35]
    wrongs: tuple[Any, ...] = (1.5, True, "1", [1.5])
    for wrong in wrongs:
        with pytest.raises(InvalidParameter, match=r"whole numbers|of type str"):
            CENTS.values(wrong)


@pytest.mark.parametrize(
    "values", [True, "1", b"1", 1j, [True], ["1"], [[1.0]], np.array([True]), np.array(["1"]), np.array([1j])]
)
def test_what_is_no_number_is_refused_and_not_shown(values: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"give (numbers|floats)"):
        CENTS.steps(values)


@pytest.mark.parametrize(
    "bad",
    [
        {"step": 0}, {"step": -1}, {"step": 0.01}, {"step": "1"}, {"step": True}, {"step": Decimal("nan")},
        {"lower": 2.5}, {"upper": math.inf}, {"lower": 6000}, {"missing": 0.5}, {"step": 10**4, "lower": 1},
    ],
)  # fmt: skip
def test_grids_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"step": Fraction(1, 100), "lower": Fraction(0), "upper": Fraction(5000)}
    with pytest.raises(InvalidParameter):
        FixedPoint(**{**good, **bad})


# Sensitivities

GRID = FixedPoint(step=Fraction(2), lower=Fraction(-9), upper=Fraction(100))


def norms(change: tuple[Fraction, ...]) -> dict[str, Fraction]:
    """Norms of a real change; that of l2 is squared."""
    return {
        "l1": sum((abs(x) for x in change), Fraction(0)),
        "l2": sum((x * x for x in change), Fraction(0)),
        "linf": max(abs(x) for x in change),
    }


Bound = Callable[[str, Fraction, int], Sensitivity]


def stated(norm: str, bound: Fraction, entries: int) -> Sensitivity:
    given: Any = {norm: bound}
    return GRID.sensitivity(entries=entries, **given)


def check_rounding(bound: Bound) -> None:
    """All small changes of two entries on a fine lattice move by no more; and some move so far in each norm."""
    spots = [Fraction(x, 4) for x in range(-30, 50)]
    moves: dict[Fraction, int] = {}
    for a, b in product(spots, repeat=2):
        moved = abs(GRID.steps(a) - GRID.steps(b))
        moves[abs(a - b)] = max(moved, moves.get(abs(a - b), 0))
    pairs = [((x, y), (moves[x], moves[y])) for x, y in product(sorted(moves)[:36], repeat=2)]
    for norm in ("l1", "l2", "linf"):
        for length in (Fraction(0), Fraction(1, 2), Fraction(2), Fraction(5, 2), Fraction(4), Fraction(6)):
            said = bound(norm, length, 2)
            limit = length**2 if norm == "l2" else length
            near = [c for change, c in pairs if norms(change)[norm] <= limit]
            worst = max(a + b for a, b in near), max(a * a + b * b for a, b in near)
            assert worst[0] <= said.l1
            assert worst[1] <= said.l2_squared
            if norm != "l2":
                assert worst == (said.l1, said.l2_squared), (norm, length)


def test_rounding_is_paid_for() -> None:
    check_rounding(stated)


def unpaid(norm: str, bound: Fraction, entries: int) -> Sensitivity:
    return GRID.sensitivity(entries=1, l1=bound) if norm == "l1" else stated(norm, bound, entries)


def rounded_down(norm: str, bound: Fraction, entries: int) -> Sensitivity:
    return stated(norm, math.floor(bound / 2) * Fraction(2), entries)


@pytest.mark.parametrize("twin", one_in(2, [unpaid, rounded_down]))
def test_twins_that_do_not_pay_for_rounding_are_caught(twin: Bound) -> None:
    with pytest.raises(AssertionError):
        check_rounding(twin)


@given(
    st.sampled_from(GRIDS[:6]),
    st.lists(st.tuples(st.floats(-50, 50), st.floats(-1, 1) | st.floats(-100, 100)), min_size=1, max_size=6),
)
def test_no_change_moves_further_than_is_said(grid: FixedPoint, pairs: list[tuple[float, float]]) -> None:
    before, after = [a for a, _ in pairs], [a + b for a, b in pairs]
    change = tuple(Fraction(b) - Fraction(a) for a, b in zip(before, after, strict=True))
    moved = [abs(x - y) for x, y in zip(map(grid.steps, before), map(grid.steps, after), strict=True)]
    lengths = norms(change)
    for said in (
        grid.sensitivity(entries=len(pairs), l1=lengths["l1"]),
        grid.sensitivity(entries=len(pairs), linf=lengths["linf"]),
        grid.sensitivity(entries=len(pairs), l2=Fraction(math.sqrt(lengths["l2"])) * (1 + Fraction(1, 2**50))),
    ):
        assert sum(moved) <= said.l1
        assert sum(x * x for x in moved) <= said.l2_squared


def test_no_entry_moves_further_than_the_grid_is_wide() -> None:
    assert GRID.sensitivity(entries=1, linf=10**6) == Sensitivity.from_l1(54)
    assert GRID.sensitivity(entries=3, l2=10**6) == Sensitivity.from_linf(54, entries=3)
    assert GRID.sensitivity(entries=3, l1=0) == Sensitivity.from_l1(0)


def test_bounds_of_a_change_that_mean_nothing_are_refused() -> None:
    wrongs: tuple[dict[str, Any], ...] = ({}, {"l1": 1, "l2": 1}, {"l1": -1}, {"l2": 1.5}, {"linf": "1"})
    for wrong in wrongs:
        with pytest.raises(InvalidParameter):
            GRID.sensitivity(entries=2, **wrong)
    with pytest.raises(InvalidParameter, match="entries"):
        GRID.sensitivity(entries=0, l1=1)


def check_sums(stated: Callable[[FixedPoint, int, str], int]) -> None:
    """Over all units of up to so many rows with steps between the ends, no neighbour moves a sum further; one does."""
    for lower, upper in ((-2, 3), (1, 3), (-4, -1), (0, 0)):
        grid = FixedPoint(step=Fraction(1), lower=Fraction(lower), upper=Fraction(upper))
        for rows in (1, 2, 3):
            units = [sum(unit) for n in range(rows + 1) for unit in product(range(lower, upper + 1), repeat=n)]
            assert max(map(abs, units)) == stated(grid, rows, "add_remove")
            assert max(units) - min(units) == stated(grid, rows, "replace_one")


def test_sums() -> None:
    check_sums(lambda grid, rows, neighbouring: grid.sum_sensitivity(rows, neighbouring=neighbouring).l1)
    assert CENTS.sum_sensitivity(3) == Sensitivity(l1=1_500_000, l2_squared=1_500_000**2)
    with pytest.raises(InvalidParameter, match="neighbouring"):
        CENTS.sum_sensitivity(neighbouring="swap")


def test_twin_the_width_of_the_bounds_is_not_enough() -> None:
    with pytest.raises(AssertionError):
        check_sums(lambda grid, rows, neighbouring: rows * (grid.highest - grid.lowest))
