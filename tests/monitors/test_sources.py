"""Events from a table that grows and events that are sent: each counts once, and nobody's removes another's."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.monitors import Monitor, create_monitor
from tests.monitors.test_running import Time, some_ticks
from tests.support.effort import one_in
from tests.support.monitors import truth
from tests.support.monitors.city import EVERY, START, Event, events_of, make_city, write_events

QUESTION = f"SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell {EVERY}"
TABLE = "sqlite:events.sqlite?append=number#moves"


def made(catalog: Path, **options: Any) -> Monitor:
    given: dict[str, Any] = {"epsilon": 4_000_000, "time": "at", "most": 40} | options
    return create_monitor(catalog, "m", QUESTION, **given)


def append(folder: Path, events: list[Event]) -> None:
    with closing(sqlite3.connect(folder / "events.sqlite")) as database, database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS moves"
            " (number INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT, at TEXT, cell TEXT, pay INTEGER)"
        )
        rows = [(e.person, (START + timedelta(seconds=e.at)).isoformat(" "), e.cell, e.pay) for e in events]
        database.executemany("INSERT INTO moves (person, at, cell, pay) VALUES (?, ?, ?, ?)", rows)


@pytest.mark.long
def test_a_table_that_grows_is_read_as_files_are(tmp_path: Path) -> None:
    city, clock, events = make_city(tmp_path), Time(0), events_of()
    append(tmp_path, events[:200])
    with made(city, source=TABLE) as monitor:
        some_ticks(monitor, clock, 3)
        append(tmp_path, events[200:])
        some_ticks(monitor, clock, 4)
        list(monitor.run(replay=True))
        by_rows = truth.told(monitor)
    other = make_city(tmp_path / "files")
    write_events(other.parent, "a", events)
    with made(other) as monitor:
        assert truth.off_by(truth.told(monitor.run(replay=True)), by_rows) <= 3


@pytest.mark.long
def test_ticks_wait_for_a_table_that_is_not_there(tmp_path: Path) -> None:
    said = list[str]()

    def wait(_seconds: float) -> None:
        if said:
            append(tmp_path, [Event(1, "p1", "north", 1)])

    with made(make_city(tmp_path), source=TABLE) as monitor:
        ticks = truth.told(monitor.run(replay=True, wait=wait, waiting=said.append))
    assert len(said) == 1
    assert "no database events.sqlite" in said[0]
    assert ticks[0]["north"] == 1


def event(name: str, person: str, cell: str = "north") -> dict[str, object]:
    return {"id": name, "person": person, "at": "2026-03-02T00:01:00", "cell": cell, "pay": 1, "more": "unseen"}


def check_each_event_sent_counts_once(folder: Path) -> None:
    with made(make_city(folder), source="service") as monitor:
        sent = [event("1", "p1"), event("2", "p1"), event("1", "p2")]
        assert monitor.send(sent).events == 3
        assert monitor.send(sent[:2]).events == 2  # says nothing of what it knows
        ticks = monitor.run(replay=True)
        assert truth.told([next(ticks)])[0]["north"] == 3
        monitor.send([*sent, event("3", "p3")])
        ticks.close()  # type: ignore[attr-defined]
        assert truth.told(monitor.run(replay=True))[0]["north"] == 4
        assert "unseen" not in str(monitor._store.inbox())


def test_events_that_are_sent_count_once_for_each_person(tmp_path: Path) -> None:
    check_each_event_sent_counts_once(tmp_path)


def test_twin_names_without_their_person_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One person's event would keep another's from counting."""
    from lapwing.monitors.store import MonitorStore

    honest = MonitorStore.add_sent
    monkeypatch.setattr(MonitorStore, "add_sent", lambda store, _unit, name: honest(store, "", name))
    with pytest.raises(AssertionError):
        check_each_event_sent_counts_once(tmp_path)


@pytest.mark.parametrize(
    ("sent", "said"),
    one_in(
        3,
        [
            ([[]], "not a JSON object"),
            ([{"person": "p1"}], "needs an 'id'"),
            ([{"id": "x" * 300, "person": "p1"}], "needs an 'id'"),
            ([{"id": "1"}], "needs 'person'"),
            ([{"id": "1", "person": True}], "needs 'person'"),
            ([{"id": "1", "person": "p1", "cell": {"a": 1}}], "a list or an object"),
            ([{"id": "1", "person": "p"}] * 10_001, "send 10,000 at most"),
        ],
        many=True,
    ),
)
def test_what_is_no_event_is_refused_and_nothing_is_taken(tmp_path: Path, sent: list[Any], said: str) -> None:
    with made(make_city(tmp_path), source="service") as monitor:
        with pytest.raises(lw.InvalidParameter, match=said):
            monitor.send([event("1", "p1"), *sent])
        assert monitor._store.inbox() == []


def test_a_monitor_of_files_takes_no_events(tmp_path: Path) -> None:
    with (
        made(make_city(tmp_path)) as monitor,
        pytest.raises(lw.InvalidParameter, match="reads its events from a source"),
    ):
        monitor.send([event("1", "p1")])


def test_events_that_are_sent_are_read_as_json_says(tmp_path: Path) -> None:
    odd = {"id": "1", "person": 7, "at": "no time", "cell": None, "pay": 1e300}
    with made(make_city(tmp_path), source="service") as monitor:
        monitor.send([odd, json.loads(json.dumps(event("2", "p")))])
        assert truth.told(monitor.run(replay=True))[-1] == {"north": 1, "south": 0, "west": 0}
