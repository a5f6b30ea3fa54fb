"""Who is asked when, and when the answer leaves, does not depend on how long it took."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from lapwing.errors import EngineFault, LedgerFault, QueryRefused, ServiceFault, TooManyRequests
from lapwing.ledger.faults import Late
from lapwing.server.bodies import QueryBody
from lapwing.server.deadline import admission as admission_module
from lapwing.server.deadline import departures as departures_module
from lapwing.server.deadline.admission import Admission
from lapwing.server.deadline.cost import Cost, Speed
from lapwing.server.deadline.departures import LATER, TICK
from lapwing.server.deadline.pace import TOO_BUSY, TooBusy
from lapwing.server.deadline.process import Heard, Move, Opened, Order, Outcome, QuestionProcess, Reach, Say, Wanted
from lapwing.server.people import Caller

CLOSE = 0.25
"""Seconds that threads of a busy machine may be late."""


@pytest.fixture(autouse=True)
def punctual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine make no events of its own (`test_departures` has those)."""
    monkeypatch.setattr(departures_module, "PUNCTUAL", 5.0)


class Process:
    """A question process that answers when a test says it."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.sent: list[float] = []
        self.said: list[Say | Move] = []
        self.is_up = True
        self.reaction: Callable[[Order], None] = lambda _: None
        self.told: Callable[[Heard], None]
        self.died: Callable[[], None]

    def start(self, told: Callable[[Heard], None], died: Callable[[], None]) -> None:
        self.told, self.died = told, died

    def send(self, sent: Order | Say | Move) -> bool:
        if not isinstance(sent, Order):
            self.said.append(sent)
            return self.is_up
        self.orders.append(sent)
        self.sent.append(time.monotonic())
        threading.Thread(target=self.reaction, args=(sent,), daemon=True).start()
        return self.is_up

    def close(self) -> None:
        pass

    def answer(self, order: Order, after: float = 0.0, **what: Any) -> None:
        time.sleep(after)
        self.told(Outcome(number=order.number, **what))


class Ledger:
    """What was written down of late answers, while that is possible."""

    def __init__(self) -> None:
        self.late: list[Late] = []
        self.writable = True

    def note(self, _dataset: str, tick: str, principal: str) -> tuple[str, ...]:
        if not self.writable:
            raise LedgerFault("it is full")
        self.late.append(Late(tick, principal))
        return self.ticks()

    def ticks(self) -> tuple[str, ...]:
        return tuple(late.tick for late in self.late)


@contextmanager
def admitting(ledger: Ledger | None = None) -> Iterator[tuple[Admission, Process]]:
    process, ledger = Process(), Ledger() if ledger is None else ledger
    admission = Admission(cast(QuestionProcess, process), lambda *_: None, ledger.note, lambda _: ledger.ticks())
    admission.start()
    try:
        yield admission, process
    finally:
        for order in process.orders:
            process.told(Outcome(number=order.number))
        admission.close()


def wanted(person: str = "alice", seconds: float = 0.001, steps: int = 1) -> Wanted:
    caller = Caller(name=person, role="analyst", rights=frozenset({"ask"}), token="t")
    body = QueryBody(sql="SELECT COUNT(*) AS n FROM visits", epsilon=1)
    cost = Cost(seconds=seconds, steps=steps)
    return Wanted(caller=caller, dataset="open", body=body, key=None, job=None, cost=cost)


def seconds_until(admission: Admission, one: Wanted) -> float:
    begun = time.monotonic()
    with suppress(EngineFault, ServiceFault):
        admission.put(one).result(10)
    return time.monotonic() - begun


@pytest.mark.parametrize("after", [0.0, 0.15])
@pytest.mark.parametrize("what", [{}, {"error": EngineFault("it failed")}])
def test_what_was_charged_leaves_at_its_deadline(after: float, what: Any) -> None:
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, after, **what)
        assert 0.5 <= seconds_until(admission, wanted(seconds=0.1)) < 0.5 + CLOSE


def test_the_check_finds_answers_that_leave_when_they_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    know = Admission._know

    def at_once(self: Admission, admitted: Any, outcome: Outcome) -> None:
        know(self, admitted, Outcome(number=outcome.number, error=outcome.error, at_once=True))

    monkeypatch.setattr(Admission, "_know", at_once)
    with pytest.raises(AssertionError):
        test_what_was_charged_leaves_at_its_deadline(0.0, {})


def test_what_was_not_charged_leaves_at_once() -> None:
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, error=QueryRefused("no"), at_once=True)
        begun = time.monotonic()
        with pytest.raises(QueryRefused):
            admission.put(wanted()).result(10)
        assert time.monotonic() - begun < 0.2


@pytest.mark.parametrize("after", [0.0, 0.15])
def test_who_waits_how_long_does_not_depend_on_what_others_took(after: float) -> None:
    """Each may take a tenth of a second, so one is admitted every tenth, though all be answered at once or later."""
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, after)
        turns = [admission.put(wanted(seconds=0.1)) for _ in range(5)]
        for turn in turns:
            turn.result(10)
        between = [later - sooner for sooner, later in zip(process.sent[:-1], process.sent[1:], strict=True)]
        # The first two, as one may begin within a tenth of its deadline of half a second.
        assert 0.35 - 0.01 <= sum(between) < 0.35 + CLOSE


def test_the_time_of_the_engine_is_reserved_once() -> None:
    with admitting() as (admission, process):
        process.reaction = process.answer
        for turn in [admission.put(wanted(f"p{number}", seconds=0.05)) for number in range(8)]:
            turn.result(10)
        tickets = [order.ticket for order in process.orders]
        assert all(one.ends <= other.begins + 1e-9 for one, other in itertools.pairwise(tickets))
        for one, sent in zip(tickets, process.sent, strict=True):
            assert one.begins <= sent + 0.025 + CLOSE
            assert one.ends < one.last - 0.05


def test_people_take_turns() -> None:
    with admitting() as (admission, process):
        process.reaction = process.answer
        many = [admission.put(wanted("mallory", seconds=0.06)) for _ in range(12)]
        time.sleep(0.02)
        begun = time.monotonic()
        admission.put(wanted("bob")).result(10)
        assert time.monotonic() - begun < 0.25 + 0.06 + CLOSE
        for turn in many:
            turn.result(10)


def test_a_long_one_comes_to_its_turn_among_short_ones() -> None:
    """Somebody whose question fits later than others' is not passed by for ever."""
    ending = threading.Event()
    with admitting() as (admission, process):
        process.reaction = process.answer

        def flood() -> None:
            while not ending.is_set():
                for turn in [admission.put(wanted("mallory", seconds=0.02)) for _ in range(20)]:
                    turn.result(10)

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            begun = time.monotonic()
            admission.put(wanted("bob", seconds=0.2)).result(20)
            assert time.monotonic() - begun < 1.0 + 0.5 + CLOSE
        finally:
            ending.set()
            thread.join()


def test_what_waits_can_be_dropped_and_what_runs_cannot() -> None:
    with admitting() as (admission, process):
        first, second = admission.put(wanted(seconds=0.06)), admission.put(wanted(seconds=0.06))
        time.sleep(0.01)
        assert second.cancel()
        assert not first.cancel()
        with pytest.raises(CancelledError):
            second.result(1)
        assert admission.lines.depth() == (0, 1)
        process.told(Outcome(number=process.orders[0].number))
        first.result(5)
        assert admission.lines.depth() == (0, 0)
        assert len(process.orders) == 1


def test_a_place_is_taken_until_the_deadline() -> None:
    """So nobody sees in the gauges when an answer was ready."""
    with admitting() as (admission, process):
        process.reaction = process.answer
        admission.put(wanted())
        time.sleep(0.1)
        assert admission.lines.depth() == (0, 1)
        time.sleep(0.25)
        assert admission.lines.depth() == (0, 0)


def test_no_more_are_admitted_than_there_are_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_module, "SLOTS", 4)
    with admitting() as (admission, process):
        process.reaction = process.answer
        turns = [admission.put(wanted(f"p{number}", seconds=1e-6)) for number in range(9)]
        time.sleep(0.1)
        assert admission.lines.depth() == (5, 4)
        for turn in turns:
            turn.result(10)


def test_a_death_is_told_at_the_deadline() -> None:
    with admitting() as (admission, process):
        process.reaction = lambda _: process.died()
        begun = time.monotonic()
        with pytest.raises(ServiceFault, match="history"):
            admission.put(wanted()).result(10)
        assert 0.25 <= time.monotonic() - begun < 0.25 + CLOSE


def test_what_was_not_charged_in_time_is_an_event_and_waits_again() -> None:
    ledger = Ledger()
    with admitting(ledger) as (admission, process):

        def react(order: Order) -> None:
            busy = len(process.orders) < 2
            process.answer(order, error=TooBusy(TOO_BUSY) if busy else None, at_once=busy)

        process.reaction = react
        admission.put(wanted()).result(10)
        assert len(process.orders) == 2
        assert process.sent[1] >= process.sent[0] + LATER[0] - TICK
        assert len(ledger.late) == 1
        assert admission.lines.depth() == (0, 0)


def test_what_waits_for_somebody_elses_answer_is_no_event() -> None:
    ledger = Ledger()
    with admitting(ledger) as (admission, process):

        def react(order: Order) -> None:
            process.told(Reach(number=order.number, reached="waits"))
            process.answer(order, 0.4, at_once=True)

        process.reaction = react
        assert 0.4 <= seconds_until(admission, wanted()) < 0.4 + CLOSE
        assert ledger.late == []


@pytest.mark.parametrize("after", [0.3, 0.6])
def test_what_is_late_leaves_at_a_later_moment_and_is_written_down(after: float) -> None:
    """A front that hands out what is missing when it comes is told by the clock how long it took."""
    ledger = Ledger()
    with admitting(ledger) as (admission, process):
        process.reaction = lambda order: process.answer(order, after)
        seconds = seconds_until(admission, wanted())
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
        begun = time.monotonic()
        with pytest.raises(ServiceFault):
            admission.put(wanted()).result(10)
        assert 0.25 + 0.4 <= time.monotonic() - begun < 0.25 + 0.4 + CLOSE
        assert len(ledger.late) == 2
        assert Say(number=0, said="give up") in process.said


def test_nothing_leaves_late_before_that_is_written_down() -> None:
    ledger = Ledger()
    ledger.writable = False
    with admitting(ledger) as (admission, process):
        process.reaction = lambda order: process.answer(order, 0.3)
        answer = admission.put(wanted())
        time.sleep(0.25 + LATER[0] + 0.2)
        assert not answer.done()
        ledger.writable = True
        answer.result(5)
        assert len(ledger.late) == 1


def test_all_that_is_under_way_is_one_event_and_other_data_sets_are_none_of_it() -> None:
    ledger = Ledger()
    with admitting(ledger) as (admission, process):
        process.reaction = lambda order: process.answer(order, 0.0 if order.wanted.dataset == "other" else 0.4)
        turns = [admission.put(wanted(f"p{number}")) for number in range(5)]
        other = admission.put(replace(wanted("bob"), dataset="other"))
        begun = time.monotonic()
        other.result(10)
        assert time.monotonic() - begun < 0.25 + CLOSE
        for turn in turns:
            turn.result(10)
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
        ledger.late.append(Late((now - timedelta(seconds=seconds)).isoformat(), "alice"))
        assert admission_module.doublings(ledger.ticks(), now) == doubled
    assert admission_module.doublings(ledger.ticks(), now + timedelta(hours=1)) == 0
    with admitting(ledger) as (admission, process):
        process.reaction = process.answer
        assert admission.cost_now("open", wanted().cost).deadline == 0.25 * 2**4  # as it is priced, it looks
        admission.put(wanted()).result(10)
        assert process.orders[0].ticket.leaves - process.sent[0] == pytest.approx(0.25 * 2**4, abs=0.1)


def test_what_waits_again_is_told_that_the_service_ends() -> None:
    with admitting() as (admission, process):
        process.reaction = lambda order: process.answer(order, error=TooBusy(TOO_BUSY), at_once=True)
        turn = admission.put(wanted(seconds=0.06))
        time.sleep(0.05)
        admission.lines.close()
        with pytest.raises(TooManyRequests):
            turn.result(5)


def test_nothing_is_admitted_while_there_is_nobody_to_ask() -> None:
    with admitting() as (admission, process):
        process.reaction = process.answer
        process.is_up = False
        turn = admission.put(wanted())
        time.sleep(0.05)
        assert process.orders == []
        process.is_up = True
        process.told(Opened(speed=Speed(question=0.001, nanosecond=0.0, row=0.0, number=0.0), indexed={}))
        turn.result(5)


def test_two_steps_have_two_moments() -> None:
    cost = Cost(seconds=0.01, steps=2)
    assert (cost.deadline, cost.reserved) == (0.5, 0.375)
    moments = admission_module.ticket(cost, 10.0, 10.01)
    assert moments.known_from == pytest.approx((10.25, 10.4))
    assert moments.leaves == pytest.approx(10.525)
