"""Questions by the shortest way are answered, refused, logged and counted as their route does it."""

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi.routing import APIRoute

from lapwing.server import application, direct_questions, question_routes
from tests.server.test_logs import logged
from tests.support.server.queueing import until
from tests.support.server.world import QUESTION, Reply, World, service_in, serving

PATH: Final = "/v1/datasets/open/query"
ARROW: Final = "application/vnd.apache.arrow.stream"
VARIES: Final = ("date", "x-answer", "x-request-id")
Sent = tuple[str | None, str, object, Mapping[str, str]]
REQUESTS: Final[tuple[Sent, ...]] = (
    ("alice", PATH, QUESTION, {}),
    ("alice", PATH, QUESTION, {}),
    ("alice", PATH, {**QUESTION, "epsilon": 0.25}, {"Idempotency-Key": "one"}),
    ("alice", PATH, {**QUESTION, "epsilon": 0.25}, {"Idempotency-Key": "one"}),
    ("alice", PATH, QUESTION, {"Idempotency-Key": "one"}),
    ("alice", PATH, QUESTION, {"Idempotency-Key": "x" * 200}),
    ("alice", PATH, QUESTION, {"Idempotency-Key": "x" * 201}),
    ("alice", PATH, QUESTION, {"Idempotency-Key": "\xe9"}),
    ("alice", PATH, QUESTION, {"Idempotency-Key": ""}),
    ("alice", PATH, QUESTION, {"Accept": ARROW}),
    ("alice", PATH, QUESTION, {"Accept-Encoding": "gzip"}),
    ("alice", PATH, {**QUESTION, "confidence": 2}, {}),
    ("alice", PATH, {**QUESTION, "sql": "SELECT cost FROM visits"}, {}),
    ("alice", PATH, {**QUESTION, "epsilon": 10**6}, {}),
    ("alice", PATH, {**QUESTION, "epsilon": -1}, {}),
    ("alice", PATH, {**QUESTION, "epsilon": [1]}, {}),
    ("alice", PATH, {**QUESTION, "more": 1}, {}),
    ("alice", PATH, [QUESTION], {}),
    ("alice", PATH, b"", {}),
    ("alice", PATH, b"{", {}),
    ("alice", PATH, b'{"sql": "SELECT 1", "epsilon": NaN}', {}),
    ("alice", PATH, b"[" * 100_000, {}),
    ("alice", PATH, b"\xff", {}),
    ("alice", PATH, QUESTION, {"Content-Type": "application/json; charset=utf-8"}),
    ("alice", PATH, QUESTION, {"Content-Type": "text/plain"}),
    ("alice", f"{PATH}?", QUESTION, {}),
    ("alice", f"{PATH}?x=1", QUESTION, {}),
    ("alice", f"{PATH}/", QUESTION, {}),
    ("alice", "/v1/datasets/a/b/query", QUESTION, {}),
    ("alice", "/v1/datasets//query", QUESTION, {}),
    ("alice", "/v1/datasets/%6Fpen/query", QUESTION, {}),
    ("alice", "/v1/datasets/closed/query", QUESTION, {}),
    ("alice", "/v1/datasets/nowhere/query", QUESTION, {}),
    ("audrey", PATH, QUESTION, {}),
    (None, PATH, QUESTION, {}),
    (None, PATH, QUESTION, {"Authorization": "Bearer no such token"}),
    (None, PATH, b"{", {}),
)


def told(world: World) -> list[Any]:
    """Return what came of all requests, without what differs each time, and what the log and the counts say."""
    replies = []
    with logged() as found:
        for who, path, body, headers in REQUESTS:
            replies.append(seen(world.ask("POST", path, who, body, headers), (who, path, headers)))
        until(lambda: len(found) >= len(REQUESTS))  # a line is written once its reply has left
    lines = [{k: v for k, v in json.loads(line).items() if k not in ("time", "request", "place")} for line in found]
    counts = world.ask("GET", "/metrics", "carol").content.decode()
    return [*replies, *lines, [line for line in counts.splitlines() if "/query" in line or "questions_total" in line]]


def seen(reply: Reply, sent: tuple[Any, ...]) -> tuple[Any, ...]:
    lasting = {name: value for name, value in reply.headers.items() if name.lower() not in VARIES}
    gzipped = reply.headers.get("content-encoding") == "gzip"
    text = gzip.decompress(reply.content) if gzipped else reply.content
    lasting |= {"content-length": ""} if gzipped else {}
    return (*sent, reply.status, lasting, re.sub(rb'"(id|created)":"[^"]*"', b"", text))


def differences(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is told otherwise by the shortest way than by the route."""
    with serving(service_in(folder / "direct")) as world:
        direct = told(world)
    with monkeypatch.context() as patched:
        patched.setattr(application, "DirectQuestions", lambda _service, routed: routed)
        with serving(service_in(folder / "routed")) as world:
            routed = told(world)
    assert len(direct) == len(routed)
    return [pair for pair in zip(direct, routed, strict=True) if pair[0] != pair[1]]


def test_nobody_can_tell_which_way_a_question_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "direct").mkdir()
    (tmp_path / "routed").mkdir()
    assert differences(tmp_path, monkeypatch) == []


@pytest.mark.long
def test_a_way_that_reads_other_keys_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: keys of any length and of any characters."""
    monkeypatch.setattr(direct_questions, "KEY", re.compile(r"(?s).*"))
    monkeypatch.setitem(globals(), "REQUESTS", REQUESTS[5:9])
    (tmp_path / "direct").mkdir()
    (tmp_path / "routed").mkdir()
    assert len([pair for pair in differences(tmp_path, monkeypatch) if isinstance(pair[0], tuple)]) == 3


def test_plain_questions_never_come_to_the_route(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    routes, answer = list[str](), APIRoute.handle

    async def noting(route: APIRoute, *connection: Any) -> None:
        routes.append(route.path)
        await answer(route, *connection)

    monkeypatch.setattr(APIRoute, "handle", noting)
    assert world.query("alice").status == 200
    assert routes == []
    assert world.query("alice", json.dumps([QUESTION]).encode()).status == 422
    assert routes == [question_routes.ASKED]
