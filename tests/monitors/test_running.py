"""Monitors end to end: what they say beside the truth, event by event, and what keeps their order."""

import asyncio
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.mechanisms import BandedToeplitz, ContinualGaussian, HonakerTree
from lapwing.monitors import Monitor, create_monitor, list_monitors, open_monitor
from lapwing.monitors.exporting import export_ticks
from lapwing.monitors.tick import TickNoise
from tests.support.effort import one_in, only
from tests.support.monitors import truth
from tests.support.monitors.city import CELLS, EVERY, TICKS, Event, events_of, make_city, microseconds, write_events

BY_CELL = "FROM moves GROUP BY cell"


@pytest.fixture
def city(tmp_path: Path) -> Path:
    return make_city(tmp_path)


def made(catalog: Path, question: str, name: str = "m", **options: Any) -> Monitor:
    given: dict[str, Any] = {"epsilon": 4_000_000, "time": "at", "most": 40} | options
    return create_monitor(catalog, name, question, **given)


def with_small_halves(monitor: Monitor) -> Monitor:
    """Noise is well below one at so large a price: what is told is the truth, to one or two."""
    assert max(stream.mechanism.half_width(TICKS, 1e-9) for stream in monitor.plan.streams) < 2.5
    return monitor


@pytest.mark.parametrize(
    ("question", "clauses", "expected"),
    only(
        [4],
        [
            ("COUNT(*)", "", lambda events: truth.counts(events)),
            ("COUNT(*)", "OVER '30 minutes'", lambda events: truth.counts(events, 3)),
            ("COUNT(pay)", "", lambda events: truth.counts(events, value=lambda e: int(e.pay is not None))),
            ("COUNT(DISTINCT person)", "", lambda events: truth.people(events)),
            ("COUNT(DISTINCT person)", "OVER '30 minutes'", lambda events: truth.people(events, 3)),
            ("COUNT(DISTINCT person)", "OVER '10 minutes'", lambda events: truth.people(events, 1)),
        ],
        many=True,
    ),
)
def test_it_tells_the_truth(city: Path, question: str, clauses: str, expected: Any) -> None:
    events = events_of()
    write_events(city.parent, "a", events)
    listed = [event for event in events if event.cell in CELLS]
    with with_small_halves(made(city, f"SELECT cell, {question} AS n {BY_CELL} {EVERY} {clauses}")) as monitor:
        assert truth.off_by(truth.told(monitor.run(replay=True)), expected(listed)) <= 2
        assert monitor.state() == f"over: all {TICKS} ticks are released"


@pytest.mark.parametrize("within", one_in(2, [None, 3]))
def test_people_are_counted_where_they_are(city: Path, within: int | None) -> None:
    events = events_of()
    write_events(city.parent, "a", events)
    clause = f"WITHIN '{10 * within} minutes'" if within else ""
    with with_small_halves(made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY} PRESENT {clause}")) as monitor:
        assert truth.off_by(truth.told(monitor.run(replay=True)), truth.present(events, within)) <= 2


@pytest.mark.long
@pytest.mark.parametrize("delta", one_in(2, [1e-6, 0]))
def test_windows_are_told_by_other_mechanisms(tmp_path: Path, delta: float) -> None:
    """Bands, and in a pure ledger a tree in which each count is told several times; across restarts."""
    city, events = make_city(tmp_path, delta=delta), events_of()
    write_events(tmp_path, "a", events)
    clauses = "EVERY '1 minute' FOR '2 hours' STARTING '2026-03-02' OVER '48 minutes'"
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {clauses}") as monitor:
        mechanism = monitor.plan.streams[0].mechanism
        inner = mechanism.matrix if isinstance(mechanism, ContinualGaussian) else mechanism.tree
        assert isinstance(inner, BandedToeplitz if delta else HonakerTree)
        for _ in range(7):
            ticks = monitor.run(replay=True, commit=19)
            next(ticks)
            ticks.close()  # type: ignore[attr-defined]
        told = truth.told(monitor)
        assert len(told) == 120
    listed = [event for event in events if event.cell in CELLS]
    for tick, table in enumerate(told, 1):
        for cell, n in table.items():
            inside = [e for e in listed if e.cell == cell and (tick - 48) * 60 <= e.at < tick * 60]
            assert abs(n - len(inside)) <= 2


@pytest.mark.long
def test_sums_means_conditions_and_limits(city: Path) -> None:
    events = events_of()
    write_events(city.parent, "a", events)
    question = f"SELECT cell, SUM(pay) AS s, AVG(pay) AS a FROM moves WHERE pay <> 4 GROUP BY cell {EVERY}"
    with made(city, question, most=5) as monitor:
        *_, last = monitor.run(replay=True)
        kept = truth.kept_rows([event for event in events if event.pay not in (None, 4)], 5)
        rows: list[dict[str, Any]] = list(last.rows())
        for row in rows:
            pays = [event.pay or 0 for event in kept if event.cell == row["cell"]]
            assert abs(row["s"] - sum(pays)) < 8
            assert abs(row["a"] - sum(pays) / len(pays)) < 0.5
            low, high = (end[rows.index(row)] for end in last.interval()["a"])
            assert low < row["a"] < high


@pytest.mark.long
@pytest.mark.parametrize("delta", one_in(2, [1e-6, 0]))
def test_quantiles_are_of_the_events_so_far(tmp_path: Path, delta: float) -> None:
    city, events = make_city(tmp_path, delta=delta), events_of()
    write_events(tmp_path, "a", events)
    with made(city, f"SELECT cell, MEDIAN(pay) AS m, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        for tick in monitor.run(replay=True):
            if tick.number < 4:
                continue
            rows: list[dict[str, Any]] = list(tick.rows())
            low, high = tick.interval(0.95)["m"]
            for place, row in enumerate(rows):
                pays = sorted(
                    e.pay for e in events if e.tick <= tick.number and e.cell == row["cell"] and e.pay is not None
                )
                assert low[place] <= pays[len(pays) // 2] <= high[place]
                assert abs(float(row["m"]) - pays[len(pays) // 2]) <= 2
                assert low[place] <= float(row["m"]) <= high[place]
            assert tick.consistent().rows()[0]["n"] == rows[0]["n"]


def test_order_and_limit_are_read_off_what_is_released(city: Path) -> None:
    write_events(city.parent, "a", events_of())
    question = f"SELECT cell, COUNT(*) AS n {BY_CELL} HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 2 {EVERY}"
    with made(city, question) as monitor:
        *_, last = monitor.run(replay=True)
        assert len(last.rows()) == 2
        first, second = truth.told([last])[0].values()
        assert first >= second


def check_intervals(tmp_path: Path, delta: float) -> None:
    """Numbers of a path miss together: what is allowed is between 10 % and what half-widths too small would give."""
    events = events_of(number=300)
    city = make_city(tmp_path, epsilon=50, delta=delta)
    write_events(tmp_path, "a", events)
    expected = truth.counts([event for event in events if event.cell in CELLS])
    missed = together = 0
    for number in range(8):
        with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}", f"m{number}", epsilon=5) as monitor:
            for tick, table in zip(monitor.run(replay=True), expected, strict=True):
                for simultaneous in (False, True):
                    low, high = tick.interval(0.9, simultaneous=simultaneous)["n"]
                    outside = sum(not low[i] <= table[cell] <= high[i] for i, cell in enumerate(CELLS))
                    missed, together = missed + outside * (not simultaneous), together + outside * simultaneous
    assert missed <= 0.27 * 8 * TICKS * len(CELLS)
    assert together <= 3


@pytest.mark.long
@pytest.mark.parametrize("delta", one_in(2, [1e-6, 0]))
def test_intervals_hold_and_hold_together(tmp_path: Path, delta: float) -> None:
    check_intervals(tmp_path, delta)


@pytest.mark.long
def test_twin_half_widths_that_are_too_small_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = TickNoise.half_width
    monkeypatch.setattr(TickNoise, "half_width", lambda noise, level: honest(noise, level) // 3)
    with pytest.raises(AssertionError):
        check_intervals(tmp_path, 1e-6)


def test_consistent_counts_keep_their_total(tmp_path: Path) -> None:
    city = make_city(tmp_path, epsilon=1)
    write_events(tmp_path, "a", events_of(number=30))
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}", epsilon=0.5) as monitor:
        for tick in monitor.run(replay=True):
            raw, mended = truth.told([tick])[0].values(), truth.told([tick.consistent()])[0].values()
            assert min(mended) >= 0
            assert sum(mended) == max(0, sum(raw))
            assert list(truth.told([tick])[0].values()) == list(raw)


# ---- events, when they come ------------------------------------------------------------------------------------------


class Time:
    """A clock that goes on when somebody waits."""

    def __init__(self, tick: float) -> None:
        self.now = microseconds(0) + int(tick * 600) * 1_000_000

    def __call__(self) -> int:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += max(60_000_000, int(seconds * 1e6))


def some_ticks(monitor: Monitor, clock: Time, number: int, **options: Any) -> list[Any]:
    ticks = monitor.run(clock=clock, wait=clock.wait, **options)
    try:
        return [next(ticks) for _ in range(number)]
    finally:
        ticks.close()  # type: ignore[attr-defined]


def event(tick: int, person: str = "p1", cell: str = "north", at: float = 1) -> Event:
    return Event((tick - 1) * 600 + at, person, cell, 1)


@pytest.mark.parametrize(("late", "total"), one_in(2, [("next", 3), ("drop", 2)], many=True))
def test_late_events_count_in_the_next_tick_or_nowhere(city: Path, late: str, total: int) -> None:
    write_events(city.parent, "a", [event(1), event(3)])
    clock = Time(0)
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}", late=late) as monitor:
        first = some_ticks(monitor, clock, 2)
        write_events(city.parent, "b", [event(1, "p2")])
        rest = some_ticks(monitor, clock, 3)
        assert [table["north"] for table in truth.told([*first, *rest])] == [1, 1, total, total, total]


def check_each_event_counts_once(city: Path, monitor: Monitor) -> None:
    clock = Time(0)
    some_ticks(monitor, clock, 2)
    write_events(city.parent, "b", [event(1, "p2"), event(2, "p3")])
    for _ in range(3):
        some_ticks(monitor, clock, 1)
    assert truth.told(monitor.ticks())[-1]["north"] == 2


@pytest.mark.long
def test_each_late_event_counts_once_whatever_restarts(city: Path) -> None:
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        check_each_event_counts_once(city, monitor)


@pytest.mark.long
def test_twin_events_that_are_not_used_up_are_noticed(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.monitors.store import MonitorStore

    monkeypatch.setattr(MonitorStore, "set_source", lambda *_: None)  # so that a restart reads the file again
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor, pytest.raises(AssertionError):
        check_each_event_counts_once(city, monitor)


def test_missed_ticks_are_made_up_in_order(city: Path) -> None:
    write_events(city.parent, "a", [event(tick, f"p{tick}") for tick in (1, 4, 6)])
    clock = Time(0)
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        some_ticks(monitor, clock, 1)
        clock.now = microseconds(7)
        assert monitor.state(clock()) == f"behind by 6 of {TICKS} ticks; the next is 2"
        found = some_ticks(monitor, clock, 6)
        assert [tick.number for tick in found] == [2, 3, 4, 5, 6, 7]
        assert [table["north"] for table in truth.told(found)] == [1, 1, 2, 2, 3, 3]


def test_a_clock_that_is_set_back_releases_nothing_twice(city: Path) -> None:
    clock = Time(0)
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        before = truth.told(some_ticks(monitor, clock, 5))
        clock.now = microseconds(2)
        assert monitor.state(clock()).startswith("ahead: tick 5")
        assert [tick.number for tick in some_ticks(monitor, clock, 1)] == [6]
        assert clock.now >= microseconds(6)
        assert truth.told(monitor.ticks())[:5] == before


def test_ticks_wait_while_the_source_is_gone(city: Path) -> None:
    folder, clock, said = city.parent / "events", Time(0), list[str]()
    write_events(city.parent, "a", [event(1), event(3, "p2")])
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        some_ticks(monitor, clock, 1)
        folder.rename(city.parent / "gone")

        def wait(seconds: float) -> None:
            clock.wait(seconds)
            if clock.now > microseconds(7) and not folder.exists():
                assert "waiting at tick 2" in monitor.state(clock())
                (city.parent / "gone").rename(folder)

        ticks = monitor.run(clock=clock, wait=wait, waiting=said.append)
        found = [next(ticks) for _ in range(6)]
        ticks.close()  # type: ignore[attr-defined]
        assert [table["north"] for table in truth.told(found)] == [1, 2, 2, 2, 2, 2]
        assert len(said) == 1
        assert "on time" in monitor.state(clock())


def test_a_file_that_changes_after_it_was_read_stops_the_clock(city: Path) -> None:
    clock = Time(0)
    write_events(city.parent, "a", [event(1)])
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        some_ticks(monitor, clock, 1)
        write_events(city.parent, "a", [event(1), event(2)])
        said = list[str]()

        def stop(_seconds: float) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            next(monitor.run(clock=clock, wait=stop, waiting=said.append))
        assert "changed after it was read" in said[0]
        assert monitor.released == 1


def test_ticks_come_whether_events_came_or_not(city: Path) -> None:
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}", most=4) as monitor:
        found = list(monitor.run(replay=True))
        assert len(found) == TICKS
        assert all(len(tick.rows()) == len(CELLS) for tick in found)


# ---- limits of a person over ticks and restarts ----------------------------------------------------------------------


@pytest.mark.long
def test_a_limit_holds_across_restarts(city: Path) -> None:
    write_events(city.parent, "a", [event(tick, at=at) for tick in range(1, 9) for at in (1, 2)])
    clock = Time(0)
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}", most=5) as monitor:
        for _ in range(8):
            some_ticks(monitor, clock, 1)
        assert [table["north"] for table in truth.told(monitor.ticks())] == [2, 4, 5, 5, 5, 5, 5, 5]


# ---- what is kept and shown ------------------------------------------------------------------------------------------


def test_files_are_for_their_owner_alone(city: Path) -> None:
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        list(monitor.run(replay=True))
        folder = city.parent / "moves.lapwing.db.monitors"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_a_second_process_cannot_run_it(city: Path) -> None:
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as one, open_monitor(city, "m") as other:
        ticks = one.run(replay=True)
        next(ticks)
        with pytest.raises(lw.InvalidParameter, match="run by another process"):
            next(other.run(replay=True))
        assert [tick.number for tick in other.ticks()] == [1]
        ticks.close()  # type: ignore[attr-defined]
        assert next(other.run(replay=True)).number == 2


def test_an_older_copy_is_noticed(city: Path) -> None:
    path = city.parent / "moves.lapwing.db.monitors" / "m.db"
    clock = Time(0)
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        some_ticks(monitor, clock, 3)
    older = path.read_bytes()
    with open_monitor(city, "m") as monitor:
        some_ticks(monitor, clock, 2)
    path.write_bytes(older)
    for extra in path.parent.glob("m.db-*"):
        extra.unlink()
    with pytest.raises(lw.Fault, match="older than its mark"):
        open_monitor(city, "m")
    path.unlink()
    with pytest.raises(lw.Fault, match="is missing, and its mark says"):
        open_monitor(city, "m")


def test_what_is_followed_is_what_was_released(city: Path) -> None:
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        released = truth.told(monitor.run(replay=True, commit=5))
        assert truth.told(monitor) == released
        assert truth.told(monitor.follow(after=4)) == released[4:]

        async def followed() -> Sequence[Any]:
            return [tick async for tick in monitor]

        assert truth.told(asyncio.run(followed())) == released
        assert list_monitors(city) == ["m"]


@pytest.mark.parametrize("suffix", one_in(3, [".parquet", ".csv", ".arrow"]))
def test_ticks_are_exported(city: Path, suffix: str) -> None:
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        file = city.parent / f"out{suffix}"
        with pytest.raises(lw.InvalidParameter, match="released nothing"):
            export_ticks(monitor, file, 0.95)  # type: ignore[arg-type]
        list(monitor.run(replay=True))
        assert export_ticks(monitor, file, 0.95) == TICKS  # type: ignore[arg-type]
        if suffix == ".parquet":
            table = pq.read_table(file)
            assert table.column_names == ["tick", "time", "cell", "n", "n_low", "n_high"]
            assert len(table) == TICKS * len(CELLS)
        assert not list(city.parent.glob(".out*"))


def test_a_stopped_monitor_releases_nothing_more(city: Path) -> None:
    clock = Time(0)
    with made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}") as monitor:
        some_ticks(monitor, clock, 2)
        monitor.stop()
        assert monitor.state(clock()) == f"stopped after tick 2 of {TICKS}"
        with pytest.raises(lw.InvalidParameter, match="was stopped"):
            next(monitor.run(replay=True))
        assert len(list(monitor.follow())) == 2


@pytest.mark.long
def test_rows_may_be_units(tmp_path: Path) -> None:
    city = make_city(tmp_path, unit="row", most=1)
    write_events(tmp_path, "a", events_of())
    expected = truth.counts([event for event in events_of() if event.cell in CELLS])
    with with_small_halves(made(city, f"SELECT cell, COUNT(*) AS n {BY_CELL} {EVERY}", most=1)) as monitor:
        assert truth.off_by(truth.told(monitor.run(replay=True)), expected) <= 2
