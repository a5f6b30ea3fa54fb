"""What `/metrics` says of the moment, and whether a service is ready: without a wait, and nothing that is private."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import Fault, LedgerFault
from lapwing.privacy.odometers import Reading, as_if_cap
from lapwing.server import readiness
from lapwing.server.gauges import Gauges
from lapwing.server.sqlite_store import SqliteStore
from lapwing.session import Session
from tests.server.test_logs import logged
from tests.support.server.crew import crew, prepared, scrape
from tests.support.server.queueing import ended, held, question, submitted, until
from tests.support.server.world import World


def gauges(text: str) -> dict[str, float]:
    found = re.findall(r"^(lapwing_\S+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found if "_total" not in name}


def shown(world: World) -> dict[str, float]:
    return gauges(world.ask("GET", "/metrics", "audrey").content.decode())


def test_the_budget_that_is_left_is_shown(world: World) -> None:
    before = shown(world)
    assert before['lapwing_budget_remaining{dataset="open"}'] == 1
    assert before["lapwing_processes"] == 1
    world.query("alice")
    view = world.session().budget(history=False)
    left = shown(world)['lapwing_budget_remaining{dataset="open"}']
    assert left == pytest.approx(1 - float(view.spent.amount / view.total.amount))
    assert left < 1
    assert shown(world)['lapwing_budget_remaining{dataset="closed"}'] == 1


def test_rounds_compute_no_epsilon_of_what_is_spent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH", 0)
    computed = list[object]()

    def noted(*spent: Any) -> Reading:
        computed.append(spent)
        return as_if_cap(*spent)

    monkeypatch.setattr("lapwing.budget.as_if_cap", noted)
    world.query("alice")
    assert shown(world)['lapwing_budget_remaining{dataset="open"}'] < 1
    assert world.ask("GET", "/readyz").status == 200
    world.service.gauges.look()
    assert computed == []
    shown_to_people = world.ask("GET", "/v1/datasets/open/budget", "alice").document
    assert computed
    assert shown_to_people["spent_epsilon"] == world.session().budget().spent_epsilon > 0


@pytest.mark.long
def test_what_waits_and_runs_is_shown(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (shown(one)["lapwing_questions_waiting"], shown(one)["lapwing_questions_running"]) == (0, 0)
    with held(monkeypatch) as (came, go_on):
        queued = [submitted(one, question(number)) for number in range(3)]
        assert came.acquire(timeout=60)
        assert (shown(one)["lapwing_questions_waiting"], shown(one)["lapwing_questions_running"]) == (2, 1)
        go_on.set()
        for document in queued:
            ended(one, document)
    until(lambda: (shown(one)["lapwing_questions_waiting"], shown(one)["lapwing_questions_running"]) == (0, 0))


def test_the_wait_for_a_ledger_is_that_of_a_charge(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 10.25, 20.0, 23.0])
    seen = Gauges(world.service.metrics, world.service.datasets, world.service.executor, lambda: next(times))
    seen.wait_for_ledgers()
    assert shown(world)['lapwing_ledger_wait_seconds{dataset="open"}'] == 0.25
    assert shown(world)['lapwing_ledger_wait_seconds{dataset="closed"}'] == 3
    waits: list[str] = []
    monkeypatch.setattr(Session, "await_charges", lambda self: waits.append(self.catalog.name))
    times = iter([0.0] * 8)
    seen.wait_for_ledgers()
    assert waits == ["open", "closed"]
    shown(world)
    assert waits == ["open", "closed"]  # whoever asks waits for no ledger


def test_a_ledger_that_cannot_be_read_hides_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Session.budget

    def failing(self: Session, *, history: bool = True) -> object:
        if self.catalog.name == "open":
            raise LedgerFault("It is gone.")
        return budget(self, history=history)

    monkeypatch.setattr(Session, "budget", failing)
    monkeypatch.setattr(readiness, "FRESH", 0)
    assert shown(world)['lapwing_budget_remaining{dataset="closed"}'] == 1
    with logged() as lines:
        replies = [world.ask("GET", "/readyz") for _ in range(2)]
        assert [(reply.status, reply.document["code"]) for reply in replies] == [(503, "fault")] * 2
        monkeypatch.setattr(Session, "budget", budget)
        assert (world.ask("GET", "/readyz").status, world.ask("GET", "/readyz").content) == (200, b"ready\n")
    assert [line for line in lines if '"event": "ready"' in line or '"event": "not ready"' in line] == [
        line for line in lines if '"event": "ready"' in line
    ]


def test_a_store_that_cannot_be_read_is_not_ready(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH", 0)
    assert world.ask("GET", "/readyz").status == 200

    def failing(_: object) -> object:
        raise Fault("The service's file secret.db cannot be used.")

    monkeypatch.setattr(SqliteStore, "reading", failing)
    with logged() as lines:
        reply = world.ask("GET", "/readyz")
        assert (reply.status, reply.document["code"]) == (503, "fault")
        assert b"secret" not in reply.content
        assert sum('"event": "not ready"' in line for line in lines) == 1


def test_strangers_who_ask_often_make_it_look_no_more_often(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    clock = [0.0]
    ready = readiness.Readiness(world.service.store, world.service.datasets, clock=lambda: clock[0])
    monkeypatch.setattr(readiness.Readiness, "_look", lambda _: not looks.append(clock[0]))  # type: ignore[func-returns-value]
    for _ in range(100):
        clock[0] += 0.05
        assert ready.is_ready()
    assert len(looks) <= 6


@pytest.mark.long
def test_gauges_of_a_dead_worker_are_left_out(tmp_path: Path) -> None:
    tokens = prepared(tmp_path)
    with crew(tmp_path, number=2) as running:
        port = running.port
        assert gauges(scrape(port, tokens["carol"]))["lapwing_processes"] == 2
        os.kill(running.workers[0], signal.SIGKILL)
        running.wait_for("worker started", 3)
        until(lambda: gauges(scrape(port, tokens["carol"]))["lapwing_processes"] == 2)
        assert gauges(scrape(port, tokens["carol"]))['lapwing_budget_remaining{dataset="visits"}'] == 1
