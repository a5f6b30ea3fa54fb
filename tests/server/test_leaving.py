"""Requests that end before their question: who hangs up, or waits too long."""

import asyncio
import http.client
import json
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lapwing.server import question_routes
from lapwing.server.service import ServiceSettings
from tests.support.server.queueing import held, question, submitted, until
from tests.support.server.world import World, service_in, serving


def hung_up(world: World, body: object) -> None:
    """Send a question, and close the connection at once."""
    connection = http.client.HTTPConnection(urlsplit(world.address).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {world.tokens['alice']}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/datasets/open/query", json.dumps(body), headers)
    until(lambda: world.service.executor.queue.lines.waits("alice"))
    connection.close()


def left_while_waiting(world: World, monkeypatch: pytest.MonkeyPatch, seconds: float = 60) -> list[str]:
    """Return who was charged when alice hung up before her question had its turn."""
    with held(monkeypatch) as (came, go_on):
        submitted(world, question(1), "bob")
        assert came.acquire(timeout=60)
        hung_up(world, question(2))
        gone = threading.Event()
        for _ in range(int(seconds / 0.02)):
            if not world.service.executor.queue.lines.waits("alice"):
                break
            gone.wait(0.02)
        go_on.set()
        world.query("bob", question(3))
    return [row.principal for row in world.session().budget().history]


def test_who_hangs_up_while_waiting_is_not_charged(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_while_waiting(one, monkeypatch) == ["bob", "bob"]


@pytest.mark.long
def test_a_service_that_does_not_notice_is_found(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody looks whether the caller is there."""

    async def never(_request: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(question_routes, "hung_up", never)
    assert "alice" in left_while_waiting(one, monkeypatch, seconds=1)


def test_who_hangs_up_later_is_charged_and_finds_the_answer(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as (came, go_on):
        connection = http.client.HTTPConnection(urlsplit(one.address).netloc, timeout=60)
        headers = {"Authorization": f"Bearer {one.tokens['alice']}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/datasets/open/query", json.dumps(question(1)), headers)
        assert came.acquire(timeout=60)
        connection.close()
        go_on.set()
    until(lambda: bool(one.service.answers.of("alice", "open", 1)))
    assert one.query("alice", question(1)).document["stored"]
    assert one.charges() == 1


@pytest.mark.long
def test_a_request_that_waits_too_long_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = ServiceSettings(rate=0, strangers=0, threads=1, answer_seconds=0.3)
    with serving(service_in(tmp_path, impatient)) as world, held(monkeypatch) as (came, go_on):
        submitted(world, question(1))
        assert came.acquire(timeout=60)
        reply = world.query("alice", question(2))
        assert (reply.status, reply.document["code"]) == (504, "service_fault")
        assert reply.document["charged"] is False
        go_on.set()
        until(lambda: {one.status for one in world.service.jobs.of("alice", 9)} == {"done"})
        assert world.charges() == 1
