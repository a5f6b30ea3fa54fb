"""Two services that share their people and their ledgers, as on two hosts or in two processes: they hold as one."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from lapwing.engines import DuckDB
from lapwing.errors import DataStopped, NotAuthorised
from lapwing.opening import open_session
from lapwing.server import audit_log
from lapwing.server.answer_store import AnswerRecord, IdempotencyRecord
from lapwing.server.bodies import QueryBody
from lapwing.server.people import DAY, People
from lapwing.server.postgres_store import PostgresStore
from lapwing.server.service import Service
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store import now
from lapwing.server.store_places import open_store
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
    (kept,) = service.executor.answered(caller, served, QueryBody.model_validate(QUESTION), key)
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


def test_a_key_whose_owner_is_taken_for_dead_is_found(
    hosts: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: nobody is seen to hold a turn. Then the key has two answers; the ledger still has one charge."""
    for store in (SqliteStore, PostgresStore):
        monkeypatch.setattr(store, "lock", lambda self, name: nullcontext())
    one, other = hosts
    begin, looked = other.executor._answers.begin, threading.Event()

    def looking(*given: Any) -> IdempotencyRecord | None:
        found = begin(*given)
        looked.set()
        return found

    monkeypatch.setattr(other.executor._answers, "begin", looking)
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
