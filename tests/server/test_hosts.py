"""Two services that share their people and their ledgers, as on two hosts or in two processes: they hold as one."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from lapwing.engines import DuckDB
from lapwing.errors import DataStopped, NotAuthorised
from lapwing.opening import open_session
from lapwing.server import audit_log
from lapwing.server.answer_store import AnswerRecord, IdempotencyRecord
from lapwing.server.bodies import ExplainBody, QueryBody
from lapwing.server.deadline import admission
from lapwing.server.deadline.process import QuestionProcess
from lapwing.server.execution import Ask
from lapwing.server.people import DAY, People
from lapwing.server.postgres_store import PostgresStore
from lapwing.server.service import Service
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store import now
from lapwing.server.store_places import open_store
from tests.support.release import small
from tests.support.server.question_thread import QuestionThread
from tests.support.server.world import QUESTION, QUICK, on_both, service_in

ROOT = Path(__file__).parents[2]
PATIENCE = 300
pytestmark = on_both
HOLD = """
import sys
from lapwing.server.store_places import open_store
with open_store(sys.argv[1]).lock("alice a key"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hosts(tmp_path: Path, people: str) -> Iterator[tuple[Service, Service]]:
    one = service_in(tmp_path, people=people)
    sessions = [open_session(served.session.catalog) for served in one.datasets.everything()]
    other = Service(people, sessions, QUICK)
    yield one, other
    for service in (one, other):
        service.close()


def ask(service: Service, key: str | None) -> AnswerRecord:
    """Ask as alice, in this thread."""
    secret, _ = service.people.issue("alice", label="", scopes={"ask"}, seconds=DAY, by="carol")
    caller = service.people.caller(secret)
    served = service.datasets.visible(caller, "open")
    ask = Ask(caller=caller, served=served, body=QueryBody.model_validate(QUESTION), key=key)
    (kept,) = service.executor.answered(ask)
    return kept


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold the first question in the engine until the block ends; gives what says that it has come there."""
    came, go_on, run = threading.Event(), threading.Event(), DuckDB.run

    def slowly(self: DuckDB, *given: Any, **named: Any) -> Any:
        came.set()
        assert go_on.wait(PATIENCE)
        return run(self, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", slowly)
        try:
            yield came
        finally:
            go_on.set()


def test_a_key_that_is_under_way_elsewhere_is_waited_for(
    hosts: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = hosts
    with ThreadPoolExecutor(2) as threads:
        with held(monkeypatch) as came:
            first = threads.submit(ask, one, "a key")
            assert came.wait(PATIENCE)
            second = threads.submit(ask, other, "a key")
            assert not wait([second], timeout=0.5).done
        assert first.result().id == second.result().id
        assert first.result().document == second.result().document
    assert len(one.datasets.everything()[0].session.budget().history) == 1


@pytest.mark.long
def test_a_key_whose_owner_is_taken_for_dead_is_found(
    hosts: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: nobody is seen to hold a turn. Then the key has two answers; the ledger still has one charge."""
    for store in (SqliteStore, PostgresStore):
        monkeypatch.setattr(store, "lock", lambda self, name: nullcontext())
    one, other = hosts
    begin, looked = other.answers.begin, threading.Event()

    def looking(*given: Any) -> IdempotencyRecord | None:
        found = begin(*given)
        looked.set()
        return found

    monkeypatch.setattr(other.answers, "begin", looking)
    with ThreadPoolExecutor(2) as threads:
        with held(monkeypatch) as came:
            first = threads.submit(ask, one, "a key")
            assert came.wait(PATIENCE)
            second = threads.submit(ask, other, "a key")
            assert looked.wait(PATIENCE)
        assert first.result().id != second.result().id
    assert len(one.datasets.everything()[0].session.budget().history) == 1


def test_who_dies_lets_go_of_a_turn(hosts: tuple[Service, Service], people: str) -> None:
    with ThreadPoolExecutor(1) as thread, subprocess.Popen(
        [sys.executable, "-c", HOLD, people], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as dying:  # fmt: skip
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"held\n"
        waiting = thread.submit(ask, hosts[0], "a key")
        assert not wait([waiting], timeout=0.5).done
        dying.kill()
        assert waiting.result(PATIENCE).document["stored"] is False


@pytest.mark.long
def test_what_one_takes_away_all_refuse(hosts: tuple[Service, Service]) -> None:
    one, other = hosts
    secret, token = one.people.issue("alice", label="", scopes={"ask"}, seconds=DAY, by="carol")
    assert other.people.caller(secret).name == "alice"
    one.people.revoke(token.id, of="alice", by="carol")
    with pytest.raises(NotAuthorised):
        other.people.caller(secret)
    other.policies.stop("open", stopped=True, by="carol")
    with pytest.raises(DataStopped):
        ask(one, None)
    other.policies.stop("open", stopped=False, by="carol")
    assert ask(one, None).document["stored"] is False
    assert ask(other, None).document["stored"] is True


# ---- Deadlines -------------------------------------------------------------------------------------------------------


@pytest.fixture
def padded(tmp_path: Path, people: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Service, Service]]:
    """Two hosts that answer at deadlines, with one ledger: in a file, or in the database of their people."""
    monkeypatch.setattr(admission, "LOOK", 0.05)
    described = small.catalog(tmp_path)
    small.write(tmp_path, [small.row(person, plan="ab"[person % 2], cost=person % 8) for person in range(20)])
    if "://" in people:
        described = replace(described, ledger=f"{people}{'&' if '?' in people else '?'}ledger=small")
    services = list[Service]()
    for _ in range(2):
        process = cast(QuestionProcess, QuestionThread())
        services.append(Service(people, [open_session(described)], QUICK, questions=process))
        services[-1].executor.start()
    services[0].people.add("carol", "curator", None, by="carol")
    services[0].people.add("alice", "analyst", None, by="carol")
    view = services[0].datasets.everything()[0].session.budget()
    services[0].policies.grant("small", "alice", None, view.spending, view.total, by="carol")
    yield services[0], services[1]
    for service in services:
        service.close()


def deadline(service: Service) -> float | None:
    secret, _ = service.people.issue("alice", label="", scopes={"ask"}, seconds=DAY, by="carol")
    caller = service.people.caller(secret)
    body = ExplainBody.model_validate({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01})
    return service.executor.deadline_of(caller, service.datasets.visible(caller, "small"), body)


def agree_after_events(hosts: tuple[Service, Service], patience: int) -> bool:
    """Let answers of the first host be late three times; tell whether both promise the same deadline then."""
    before = deadline(hosts[0])
    assert before is not None
    assert deadline(hosts[1]) == before
    for _ in range(3):
        hosts[0].datasets.session_of("small").note_late(datetime.now(UTC).isoformat(), "alice")
    for _ in range(patience):
        if [deadline(host) for host in hosts] == [4 * before] * 2:
            return True
        time.sleep(0.05)
    return False


def test_hosts_agree_on_deadlines_by_the_events_of_all(padded: tuple[Service, Service]) -> None:
    assert agree_after_events(padded, 1000)


@pytest.mark.long
def test_a_host_that_looks_at_its_own_events_alone_is_found(
    padded: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: nobody looks."""
    for host in padded:
        monkeypatch.setattr(host.executor.rounds[0], "round", lambda: 60.0)
    assert not agree_after_events(padded, 10)


def noted_together(people: str, monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[Future[Any]]:
    """Add somebody at two stores, of which each waits for the other between looking at the log and adding to it."""
    barrier = threading.Barrier(2)

    def met() -> str:
        with suppress(threading.BrokenBarrierError):
            barrier.wait(seconds)
        return now()

    monkeypatch.setattr("lapwing.server.audit_log.now", met)
    stores = [open_store(people), open_store(people)]
    with ThreadPoolExecutor(2) as threads:
        added = [
            threads.submit(People(store).add, name, "analyst", None, by="carol")
            for store, name in zip(stores, ("dora", "emil"), strict=True)
        ]
    for store in stores:
        store.close()
    return added


def test_the_audit_log_stays_one_chain(
    hosts: tuple[Service, Service], people: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(future.exception() is None for future in noted_together(people, monkeypatch, 0.5))
    with hosts[0].store.reading() as connection:
        lines = list(audit_log.lines(connection))
    assert audit_log.first_broken(iter(lines)) is None
    assert [line["subject"] for line in lines if line["act"] == "person added"][-2:] in (
        ["dora", "emil"],
        ["emil", "dora"],
    )
