"""What came of a question is in the ledger from its public moment on, and not before, however long it took."""

import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from lapwing.answer.notes import REFINED
from lapwing.engines import DuckDB
from lapwing.errors import EngineFault, Interrupted, LapwingError, QueryRefused, RefusalCause
from lapwing.release import answering, release
from lapwing.server.deadline.admission import ticket
from lapwing.server.deadline.cost import Cost
from lapwing.server.deadline.pace import NotStored, Reached, StoredOnly, TicketPace, TooBusy
from lapwing.server.deadline.turns import Turns
from lapwing.session import Session
from tests.support.server.pacing import Here, Waiting, acting, paced
from tests.support.server.world import data_set

COUNT = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
SEARCHED = "SELECT SUM(cost, contribution_bounds_per_row => AUTO) AS s FROM visits"
COST = Cost(seconds=0.1, steps=1)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with data_set(tmp_path, "open") as opened:
        opened.sql(COUNT, epsilon=0.01)
        yield opened


def answered(session: Session) -> list[bool]:
    return [row.answered for row in session.history()]


def asks(asker: Session) -> Any:
    return asker.sql(COUNT, epsilon=0.1)


def check_moment(session: Session, ago: float = 0.0) -> None:
    waiting = Waiting(session, asks, ago=ago)
    waiting.comes_to_wait()
    assert answered(session) == [True, False]
    waiting.goes_on()
    assert waiting.result().rows()
    assert answered(session) == [True, True]
    assert not session.faults()


@pytest.mark.parametrize("ago", [0.0, 60.0])
def test_an_answer_is_there_from_its_moment_on(session: Session, ago: float) -> None:
    """From the word of who hands out on, though its moment be over: then it is late, and recorded once."""
    check_moment(session, ago)


def test_the_check_finds_a_record_that_does_not_wait(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    record = release._record
    monkeypatch.setattr(
        release,
        "_record",
        lambda found, _charges, answers, access: record(found, (), answers, access),
    )
    with pytest.raises(AssertionError):
        check_moment(session)


def test_a_fault_is_known_from_the_same_moment_on(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> object:
        raise EngineFault("it failed")

    monkeypatch.setattr(DuckDB, "run", failing)
    waiting = Waiting(session, asks)
    waiting.comes_to_wait()
    assert [row.unanswered for row in session.history()] == [None, None]
    waiting.goes_on()
    with pytest.raises(EngineFault):
        waiting.result()
    assert [row.unanswered for row in session.history()] == [None, "fault"]
    assert len(session.faults()) == 1


def test_what_nobody_says_anything_of_any_more_is_recorded_at_its_moment(session: Session) -> None:
    pace, moments = paced(lambda *_: None, COST, time.monotonic())
    pace.leave_alone()
    asks(acting(session, pace))
    assert time.monotonic() >= moments.known_from[0]
    assert answered(session) == [True, True]


def test_what_is_given_up_is_a_fault_whatever_was_found(session: Session) -> None:
    pace, _ = paced(lambda pace, _: pace.hear("give up"), COST, time.monotonic())
    with pytest.raises(EngineFault):
        asks(acting(session, pace))
    assert [row.unanswered for row in session.history()] == [None, "fault"]


def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    run = DuckDB.run

    def later(self: DuckDB, *arguments: Any) -> Any:
        self._database.query("SELECT COUNT(*) FROM range(4000000000) AS a, range(1000) AS b WHERE hash(a.range) = 1")
        return run(self, *arguments)

    monkeypatch.setattr(DuckDB, "run", later)


def test_what_takes_more_than_a_quiet_machine_has_is_stopped_at_its_moment(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless(monkeypatch)
    turns = Turns()
    threading.Thread(target=turns.watch, daemon=True).start()
    pace, moments = paced(lambda pace, _: pace.hear("proceed"), COST, time.monotonic(), turns)
    with pytest.raises(EngineFault):
        asks(acting(session, pace))
    assert time.monotonic() >= moments.known_from[0] - 0.1
    assert len(session.faults()) == 1


def test_somebody_who_asks_the_same_waits_for_the_first_and_pays_nothing(session: Session) -> None:
    """What waits says so: its moments are those of another, and it is charged at no moment of its own."""
    first = Waiting(session, asks)
    first.comes_to_wait()
    reached = SimpleQueue[Reached]()
    pace = TicketPace(ticket(COST, 0.0, time.monotonic()), Turns(), Here(), reached.put)
    second = acting(session, pace, "bob")
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(asks, second)
        assert reached.get(timeout=60) == "waits"
        first.goes_on()
        assert asking.result().stored
    assert reached.empty()
    first.result()
    with pytest.raises(TooBusy):
        second.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)


def test_bounds_are_known_from_a_moment_of_their_own(session: Session) -> None:
    waiting = Waiting(session, lambda asker: asker.sql(SEARCHED, epsilon=0.5), steps=2)
    waiting.comes_to_wait()
    assert not any(answered(session)[1:])
    waiting.goes_on()
    waiting.comes_to_wait()
    assert answered(session) == [True, True, False]
    waiting.goes_on()
    waiting.result()
    assert answered(session) == [True] * 3


def test_questions_of_a_batch_are_known_together(session: Session) -> None:
    texts = [f"SELECT COUNT(*) AS n FROM visits WHERE cost < {most}" for most in range(3)]
    waiting = Waiting(session, lambda asker: asker.batch(texts, epsilon=0.1))
    waiting.comes_to_wait()
    assert answered(session) == [True, False, False, False]
    waiting.goes_on()
    waiting.result()
    assert answered(session) == [True] * 4


def test_what_is_given_up_before_its_charge_is_not_charged(session: Session) -> None:
    pace, _ = paced(lambda *_: None, COST, time.monotonic())
    pace.hear("give up")
    charges = len(session.history())
    with pytest.raises(TooBusy):
        asks(acting(session, pace))
    assert len(session.history()) == charges


def test_what_was_bought_is_served_and_nothing_else(session: Session) -> None:
    bought = session.sql(COUNT, epsilon=0.1)
    asker = session.acting_for("alice", timing=StoredOnly().timing(session.catalog))
    assert asker.sql(COUNT, epsilon=0.1).rows() == bought.rows()
    charges = len(session.history())
    for sql in (SEARCHED, "SELECT COUNT(*) AS n FROM visits"):
        with pytest.raises(NotStored):
            asker.sql(sql, epsilon=0.1)
    with pytest.raises(NotStored):
        asker.batch([COUNT, "SELECT COUNT(*) AS n FROM visits"], epsilon=0.1)
    assert len(session.history()) == charges


def test_notes_are_made_of_what_is_stored_alone(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    bought = session.sql(COUNT, epsilon=0.1)
    made, notes_of = list[object](), answering.notes_of

    def noted(*asked: Any) -> tuple[str, ...]:
        made.append(asked)
        return notes_of(*asked)

    monkeypatch.setattr(answering, "notes_of", noted)
    asker = session.acting_for("alice", timing=StoredOnly().timing(session.catalog))
    with pytest.raises(NotStored):
        asker.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    assert made == []
    again = asker.sql(COUNT, epsilon=0.1)
    assert again.stored
    # That a result was refined is said of a charge, and this is none.
    said = [note for note in bought.notes if getattr(note, "code", "") != REFINED]
    assert (again.rows(), [*again.notes]) == (bought.rows(), said)
    assert len(made) == 1


def test_notes_that_fail_cost_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something may be charged, they are made before."""
    charges = len(session.history())
    monkeypatch.setattr(answering, "notes_of", lambda *_: 1 // 0)
    pace, _ = paced(lambda *_: None, COST, time.monotonic())
    for asker in (session, acting(session, pace)):
        with pytest.raises(ZeroDivisionError):
            asker.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    assert len(session.history()) == charges


def test_what_is_of_no_use_is_refused_at_once(session: Session) -> None:
    """What nothing is bought for is refused as where it would be charged, and not sent on to be."""
    unbounded = "SELECT SUM(DATE_DIFF('day', DATE '2020-01-01', day)) AS d FROM visits"
    pace = StoredOnly()
    for asker in (session, session.acting_for("alice", timing=pace.timing(session.catalog))):
        with pytest.raises(QueryRefused) as refused:
            asker.sql(unbounded, epsilon=0.1)
        assert refused.value.cause == RefusalCause.BOUNDS_TOO_WIDE


def test_errors_come_from_another_process_as_they_were() -> None:
    for error in (Interrupted(charged=True), QueryRefused("no", remedy="Ask.", position=(1, 2)), EngineFault("it")):
        error.searches_charged = True
        copy = pickle.loads(pickle.dumps(error))
        assert isinstance(copy, LapwingError)
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
