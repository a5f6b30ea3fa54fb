"""Alerts: when they begin and end, that each is told once, and that they are about what is released."""

import json
import threading
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.monitors import Alarm, Alert, Monitor, create_monitor, open_monitor
from tests.support.cli.command import Run
from tests.support.effort import one_in
from tests.support.monitors.city import EVERY, Event, make_city, write_events

QUESTION = f"SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell {EVERY} OVER '10 minutes'"


def made(folder: Path, **options: Any) -> Monitor:
    """A monitor over single ticks: in the north 9 events at ticks 2, 3, 4 and 7, 8; in the west 9 at tick 3."""
    busy = [(tick, "north") for tick in (2, 3, 4, 7, 8)] + [(3, "west")]
    events = [Event((tick - 1) * 600 + at, f"p{at}", cell, 1) for tick, cell in busy for at in range(9)]
    city = make_city(folder)
    write_events(folder, "a", events)
    given: dict[str, Any] = {"epsilon": 4_000_000, "time": "at", "most": 40} | options
    return create_monitor(city, "m", QUESTION, **given)


def alert(**options: Any) -> Alert:
    given: dict[str, Any] = {"name": "crowd", "column": "n", "threshold": Fraction(5)} | options
    return Alert(**given)


def told(alarms: Any) -> list[tuple[str, int, str]]:
    return [(alarm.keys["cell"], alarm.tick, alarm.what) for alarm in alarms]


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "expected"),
    one_in(
        6,
        [
            (
                {},
                [
                    *(("north", 2, "begins"), ("west", 3, "begins"), ("west", 4, "ends"), ("north", 5, "ends")),
                    *(("north", 7, "begins"), ("north", 9, "ends")),
                ],
            ),
            ({"ticks": 3}, [("north", 4, "begins"), ("north", 5, "ends")]),
            ({"ticks": 4}, []),
            ({"threshold": Fraction(20)}, []),
            ({"above": False, "threshold": Fraction(-9)}, []),
        ],
        many=True,
    ),
)
def test_alerts_begin_and_end(tmp_path: Path, options: dict[str, Any], expected: list[tuple[str, int, str]]) -> None:
    with made(tmp_path) as monitor:
        list(monitor.run(replay=True))
        monitor.add_alert(alert(**options))
        assert told(monitor.alarms()) == expected


def test_an_alert_that_has_to_be_sure_waits_for_the_whole_interval(tmp_path: Path) -> None:
    with made(tmp_path, epsilon=3) as monitor:
        ticks = list(monitor.run(replay=True))
        low = {(tick.number, row["cell"]): end for tick in ticks for row, end in zip(tick, tick.interval()["n"][0], strict=True)}  # noqa: E501  # fmt: skip
        monitor.add_alert(alert(surely=True, threshold=Fraction(0)))
        begun = {(alarm.tick, alarm.keys["cell"]) for alarm in monitor.alarms() if alarm.what == "begins"}
        assert all(low[place] > 0 for place in begun)
        assert sum(end > 0 for end in low.values()) <= 0.35 * len(low)


@pytest.mark.long
def test_each_alarm_is_sent_once_whoever_runs(tmp_path: Path) -> None:
    received = list[dict[str, Any]]()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with made(tmp_path) as monitor:
                monitor.add_alert(alert(ticks=2, webhook=f"http://127.0.0.1:{server.server_port}"))
                running = monitor.run(replay=True)
                delivered: list[tuple[Alarm, str | None]] = []
                for _ in range(4):
                    next(running)
                    delivered += monitor.deliver()
                running.close()  # type: ignore[attr-defined]
            with open_monitor(tmp_path / "lapwing.toml", "m") as monitor:
                list(monitor.run(replay=True))
                delivered += [*monitor.deliver(), *monitor.deliver()]
        finally:
            server.shutdown()
    assert told(alarm for alarm, _ in delivered) == PLACES
    assert all(fault is None for _, fault in delivered)
    assert [(sent["keys"]["cell"], sent["tick"], sent["what"]) for sent in received] == PLACES


def test_a_webhook_that_fails_is_said(tmp_path: Path) -> None:
    with made(tmp_path) as monitor:
        list(monitor.run(replay=True))
        monitor.add_alert(alert(ticks=9))
        assert list(monitor.deliver()) == []  # what came before it was made is not told
        monitor.add_alert(alert(webhook="http://127.0.0.1:9"))
        assert list(monitor.deliver()) == []
        ((name, text, state),) = monitor._store.alerts()
        monitor._store.set_alert(name, text, json.dumps(json.loads(state) | {"told": 0}))
    with open_monitor(tmp_path / "lapwing.toml", "m") as monitor:
        faults = [fault for _, fault in monitor.deliver()]
        assert len(faults) == 6
        assert all(fault == "URLError" for fault in faults)


def check_each_tick_is_seen_once(folder: Path) -> None:
    """However often somebody looks, and whoever: an alert goes on where it was."""
    with made(folder) as monitor:
        monitor.add_alert(alert(ticks=2))
        running = monitor.run(replay=True)
        for number in range(1, 13):
            next(running)
            with open_monitor(folder / "lapwing.toml", "m") as other:
                found = told(other.alarms())
            assert found == [place for place in PLACES if place[1] <= number]
        assert told(monitor.alarms(5)) == PLACES[2:]


PLACES = [("north", 3, "begins"), ("north", 5, "ends"), ("north", 8, "begins"), ("north", 9, "ends")]


@pytest.mark.long
def test_an_alert_goes_on_where_it_was(tmp_path: Path) -> None:
    check_each_tick_is_seen_once(tmp_path)


def test_twin_an_alert_that_forgets_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.monitors.alerts import AlertWatcher

    honest = AlertWatcher.to_text
    monkeypatch.setattr(AlertWatcher, "to_text", lambda watcher: json.dumps(json.loads(honest(watcher)) | {"held": []}))
    with pytest.raises(AssertionError):
        check_each_tick_is_seen_once(tmp_path)


def test_many_ticks_are_looked_at_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.monitors.monitor.TICKS_AT_ONCE", 3)
    with made(tmp_path) as monitor:
        list(monitor.run(replay=True))
        monitor.add_alert(alert(ticks=2))
        assert told(monitor.alarms()) == PLACES


@pytest.mark.long
def test_alerts_from_the_command_line(tmp_path: Path, run: Run) -> None:
    made(tmp_path).close()
    place = ("--catalog", str(tmp_path / "lapwing.toml"))
    outcome = run("monitor", "alert", "m", "crowd", "--column", "n", "--above", "5", "--ticks", "3", *place)
    assert "crowd: n above 5 for 3 ticks" in outcome.err
    outcome = run("monitor", "run", "m", "--replay", *place)
    assert "crowd begins in cell north at tick 4, 2026-03-02T00:40:00+00:00: " in outcome.err
    assert "crowd ends in cell north at tick 5" in run("monitor", "alarms", "m", *place).out
    assert run("monitor", "alert", "m", "crowd", "--column", "n", *place).status == 2
    assert run("monitor", "alert", "m", "crowd", "--column", "cell", "--above", "1", *place).status == 3
    assert "removed" in run("monitor", "alert", "m", "crowd", "--remove", *place).err
    assert run("monitor", "alarms", "m", *place).out == ""


@pytest.mark.parametrize("options", [{"name": "A"}, {"ticks": 0}, {"webhook": "ftp://x"}])
def test_alerts_that_cannot_be_meant_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(lw.InvalidParameter):
        alert(**options)
