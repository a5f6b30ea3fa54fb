"""What the log, the metrics, the audit log and the file of people say, and what they never say."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lapwing.engines import DuckDB
from lapwing.server import listener, log, middleware
from lapwing.server.audit_log import first_broken, lines
from tests.server.test_serving import PROTECT
from tests.support.cli.command import write_visits
from tests.support.effort import only
from tests.support.server.world import QUESTION, World

PASSWORD = "correct-horse-battery-staple"
CONSTANT = "an unusual constant"
SECRET_VALUE = "Erika Mustermann"


@contextmanager
def logged() -> Iterator[list[str]]:
    """Collect the lines of the log, whether or not `open_log` ran in this process before."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    level = log.LOGGER.level
    log.LOGGER.addHandler(handler)
    log.LOGGER.setLevel(logging.INFO)
    try:
        yield found
    finally:
        log.LOGGER.setLevel(level)
        log.LOGGER.removeHandler(handler)


def busy(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Send requests of all kinds with secrets everywhere; return all that the service says of them afterwards."""
    token = world.tokens["alice"]
    with logged() as found:
        world.service.people.change("alice", password=PASSWORD, by="carol")
        world.tokens["alice"], _ = world.service.people.login("alice", PASSWORD, None, "login", 3600)
        world.ask("POST", "/v1/login", body={"name": "alice", "password": PASSWORD})
        world.ask("POST", "/v1/login", body={"name": PASSWORD, "password": token})
        world.ask("GET", f"/v1/me?token={token}")
        world.ask("GET", f"/{token}/{PASSWORD}")
        world.ask("GET", f"/v1/answers/{token}", "alice")
        world.ask("GET", "/v1/me", headers={"Authorization": f"Bearer {token}", "X-Password": PASSWORD})
        world.ask("POST", "/v1/login", body={"name": "alice", "password": [PASSWORD]})
        world.query("alice", {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE town = '{CONSTANT}'", "epsilon": 0.1})
        world.query("alice", {"sql": f"SELECT nonsense('{CONSTANT}')", "epsilon": 0.1})
        with monkeypatch.context() as patched:
            patched.setattr(DuckDB, "run", failing)
            world.query("alice", QUESTION)
        with monkeypatch.context() as patched:
            patched.setattr(type(world.service.policies), "sees", failing)
            world.ask("GET", "/v1/datasets", "alice")
    secrets = [world.tokens["alice"], token]
    with world.service.store.transaction() as connection:
        audit = [json.dumps(line) for line in lines(connection)]
        file = [str(row) for row in connection.execute("SELECT * FROM people, tokens").fetchall()]
    said = [*found, *audit, world.service.metrics.text(), *file]
    leaked = [secret for secret in (*secrets, PASSWORD) for line in said if secret in line]
    shown = [secret for secret in (CONSTANT, SECRET_VALUE) for line in (*found, *audit) if secret in line]
    assert any('"kind": "ValueError"' in line for line in found)
    assert any('"route": "/v1/datasets/{dataset}/query"' in line for line in found)
    return [*leaked, *shown]


def failing(*_: object) -> object:
    raise ValueError(f"no number: {SECRET_VALUE}")


def test_no_secret_and_nothing_private_is_written_down(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert busy(world, monkeypatch) == []


@pytest.mark.parametrize("planted", only([1], ["path", "message"]))
def test_a_careless_log_is_found(world: World, monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    """Planted: the path as it was sent, or the message of an exception, in the log."""
    if planted == "path":
        served = middleware.RequestMiddleware._serve

        async def careless(self: middleware.RequestMiddleware, scope: dict[str, object], *rest: object) -> None:
            log.log("path", path=scope["path"])
            await served(self, scope, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(middleware.RequestMiddleware, "_serve", careless)
    else:
        place: Callable[[BaseException], str] = str
        monkeypatch.setattr("lapwing.server.problems.place_of", place)
    assert busy(world, monkeypatch)


def test_what_nobody_expected_is_one_constant(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(world.service.policies), "sees", failing)
    reply = world.ask("GET", "/v1/datasets", "alice")
    assert reply.status == 500
    assert reply.document["code"] == "internal"
    assert SECRET_VALUE.encode() not in reply.content


def test_a_caller_who_goes_is_no_bug(world: World) -> None:
    parts = urlsplit(world.address)
    with logged() as found:
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
            connection.sendall(b"POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        for _ in range(3000):  # a minute
            if any('"status": 0' in line for line in found):
                break
            threading.Event().wait(0.02)
    assert any('"status": 0' in line for line in found)
    assert not any('"event": "bug"' in line for line in found)


def told_by_libraries() -> list[str]:
    """Let every library that may log something log an exception with a value, and return the lines."""
    with logged() as found:
        for name in ("uvicorn.error", "asyncio", "concurrent.futures", "psycopg.pool"):
            try:
                failing()
            except ValueError:
                logging.getLogger(name).exception("about %s", SECRET_VALUE)
    return found


def test_what_libraries_log_is_its_kind_alone(shared: World, capfd: pytest.CaptureFixture[str]) -> None:
    found = told_by_libraries()
    assert [json.loads(line)["kind"] for line in found] == ["ValueError"] * 4
    assert SECRET_VALUE not in "".join([*found, *capfd.readouterr()])


def test_a_library_that_is_forgotten_is_found(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the usual handler in place of ours."""
    monkeypatch.setattr(logging.getLogger("asyncio"), "handlers", [])
    assert len(told_by_libraries()) == 3


def test_the_audit_log_is_a_chain(world: World) -> None:
    world.ask("PUT", "/v1/datasets/open/stop", "carol", {"stopped": True})
    exported = world.ask("GET", "/v1/audit", "audrey")
    log = [json.loads(line) for line in exported.content.splitlines()]
    assert first_broken(iter(log)) is None
    assert log[-1]["act"] == "stopped"
    assert log[-1]["actor"] == "carol"
    for place in range(len(log)):
        edited = [dict(line) for line in log]
        edited[place]["actor"] = "nobody"
        assert first_broken(iter(edited)) == place + 1
    assert first_broken(iter(log[1:])) == 1
    assert first_broken(iter([*log[:2], *log[3:]])) == 3


@pytest.mark.long
def test_metrics_count_routes_and_outcomes(world: World) -> None:
    world.query("alice")
    world.query("alice")
    text = world.ask("GET", "/metrics", "audrey").content.decode()
    assert 'lapwing_questions_total{dataset="open",outcome="charged"} 1' in text
    assert 'lapwing_questions_total{dataset="open",outcome="stored"} 1' in text
    assert 'route="/v1/datasets/{dataset}/query",status="200"} 2' in text


def test_what_ends_a_thread_says_nothing_private(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError(SECRET_VALUE)

    monkeypatch.setattr(threading, "excepthook", threading.excepthook)  # put back afterwards
    listener.keep_threads_quiet()
    with logged() as found:
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    (line,) = found
    assert json.loads(line)["kind"] == "ValueError"
    assert SECRET_VALUE not in line


# ---- the whole of a service's standard error ----


@pytest.mark.long
@pytest.mark.parametrize("workers", ["2", pytest.param("1", marks=pytest.mark.long)])
def test_standard_error_is_lines_of_json_from_first_to_last(tmp_path: Path, workers: str) -> None:
    write_visits(tmp_path)
    environment = {**os.environ, "LAPWING_CURATOR_PASSWORD": "correct horse battery"}
    command = [
        sys.executable,
        "-m",
        "lapwing",
        "serve",
        "visits.parquet",
        *PROTECT,
        "--port",
        "0",
        "--no-padding",
        "--workers",
        workers,
    ]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines: list[str] = []
            for line in process.stderr or ():
                lines.append(line)
                if '"listening"' in line:
                    process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=120) == 0
        finally:
            process.kill()
    events = [json.loads(line)["event"] for line in lines]
    assert events[:3] == ["opening", "curator made", "serving"]
    assert events[-1] == "ended"


@pytest.mark.long
def test_nothing_here_and_not_so_say_where_all_is_described(shared: World) -> None:
    nothing = shared.ask("GET", "/v1/nothing", "carol")
    assert (nothing.status, nothing.document["code"]) == (404, "not_found")
    assert "/docs" in nothing.document["detail"]
    for method, path, allowed in (
        ("PUT", "/v1/queries/x", "DELETE, GET"),
        ("GET", "/v1/datasets/open/query", "POST"),
        ("POST", "/healthz", "GET"),
    ):
        reply = shared.ask(method, path, "carol")
        assert (reply.status, reply.document["code"]) == (405, "method_not_allowed")
        assert reply.headers["allow"] == allowed
        assert allowed in reply.document["detail"]
    assert "<script" not in shared.ask("GET", "/v1/<script>", "carol").content.decode()
