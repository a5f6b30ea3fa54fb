"""Large, slow and frequent requests, and connections that say nothing."""

import resource
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from lapwing.engines import DuckDB
from lapwing.errors import TooManyRequests
from lapwing.server import authentication, connections
from lapwing.server.authentication import TokenBuckets
from lapwing.server.middleware import RequestMiddleware
from lapwing.server.service import Service, ServiceSettings
from lapwing.session import Session
from tests.server.test_serving import PROTECT, served, token
from tests.support.cli.command import write_visits
from tests.support.effort import only
from tests.support.server.world import QUESTION, QUICK, World, service_in, serving

SMALL = 4096
STRICT = ServiceSettings(rate=0, strangers=0, most_bytes=SMALL, request_seconds=1)


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
    init = RequestMiddleware.__init__
    monkeypatch.setattr(RequestMiddleware, "__init__", lambda *a, **k: init(*a, **{**k, "most_bytes": 1 << 30}))
    assert oversized(strict)
    with serving(service_in(Path(strict.service.store.name).parent / "again", STRICT)) as unlimited:
        assert not oversized(unlimited)


def test_a_body_that_does_not_come_is_given_up(strict: World) -> None:
    reply = sent(strict, head(strict, "Content-Length: 100", "Connection: close") + b'{"sql": ')
    assert reply.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in reply


def test_headers_that_do_not_come_are_given_up(strict: World) -> None:
    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(partial(sent, strict), (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b""))] == [b"", b""]


def test_a_second_request_that_does_not_come_is_given_up(strict: World) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    reply = sent(strict, whole, b"GET /healthz HTTP/1.1\r\nHos")
    assert reply.count(b"HTTP/1.1 200") == 1


@pytest.mark.long
def test_a_service_that_waits_for_ever_is_found(tmp_path: Path) -> None:
    """Planted: a limit of time that nothing reaches."""
    patient_service = service_in(tmp_path, replace(STRICT, request_seconds=1000))
    with serving(patient_service) as patient, ThreadPoolExecutor(2) as threads:
        contents = (head(patient, "Content-Length: 100") + b"{", b"GET /healthz HTTP/1.1\r\n")
        for waiting in [threads.submit(sent, patient, each, seconds=2 * STRICT.request_seconds) for each in contents]:
            with pytest.raises(TimeoutError):
                waiting.result()


def test_endless_headers_are_refused(strict: World) -> None:
    reply = sent(strict, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000)
    assert reply.startswith(b"HTTP/1.1 4") or reply == b""


def test_buckets_fill_at_their_rate() -> None:
    clock = iter([0.0, 0.0, 0.0, 0.4, 1.0, 1.0])
    buckets = TokenBuckets(rate=1, burst=2, clock=lambda: next(clock))
    buckets.take("a")
    buckets.take("a")
    for _ in range(2):
        with pytest.raises(TooManyRequests, match="Nothing was charged"):
            buckets.take("a")
    buckets.take("a")
    buckets.take("b")


def test_one_who_asks_too_often_is_told(tmp_path: Path) -> None:
    frequent = ServiceSettings(rate=0.001, strangers=0.001)  # one in a thousand seconds: none while this runs
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
    impatient = ServiceSettings(rate=0, strangers=0, answer_seconds=0.2)
    with serving(service_in(tmp_path, impatient)) as world:
        with held(monkeypatch) as (came, go_on):
            for number in range(60):  # what has not had its turn by then is dropped, and asked again
                reply = world.query("alice", **{"Idempotency-Key": f"slow {number}"})
                assert (reply.status, reply.document["code"]) == (504, "service_fault")
                if came.wait(1):
                    break
            go_on.set()
            world.service.executor.queue.put("alice", lambda: None).result()
            while not world.service.answers.of("alice", "open", 1):
                threading.Event().wait(0.05)  # until the thread has kept the answer
        assert world.query("alice", **{"Idempotency-Key": f"slow {number}"}).status == 200
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


@pytest.mark.parametrize(("most", "told"), [(4, [200] * 4 + [429] * 4), (100, [200] * 8)], ids=["four", "planted: any"])
def test_prices_of_one_person_leave_room_for_others(
    world: World, monkeypatch: pytest.MonkeyPatch, most: int, told: list[int]
) -> None:
    begun, go_on, explain = threading.Semaphore(0), threading.Event(), Session.explain

    def slow(*asked: Any, **more: Any) -> Any:
        begun.release()
        assert go_on.wait(60)
        return explain(*asked, **more)

    monkeypatch.setattr(authentication, "MOST_PRICES", most)
    monkeypatch.setattr(Session, "explain", slow)
    path = "/v1/datasets/open/explain"
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(world.ask, "POST", path, "alice", QUESTION) for _ in range(8)]
        for _ in range(told.count(200)):
            assert begun.acquire(timeout=60)
        for _ in range(1200):
            if sum(future.done() for future in asked) >= told.count(429):
                break
            threading.Event().wait(0.05)  # until the others were refused
        go_on.set()
        assert sorted(future.result().status for future in asked) == told
    assert world.ask("POST", path, "alice", QUESTION).status == 200


def test_without_a_rate_nobody_is_told(shared: World) -> None:
    """Planted: a rate of nothing, which is no limit."""
    assert {shared.ask("GET", "/v1/me").status for _ in range(30)} == {401}


# ---- Connections: slow ones, many, and such as do not read -----------------------------------------------------------


def trickled(world: World, start: bytes, part: bytes) -> bytes:
    """Send a part again and again, five times a second, until something is answered or the connection ends."""
    parts = urlsplit(world.address)
    with suppress(ConnectionError), socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
        connection.settimeout(0.2)
        connection.sendall(start)
        for _ in range(300):
            with suppress(TimeoutError):
                return connection.recv(65536)
            connection.sendall(part)
    return b""


def test_what_trickles_is_given_up(strict: World) -> None:
    starts = (head(strict, "Content-Length: 1000"), b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"")
    with ThreadPoolExecutor(3) as threads:
        body, *headers = threads.map(partial(trickled, strict), starts, (b" ", b"X: y\r\n", b"G"))
    assert body.startswith(b"HTTP/1.1 408")
    assert headers == [b"", b""]


@contextmanager
def idle(world: World, number: int, content: bytes = b"GET / HTTP/1.1\r\n") -> Iterator[list[socket.socket]]:
    """Hold so many connections, each with half of a request."""
    parts = urlsplit(world.address)
    with ExitStack() as held:
        opened = []
        for _ in range(number):
            opened.append(held.enter_context(socket.create_connection((parts.hostname or "", parts.port or 0), 60)))
            opened[-1].sendall(content)
        yield opened


def ended(connections: list[socket.socket]) -> int:
    """Return how many of the connections the service has closed."""
    looking = select.poll()
    for connection in connections:
        looking.register(connection, select.POLLIN)
    return len(looking.poll(0))


def few(folder: Path, most: int, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(connections, "room", lambda: most)
    return service_in(folder, replace(QUICK, request_seconds=1000))


def test_who_holds_many_connections_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(few(tmp_path, 20, monkeypatch)) as world, idle(world, 60) as held:
        for _ in range(5):
            assert world.ask("GET", "/v1/me", "alice").status == 200
        assert ended(held) >= 40
        assert ended(held[-10:]) == 0  # the longest idle went first


def test_without_a_limit_all_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: as many connections as anybody likes."""
    with serving(few(tmp_path, 10**6, monkeypatch)) as world, idle(world, 60) as held:
        assert world.ask("GET", "/v1/me", "alice").status == 200
        assert ended(held) == 0


def test_who_has_asked_is_not_closed_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = few(tmp_path, 10, monkeypatch)
    with held(monkeypatch) as (came, go_on), serving(service) as world, ThreadPoolExecutor(1) as thread:
        asked = thread.submit(world.query, "alice")
        assert came.wait(60)
        with idle(world, 40):
            go_on.set()
            assert asked.result().status == 200


@pytest.mark.long
def test_a_thousand_idle_connections(tmp_path: Path) -> None:
    if connections.room() < 1_100 or resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2_000:
        pytest.skip("this machine allows too few descriptors")
    write_visits(tmp_path)
    with served(tmp_path, "visits.parquet", *PROTECT, "--request-time", "600") as (_, port):
        world = World(service=None, address=f"http://127.0.0.1:{port}")  # type: ignore[arg-type]  # another process
        with idle(world, 1_000) as held:
            world.tokens["curator"] = token(port)
            assert [world.ask("GET", "/v1/me", "curator").status for _ in range(5)] == [200] * 5
            question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}
            assert world.query("curator", question, "visits").status == 200
            assert ended(held) == 0


ASKED: Final = 200


def unread(world: World, given_up: threading.Event, seconds: float) -> int:
    """Ask for much and read nothing until it is given up, or for so many seconds; return how many answers came."""
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with idle(world, 1, ask * ASKED) as (connection,):
        assert world.ask("GET", "/v1/me", "alice").status == 200
        given_up.wait(seconds)
        answers = 0
        with suppress(ConnectionError):
            while answers < ASKED and (part := connection.recv(1 << 20)):
                answers += part.count(b"HTTP/1.1 200 OK")
        return answers


@pytest.mark.parametrize(
    ("after", "all_come"), only([0], [(0.5, False), (1000, True)], many=True), ids=["given up", "planted: never"]
)
def test_what_is_not_read_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: float, all_come: bool
) -> None:
    given_up, made = threading.Event(), connections.protocol

    def watched(seconds: float, most: int) -> Any:
        kind: Any = made(seconds, most)
        give_up = kind.give_up

        def seen(self: Any) -> None:
            give_up(self)
            given_up.set()

        kind.give_up = seen
        return kind

    monkeypatch.setattr(connections, "protocol", watched)
    monkeypatch.setattr(connections, "UNREAD_SECONDS", after)
    with serving(service_in(tmp_path)) as world:
        answers = unread(world, given_up, 1.5 if all_come else 60)
        assert (answers == ASKED) is all_come
        assert given_up.is_set() is not all_come


def test_there_is_room_below_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    for allowed, room in (((256, 256), 64), ((1024, 1024), 512), ((1024, 1 << 20), 4096), ((1 << 20, 1 << 20), 4096)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, allowed=allowed: allowed)
        assert connections.room() == room
    assert asked == [(4096 + connections.KEPT, 1 << 20)]
