"""A client waits as long as a busy server asks it to, a few times, and never sends twice what may be charged twice."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import lapwing as lw
from lapwing.client import transport
from lapwing.client.transport import ServerConnection

Told = tuple[int, str | None]
BUSY = (429, "1")


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[ServerConnection]:
    """Serve by a handler, and give a connection to it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield ServerConnection(f"http://127.0.0.1:{server.server_port}", "t")
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(replies: Sequence[Told]) -> Iterator[tuple[ServerConnection, list[str]]]:
    """Serve these statuses one after another, each with its Retry-After, and give the requests that came."""
    left, came = list(replies), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(f"{self.command} {self.headers.get('Idempotency-Key', '')}".strip())
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, after = left.pop(0)
            code = "too_many_requests" if status == 429 else "ledger_fault"
            content = json.dumps({"ok": True} if status == 200 else {"code": code, "detail": "d", "status": status})
            self.send_response(status)
            if after is not None:
                self.send_header("Retry-After", after)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content.encode())

        do_POST = do_GET  # noqa: N815 - a name of the standard library

        def log_message(self, *_: Any) -> None:
            pass

    with serving(Handler) as connection:
        yield connection, came


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    waits: list[int] = []
    monkeypatch.setattr("lapwing.client.transport.time.sleep", waits.append)
    return waits


@pytest.mark.parametrize("busy", [BUSY, (503, "3")])
def test_it_waits_and_asks_again(slept: list[int], busy: Told) -> None:
    with answering([busy, busy, (200, None)]) as (server, came):
        assert server.post("/q", {}, "key") == {"ok": True}
    assert came == ["POST key"] * 3
    assert slept == [int(busy[1] or "")] * 2


def test_it_waits_a_few_times_only(slept: list[int]) -> None:
    with answering([BUSY] * 20) as (server, came), pytest.raises(lw.TooManyRequests):
        server.get("/q")
    assert len(came) == transport.MOST_WAITS + 1
    assert len(slept) == transport.MOST_WAITS


@pytest.mark.parametrize("after", [None, "", "11", "-1", "1.5", "soon", "Sun, 06 Nov 1994 08:49:37 GMT", "99999999"])
def test_what_is_long_or_no_number_is_not_waited_for(slept: list[int], after: str | None) -> None:
    with answering([(429, after)]) as (server, came), pytest.raises(lw.TooManyRequests):
        server.get("/q")
    assert (len(came), slept) == (1, [])


def test_what_may_have_been_done_is_not_sent_twice(slept: list[int]) -> None:
    with answering([(503, "1")]) as (server, came), pytest.raises(lw.LedgerFault):
        server.post("/v1/datasets", {})
    assert (came, slept) == (["POST"], [])
    with answering([BUSY, (200, None)]) as (server, came):
        assert server.post("/v1/datasets", {}) == {"ok": True}  # nobody has looked at it
    assert came == ["POST", "POST"]


def test_ctrl_c_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lapwing.client.transport.time.sleep", pressed)
    with answering([BUSY] * 2) as (server, came), pytest.raises(KeyboardInterrupt):
        server.get("/q")
    assert came == ["GET"]


def test_a_client_that_does_not_wait_is_found(slept: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: no status means busy."""
    monkeypatch.setattr(transport, "BUSY", ())
    with pytest.raises(lw.TooManyRequests):
        test_it_waits_and_asks_again(slept, BUSY)


@contextmanager
def cutting(content: bytes, *, length: int) -> Iterator[tuple[ServerConnection, list[str]]]:
    """Serve the beginning of a document that was to be so long, and count the requests."""
    came = list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(self.command)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - a name of the standard library

        def log_message(self, *_: Any) -> None:
            pass

    with serving(Handler) as connection:
        yield connection, came


def test_an_answer_that_is_cut_short_is_none() -> None:
    """A copy of a ledger that ends with a line, but is not all, would look whole."""
    line = b'{"sequence": 1}\n'
    with cutting(line, length=2 * len(line)) as (server, came):
        for ask in (server.lines, server.stream, server.get):
            with pytest.raises(lw.ServiceFault):
                ask("/v1/datasets/open/ledger")
        assert came == ["GET"] * 6, "each once more"
        with pytest.raises(lw.ServiceFault):
            server.post("/v1/datasets", {})
        assert came[6:] == ["POST"], "it may have been done"
    with cutting(line, length=len(line)) as (server, came):
        assert server.lines("/whole") == [line.decode().strip()]


def test_a_client_that_takes_what_came_for_all_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nothing is ever said to be left."""
    read = HTTPResponse.read

    def short(self: HTTPResponse, size: int | None = None) -> bytes:
        content = read(self, size)
        self.length = 0
        return content

    monkeypatch.setattr(HTTPResponse, "read", short)
    with pytest.raises(pytest.fail.Exception):
        test_an_answer_that_is_cut_short_is_none()
