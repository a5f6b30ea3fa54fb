"""Monitors over HTTP: what they released, as it is released, and events that are sent to them."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from lapwing.monitors import Monitor, create_monitor, open_monitor
from lapwing.server import monitor_routes
from tests.support.effort import one_in
from tests.support.server.world import World

QUESTION = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan EVERY '1 hour' FOR '6 hours' STARTING '2026-03-02'"
PATH = "/v1/datasets/open/monitors"


@pytest.fixture
def monitor(world: World) -> Iterator[Monitor]:
    catalog = world.session().catalog
    with create_monitor(catalog, "m", QUESTION, epsilon=1, time="seen", most=3, source="service") as made:
        yield made


def event(name: str, person: int, plan: str = "a") -> str:
    return json.dumps({"id": name, "person": person, "seen": "2026-03-02T00:10:00", "plan": plan})


def numbers(ticks: Any) -> list[Any]:
    return [[row["n"] for row in tick["answer"]["rows"]] for tick in ticks]


def test_a_finished_monitor_is_dismissed_and_brought_back(world: World, monitor: Monitor) -> None:
    path = f"{PATH}/m/dismissal"
    early = world.ask("PUT", path, "carol")
    assert (early.status, early.document["code"]) == (422, "invalid_parameter")
    for _ in monitor.run(replay=True):
        pass
    results = world.ask("GET", f"{PATH}/m/ticks", "alice").content
    for _ in range(2):  # the second time changes nothing
        assert world.ask("PUT", path, "carol").document["dismissed"] is True
    (shown,) = world.ask("GET", PATH, "alice").document
    assert (shown["dismissed"], shown["status"]) == (True, "over")
    assert world.ask("GET", f"{PATH}/m/ticks", "alice").content == results
    for _ in range(2):
        assert world.ask("DELETE", path, "carol").status == 204
    assert world.ask("GET", f"{PATH}/m", "alice").document["dismissed"] is False
    lines = map(json.loads, world.ask("GET", "/v1/audit", "audrey").content.splitlines())
    log = [line for line in lines if line["subject"] == "m"]
    assert sorted(line["act"] for line in log) == ["monitor dismissed", "monitor restored"]


@pytest.mark.long
def test_events_are_sent_and_ticks_are_read(world: World, monitor: Monitor) -> None:
    lines = "\n".join([event("1", 1), event("2", 2), "", event("1", 1)]).encode()
    sent = world.ask("POST", f"{PATH}/m/events", "carol", lines, {"Content-Type": "application/x-ndjson"})
    assert (sent.status, sent.document) == (200, {"events": 3})
    assert world.ask("GET", f"{PATH}/m/ticks", "alice").document == []
    released = [[row["n"] for row in tick.rows()] for tick in monitor.run(replay=True)]
    ticks = world.ask("GET", f"{PATH}/m/ticks", "alice").document
    assert numbers(ticks) == released
    assert [tick["number"] for tick in ticks] == [1, 2, 3, 4, 5, 6]
    assert ticks[0]["time"] == "2026-03-02T01:00:00+00:00"
    assert set(ticks[0]["answer"]["intervals"]) == {"n"}
    later = world.ask("GET", f"{PATH}/m/ticks?after=2&limit=3", "alice").document
    assert [tick["number"] for tick in later] == [3, 4, 5]
    assert numbers(later) == released[2:5]


def test_a_monitor_is_shown(world: World, monitor: Monitor) -> None:
    (listed,) = world.ask("GET", PATH, "alice").document
    shown = world.ask("GET", f"{PATH}/m", "alice").document
    assert listed == shown
    assert shown["name"] == "m"
    assert (shown["ticks"], shown["released"]) == (6, 0)
    assert any(fact["about"] == "cost" for fact in shown["facts"])
    assert world.ask("GET", f"{PATH}/none", "alice").status == 404
    assert world.ask("GET", f"{PATH}/m", "bob").status == 404
    assert world.ask("POST", f"{PATH}/m/events", "alice", event("1", 1).encode()).status == 403


@pytest.mark.parametrize("body", one_in(3, [b"\xff", b"[", b'"text"', b'{"person": 1}', b'{"id": "1", "person": [1]}']))
def test_what_is_no_event_is_refused(world: World, monitor: Monitor, body: bytes) -> None:
    reply = world.ask("POST", f"{PATH}/m/events", "carol", event("1", 1).encode() + b"\n" + body)
    assert (reply.status, reply.document["code"]) == (422, "invalid_parameter")
    next(monitor.run(replay=True))
    assert monitor._store.people() == []


def streamed(world: World, **headers: str) -> list[dict[str, str]]:
    reply = world.ask("GET", f"{PATH}/m/ticks", "alice", headers={"Accept": "text/event-stream"} | headers)
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    blocks = [block for block in reply.content.decode().split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


@pytest.mark.long
def test_ticks_are_streamed_while_they_are_released(
    world: World, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_routes, "POLL", 0.05)
    catalog, released = world.session().catalog, list[list[Any]]()

    def run() -> None:
        with open_monitor(catalog, "m") as running:
            released.extend([row["n"] for row in tick.rows()] for tick in running.run(replay=True))

    thread = threading.Timer(0.3, run)
    thread.start()
    events = streamed(world)
    thread.join()
    assert [found.get("event") for found in events] == ["tick"] * 6 + ["end"]
    assert numbers([json.loads(found["data"]) for found in events[:-1]]) == released
    again = streamed(world, **{"Last-Event-ID": "4"})
    assert [found.get("id") for found in again] == ["5", "6", None]


@pytest.mark.long
def test_a_stream_ends_in_time_and_streams_are_not_endless(
    world: World, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_routes, "STREAM_SECONDS", 0.2)
    monkeypatch.setattr(monitor_routes, "POLL", 0.05)
    assert streamed(world) == []
    monkeypatch.setattr(monitor_routes, "STREAMS", 0)
    reply = world.ask("GET", f"{PATH}/m/ticks", "alice", headers={"Accept": "text/event-stream"})
    assert (reply.status, reply.document["code"]) == (429, "too_many_requests")


ALERT = f"{PATH}/m/alerts/crowd"


def put(world: World, who: str, **fields: Any) -> Any:
    return world.ask("PUT", ALERT, who, json.dumps(fields).encode(), {"Content-Type": "application/json"})


@pytest.mark.long
def test_alerts_are_made_and_read(world: World, monitor: Monitor) -> None:
    hook = "https://hooks.example.org/x"
    made = put(world, "carol", column="n", above=-1e9, ticks=2, webhook=hook)
    assert made.status == 200
    assert made.document == {
        "name": "crowd", "column": "n", "above": -1e9, "below": None, "ticks": 2, "surely": False, "webhook": hook,
    }  # fmt: skip
    assert world.ask("GET", f"{PATH}/m/alerts", "carol").document == [made.document]
    assert world.ask("GET", f"{PATH}/m/alerts", "alice").document == [{**made.document, "webhook": None}]
    assert world.ask("GET", f"{PATH}/m/alarms", "alice").document == []
    list(monitor.run(replay=True))
    alarms = world.ask("GET", f"{PATH}/m/alarms", "alice").document
    assert {(alarm["alert"], alarm["tick"], alarm["what"]) for alarm in alarms} == {("crowd", 2, "begins")}
    assert [alarm["keys"]["plan"] for alarm in alarms] == ["a", "b"]
    assert world.ask("GET", f"{PATH}/m/alarms?after=2", "alice").document == []
    assert world.ask("DELETE", ALERT, "carol").status == 204
    assert world.ask("DELETE", ALERT, "carol").status == 404
    assert world.ask("GET", f"{PATH}/m/alarms", "alice").document == []


def test_alerts_are_the_curators(world: World, monitor: Monitor) -> None:
    assert put(world, "alice", column="n", above=1).status == 403
    assert put(world, "bob", column="n", above=1).status in (403, 404)
    assert world.ask("DELETE", ALERT, "alice").status == 403
    assert world.ask("GET", f"{PATH}/m/alarms", "bob").status == 404


@pytest.mark.parametrize(
    "fields",
    one_in(
        3,
        [
            {"column": "n"},
            {"column": "n", "above": 1, "below": 2},
            {"column": "n", "above": 1, "ticks": 0},
            {"column": "n", "above": 1, "webhook": "file:///etc/passwd"},
            {"column": "n", "above": 1, "more": 1},
            {"column": "plan", "above": 1},
            {"above": 1},
        ],
    ),
)
def test_alerts_that_cannot_be_meant_are_refused(world: World, monitor: Monitor, fields: dict[str, Any]) -> None:
    assert put(world, "carol", **fields).status in (400, 403, 422)
    assert monitor.alerts() == ()


@pytest.mark.long
def test_consistent_counts_are_shown_on_request(world: World, monitor: Monitor) -> None:
    (tick, *_) = monitor.run(replay=True)
    (raw, *_) = numbers(world.ask("GET", f"{PATH}/m/ticks", "alice").document)
    (shown, *_) = numbers(world.ask("GET", f"{PATH}/m/ticks?consistent=true", "alice").document)
    assert shown == [row["n"] for row in tick.consistent().rows()]
    assert all(n >= 0 for n in shown)
    assert sum(shown) == max(0, sum(raw))


@pytest.mark.long
def test_ticks_are_read_without_those_before_them(
    world: World, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a monitor has run, a request for its newest ticks reads those alone."""
    list(monitor.run(replay=True))
    read = list[int]()
    honest = Monitor._shown
    monkeypatch.setattr(Monitor, "_shown", lambda self, one: read.append(one.number) or honest(self, one))  # type: ignore[func-returns-value]
    world.ask("GET", f"{PATH}/m/ticks?after=4", "alice")
    assert read == [5, 6]
