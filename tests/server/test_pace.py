"""What came of a question is in the ledger from its public moment on, and not before, however long it took."""

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lapwing.engines import DuckDB
from lapwing.errors import EngineFault, Interrupted, InvalidParameter, LapwingError, QueryRefused, RefusalCause
from lapwing.ledger.allowances import Limits
from lapwing.release import answering, release
from lapwing.server.deadline.admission import ticket
from lapwing.server.deadline.cost import Cost
from lapwing.server.deadline.pace import NotStored, Reached, StoredOnly, TicketPace, TooBusy
from lapwing.server.deadline.turns import Turns
from lapwing.session import Session
from tests.support.alone import waited
from tests.support.effort import only
from tests.support.server.pacing import Here, paced_by_a_thread
from tests.support.server.world import data_set

pytestmark = pytest.mark.alone

COUNT = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
SEARCHED = "SELECT SUM(cost, contribution_bounds_per_row => AUTO) AS s FROM visits"
CLOSE = 0.25
BEGUN = [0.0]


@pytest.fixture(autouse=True)
def begun() -> None:
    BEGUN[0] = waited()


def close() -> float:
    """Return how many seconds late a moment may be: some, and those for which the machine was busy with others."""
    return CLOSE + max(0.0, waited() - BEGUN[0])


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with data_set(tmp_path, "open") as opened:
        opened.sql(COUNT, epsilon=0.01)  # what it takes is loaded
        yield opened


def paced(session: Session, turns: Turns, seconds: float = 0.1, steps: int = 1) -> tuple[Session, Any]:
    pace, moments = paced_by_a_thread(turns, Cost(seconds=seconds, steps=steps), time.monotonic())
    return session.acting_for("alice", pace.limited(_no_limits), timing=pace.timing(session.catalog)), moments


def _no_limits() -> Limits:
    return Limits()


def seen_in(session: Session, true: Callable[[Any], bool]) -> float:
    """Return when the newest charge of the ledger is first seen so."""
    while True:
        rows = session.history()
        if rows and rows[-1].principal == "alice" and true(rows[-1]):
            return time.monotonic()
        time.sleep(0.003)


def watched(session: Session, true: Callable[[Any], bool]) -> Callable[[], float]:
    found: list[float] = []

    def look() -> None:
        with suppress(InvalidParameter):  # it was closed, as the test failed
            found.append(seen_in(session, true))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()

    def moment() -> float:
        thread.join(10)
        return found[0]

    return moment


def slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    run = DuckDB.run

    def later(self: DuckDB, *arguments: Any) -> Any:
        time.sleep(seconds)
        return run(self, *arguments)

    monkeypatch.setattr(DuckDB, "run", later)


@pytest.mark.parametrize("seconds", only([1], [0.0, 0.2]))
def test_an_answer_is_there_from_its_moment_on(
    session: Session, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    slow(monkeypatch, seconds)
    check_moment(session, 0.1)


def check_moment(session: Session, reserved: float) -> None:
    asker, moments = paced(session, Turns(), reserved)
    answered = watched(session, lambda row: row.answered)
    asker.sql(COUNT, epsilon=0.1)
    assert 0 <= answered() - moments.known_from[0] < close()


def test_the_check_finds_a_record_that_does_not_wait(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    record = release._record
    monkeypatch.setattr(
        release,
        "_record",
        lambda found, _charges, answers, access: record(found, (), answers, access),
    )
    with pytest.raises(AssertionError):
        check_moment(session, 2.0)  # so much that a busy machine has the answer long before


@pytest.mark.parametrize("seconds", only([1], [0.0, 0.15]))
def test_a_fault_is_known_from_the_same_moment_on(
    session: Session, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    def failing(*_: object) -> object:
        time.sleep(seconds)
        raise EngineFault("it failed")

    monkeypatch.setattr(DuckDB, "run", failing)
    asker, moments = paced(session, Turns())
    noted = watched(session, lambda row: row.unanswered is not None)
    with pytest.raises(EngineFault):
        asker.sql(COUNT, epsilon=0.1)
    assert 0 <= noted() - moments.known_from[0] < close()
    assert len(session.faults()) == 1


def test_what_is_not_ready_in_time_is_late_and_recorded_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 0.7)  # it leaves half a second after it begins
    asker, moments = paced(session, Turns())
    assert asker.sql(COUNT, epsilon=0.1).rows()
    assert time.monotonic() > moments.leaves
    assert [row.answered for row in session.history()] == [True, True]
    assert not session.faults()


def given_up(session: Session, reached: list[Reached]) -> Session:
    """Return a session whose question is given up once its numbers are there."""
    moments = ticket(Cost(seconds=0.1, steps=1), 0.0, time.monotonic())

    def says(what: Reached) -> None:
        reached.append(what)
        pace.hear("give up")

    pace = TicketPace(moments, Turns(), Here(), says)
    return session.acting_for("alice", pace.limited(_no_limits), timing=pace.timing(session.catalog))


def test_what_is_given_up_is_a_fault_whatever_was_found(session: Session) -> None:
    reached = list[Reached]()
    with pytest.raises(EngineFault):
        given_up(session, reached).sql(COUNT, epsilon=0.1)
    assert reached == ["ready"]
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
    asker, moments = paced(session, turns)
    with pytest.raises(EngineFault):
        asker.sql(COUNT, epsilon=0.1)
    assert time.monotonic() - moments.leaves < 1
    assert len(session.faults()) == 1


def test_somebody_who_asks_the_same_waits_for_the_first_and_pays_nothing(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits says so: its moments are those of another, and it is charged at no moment of its own."""
    slow(monkeypatch, 0.2)
    first, _ = paced(session, Turns())
    reached = list[Reached]()
    moments = ticket(Cost(seconds=0.1, steps=1), 0.0, time.monotonic())
    pace = TicketPace(moments, Turns(), Here(), reached.append)
    second = session.acting_for("bob", pace.limited(_no_limits), timing=pace.timing(session.catalog))
    asking = threading.Thread(target=first.sql, args=(COUNT,), kwargs={"epsilon": 0.1})
    asking.start()
    while not session.history()[1:]:
        time.sleep(0.003)
    assert second.sql(COUNT, epsilon=0.1).stored
    assert reached == ["waits"]
    asking.join()
    with pytest.raises(TooBusy):
        second.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)


def test_bounds_are_known_from_a_moment_of_their_own(session: Session) -> None:
    asker, moments = paced(session, Turns(), seconds=0.25, steps=2)
    answered = watched(session, lambda row: row.answered)
    asker.sql(SEARCHED, epsilon=0.5)
    assert 0 <= answered() - moments.known_from[0] < close()
    assert 0 <= time.monotonic() - moments.known_from[1] < close()
    assert [row.answered for row in session.history()] == [True] * 3


def test_questions_of_a_batch_are_known_together(session: Session) -> None:
    asker, moments = paced(session, Turns())
    answered = watched(session, lambda row: row.answered)
    texts = [f"SELECT COUNT(*) AS n FROM visits WHERE cost < {most}" for most in range(3)]
    asker.batch(texts, epsilon=0.1)
    assert 0 <= answered() - moments.known_from[0] < close()


def test_what_is_given_up_before_its_charge_is_not_charged(session: Session) -> None:
    pace, _ = paced_by_a_thread(Turns(), Cost(seconds=0.1, steps=1), time.monotonic())
    asker = session.acting_for("alice", pace.limited(_no_limits), timing=pace.timing(session.catalog))
    pace.hear("give up")
    charges = len(session.history())
    with pytest.raises(TooBusy):
        asker.sql(COUNT, epsilon=0.1)
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
    assert (again.rows(), again.notes) == (bought.rows(), bought.notes)
    assert len(made) == 1


def test_notes_that_fail_cost_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something may be charged, they are made before."""
    charges = len(session.history())
    monkeypatch.setattr(answering, "notes_of", lambda *_: 1 // 0)
    for asker in (session, paced(session, Turns())[0]):
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
