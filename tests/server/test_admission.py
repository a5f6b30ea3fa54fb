"""Who is asked when, and when the answer leaves, does not depend on how long it took.

Time is a number here: it goes on to the next moment at which the process says something or anything is due.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from lapwing.errors import EngineFault, LedgerFault, QueryRefused, ServiceFault, TooManyRequests
from lapwing.ledger.faults import LateAnswers
from lapwing.server.bodies import QueryBody
from lapwing.server.deadline import admission as admission_module
from lapwing.server.deadline import departures as departures_module
from lapwing.server.deadline.admission import Admission
from lapwing.server.deadline.cost import Cost, Speed
from lapwing.server.deadline.departures import LATER, TICK
from lapwing.server.deadline.pace import TOO_BUSY, TooBusy
from lapwing.server.deadline.process import (
    Heard,
    Move,
    Opened,
    Order,
    OrderOutcome,
    QuestionProcess,
    Reach,
    Say,
    Wanted,
)
from lapwing.server.people import Caller

CLOSE = 2 * TICK
"""Seconds: a gate and the end are each at the next tick."""
SOON = 1e-9
"""Seconds by which a moment is over, for floats that are a moment beside it."""


class Process:
    """A question process that answers when a test says it, by a clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.orders: list[Order] = []
        self.sent: list[float] = []
        self.said: list[Say | Move] = []
        self.is_up = True
        self.reaction: Callable[[Order], None] = lambda _: None
        self.told: Callable[[Heard], None]
        self.died: Callable[[], None]
        self._coming: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def start(self, told: Callable[[Heard], None], died: Callable[[], None]) -> None:
        self.told, self.died = told, died

    def send(self, sent: Order | Say | Move) -> bool:
        if not isinstance(sent, Order):
            self.said.append(sent)
            return self.is_up
        self.orders.append(sent)
        self.sent.append(self.now)
        self.later(0.0, lambda: self.reaction(sent))
        return self.is_up

    def close(self) -> None:
        pass

    def answer(self, order: Order, after: float = 0.0, **what: Any) -> None:
        self.later(after, lambda: self.told(OrderOutcome(number=order.number, **what)))

    def later(self, after: float, does: Callable[[], None]) -> None:
        heapq.heappush(self._coming, (self.now + after, next(self._count), does))

    def until_next(self) -> float | None:
        return self._coming[0][0] - self.now if self._coming else None

    def go_on(self, seconds: float) -> None:
        """Let time go on, and say what is to be said by then."""
        self.now += seconds + SOON
        while self._coming and self._coming[0][0] <= self.now:
            heapq.heappop(self._coming)[2]()


class Ledger:
    """What was written down of late answers, while that is possible."""

    def __init__(self) -> None:
        self.late: list[LateAnswers] = []
        self.writable = True

    def note(self, _dataset: str, tick: str, principal: str) -> tuple[str, ...]:
        if not self.writable:
            raise LedgerFault("it is full")
        self.late.append(LateAnswers(tick, principal))
        return self.ticks()

    def ticks(self) -> tuple[str, ...]:
        return tuple(late.tick for late in self.late)


class Desk(Executor):
    """Writes down what is on it when it is told to."""

    def __init__(self) -> None:
        self._work: list[Callable[[], Any]] = []

    def submit(self, does: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        self._work.append(lambda: does(*given, **named))
        return Future()

    def write(self) -> None:
        while self._work:
            self._work.pop(0)()


class Admitting:
    """An admission whose time is that of its process."""

    def __init__(self, ledger: Ledger) -> None:
        self.process, self.ledger, self._desk = Process(), ledger, Desk()
        process = cast(QuestionProcess, self.process)
        self.admission = Admission(
            process, lambda *_: None, ledger.note, lambda _: ledger.ticks(), None, lambda: self.process.now, self._desk
        )
        self.admission.begin()

    def put(self, one: Wanted) -> Future[Any]:
        return self.admission.put(one)

    def depth(self) -> tuple[int, int]:
        return self.admission.lines.depth()

    def step(self) -> float | None:
        """Do all that is to be done by now; return the seconds until anything is due, None if nothing is."""
        pauses: list[float | None] = []
        self.process.go_on(0.0)
        while not pauses:
            self.admission.turn(pauses.append)
        if self.ledger.writable:
            self._desk.write()
        return min((wait for wait in (pauses[0], self.process.until_next()) if wait is not None), default=None)

    def rest(self, seconds: float) -> None:
        """Let so many seconds go by."""
        end = self.process.now + seconds
        while (left := end - self.process.now) > 0:
            wait = self.step()
            self.process.go_on(left if wait is None else min(wait, left))
        self.step()

    def result(self, future: Future[Any]) -> Any:
        """Let time go on until a question is answered."""
        wait = self.step()
        while not future.done():
            if wait is None:
                pytest.fail("nothing comes any more")
            self.process.go_on(wait)
            wait = self.step()
        return future.result()

    def seconds_until(self, future: Future[Any]) -> float:
        begun = self.process.now
        with suppress(EngineFault, ServiceFault):
            self.result(future)
        return self.process.now - begun


@contextmanager
def admitting(ledger: Ledger | None = None) -> Iterator[tuple[Admitting, Process]]:
    running = Admitting(Ledger() if ledger is None else ledger)
    yield running, running.process
    running.admission.close()


def wanted(person: str = "alice", seconds: float = 0.001, steps: int = 1) -> Wanted:
    caller = Caller(name=person, role="analyst", rights=frozenset({"ask"}), token="t")
    body = QueryBody(sql="SELECT COUNT(*) AS n FROM visits", epsilon=1)
    cost = Cost(seconds=seconds, steps=steps)
    return Wanted(caller=caller, dataset="open", body=body, key=None, job=None, cost=cost)


@pytest.mark.parametrize("after", [0.0, 0.15])
@pytest.mark.parametrize("what", [{}, {"error": EngineFault("it failed")}])
def test_what_was_charged_leaves_at_its_deadline(after: float, what: Any) -> None:
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, after, **what)
        assert 0.5 <= admission.seconds_until(admission.put(wanted(seconds=0.1))) < 0.5 + CLOSE


def test_the_check_finds_answers_that_leave_when_they_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    know = Admission._know

    def at_once(self: Admission, admitted: Any, outcome: OrderOutcome) -> None:
        know(self, admitted, OrderOutcome(number=outcome.number, error=outcome.error, at_once=True))

    monkeypatch.setattr(Admission, "_know", at_once)
    with pytest.raises(AssertionError):
        test_what_was_charged_leaves_at_its_deadline(0.0, {})


def test_what_was_not_charged_leaves_at_once() -> None:
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, error=QueryRefused("no"), at_once=True)
        begun = process.now
        with pytest.raises(QueryRefused):
            admission.result(admission.put(wanted()))
        assert process.now - begun < TICK / 100


@pytest.mark.parametrize("after", [0.0, 0.15])
def test_who_waits_how_long_does_not_depend_on_what_others_took(after: float) -> None:
    """Each may take a tenth of a second, so one is admitted every tenth, though all be answered at once or later."""
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, after)
        turns = [admission.put(wanted(seconds=0.1)) for _ in range(5)]
        for turn in turns:
            admission.result(turn)
        # The first two, as one may begin within a tenth of its deadline of half a second.
        assert process.sent[-1] - process.sent[0] == pytest.approx(0.35, abs=TICK / 100)


def test_the_time_of_the_engine_is_reserved_once() -> None:
    with admitting() as (admission, process):
        process.reaction = process.answer
        for turn in [admission.put(wanted(f"p{number}", seconds=0.05)) for number in range(8)]:
            admission.result(turn)
        tickets = [order.ticket for order in process.orders]
        assert all(one.ends <= other.begins + 1e-9 for one, other in itertools.pairwise(tickets))
        for one, sent in zip(tickets, process.sent, strict=True):
            assert sent <= one.begins <= sent + 0.025 + 1e-9
            assert one.ends < one.last - 0.05


def test_people_take_turns() -> None:
    with admitting() as (admission, process):
        process.reaction = process.answer
        many = [admission.put(wanted("mallory", seconds=0.06)) for _ in range(12)]
        admission.rest(0.02)
        assert admission.seconds_until(admission.put(wanted("bob"))) < 0.25 + 0.06 + CLOSE
        for turn in many:
            admission.result(turn)


def test_a_long_one_comes_to_its_turn_among_short_ones() -> None:
    """Somebody whose question fits later than others' is not passed by for ever."""
    with admitting() as (admission, process):
        process.reaction = process.answer

        def flood() -> None:
            for _ in range(20):
                admission.put(wanted("mallory", seconds=0.02))
            process.later(0.4, flood)

        flood()
        assert admission.seconds_until(admission.put(wanted("bob", seconds=0.2))) < 1.0 + 0.5 + CLOSE


def test_what_waits_can_be_dropped_and_what_runs_cannot() -> None:
    with admitting() as (admission, process):
        first, second = admission.put(wanted(seconds=0.06)), admission.put(wanted(seconds=0.06))
        admission.step()
        assert second.cancel()
        assert not first.cancel()
        with pytest.raises(CancelledError):
            second.result(0)
        assert admission.depth() == (0, 1)
        process.told(OrderOutcome(number=process.orders[0].number))
        admission.result(first)
        assert admission.depth() == (0, 0)
        assert len(process.orders) == 1


def test_a_place_is_taken_until_the_deadline() -> None:
    """So nobody sees in the gauges when an answer was ready."""
    with admitting() as (admission, process):
        process.reaction = process.answer
        admission.put(wanted())
        admission.rest(0.25 - TICK)
        assert admission.depth() == (0, 1)
        admission.rest(CLOSE)
        assert admission.depth() == (0, 0)


def test_no_more_are_admitted_than_there_are_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_module, "SLOTS", 4)
    with admitting() as (admission, process):
        process.reaction = process.answer
        turns = [admission.put(wanted(f"p{number}", seconds=1e-6)) for number in range(9)]
        admission.rest(0.1)
        assert admission.depth() == (5, 4)
        for turn in turns:
            admission.result(turn)


def test_a_death_is_told_at_the_deadline() -> None:
    with admitting() as (admission, process):
        process.reaction = lambda _: process.died()
        begun = process.now
        with pytest.raises(ServiceFault, match="history"):
            admission.result(admission.put(wanted()))
        assert 0.25 <= process.now - begun < 0.25 + CLOSE


def test_what_was_not_charged_in_time_is_an_event_and_waits_again() -> None:
    ledger = Ledger()
    with admitting(ledger) as (admission, process):

        def react(order: Order) -> None:
            busy = len(process.orders) < 2
            process.answer(order, error=TooBusy(TOO_BUSY) if busy else None, at_once=busy)

        process.reaction = react
        admission.result(admission.put(wanted()))
        assert len(process.orders) == 2
        assert process.sent[1] >= process.sent[0] + LATER[0] - TICK
        assert len(ledger.late) == 1
        assert admission.depth() == (0, 0)


def test_what_waits_for_somebody_elses_answer_is_no_event() -> None:
    ledger = Ledger()
    with admitting(ledger) as (admission, process):

        def react(order: Order) -> None:
            process.told(Reach(number=order.number, reached="waits"))
            process.answer(order, 0.4, at_once=True)

        process.reaction = react
        assert 0.4 <= admission.seconds_until(admission.put(wanted())) < 0.4 + TICK / 100
        assert ledger.late == []


@pytest.mark.parametrize("after", [0.3, 0.6])
def test_what_is_late_leaves_at_a_later_moment_and_is_written_down(after: float) -> None:
    """A front that hands out what is missing when it comes is told by the clock how long it took."""
    ledger = Ledger()
    with admitting(ledger) as (admission, process):
        process.reaction = lambda order: process.answer(order, after)
        seconds = admission.seconds_until(admission.put(wanted()))
        later = next(moment for moment in LATER if moment > after - 0.2)
        assert 0.25 + later <= seconds < 0.25 + later + CLOSE
        assert [late.principal for late in ledger.late] == ["alice"]


def test_a_front_that_hands_out_what_is_missing_when_it_comes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures_module, "LATER", tuple(n / 40 for n in range(1, 160)))
    with pytest.raises(AssertionError):
        test_what_is_late_leaves_at_a_later_moment_and_is_written_down(0.3)


def test_a_fault_leaves_at_its_deadline_though_the_process_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the process does: the last moment comes, and one more at which what is missing is given up."""
    monkeypatch.setattr(departures_module, "LATER", (0.1, 0.2))
    ledger = Ledger()
    with admitting(ledger) as (admission, process):
        begun = process.now
        with pytest.raises(ServiceFault):
            admission.result(admission.put(wanted()))
        assert 0.25 + 0.4 <= process.now - begun < 0.25 + 0.4 + CLOSE
        assert len(ledger.late) == 2
        assert Say(number=0, said="give up") in process.said


def test_nothing_leaves_late_before_that_is_written_down() -> None:
    ledger = Ledger()
    ledger.writable = False
    with admitting(ledger) as (admission, process):
        process.reaction = lambda order: process.answer(order, 0.3)
        answer = admission.put(wanted())
        admission.rest(0.25 + LATER[-1] + 1.0)
        assert not answer.done()
        ledger.writable = True
        admission.result(answer)
        assert len(ledger.late) == 1


def test_what_cannot_be_written_down_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_module, "AGAIN", 0.0)
    ledger, tries = Ledger(), iter(range(3))

    def note(dataset: str, tick: str, principal: str) -> tuple[str, ...]:
        if next(tries) < 2:
            raise LedgerFault("it is full")
        return Ledger.note(ledger, dataset, tick, principal)

    monkeypatch.setattr(ledger, "note", note)
    with admitting(ledger) as (admission, process):
        process.reaction = lambda order: process.answer(order, 0.3)
        admission.result(admission.put(wanted()))
        assert len(ledger.late) == 1


def test_all_that_is_under_way_is_one_event_and_other_data_sets_are_none_of_it() -> None:
    ledger = Ledger()
    with admitting(ledger) as (admission, process):
        process.reaction = lambda order: process.answer(order, 0.0 if order.wanted.dataset == "other" else 0.4)
        turns = [admission.put(wanted(f"p{number}")) for number in range(5)]
        other = admission.put(replace(wanted("bob"), dataset="other"))
        assert admission.seconds_until(other) < 0.25 + CLOSE
        for turn in turns:
            admission.result(turn)
        assert len(ledger.late) == 1
        moved = [said for said in process.said if isinstance(said, Move)]
        assert moved[0].seconds == LATER[0]


def test_a_front_that_gives_up_what_is_late_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a stall loses the charged answers that it holds up."""
    monkeypatch.setattr(departures_module, "LATER", (TICK,))
    with pytest.raises(ServiceFault):
        test_all_that_is_under_way_is_one_event_and_other_data_sets_are_none_of_it()


def test_events_that_follow_each_other_double_deadlines() -> None:
    ledger, now = Ledger(), datetime.now(UTC)
    for seconds, doubled in ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4)):
        ledger.late.append(LateAnswers((now - timedelta(seconds=seconds)).isoformat(), "alice"))
        assert admission_module.doublings(ledger.ticks(), now) == doubled
    assert admission_module.doublings(ledger.ticks(), now + timedelta(hours=1)) == 0
    with admitting(ledger) as (admission, process):
        process.reaction = process.answer
        assert admission.admission.cost_now("open", wanted().cost).deadline == 0.25 * 2**4  # as it is priced, it looks
        admission.result(admission.put(wanted()))
        assert process.orders[0].ticket.leaves - process.sent[0] == pytest.approx(0.25 * 2**4, abs=TICK)


def test_what_waits_again_is_told_that_the_service_ends() -> None:
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, error=TooBusy(TOO_BUSY), at_once=True)
        turn = admission.put(wanted(seconds=0.06))
        admission.rest(0.05)
        admission.admission.lines.close()
        with pytest.raises(TooManyRequests):
            admission.result(turn)


def test_nothing_is_admitted_while_there_is_nobody_to_ask() -> None:
    with admitting() as (admission, process):
        process.reaction = process.answer
        process.is_up = False
        turn = admission.put(wanted())
        admission.rest(0.05)
        assert process.orders == []
        process.is_up = True
        process.told(Opened(speed=Speed(question=0.001, nanosecond=0.0, row=0.0, number=0.0), indexed={}))
        admission.result(turn)


def test_two_steps_have_two_moments() -> None:
    cost = Cost(seconds=0.01, steps=2)
    assert (cost.deadline, cost.reserved) == (0.5, 0.375)
    moments = admission_module.ticket(cost, 10.0, 10.01)
    assert moments.known_from == pytest.approx((10.25, 10.4))
    assert moments.leaves == pytest.approx(10.525)
