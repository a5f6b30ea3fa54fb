"""Large, slow and frequent requests, and connections that say nothing."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lapwing.engines.duckdb import DuckDB
from lapwing.errors import TooManyRequests
from lapwing.server.callers import Buckets
from lapwing.server.envelope import Envelope
from lapwing.server.service import Settings
from tests.server.world import QUESTION, World, service_in, serving

SMALL = 4096
STRICT = Settings(rate=0, strangers=0, most_bytes=SMALL, request_seconds=2)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(service_in(tmp_path_factory.mktemp("strict"), STRICT)) as world:
        yield world


def sent(world: World, *contents: bytes, seconds: float = 60) -> bytes:
    """Send bytes as they are, each after an answer to the one before; return all that comes until it is closed."""
    parts = urlsplit(world.address)
    received = b""
    door = parts.hostname or "", parts.port or 0
    with suppress(ConnectionError), socket.create_connection(door, timeout=seconds) as connection:
        for content in contents[:-1]:
            connection.sendall(content)
            received += connection.recv(65536)
        connection.sendall(contents[-1])
        while part := connection.recv(65536):  # or it is closed with something unread
            received += part
    return received


def head(world: World, *lines: str) -> bytes:
    token = f"Authorization: Bearer {world.tokens['alice']}"
    return "\r\n".join(["POST /v1/datasets/open/query HTTP/1.1", "Host: x", token, *lines, "", ""]).encode()


def test_a_large_body_is_refused_by_its_length(strict: World) -> None:
    reply = strict.query("alice", {**QUESTION, "sql": "x" * SMALL})
    assert (reply.status, reply.document["code"]) == (413, "request_too_large")
    assert strict.charges() == 0


def test_a_large_body_without_a_length_is_refused(strict: World) -> None:
    chunk = f"{SMALL:x}\r\n".encode() + b"x" * SMALL + b"\r\n"
    reply = sent(strict, head(strict, "Transfer-Encoding: chunked", "Connection: close") + 2 * chunk + b"0\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 413")


def oversized(world: World) -> bool:
    return world.query("alice", {**QUESTION, "sql": "x" * SMALL}).status == 413


def test_without_the_limit_it_is_let_in(strict: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a limit that nothing reaches."""
    init = Envelope.__init__
    monkeypatch.setattr(Envelope, "__init__", lambda *a, **k: init(*a, **{**k, "most_bytes": 1 << 30}))
    assert oversized(strict)
    with serving(service_in(Path(strict.service.store.path).parent / "again", STRICT)) as unlimited:
        assert not oversized(unlimited)


def test_a_body_that_does_not_come_is_given_up(strict: World) -> None:
    reply = sent(strict, head(strict, "Content-Length: 100", "Connection: close") + b'{"sql": ')
    assert reply.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in reply


def test_headers_that_do_not_come_are_given_up(strict: World) -> None:
    assert sent(strict, b"GET /healthz HTTP/1.1\r\nHost: x\r\n") == b""
    assert sent(strict, b"") == b""


def test_a_second_request_that_does_not_come_is_given_up(strict: World) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    reply = sent(strict, whole, b"GET /healthz HTTP/1.1\r\nHos")
    assert reply.count(b"HTTP/1.1 200") == 1


def test_a_service_that_waits_for_ever_is_found(tmp_path: Path) -> None:
    """Planted: a limit of time that nothing reaches."""
    with serving(service_in(tmp_path, replace(STRICT, request_seconds=1000))) as patient:
        for content in (head(patient, "Content-Length: 100") + b"{", b"GET /healthz HTTP/1.1\r\n"):
            with pytest.raises(TimeoutError):
                sent(patient, content, seconds=2 * STRICT.request_seconds)


def test_endless_headers_are_refused(strict: World) -> None:
    reply = sent(strict, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000)
    assert reply.startswith(b"HTTP/1.1 4") or reply == b""


def test_buckets_fill_at_their_rate() -> None:
    clock = iter([0.0, 0.0, 0.0, 0.4, 1.0, 1.0])
    buckets = Buckets(rate=1, burst=2, clock=lambda: next(clock))
    buckets.take("a")
    buckets.take("a")
    for _ in range(2):
        with pytest.raises(TooManyRequests, match="Nothing was charged"):
            buckets.take("a")
    buckets.take("a")
    buckets.take("b")


def test_one_who_asks_too_often_is_told(tmp_path: Path) -> None:
    frequent = Settings(rate=0.001, strangers=0.001)  # one in a thousand seconds: none while this runs
    with serving(service_in(tmp_path, frequent)) as world:
        strangers = [world.ask("GET", "/v1/me").status for _ in range(21)]
        assert strangers[-2:] == [401, 429]
        assert world.ask("POST", "/v1/login", body={"name": "carol", "password": "x" * 12}).status == 429
        reply = world.ask("GET", "/v1/me", "alice")
        assert (reply.status, reply.document["code"]) == (429, "too_many_requests")
        assert "Retry-After" in {name.title() for name in reply.headers}
        assert world.ask("GET", "/healthz").status == 200


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Hold the engine at every question; gives an event when one has come, and one that lets it go on."""
    came, go_on, run = threading.Event(), threading.Event(), DuckDB.run

    def waiting(*arguments: Any) -> Any:
        came.set()
        assert go_on.wait(60)
        return run(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", waiting)
        try:
            yield came, go_on
        finally:
            go_on.set()


def test_a_request_stops_waiting_and_its_question_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = Settings(rate=0, strangers=0, answer_seconds=0.2)
    with serving(service_in(tmp_path, impatient)) as world:
        with held(monkeypatch) as (came, go_on):
            reply = world.query("alice", **{"Idempotency-Key": "slow"})
            assert (reply.status, reply.document["code"]) == (504, "service_fault")
            assert came.is_set()
            go_on.set()
            world.service.asking._threads.submit(lambda: None).result()
            while not world.service.answers.of("alice", "open", 1):
                threading.Event().wait(0.05)  # until the thread has kept the answer
        assert world.query("alice", **{"Idempotency-Key": "slow"}).status == 200
        assert world.charges() == 1


def test_the_end_waits_for_questions_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_in(tmp_path)
    with ThreadPoolExecutor(1) as thread, held(monkeypatch) as (came, go_on):
        with serving(service) as world:
            asked = thread.submit(world.query, "alice")
            assert came.wait(60)
            threading.Timer(0.5, go_on.set).start()
        assert asked.result().status == 200
        with pytest.raises(OSError, match="refused"):
            world.ask("GET", "/healthz")


def test_without_a_rate_nobody_is_told(shared: World) -> None:
    """Planted: a rate of nothing, which is no limit."""
    assert {shared.ask("GET", "/v1/me").status for _ in range(30)} == {401}
