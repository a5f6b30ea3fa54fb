"""Questions that are cancelled: free before their turn, paid and untold after it, and never a fault."""

import json
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.documents.answer_document import arrow_stream
from lapwing.errors import Interrupted
from lapwing.release import searches
from lapwing.server import job_runner
from lapwing.server.jobs import JobStore
from lapwing.server.problems import problem_of
from tests.support.cli.command import Run
from tests.support.server.queueing import cancelled, ended, endless, held, question, seen, submitted, until
from tests.support.server.world import Reply, World, on_both


@on_both
def test_what_waits_is_dropped_uncharged(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as (came, go_on):
        first = submitted(one, question(1))
        assert came.acquire(timeout=60)
        second, third = submitted(one, question(2), **{"Idempotency-Key": "x"}), submitted(one, question(3))
        before = one.session()._ledger.state()
        reply = cancelled(one, second)
        assert (reply.status, reply.document["status"]) == (200, "cancelled")
        assert reply.document["problem"]["charged"] is False
        assert one.session()._ledger.state() == before
        assert seen(one, third)["ahead"] == 0
        go_on.set()
        assert [ended(one, document)["status"] for document in (first, third)] == ["done", "done"]
    assert cancelled(one, second).document == seen(one, second) == reply.document  # once more changes nothing
    assert one.charges() == 2
    assert submitted(one, question(2), **{"Idempotency-Key": "x"})["id"] != second["id"]  # its key is free again


def stopped_midway(world: World, monkeypatch: pytest.MonkeyPatch, number: int = 1, who: str = "alice") -> Any:
    """Cancel a question whose query is under way in the engine, and return what became of it."""
    with endless(monkeypatch) as came:
        document = submitted(world, question(number), **{"Idempotency-Key": f"key {number}"})
        assert came.acquire(timeout=60)
        reply = cancelled(world, document, who)
        assert (reply.status, reply.document["status"]) == (200, "running") or reply.document["status"] == "cancelled"
        return ended(world, document)


def is_paid_and_untold(world: World, document: Any) -> None:
    """Check all that holds of a question that was cancelled after its charge."""
    assert (document["status"], document["answer"]) == ("cancelled", None)
    assert (document["problem"]["code"], document["problem"]["charged"]) == ("interrupted", True)
    assert "the cost is charged" in document["problem"]["detail"]
    view = world.session().budget()
    assert view.spent == world.session().price(0.01).rounded_up()
    assert [row.unanswered for row in view.history] == ["interrupt"]
    assert world.session().faults() == ()
    assert world.service.answers.of("alice", "open", 10) == []


@on_both
def test_what_runs_is_stopped_and_stays_charged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    document = stopped_midway(world, monkeypatch)
    is_paid_and_untold(world, document)
    assert submitted(world, question(1), **{"Idempotency-Key": "key 1"}) == document  # its key is not asked again
    told = world.query("alice", question(1), **{"Idempotency-Key": "key 1"})
    assert (told.status, told.document["code"]) == (409, "interrupted")
    assert world.charges() == 1
    assert world.query("alice", question(1)).status == 200  # asked anew, it is bought anew
    assert world.charges() == 2


@pytest.mark.long
def test_cancelled_questions_are_no_faults(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        assert stopped_midway(world, monkeypatch, number)["status"] == "cancelled"
    assert world.session().faults() == ()
    assert world.query("alice").status == 200


@pytest.mark.long
def test_what_is_stopped_after_its_bounds_were_found_says_what_was_charged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that charges twice, and is cancelled between the two."""
    found = "SELECT SUM(cost, contribution_bounds_per_row => AUTO) AS s FROM visits"
    asked, bind = list[Any](), vars(searches)["bind"]

    def cancelling(*arguments: Any) -> Any:  # called when bounds are there, and at no other time
        cancelled(world, asked[0])
        return bind(*arguments)

    with held(monkeypatch) as (_, go_on):
        asked.append(submitted(world, {"sql": found, "epsilon": 1}))
        monkeypatch.setattr(searches, "bind", cancelling)
        go_on.set()
        document = ended(world, asked[0])
    assert (document["status"], document["problem"]["charged"]) == ("cancelled", True)
    history = world.session().budget().history
    assert [row.answered for row in history] == [True]
    assert history[0].loss.amount > 0


@pytest.mark.long
def test_a_cancel_that_says_it_was_free_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what runs is taken for what waits."""
    monkeypatch.setattr(job_runner, "problem_of", lambda error: problem_of(Interrupted(charged=False)))
    with pytest.raises(AssertionError):
        is_paid_and_untold(world, stopped_midway(world, monkeypatch))


def test_a_cancel_that_refunds_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the ledger is put back to where it was before the question."""
    ledger = world.session()._ledger
    before, history = ledger.state(), ledger.history()
    document = stopped_midway(world, monkeypatch)
    is_paid_and_untold(world, document)
    for state in ("state", "seen"):
        monkeypatch.setattr(type(ledger), state, lambda self: before)
    monkeypatch.setattr(type(ledger), "history", lambda self, **_: history)
    with pytest.raises(AssertionError):
        is_paid_and_untold(world, document)


@pytest.mark.long
def test_a_cancel_that_counts_as_a_fault_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the ledger is told of a fault."""
    ledger = type(world.session()._ledger)
    note = ledger.record_unanswered
    monkeypatch.setattr(ledger, "record_unanswered", lambda self, charges, cause: note(self, charges, "fault"))
    with pytest.raises(AssertionError):
        is_paid_and_untold(world, stopped_midway(world, monkeypatch))


def cancelled_at_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Cancel a question whose answer is recorded in the ledger, and not yet kept by the service."""
    sent = list[Reply]()
    document: list[Any] = []

    def cancelling(*arguments: Any) -> bytes:
        until(lambda: bool(document))
        sent.append(cancelled(world, document[0]))
        return arrow_stream(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("lapwing.server.execution.arrow_stream", cancelling)
        document.append(submitted(world, question(1)))
        after = ended(world, document[0])
    assert sent[0].document["status"] == "running"
    assert sent[0].document["stopping"]
    return after


def is_untold(world: World, document: Any) -> None:
    assert (document["status"], document["answer"]) == ("cancelled", None)
    assert document["problem"]["charged"] is True
    assert world.service.answers.of("alice", "open", 10) == []
    assert world.charges() == 1


@pytest.mark.long
def test_an_answer_that_comes_after_the_cancel_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    is_untold(world, cancelled_at_the_end(world, monkeypatch))
    assert world.query("alice", question(1)).document["stored"]  # it is in the ledger, paid: asking again is free
    assert world.charges() == 1


@pytest.mark.long
def test_an_answer_that_is_kept_after_the_cancel_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody looks whether the answer is still wanted."""

    def unasked(id_: str, connection: Any, answer: str) -> bool:
        connection.execute("UPDATE queries SET status = 'done', answer = ? WHERE id = ?", (answer, id_))
        return True

    monkeypatch.setattr(job_runner, "done", unasked)
    with pytest.raises(AssertionError):
        is_untold(world, cancelled_at_the_end(world, monkeypatch))


@pytest.mark.long
def test_another_process_is_told_to_stop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is told of the cancel where the question does not run."""
    with endless(monkeypatch) as came:
        document = submitted(world, question(1))
        assert came.acquire(timeout=60)
        JobStore(world.service.store).cancel(document["id"], by="alice")
        assert ended(world, document)["status"] == "cancelled"
    assert [row.unanswered for row in world.session().budget().history] == ["interrupt"]


@pytest.mark.long
def test_curators_cancel_what_is_others_and_it_is_noted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stopped_midway(world, monkeypatch, who="carol")["status"] == "cancelled"
    lines = world.ask("GET", "/v1/audit", "carol").content.decode().splitlines()
    noted = [line for line in map(json.loads, lines) if line["act"] == "question cancelled"]
    assert [(line["actor"], line["subject"]) for line in noted] == [("carol", "alice")]


@pytest.mark.long
def test_a_cancelled_question_is_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_midway(world, monkeypatch)
    assert 'outcome="interrupted"} 1' in world.ask("GET", "/metrics", "carol").content.decode()


# ---- The command line ----


@pytest.mark.long
def test_the_command_waits_in_the_queue_and_cancels(
    world: World, run: Run, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["alice"])
    for module in ("query", "asking"):  # this process has other tests to run
        monkeypatch.setattr(f"lapwing.cli.{module}.ignore_interrupts", lambda: None)
    asked = ("query", question(1)["sql"], "--epsilon", "0.01", "--queue")
    answered = run(*asked, "--server", world.address, "--format", "csv")
    assert (answered.status, answered.out.splitlines()[0]) == (0, "n,n_low,n_high")
    (done,) = world.ask("GET", "/v1/queries", "alice").document
    assert done["id"] in answered.err
    here = run(*asked, "--catalog", "lapwing.toml")
    assert visits.exists()
    assert here.status == 2
    assert "--queue goes with --server" in here.err
    wait, pressed = lw.Pending.wait, list[str]()

    def pressing(self: lw.Pending, seconds: float | None = None) -> lw.RemoteAnswer:
        if not pressed:
            pressed.append(self.id)
            assert came.acquire(timeout=60)
            raise KeyboardInterrupt
        return wait(self, seconds)

    monkeypatch.setattr(lw.Pending, "wait", pressing)
    with endless(monkeypatch) as came:
        stopped = run("query", question(2)["sql"], "--epsilon", "0.01", "--queue", "--server", world.address)
    assert (stopped.status, stopped.out) == (130, "")
    assert "the cost is charged" in stopped.err
    assert [row.unanswered for row in world.session().budget().history] == [None, "interrupt"]
