"""A monitor whose process is killed at each write: no tick is released twice with other noise, and none is left out."""

import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.monitors import create_monitor, open_monitor
from lapwing.monitors.running import MonitorRun
from lapwing.monitors.store import MonitorStore
from tests.support.effort import one_in, only
from tests.support.monitors import truth
from tests.support.monitors.city import CELLS, EVERY, TICKS, events_of, make_city, write_events
from tests.support.monitors.worker import Dying
from tests.support.processes import ended

QUESTION = f"SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell {EVERY}"


class Death(BaseException):
    """Stands for the end of the process."""


def new_city(folder: Path, **options: Any) -> Path:
    city = make_city(folder)
    events = events_of(number=120)
    write_events(folder, "a", events[::2])
    write_events(folder, "b", events[1::2])
    given: dict[str, Any] = {"epsilon": 1, "time": "at", "most": 4} | options
    create_monitor(city, "m", QUESTION, **given).close()
    return city


def dying_at(statement: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything end at a statement that writes, in this process: what was not committed is rolled back."""

    class Ending(sqlite3.Connection):
        def _count(self, sql: str) -> None:
            nonlocal statement
            if not sql.startswith(("SELECT", "PRAGMA", "ROLLBACK")):
                statement -= 1
                if statement == 0:
                    raise Death

        def execute(self, sql: str, *parameters: Any) -> Any:
            self._count(sql)
            return super().execute(sql, *parameters)

        def executemany(self, sql: str, *parameters: Any) -> Any:
            self._count(sql)
            return super().executemany(sql, *parameters)

    honest = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: honest(*given, **{"factory": Ending} | more))


def run_until_death(city: Path) -> list[tuple[int, dict[str, int]]]:
    seen = []
    try:
        with open_monitor(city, "m") as monitor:
            for tick in monitor.run(replay=True, commit=2):
                seen.append((tick.number, truth.told([tick])[0]))
    except Death:
        pass
    return seen


def check_deaths(city: Path, monkeypatch: pytest.MonkeyPatch, first: int, step: int) -> None:
    """Die at one write after the other, each time a few further; then look at all that was ever shown."""
    shown: dict[int, dict[str, int]] = {}
    for statement in range(first, first + 40 * step, step):
        with monkeypatch.context() as patch:
            dying_at(statement, patch)
            seen = run_until_death(city)
        for number, table in seen:
            assert shown.setdefault(number, table) == table
        if shown.get(TICKS):
            break
    with open_monitor(city, "m") as monitor:
        list(monitor.run(replay=True))
        told = truth.told(monitor)
    assert len(told) == TICKS
    assert all(told[number - 1] == table for number, table in shown.items())


@pytest.mark.parametrize("first", only([4], [1, 2, 3, 4, 5, 6, 7]))
def test_every_death_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    check_deaths(new_city(tmp_path), monkeypatch, first, 2)


@pytest.mark.long
def test_twin_noise_that_is_drawn_again_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: ticks are shown before they are durable."""
    city, honest, shown = new_city(tmp_path), MonitorRun._numbers, dict[int, Any]()

    def numbers(run: MonitorRun, tick: int) -> Any:
        found = honest(run, tick)
        table = [array.tolist() for array in found]
        assert shown.setdefault(tick, table) == table, "released twice"
        return found

    monkeypatch.setattr(MonitorRun, "_numbers", numbers)
    with pytest.raises(AssertionError, match="released twice"):
        check_deaths(city, monkeypatch, 3, 2)


def test_a_death_between_commit_and_mark_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    city = new_city(tmp_path)

    def die(_store: MonitorStore) -> None:
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr(MonitorStore, "advance_mark", die)
        assert run_until_death(city) == []
    with open_monitor(city, "m") as monitor:
        before = truth.told(monitor)
        assert len(before) == 2
        list(monitor.run(replay=True))
        assert truth.told(monitor)[:2] == before


def test_twin_a_mark_that_moves_before_the_commit_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a death in between leaves a file that its mark disowns."""
    city, honest = new_city(tmp_path), MonitorStore.use_up

    def too_early(store: MonitorStore, first: int, last: int) -> None:
        honest(store, first, last)
        store.advance_mark()
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr(MonitorStore, "use_up", too_early)
        assert run_until_death(city) == []
    with pytest.raises(lw.Fault, match="older than its mark"):
        open_monitor(city, "m")


@pytest.mark.long
def test_counts_are_those_without_any_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accumulators and ticks move together: limits, late events and positions are as if nothing had happened."""
    city = new_city(tmp_path, epsilon=5_000_000)
    check_deaths(city, monkeypatch, 2, 3)
    events = [event for event in events_of(number=120) if event.cell in CELLS]
    with open_monitor(city, "m") as monitor:
        assert truth.off_by(truth.told(monitor), truth.counts(truth.kept_rows(events, 4))) <= 1


@pytest.mark.long
@pytest.mark.parametrize("statement", one_in(3, [4, 9, 17]))
def test_a_process_that_is_killed_is_gone_on_from(tmp_path: Path, statement: int) -> None:
    city = new_city(tmp_path)
    status, out, err = ended("tests.support.monitors.worker", str(city), str(statement))
    assert status == -signal.SIGKILL, err
    with open_monitor(city, "m") as monitor:
        list(monitor.run(replay=True))
        told = [[number, *table.values()] for number, table in enumerate(truth.told(monitor), 1)]
    reported = [list(map(int, line.split())) for line in out.splitlines()]
    assert reported == told[: len(reported)]
    assert len(told) == TICKS
    assert Dying.left == 0
