"""What units change of the streams: by their own events alone, and no more than they may, across ticks and restarts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lapwing.mechanisms import BufferedToeplitz
from lapwing.mechanisms.continual.fitting import fitted
from lapwing.mechanisms.continual.participation import Events, OncePerCell, Participation, Stays
from lapwing.monitors import counting
from lapwing.monitors.counting import (
    Arrivals,
    CountedRows,
    CountingMethod,
    DistinctPeople,
    KeptUnit,
    Present,
    Range,
    Tree,
    place_within,
    sums_of,
)
from tests.mechanisms.continual.matrices import Matrix, column, toeplitz
from tests.support.effort import one_in

TICKS, CELLS, PEOPLE = 8, 3, 5
Made = Callable[[], CountingMethod]
History = list[list[tuple[int, int, int, int]]]
"""At each tick the events that arrive: unit, time, cell, value."""

KINDS: list[tuple[str, Made, Participation, int | None, int]] = [
    ("rows", lambda: CountedRows(CELLS, 4, None, [Range(0, 1)]), Events(4), None, 1),
    ("rows, 2 a tick", lambda: CountedRows(CELLS, 4, 2, [Range(0, 1)]), Events(4, 2), None, 1),
    ("sums", lambda: CountedRows(CELLS, 3, None, [Range(-2, 5)]), Events(3), None, 5),
    ("present", lambda: Present(CELLS, 3, None), Stays(3), None, 1),
    ("present within 2", lambda: Present(CELLS, 3, 2), Stays(3), None, 1),
    ("people so far", lambda: DistinctPeople(CELLS, 2, None), OncePerCell(2), None, 1),
    ("people in 3", lambda: DistinctPeople(CELLS, 3, 3), Stays(3), None, 1),
    ("people in tick", lambda: DistinctPeople(CELLS, 4, 1), Events(4, 1), 1, 1),
]
every_kind = pytest.mark.parametrize(("name", "made", "allowed", "window", "norm"), KINDS, ids=[k[0] for k in KINDS])


def history(seed: int, rate: float = 4.0) -> History:
    random = np.random.default_rng(seed)
    return [
        [
            (int(random.integers(PEOPLE)), int(random.integers(40)), int(random.integers(-1, CELLS)), value)
            for value in random.integers(-2, 6, random.poisson(rate)).tolist()
        ]
        for _ in range(TICKS)
    ]


def arrivals(events: Sequence[tuple[int, int, int, int]], *, one: bool) -> Arrivals:
    columns = np.array(events, dtype=np.int64).reshape(-1, 4).T
    values = np.ones(len(events), dtype=np.int64) if one else columns[3].copy()
    pairs = [(values, np.zeros(len(events), dtype=np.bool_))]
    return Arrivals(columns[0], columns[1], columns[2], pairs).ordered()


def streams(made: Made, events: History, *, one: bool = True, restart: bool = False) -> Matrix:
    """Return what changes at each tick in each cell; a restart takes up what was kept after each tick."""
    state, kept, changes = made(), dict[tuple[int, int], KeptUnit](), []
    for tick, arrived in enumerate(events, 1):
        if restart:
            state = made()
            state.restore(list(kept.values()))
        (change,) = state.advance(tick, arrivals(arrived, one=one))
        kept |= {(each.unit, each.cell): each for each in state.changed()}
        changes.append(np.asarray(change, dtype=float))
    return np.array(changes)


def of(unit: int, events: History) -> History:
    return [[event for event in arrived if event[0] == unit] for arrived in events]


def without(unit: int, events: History) -> History:
    return [[event for event in arrived if event[0] != unit] for arrived in events]


@every_kind
@pytest.mark.parametrize("seed", one_in(48, range(6)))
def test_a_unit_changes_what_its_own_events_say(
    name: str, made: Made, allowed: Participation, window: int | None, norm: int, seed: int
) -> None:
    """Neighbours differ by what the unit alone would be, whoever else is there and in whatever order events came."""
    events, one = history(seed), name != "sums"
    whole = streams(made, events, one=one)
    for unit in range(PEOPLE):
        alone = streams(made, of(unit, events), one=one)
        assert (whole - streams(made, without(unit, events), one=one) == alone).all()
    shuffled = [list(reversed(arrived)) for arrived in events]
    assert (streams(made, shuffled, one=one) == whole).all()


@every_kind
@pytest.mark.parametrize("seed", one_in(8, range(6)))
def test_a_restart_changes_nothing(
    name: str, made: Made, allowed: Participation, window: int | None, norm: int, seed: int
) -> None:
    events, one = history(seed), name != "sums"
    assert (streams(made, events, one=one, restart=True) == streams(made, events, one=one)).all()


def check_limit(made: Made, allowed: Participation, window: int | None, norm: int, *, one: bool, restart: bool) -> None:
    """No unit moves what is released by more than the mechanism is made for."""
    matrix: BufferedToeplitz = fitted(TICKS, window, Events(1), 2)
    c = toeplitz([float(entry) for entry in column(matrix)])
    most = float(matrix.sensitivity_squared(allowed)) * norm**2
    for seed in range(40):
        events = of(0, history(seed, rate=12.0))
        stream = streams(made, events, one=one, restart=restart)
        assert np.sum((c @ stream) ** 2) <= most * (1 + 1e-9)
        assert np.abs(stream).sum() <= allowed.steps * norm


@every_kind
@pytest.mark.parametrize("restart", one_in(4, [False, True]))
def test_no_unit_does_more_than_it_may(
    name: str, made: Made, allowed: Participation, window: int | None, norm: int, restart: bool
) -> None:
    check_limit(made, allowed, window, norm, one=name != "sums", restart=restart)


@every_kind
def test_twin_a_limit_that_a_restart_forgets_is_noticed(
    name: str, made: Made, allowed: Participation, window: int | None, norm: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (CountedRows, Present, DistinctPeople):
        monkeypatch.setattr(kind, "restore", lambda _self, _kept: None)
    with pytest.raises(AssertionError):
        check_limit(made, allowed, window, norm, one=name != "sums", restart=True)


@every_kind
def test_twin_a_limit_that_is_one_too_high_is_noticed(
    name: str, made: Made, allowed: Participation, window: int | None, norm: int
) -> None:
    less: Participation = replace(allowed, most=allowed.cells - 1)  # type: ignore[type-var]  # all are dataclasses
    with pytest.raises(AssertionError):
        check_limit(made, less, window, norm, one=name != "sums", restart=False)


def test_values_beyond_the_bounds_are_clamped_whatever_the_engine_says() -> None:
    rows = CountedRows(1, 9, None, [Range(-2, 5)])
    (change,) = rows.advance(1, arrivals([(0, 1, 0, 50), (0, 2, 0, -50)], one=False))
    assert change.tolist() == [3]


def test_people_are_where_they_were_last() -> None:
    events: History = [[(0, 5, 1, 1)], [(0, 30, 2, 1), (0, 20, 0, 1)], [(0, 25, 0, 1)], [], [(0, 40, -1, 1)]]
    changes = streams(lambda: Present(CELLS, 5, None), events)
    assert np.cumsum(changes, axis=0).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0]]


def test_people_of_whom_nothing_is_heard_are_gone() -> None:
    events: History = [[(0, 1, 1, 1)], [], [(0, 3, 1, 1)], [], [], [(0, 6, 1, 1)]]
    present = np.cumsum(streams(lambda: Present(CELLS, 5, 2), events), axis=0)[:, 1]
    assert present.tolist() == [1, 1, 1, 1, 0, 1]
    window = np.cumsum(streams(lambda: DistinctPeople(CELLS, 5, 2), events), axis=0)[:, 1]
    assert window.tolist() == [1, 1, 1, 1, 0, 1]


def test_a_move_beyond_the_limit_leads_nowhere() -> None:
    events: History = [[(0, tick, tick % 2, 1)] for tick in range(6)]
    present = np.cumsum(streams(lambda: Present(CELLS, 3, None), events), axis=0)
    assert present.sum(axis=1).tolist() == [1, 1, 1, 0, 0, 0]


def test_a_distribution_counts_each_event_once_on_each_level() -> None:
    random = np.random.default_rng(5)
    cells, values = random.integers(0, 3, 50), random.integers(-40, 140, 50)
    counted = Tree(width=7, branching=4, leaves=15).changes(cells, values, 3).reshape(3, -1)
    assert counted.shape == (3, 4 + 15)
    for cell in range(3):
        leaf = np.clip(values[cells == cell] // 7, 0, 14)
        assert counted[cell, 4:].tolist() == np.bincount(leaf, minlength=15).tolist()
        assert counted[cell, :4].tolist() == np.bincount(leaf // 4, minlength=4).tolist()


def test_sums_are_exact_however_large() -> None:
    values = np.full(9, (1 << 60) - 1, dtype=np.int64)
    sums = sums_of(np.array([0] * 8 + [1]), values, 2, 1 << 60)
    assert sums.tolist() == [8 * ((1 << 60) - 1), (1 << 60) - 1]


def test_places_within_groups() -> None:
    assert place_within(np.array([3, 3, 4, 7, 7, 7])).tolist() == [0, 1, 0, 0, 1, 2]
    assert place_within(np.zeros(0, dtype=np.int64)).tolist() == []


@pytest.mark.long
def test_an_adversary_who_chooses_events_by_what_was_released_gains_nothing() -> None:
    """On every path, the squares of the shifts add up to at most what was charged for."""
    random, most = np.random.default_rng(3), 3
    matrix = fitted(TICKS, None, Stays(most), 2)
    c = toeplitz([float(entry) for entry in column(matrix)])
    limit = float(matrix.sensitivity_squared(Stays(most)))
    for _ in range(50):
        state, moved, changes = Present(CELLS, most, None), 0.0, list[Matrix]()
        for tick in range(1, TICKS + 1):
            seen = float((c[tick - 2, : tick - 1] @ np.array(changes)).sum()) if changes else 0.0
            noisy = seen + random.normal()
            # whoever is watched moves when what was shown says that moving would be seen best
            events = [(0, tick, int(noisy > 0.5) + int(random.integers(2)), 1)] if random.random() < 0.8 else []
            changes.append(np.asarray(state.advance(tick, arrivals(events, one=True))[0], dtype=float))
            moved += float(np.sum((c[tick - 1, :tick] @ np.array(changes)) ** 2))
        assert moved <= limit * (1 + 1e-9)


def test_ways_of_counting_are_named() -> None:
    assert set(counting.KINDS) == {"present", "people so far", "people in window", "people in tick"}
