"""Signing in over the PostgreSQL protocol: who is counted, what a stranger can learn, and who must make room."""

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from lapwing.errors import TooManyRequests
from lapwing.server import authentication
from lapwing.server.authentication import Callers, TokenBuckets
from lapwing.server.listener import Endpoint, served_certificate
from lapwing.server.people import People
from lapwing.server.pgwire import listener as wire_listener
from lapwing.server.pgwire import sign_in
from lapwing.server.pgwire.sign_in_attempts import Attempts
from tests.server.pgwire.test_clients import Wired, wired_in
from tests.support.server import wire
from tests.support.server.world import QUICK


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Wired]:
    with wired_in(tmp_path) as running:
        yield running


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Wired]:
    """A service that takes two wrong passwords of an address, and hardly any after that."""
    with patch.object(authentication, "PATIENT", 2.0), wired_in(tmp_path, replace(QUICK, strangers=1e-6)) as running:
        yield running


def refused(own: Wired, who: str = "alice", password: str | None = "lapwing_wrong") -> str:
    with pytest.raises(psycopg.OperationalError) as error:
        own.connect(who, password)
    return str(error.value)


def last_of(connection: "psycopg.Connection[Any]") -> wire.Sent:
    """Return the last message that a server sends before it hangs up by itself."""
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as plain:
        plain.settimeout(30)
        got = b""
        while part := plain.recv(1 << 16):
            got += part
    return list(wire.messages_of(got))[-1]


def connections(own: Wired, number: int) -> None:
    for _ in range(number):
        own.connect().close()


def test_a_stranger_over_the_limit_causes_no_work(strict: Wired) -> None:
    connections(strict, 5)  # good ones do not count
    assert "is wrong" in refused(strict)
    assert "is wrong" in refused(strict, "nobody")
    with patch.object(People, "scram_salt", side_effect=AssertionError):
        assert "Try again later" in refused(strict)
    assert strict.world.ask("GET", "/v1/me").status == 429  # the limit is that of HTTP


async def at_once(good: int, bad: int, together: int) -> int:
    """Begin so many attempts of an address at once, the good ones last, and return how many are let try."""
    callers = Callers(None, rate=1.0, strangers=1.0)  # type: ignore[arg-type]  # nobody is looked up
    callers.strangers = TokenBuckets(1e-9, float(together))
    attempts, tried = Attempts(callers), 0

    async def attempt(*, is_good: bool) -> None:
        nonlocal tried
        await attempts.begin("192.0.2.1")
        tried += 1
        for _ in range(3):
            await asyncio.sleep(0)  # others have their turn meanwhile
        attempts.end("192.0.2.1", good=is_good)

    work = [attempt(is_good=place >= bad) for place in range(bad + good)]
    done = await asyncio.gather(*work, return_exceptions=True)
    assert all(one is None or isinstance(one, TooManyRequests) for one in done)
    return tried


@pytest.mark.parametrize(
    ("good", "bad", "tried"), [(60, 0, 60), (0, 60, 20), (60, 19, 79), (60, 20, 20), (200, 10, 210)]
)
def test_good_attempts_at_once_are_not_limited_and_bad_ones_are(good: int, bad: int, tried: int) -> None:
    assert asyncio.run(at_once(good, bad, 20)) == tried


def test_twin_attempts_that_do_not_wait_are_found() -> None:
    """Planted: whoever finds no room is refused at once, as it was."""
    with patch.object(Attempts, "begin", lambda self, address: _begin_at_once(self, address)):
        assert asyncio.run(at_once(60, 0, 20)) == 20


async def _begin_at_once(self: Attempts, address: str) -> None:
    self._callers.stranger_at(address)
    self._under_way[address] += 1


def test_a_pool_that_connects_at_once_is_let_in(strict: Wired) -> None:
    door = threading.Barrier(8)

    def connect(_: int) -> None:
        door.wait(60)
        strict.connect().close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(connect, range(8)))
    assert "is wrong" in refused(strict)


def test_attempts_that_are_never_finished_count_as_wrong(tmp_path: Path) -> None:
    settings = replace(QUICK, strangers=1e-6, request_seconds=0.2)
    with patch.object(authentication, "PATIENT", 2.0), wired_in(tmp_path, settings) as own:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", own.port), timeout=30) as half:
                half.sendall(wire.startup("alice"))
                while half.recv(1 << 16):
                    pass
        assert "Try again later" in refused(own, password=None)


def test_twin_good_sign_ins_that_count_are_found(strict: Wired) -> None:
    planted = patch.object(Callers, "no_stranger_at", lambda *_: None)
    with planted, pytest.raises(psycopg.OperationalError, match="Try again later"):
        connections(strict, 5)


def challenged(own: Wired, who: str) -> list[tuple[str, int]]:
    """Return the kinds and lengths of what a server sends until it wants a proof."""
    first = b"n,,n=,r=abcdefgh"
    body = wire.cstring("SCRAM-SHA-256") + len(first).to_bytes(4, "big") + first
    with socket.create_connection(("127.0.0.1", own.port)) as plain:
        plain.sendall(wire.startup(who, database="open"))
        got = plain.recv(1 << 16)
        plain.sendall(wire.message("p", body))
        got += plain.recv(1 << 16)
    return [(one.kind, len(one.body)) for one in wire.messages_of(got)]


def test_nobody_is_looked_up_before_there_is_a_proof(own: Wired) -> None:
    """So what comes before it takes as long for every name."""
    with patch.object(People, "scram_verifiers", side_effect=AssertionError):
        assert challenged(own, "alice") == challenged(own, "nobody") == [("R", 19), ("R", 72)]


def test_refusals_leave_at_steps(own: Wired) -> None:
    waited: list[float] = []
    step = sign_in.next_step

    async def noted(since: float) -> None:
        waited.append(since)
        await step(since)

    with patch.object(sign_in, "next_step", noted):
        refused(own)
        refused(own, "nobody")
    assert len(waited) == 2


@pytest.mark.parametrize(("passed", "wait"), [(0.0, 1.0), (0.1, 0.9), (1.0, 0.0), (1.5, 0.5), (2.75, 0.25)])
def test_a_step_is_a_whole_multiple(passed: float, wait: float) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    clock = SimpleNamespace(get_running_loop=lambda: SimpleNamespace(time=lambda: 10 + passed), sleep=sleep)
    with patch.object(sign_in, "asyncio", clock), patch.object(sign_in, "STEP", 1.0):
        asyncio.run(sign_in.next_step(10.0))
    assert slept == [pytest.approx(wait)]


def test_an_idle_connection_ends(own: Wired) -> None:
    with patch.object(wire_listener, "IDLE_SECONDS", 0.01), own.connect() as connection:
        assert last_of(connection).fields["C"] == "57P05"


def test_a_connection_without_a_sign_in_ends(tmp_path: Path) -> None:
    with wired_in(tmp_path, replace(QUICK, request_seconds=0.1)) as own:
        with socket.create_connection(("127.0.0.1", own.port), timeout=30) as silent:
            assert silent.recv(1) == b""
        with socket.create_connection(("127.0.0.1", own.port), timeout=30) as half:
            half.sendall(wire.startup("alice"))
            assert [one.kind for one in wire.messages_of(half.recv(1 << 16))] == ["R"]
            assert half.recv(1) == b""


def test_the_longest_idle_connection_makes_room(own: Wired) -> None:
    with patch.object(wire_listener, "MOST_CONNECTIONS", 2):
        first, second = own.connect(autocommit=True), own.connect("carol", autocommit=True)
        first.execute("SELECT 1")  # so the second is idle for longer
        with own.connect(autocommit=True) as third:
            assert last_of(second).fields["C"] == "57P05"
            for one in (first, third):
                assert one.execute("SELECT 1").fetchone() == (1,)
        first.close()
        second.close()


def test_nobody_makes_room_where_all_are_busy(own: Wired) -> None:
    with patch.object(wire_listener, "MOST_CONNECTIONS", 0):
        assert "Too many connections" in refused(own, password=None)


def test_one_person_has_a_limited_number_of_connections(own: Wired) -> None:
    with patch.object(wire_listener, "MOST_OF_PERSON", 1):
        with own.connect():
            assert "Too many connections" in refused(own, password=None)
            own.connect("carol").close()
        own.connect().close()


def test_the_certificate_is_the_one_that_clients_are_shown(tmp_path: Path) -> None:
    """A file that changed counts from its renewal on: until then clients are shown, and bind to, what was read."""
    for name in ("chain.pem", "key.pem"):
        (tmp_path / name).write_text("first")
    place = Endpoint(certificate=tmp_path / "chain.pem", key=tmp_path / "key.pem")
    config: Any = SimpleNamespace(ssl=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    assert served_certificate(config, place) == b"first"
    (tmp_path / "chain.pem").write_text("second")
    assert served_certificate(config, place) == b"first"
    assert served_certificate(config, Endpoint()) is None
