"""What a monitor keeps is lost, or an older part of it is put back: it stops, and no limit is passed."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.monitors import Monitor, create_monitor, open_monitor
from lapwing.monitors.store import MonitorStore
from tests.monitors.test_running import Time, some_ticks
from tests.support.cli.command import Run
from tests.support.effort import one_in
from tests.support.monitors import truth
from tests.support.monitors.city import EVERY, TICKS, Event, make_city, write_events

QUESTIONS = {
    "events": "SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell",
    "people": "SELECT cell, COUNT(DISTINCT person) AS n FROM moves GROUP BY cell",
    "present": "SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell",
}
MOST = 3
EVENTS = [
    Event(600 * tick + number, f"p{number}", ("north", "south", "west")[(tick + number) % 3], 1)
    for tick in range(TICKS)
    for number in range(5)
]


def half_way(folder: Path, kind: str = "events") -> Path:
    """A monitor after 2 of 12 ticks: events of those to come are put by."""
    city = make_city(folder)
    write_events(folder, "a", EVENTS)
    clauses = f"{EVERY} PRESENT" if kind == "present" else EVERY
    options: dict[str, Any] = {"epsilon": 4_000_000, "time": "at", "most": MOST}
    with create_monitor(city, "m", f"{QUESTIONS[kind]} {clauses}", **options) as monitor:
        some_ticks(monitor, Time(2), 2)
    return city


def tell(city: Path, statements: str) -> None:
    with closing(sqlite3.connect(city.parent / "moves.lapwing.db.monitors" / "m.db")) as file, file:
        file.executescript(statements)


LOSSES = [
    "DELETE FROM kept",
    "DELETE FROM kept WHERE unit = 3",
    "UPDATE kept SET used = 0 WHERE unit = 1",
    "DELETE FROM people WHERE number = 4",
    "UPDATE people SET unit = 'p9' WHERE number = 4",
    "DELETE FROM states",
    "DELETE FROM arrived WHERE tick = 3",
    "DELETE FROM arrived",
    "DELETE FROM seals",
    "DELETE FROM seals; DELETE FROM kept; DELETE FROM people; DELETE FROM states; DELETE FROM arrived",
    "DELETE FROM ticks WHERE number = 1",
]


@pytest.mark.parametrize("loss", one_in(6, LOSSES))
def test_what_is_lost_stops_it(tmp_path: Path, loss: str) -> None:
    city = half_way(tmp_path)
    tell(city, loss)
    with open_monitor(city, "m") as monitor:
        before = [released.hash for released in monitor._store.ticks()]
        with pytest.raises(lw.Fault, match="has lost a part of its units"):
            next(monitor.run(replay=True))
        assert [released.hash for released in monitor._store.ticks()] == before


@pytest.mark.long
@pytest.mark.parametrize("kind", one_in(3, QUESTIONS))
def test_nothing_is_lost_where_nothing_is(tmp_path: Path, kind: str) -> None:
    city = half_way(tmp_path, kind)
    for _ in range(3):
        with open_monitor(city, "m") as monitor:
            next(monitor.run(replay=True))
    with open_monitor(city, "m") as monitor:
        list(monitor.run(replay=True, commit=3))
        assert monitor.released == TICKS


def check_limits_hold(city: Path) -> None:
    """All that anybody may do, five people may do five times."""
    with open_monitor(city, "m") as monitor:
        try:
            *_, last = monitor.run(replay=True)
        except lw.Fault:
            return
        assert sum(truth.told([last])[0].values()) <= 5 * MOST + 1


def test_limits_hold_whatever_is_lost(tmp_path: Path) -> None:
    city = half_way(tmp_path)
    tell(city, "DELETE FROM kept")
    check_limits_hold(city)


def test_twin_a_loss_that_is_not_looked_for_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MonitorStore, "_is_whole", lambda _store: True)
    city = half_way(tmp_path)
    tell(city, "DELETE FROM kept")
    with pytest.raises(AssertionError):
        check_limits_hold(city)


def test_a_file_that_is_gone_stops_it(tmp_path: Path, run: Run) -> None:
    city = half_way(tmp_path)
    (city.parent / "moves.lapwing.db.monitors" / "m.db").unlink()
    outcome = run("monitor", "run", "m", "--replay", "--catalog", str(city))
    assert outcome.status == 6
    assert "would release them again with other noise" in outcome.err


def made_of_files(folder: Path) -> Monitor:
    write_events(folder, "a", EVENTS)
    question = f"{QUESTIONS['events']} {EVERY} OVER '30 minutes'"
    return create_monitor(make_city(folder), "m", question, epsilon=3, time="at", most=MOST)


@pytest.mark.long
def test_estimates_are_kept_and_are_those_that_follow_from_what_was_released(tmp_path: Path) -> None:
    from lapwing.mechanisms.continual.saved import from_bytes
    from lapwing.monitors.tick import TickEstimator

    with made_of_files(make_city(tmp_path).parent) as monitor:
        for _ in range(4):
            ticks = monitor.run(replay=True, commit=2)
            next(ticks)
            ticks.close()  # type: ignore[attr-defined]
        list(monitor.run(replay=True))
        reader = TickEstimator(monitor._horizons, monitor.schedule)
        for released in monitor._store.ticks():
            assert reader.read(from_bytes(released.released)) == released.shown
        assert [tick.number for tick in monitor.ticks(9)] == [10, 11, 12]
