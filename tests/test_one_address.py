"""What is sent to an address stays there: a redirect is an error for everything that sends, and nothing follows it."""

import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lapwing.errors import LapwingError
from lapwing.machine import one_address
from lapwing.monitors import alerts
from lapwing.secure import sending
from lapwing.secure.task import Task
from lapwing.server import webhook
from lapwing.server.openid import provider
from tests.secure.conftest import write_task

STATUSES = (301, 302, 303, 307, 308)


@contextmanager
def answering(status: int, headers: dict[str, str], body: bytes = b"") -> Iterator[tuple[str, list[str]]]:
    """Serve one answer to everything; yield the address and the methods of the requests that came."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            heard.append(self.command)
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815

        def do_OPTIONS(self) -> None:  # a browser's question whether a page may ask at all
            self.send_response(204)
            for name, value in headers.items():
                if name.startswith("access-control-"):
                    self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", heard
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return write_task(tmp_path_factory.mktemp("servers"))[0]


def _alert(address: str, _: Task) -> object:
    alarm = alerts.Alarm(alert="a", tick=1, time="2026-01-01T00:00:00", keys={}, value=1, what="begins")
    return alerts.send(alarm, address)


def _relay(address: str, task: Task) -> object:
    return sending.post(task, address, b"sealed", 5)


SENDERS: dict[str, Callable[[str, Task], object]] = {
    "alarm of a service": lambda address, _: webhook.send(address, "{}"),
    "alert of a monitor": _alert,
    "answer to a relay": _relay,
    "question to a provider": lambda address, _: provider._asked(address, body=b"code=secret"),
}
TAKEN = b'{"new": 1}'


def failure(sender: str, address: str, task: Task) -> str | None:
    """Return what a sender says went wrong."""
    try:
        said = SENDERS[sender](address, task)
    except LapwingError as error:
        return error.code
    return said if isinstance(said, str) else None


@pytest.mark.parametrize("sender", SENDERS)
def test_a_redirect_is_an_error_and_is_not_followed(sender: str, task: Task) -> None:
    with answering(200, {}, TAKEN) as (elsewhere, heard):
        for status in STATUSES:
            with answering(status, {"location": f"{elsewhere}/taken"}) as (address, asked):
                assert failure(sender, address, task) is not None
                assert asked == ["POST"]
        assert heard == []
        assert failure(sender, elsewhere, task) is None  # so that it is the redirect that fails


def test_a_twin_that_follows_is_noticed(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `urlopen` does by itself: a relay's redirect to a page that answers 200 was taken for a receipt."""
    followed: Any = urllib.request.HTTPRedirectHandler.redirect_request
    monkeypatch.setattr(one_address._NoRedirects, "redirect_request", followed)
    for sender in SENDERS:
        with pytest.raises(AssertionError):
            test_a_redirect_is_an_error_and_is_not_followed(sender, task)
