"""Queued questions of a running service: submitting, cancelling, and an engine that can be held."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

import lapwing as lw
from lapwing.engines import DuckDB
from tests.support.server.world import QUESTION, QUICK, Reply, World

ONE = replace(QUICK, threads=1)
QUERIES = "/v1/datasets/open/queries"
SHOWN = {
    "id",
    "person",
    "dataset",
    "created",
    "request",
    "status",
    "stopping",
    "ahead",
    "waits_for",
    "answer",
    "problem",
}


def question(number: int) -> dict[str, Any]:
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}", "epsilon": 0.01}


def submitted(world: World, body: object = QUESTION, who: str = "alice", **headers: str) -> Any:
    reply = world.ask("POST", QUERIES, who, body, headers)
    assert reply.status == 202, reply.content
    assert reply.headers["location"] == f"/v1/queries/{reply.document['id']}"
    assert reply.document.keys() == SHOWN  # and no time but when it came
    return reply.document


def seen(world: World, document: Any, who: str = "alice") -> Any:
    return world.ask("GET", f"/v1/queries/{document['id']}", who).document


def cancelled(world: World, document: Any, who: str = "alice") -> Reply:
    return world.ask("DELETE", f"/v1/queries/{document['id']}", who)


def ended(world: World, document: Any) -> Any:
    """Return what became of a question."""
    with suppress(lw.LapwingError):
        world.connect(document["person"], document["dataset"]).pending(document["id"]).wait(60)
    return seen(world, document, document["person"])


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(3000):
        if true():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it never came")


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Semaphore, threading.Event]]:
    """Hold the engine at every question; gives what counts who has come, and an event that lets all go on."""
    came, go_on, run = threading.Semaphore(0), threading.Event(), DuckDB.run

    def waiting(*arguments: Any) -> Any:
        came.release()
        assert go_on.wait(60)
        return run(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", waiting)
        try:
            yield came, go_on
        finally:
            go_on.set()


@contextmanager
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Let every question begin with a query that ends in hours; gives what counts who has come."""
    came, run = threading.Semaphore(0), DuckDB.run

    def slow(self: DuckDB, *arguments: Any) -> Any:
        came.release()
        self._database.query("SELECT COUNT(*) FROM range(4000000000) AS a, range(1000) AS b WHERE hash(a.range) = 1")
        return run(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", slow)
        yield came
