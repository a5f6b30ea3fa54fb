"""Questions that nobody waits for: what becomes of them, over HTTP, whose they are, and whatever dies."""

import json
import sqlite3
import threading
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, get_args

import pytest

import lapwing as lw
from lapwing.engines import DuckDB
from lapwing.errors import Fault
from lapwing.machine.waiting import WaitsFor, say
from lapwing.server.job_runner import JobRunner
from lapwing.server.jobs import SILENT, Job, JobStore
from lapwing.server.store_places import open_store
from tests.server.test_serving import served, token
from tests.support.cli.command import write_visits
from tests.support.effort import only
from tests.support.server.queueing import ONE, QUERIES, cancelled, ended, held, question, seen, submitted, until
from tests.support.server.world import QUESTION, Reply, World, on_both, service_in, serving

# ---- What becomes of it ----


@on_both
def test_a_queued_question_is_asked_and_its_answer_kept(world: World) -> None:
    document = submitted(world)
    assert document["request"]["sql"] == QUESTION["sql"]
    assert (document["answer"], document["problem"]) == (None, None)
    done = ended(world, document)
    assert done["status"] == "done"
    answer = world.ask("GET", f"/v1/answers/{done['answer']}", "alice").document
    assert answer["rows"] == world.query("alice").document["rows"]
    assert not answer["stored"]
    assert world.charges() == 1
    assert world.ask("GET", "/v1/queries", "alice").document == [done]
    assert world.ask("GET", "/v1/queries", "bob").document == []
    assert world.ask("GET", "/v1/queries?everybody=true", "audrey").document == [done]
    assert world.ask("GET", "/v1/queries?everybody=true", "alice").status == 403


DEAR = {**QUESTION, "epsilon": 1000}


def test_a_wrong_question_is_refused_at_once(world: World) -> None:
    wrong = {"sql": "SELECT cost FROM visits", "epsilon": 1}
    queued, at_once = world.ask("POST", QUERIES, "alice", wrong), world.query("alice", wrong)
    assert queued.status == 422
    assert queued.document == at_once.document
    assert world.ask("GET", "/v1/queries", "alice").document == []


@pytest.mark.long
def test_what_its_turn_brings_is_told_and_a_refusal_costs_nothing(world: World) -> None:
    failed = ended(world, submitted(world, DEAR))
    assert (failed["status"], failed["answer"]) == ("failed", None)
    assert failed["problem"] == world.query("alice", DEAR).document
    assert failed["problem"]["code"] == "budget_exhausted"
    assert world.charges() == 0


@pytest.mark.long
def test_a_bug_is_told_by_its_constant_message(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a private value")

    monkeypatch.setattr("lapwing.server.execution.answer_document", failing)
    failed = ended(world, submitted(world))
    assert (failed["status"], failed["problem"]["code"]) == ("failed", "internal")
    assert "private" not in json.dumps(failed)


@on_both
def test_a_key_is_one_question(world: World) -> None:
    key = {"Idempotency-Key": "one"}
    first = submitted(world, **key)
    assert submitted(world, **key)["id"] == first["id"]
    other = world.ask("POST", QUERIES, "alice", question(1), key)
    assert (other.status, other.document["code"]) == (409, "key_conflict")
    done = ended(world, first)
    assert submitted(world, **key) == done
    at_once = world.query("alice", **key).document
    assert at_once["id"] == done["answer"]
    assert world.charges() == 1


@pytest.mark.long
def test_a_key_of_what_was_not_charged_is_free_again(world: World) -> None:
    key = {"Idempotency-Key": "one"}
    first = ended(world, submitted(world, DEAR, **key))
    second = ended(world, submitted(world, DEAR, **key))
    assert second["id"] != first["id"]
    assert second["status"] == "failed"
    assert ended(world, submitted(world, **key))["status"] == "done"


def test_too_many_are_refused_and_leave_nothing(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one.service.executor.queue.lines.each = 2
    with held(monkeypatch) as (came, _):
        submitted(one, question(0))
        assert came.acquire(timeout=60)
        documents = [submitted(one, question(number)) for number in (1, 2)]
        reply = one.ask("POST", QUERIES, "alice", question(3))
        assert (reply.status, reply.document["code"]) == (429, "too_many_requests")
        assert len(one.ask("GET", "/v1/queries", "alice").document) == 3
        assert [seen(one, document)["ahead"] for document in documents] == [0, 1]
        submitted(one, question(4), "bob")


# ---- Turns ----


def order(world: World, monkeypatch: pytest.MonkeyPatch, many: int) -> list[str]:
    """Return who was charged, in order: alice who queued many, and bob who came after her and waits."""
    with held(monkeypatch) as (came, go_on):
        documents = [submitted(world, question(number)) for number in range(many + 1)]
        assert came.acquire(timeout=60)
        answered: list[Reply] = []
        thread = threading.Thread(target=lambda: answered.append(world.query("bob", question(1000))))
        thread.start()
        until(lambda: world.service.executor.queue.lines.waits("bob") or bool(answered))
        go_on.set()
        thread.join()
    assert {ended(world, document)["status"] for document in documents} == {"done"}
    return [row.principal for row in world.session().budget().history]


@pytest.mark.long
def test_many_queued_questions_hold_up_nobody_else(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert order(one, monkeypatch, 6).index("bob") == 1  # after the one that ran already


# ---- Whose it is ----


def telling(world: World, document: Any) -> list[str]:
    """Return by what bob, who may not see a question, can tell it from none."""
    found = []
    for method in ("GET", "DELETE"):
        replies = [world.ask(method, f"/v1/queries/{id_}", "bob") for id_ in (document["id"], "0" * 32)]
        if len({(reply.status, reply.content) for reply in replies}) > 1 or replies[0].status != 404:
            found.append(method)
    if document["id"].encode() in world.ask("GET", "/v1/queries", "bob").content:
        found.append("list")
    return found


@pytest.mark.long
def test_nobody_else_can_tell_that_it_is_there(world: World) -> None:
    document = submitted(world)
    assert telling(world, document) == []
    assert seen(world, document, "audrey")["id"] == document["id"]
    assert cancelled(world, document, "audrey").status == 403
    assert ended(world, document)["status"] == "done"


@pytest.mark.long
def test_one_that_is_seen_by_others_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a question is everybody's."""
    document, find, of = submitted(world), JobStore.find, JobStore.of
    ended(world, document)

    def anybody(self: JobStore, id_: str) -> Job:
        return replace(find(self, id_), person="bob")

    monkeypatch.setattr(JobStore, "find", anybody)
    assert telling(world, document) == ["GET", "DELETE"]
    monkeypatch.setattr(JobStore, "of", lambda self, person, most: of(self, None, most))
    assert "list" in telling(world, document)


def revoked_while_it_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    people = world.service.people
    with held(monkeypatch) as (came, go_on):
        submitted(world, question(1), "bob")
        assert came.acquire(timeout=60)
        document = submitted(world)
        people.revoke(people.caller(world.tokens["alice"]).token, of="alice", by="carol")
        go_on.set()
    world.tokens["alice"], _ = people.issue("alice", label="", scopes={"read", "ask"}, seconds=60, by="carol")
    return ended(world, document)


@pytest.mark.long
@on_both
def test_a_revoked_token_asks_nothing_that_waits(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = revoked_while_it_waits(one, monkeypatch)
    assert (failed["status"], failed["problem"]["code"]) == ("failed", "not_authorised")
    assert [row.principal for row in one.session().budget().history] == ["bob"]


def test_a_right_that_is_looked_at_once_is_found(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: who was let in once may ask for ever."""
    monkeypatch.setattr(JobRunner, "_require_still", lambda *_: None)
    assert revoked_while_it_waits(one, monkeypatch)["status"] == "done"


def test_a_lost_grant_asks_nothing_that_waits(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as (came, go_on):
        submitted(one, question(1), "bob")
        assert came.acquire(timeout=60)
        document = submitted(one, **{"Idempotency-Key": "x"})
        one.service.policies.withdraw("open", "alice", by="carol")
        go_on.set()
        until(lambda: seen(one, document)["status"] == "failed")
    assert seen(one, document)["problem"]["code"] == "not_found"
    one.service.policies.grant("open", "alice", None, {}, one.session().budget().total, by="carol")
    again = submitted(one, **{"Idempotency-Key": "x"})  # its key is free, as nothing was charged
    assert again["id"] != document["id"]
    assert ended(one, again)["status"] == "done"


# ---- A store that is away for a while ----


def away(monkeypatch: pytest.MonkeyPatch, step: str) -> threading.Event:
    """Let one step of every question fail until the event that is returned is set."""
    back, real = threading.Event(), getattr(JobStore, step)

    def broken(*arguments: Any, **named: Any) -> Any:
        if not back.is_set():
            raise Fault("The service's file cannot be used.")
        return real(*arguments, **named)

    monkeypatch.setattr(JobStore, step, broken)
    return back


def check_told_later(world: World, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """A question whose step could not be written down is ended, uncharged, and its key is free."""
    back = away(monkeypatch, step)
    document = submitted(world, DEAR, **{"Idempotency-Key": "one"})
    until(lambda: not world.service.job_runner._live)
    assert seen(world, document)["status"] in ("waiting", "running", "failed")
    back.set()
    until(lambda: not world.service.job_runner._unsaid)
    assert seen(world, document)["status"] == "failed"
    assert submitted(world, DEAR, **{"Idempotency-Key": "one"})["id"] != document["id"]
    assert world.charges() == 0


@pytest.mark.long
@pytest.mark.parametrize("step", only([0], ["begin", "ended"]))
def test_what_could_not_be_written_down_is_written_later(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    check_told_later(world, monkeypatch, step)


@pytest.mark.parametrize("step", only([0], ["begin", "ended"]))
def test_a_queue_that_forgets_it_is_found(world: World, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def forgetful(queued: JobRunner, id_: str, *more: Any, **named: Any) -> None:
        if step == "ended":
            with suppress(Fault):
                queued._jobs.ended(id_, *more, **named)

    monkeypatch.setattr(JobRunner, "_end", forgetful)
    with pytest.raises(AssertionError):
        check_told_later(world, monkeypatch, step)


# ---- The end of a service ----


@on_both
def test_questions_of_a_process_that_died_are_failed(world: World) -> None:
    store, key = world.service.store, "a key"
    dead = JobStore(store)
    request = world.service.jobs.add("alice", "open", QUESTION, None)[0].request
    waited, ran = (dead.add("alice", "open", request, name)[0] for name in (key, "another"))
    assert dead.begin(ran.id)
    late = JobStore(store, clock=lambda: dead._clock() + SILENT + 1)
    assert {one.status for one in JobStore(store).of("alice", 9)} == {"waiting", "running"}  # not silent yet
    told = {one.id: one for one in late.of("alice", 9)}
    assert {one.status for one in told.values()} == {"failed"}
    assert "Nothing was charged" in told[waited.id].problem["detail"]  # type: ignore[index]
    assert "history" in told[ran.id].problem["detail"]  # type: ignore[index]
    assert dead.settle(ran.id, "0" * 32) is False  # if it was only silent, its answer comes too late
    assert late.add("alice", "open", request, key)[1]  # its key is free


def test_a_process_that_says_that_it_is_there_is_not_dead(world: World) -> None:
    store, hours = world.service.store, 3600
    late = JobStore(store, clock=lambda: JobStore(store)._clock() + hours)
    mine, _ = late.add("alice", "open", QUESTION, None)
    assert late.beat() == {mine.id}
    assert late.find(mine.id).status == "waiting"
    assert JobStore(store, clock=late._clock).find(mine.id).status == "waiting"
    assert JobStore(store, clock=lambda: late._clock() + SILENT + 1).find(mine.id).status == "failed"


@pytest.mark.long
def test_the_end_drops_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_in(tmp_path, ONE)
    with held(monkeypatch) as (came, go_on), serving(service) as world:
        running, waiting = submitted(world, question(1)), submitted(world, question(2))
        assert came.acquire(timeout=60)
        threading.Timer(0.3, go_on.set).start()
    with closing(open_store(tmp_path / "people.db")) as store:
        documents = {one.id: one for one in JobStore(store).of("alice", 9)}
    assert documents[running["id"]].status == "done"
    assert documents[waiting["id"]].status == "failed"
    assert "Nothing was charged" in documents[waiting["id"]].problem["detail"]  # type: ignore[index]


@pytest.mark.long
def test_a_killed_service_says_what_became_of_each(tmp_path: Path) -> None:
    """When it is killed does not matter: what is checked holds whenever that is."""
    write_visits(tmp_path)
    bounds, unit = {"cost": (0, 500)}, {"privacy_unit": "person_id", "max_rows_per_unit": 3}
    lw.protect(tmp_path / "visits.parquet", epsilon=3, delta=1e-6, bounds=bounds, **unit).close()  # type: ignore[arg-type]
    with served(tmp_path, "visits.lapwing.toml", "--rate", "0", "--threads", "1") as (process, port):
        session = lw.connect(f"http://127.0.0.1:{port}", token=token(port))
        submitted = [session.submit(question(number)["sql"], epsilon=0.01) for number in range(30)]
        submitted[1].wait(60)
        process.kill()
    with closing(sqlite3.connect(tmp_path / "lapwing.people.db")) as store, store:
        store.execute("UPDATE queries SET seen = 0")  # time passes
    with served(tmp_path, "visits.lapwing.toml", "--rate", "0") as (_, port):
        session = lw.connect(f"http://127.0.0.1:{port}", token=token(port))
        told = {one.id: session.pending(one.id) for one in submitted}
        charged = Counter(row.question for row in session.budget().history)
        outcomes = Counter(one.status() for one in told.values())
        assert outcomes.keys() <= {"done", "failed"}
        assert outcomes["done"] >= 2
        uncharged = 0
        for one in told.values():
            if one.status() == "done":
                assert len(one.wait()) == 1
                continue
            with pytest.raises(lw.ServiceFault, match=r"Nothing was charged|Check your history") as fault:
                one.wait()
            uncharged += "history" not in str(fault.value)
        assert uncharged >= 30 - outcomes["done"] - 1  # one ran at once
        assert len(session.sql(question(29)["sql"], epsilon=0.01)) == 1
    assert max(charged.values()) == 1
    assert len(charged) <= 30 - uncharged


def test_what_a_query_waits_for_is_told_before_its_charge(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are lost in the middle are not: a row might be why."""
    prepare = DuckDB.prepare
    for what in get_args(WaitsFor):
        came, go_on = Event(), Event()

        def waits(
            self: DuckDB, *arguments: Any, what: WaitsFor = what, came: Event = came, go_on: Event = go_on
        ) -> None:
            say(what)
            came.set()
            assert go_on.wait(60)
            say(None)
            prepare(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(DuckDB, "prepare", waits)
            document = submitted(one, question(len(what)))
            assert came.wait(60)
            assert (found := seen(one, document))["status"] == "running"
            assert found["waits_for"] == ("workers" if what == "workers" else None)
            go_on.set()
            assert ended(one, document)["waits_for"] is None
