"""What browsers and proxies are told and believed: headers, requests that can be read in two ways, addresses."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from argon2 import extract_parameters

from lapwing.cli.serve_demo import HOSTS
from lapwing.errors import TooManyRequests
from lapwing.server import credentials, listener, middleware
from lapwing.server.authentication import network_of
from lapwing.server.service import ServiceSettings
from tests.server.test_authorisation import MATRIX
from tests.support.effort import is_long, one_in, some
from tests.support.server.world import QUESTION, QUICK, World, service_in, serving

EVERY: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}
SHIPPED: Final = credentials.HASHER
"""Before tests put a quick one in its place."""
EVIL: Final = "http://evil.example"


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def sent(world: World, *lines: str, body: bytes = b"") -> bytes:
    """Send a request as it is written, on a connection of its own, and return all that is answered."""
    parts = urlsplit(world.address)
    content, received = "\r\n".join([*lines, "", ""]).encode("latin-1") + body, b""
    with suppress(ConnectionError), socket.create_connection((parts.hostname or "", parts.port or 0), 60) as connection:
        connection.sendall(content)
        while part := connection.recv(65536):
            received += part
    return received


def for_host(world: World, *hosts: str) -> bytes:
    """Return the first line of the answer to a request for a host."""
    lines = [f"Host: {host}" for host in hosts]
    return sent(world, "GET /console/sign-in HTTP/1.1", *lines, "Connection: close").partition(b"\r\n")[0]


def test_a_page_that_names_this_machine_as_its_own_reaches_no_demo(tmp_path: Path) -> None:
    """DNS rebinding: `evil.example` has the address 127.0.0.1, so its page asks this service as its own origin."""
    with serving(service_in(tmp_path, replace(QUICK, hosts=HOSTS))) as demo:
        port = urlsplit(demo.address).port
        for host in (f"127.0.0.1:{port}", "localhost", f"LocalHost:{port}"):
            assert for_host(demo, host) == b"HTTP/1.1 200 OK"
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "127.0.0.1:1:1", "[::1]", ""):
            assert for_host(demo, host).startswith(b"HTTP/1.1 421 ")
        assert b" 400 " in for_host(demo, "localhost", "evil.example")
        paths = ["/v1/datasets", "/docs", "/metrics", "/health", "/console", "/published/x", "/nowhere"]
        for path in paths:
            reply = demo.ask("GET", path, "carol", headers={"Host": "evil.example"})
            assert (reply.status, reply.document["code"]) == (421, "invalid_request")


def test_twin_without_its_hosts_a_service_answers_to_every_name(world: World) -> None:
    assert for_host(world, "evil.example") == b"HTTP/1.1 200 OK"


def unprotected(world: World, every: int = 1) -> list[str]:
    """Return the answers that lack a header which every answer has, or have one that lets other origins in.

    Args: every: of how many requests one is sent in the short run.
    """
    found = []
    paths = [(method, path) for (method, _), (path, _, _) in MATRIX.items()]
    others = [("GET", "/"), ("GET", "/docs"), ("GET", "/nowhere"), ("TRACE", "/"), ("PUT", "/")]
    for place, (method, path) in enumerate([*others, *some(every, paths)]):
        for who in (None, "carol") if is_long() or place % 3 == 0 else (None,):
            headers = lowered(world.ask(method, path, who, headers={"Origin": EVIL}).headers)
            if (
                not headers.items() >= EVERY.items()
                or "frame-ancestors 'none'" not in headers["content-security-policy"]
            ):
                found.append(f"{method} {path}")
            if {"set-cookie", "server", "access-control-allow-origin", "location"} & headers.keys():
                found.append(f"{method} {path}: {headers}")
    return found


def test_every_answer_says_how_it_is_to_be_treated(world: World) -> None:
    assert unprotected(world, every=3) == []


@pytest.mark.parametrize("planted", one_in(2, [(), ((b"access-control-allow-origin", b"*"), *middleware.HEADERS)]))
def test_an_answer_that_does_not_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch, planted: tuple[tuple[bytes, bytes], ...]
) -> None:
    """Planted: no such headers; and one that lets every page read answers."""
    monkeypatch.setattr(middleware, "HEADERS", planted)
    assert unprotected(world, every=20)


def test_a_page_of_another_origin_can_do_nothing(world: World) -> None:
    """A browser asks before it sends a token or JSON elsewhere, and is told no; without these nothing is let in."""
    asks = {"Origin": EVIL, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    for path in ("/v1/login", "/v1/datasets/open/query", "/v1/me"):
        assert world.ask("OPTIONS", path, headers=asks).status == 405
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):  # need not be asked
        headers = {"Content-Type": kind, "Origin": EVIL, "Cookie": f"token={world.tokens['alice']}"}
        assert world.ask("POST", "/v1/datasets/open/query", body=QUESTION, headers=headers).status == 401
        assert (
            world.ask("POST", "/v1/login", body={"name": "carol", "password": "x" * 12}, headers=headers).status == 422
        )
    assert world.charges() == 0


@pytest.mark.long
def test_no_answer_leads_to_the_host_that_a_request_names(shared: World) -> None:
    for path in ("/v1/me/", "/docs/", "/v1/datasets/"):
        reply = shared.ask("GET", path, "alice", headers={"Host": "evil.example"})
        assert reply.status == 404
    for path in ("/", "/docs", "/openapi.json"):
        assert b"evil.example" not in shared.ask("GET", path, headers={"Host": "evil.example"}).content


def ambiguous(world: World) -> Mapping[str, bytes]:
    """Return what is answered to requests that a proxy could read in another way."""
    alice, bob = (f"Authorization: Bearer {world.tokens[who]}" for who in ("alice", "bob"))
    get, post = ("GET /v1/me HTTP/1.1", "Host: x"), ("POST /v1/datasets/open/explain HTTP/1.1", "Host: x", alice)
    kind, end = "Content-Type: application/json", "Connection: close"
    inner = f"GET /v1/me HTTP/1.1\r\nHost: x\r\n{bob}\r\n{end}\r\n\r\n".encode()
    chunked, length = "Transfer-Encoding: chunked", f"Content-Length: {len(inner) + 5}"
    return {
        "two tokens": sent(world, *get, alice, bob, end),
        "two kinds": sent(world, *post, kind, "Content-Type: text/plain", "Content-Length: 2", end, body=b"{}"),
        "two keys": sent(world, *post, kind, "Idempotency-Key: a", "Idempotency-Key: b", end),
        "two hosts": sent(world, "GET /healthz HTTP/1.1", "Host: a", "Host: b", end),
        "two lengths": sent(world, *post, kind, "Content-Length: 2", "Content-Length: 3", end, body=b"{}"),
        "a list of lengths": sent(world, *post, kind, "Content-Length: 2, 2", end, body=b"{}"),
        "length and chunks": sent(world, *post, kind, length, chunked, body=b"0\r\n\r\n" + inner),
        "unknown coding": sent(world, *post, kind, "Transfer-Encoding: xchunked", end, body=b"0\r\n\r\n"),
        "two codings": sent(world, *post, kind, chunked, "Transfer-Encoding: identity", end, body=b"0\r\n\r\n"),
        "space before the colon": sent(world, *get, alice.replace(":", " :"), end),
        "no host": sent(world, "GET /healthz HTTP/1.1", end),
    }


def test_requests_that_can_be_read_in_two_ways_are_refused(shared: World) -> None:
    for what, reply in ambiguous(shared).items():
        assert reply.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), f"{what}: {reply[:200]!r}"
        assert reply.count(b"HTTP/1.1 ") == 1, what  # and nothing that is smuggled in it
        assert b"bob" not in reply


def test_a_list_of_lengths_is_seen_in_a_request_that_follows_another(shared: World) -> None:
    first = ("GET /v1/me HTTP/1.1", "Host: x", f"Authorization: Bearer {shared.tokens['alice']}")
    second = b"POST /v1/login HTTP/1.1\r\nHost: x\r\ncontent-length : 2\t,2\r\n\r\n{}".replace(b" :", b":")
    reply = sent(shared, *first, body=second)
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 400 " in reply


def test_a_service_that_takes_the_first_is_found(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: no header is looked at twice."""
    monkeypatch.setattr(middleware, "_ambiguous", lambda names: "")
    told = ambiguous(shared)
    assert told["two tokens"].startswith(b"HTTP/1.1 200 ")
    assert told["length and chunks"].count(b"HTTP/1.1 ") == 2


def strangers(world: World, forwarded: str) -> list[int]:
    """Return what thirty guesses are answered that say they come from so many addresses."""
    return [
        world.ask("GET", "/v1/me", headers={"X-Forwarded-For": forwarded.format(number)}).status for number in range(30)
    ]


def test_nobody_chooses_the_address_that_guesses_count_for(tmp_path: Path) -> None:
    with serving(service_in(tmp_path, ServiceSettings(strangers=0.001))) as world:
        assert strangers(world, "192.0.2.{}")[-5:] == [429] * 5


@pytest.mark.long
def test_behind_a_proxy_the_last_address_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "Endpoint", partial(listener.Endpoint, behind_proxy=True))
    with serving(service_in(tmp_path, ServiceSettings(strangers=0.001))) as world:
        assert strangers(world, "203.0.113.{}, 192.0.2.1")[-5:] == [429] * 5  # what came before it is anybody's word
        assert set(strangers(world, "192.0.2.1{}")) == {401}


def test_an_ipv6_address_counts_by_its_network() -> None:
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2:ffff::1") != network_of("2001:db8:1:3::4")
    assert network_of("192.0.2.1") == network_of("::ffff:192.0.2.1") != network_of("192.0.2.2")
    assert network_of("unix socket") == "unix socket"


def test_passwords_do_not_wait_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [credentials._ROOM.acquire(blocking=False) for _ in range(credentials.MOST_HASHES)]
    try:
        assert all(held)
        for look in (lambda: credentials.is_password(None, "x"), lambda: credentials.password_hash("x" * 12)):
            with pytest.raises(TooManyRequests, match="Try again later"):
                look()
    finally:
        for _ in held:
            credentials._ROOM.release()
    assert not credentials.is_password(None, "x")


def test_a_name_that_nobody_has_costs_the_same_hash() -> None:
    made = SHIPPED.hash("correct horse battery")
    assert extract_parameters(credentials._NOBODY) == extract_parameters(made)
