"""The engine goes to whoever was admitted first, and nobody is late for somebody else's work."""

import threading
import time
from collections.abc import Callable

from lapwing.server.deadline.turns import GRACE, Ticket, Turns


def ticket(begins: float, reserved: float = 0.01, deadline: float = 1.0, admitted: float | None = None) -> Ticket:
    start = begins if admitted is None else admitted
    return Ticket(
        begins=begins,
        ends=begins + reserved,
        charged_by=(start + 0.3 * deadline,),
        known_from=(start + 0.85 * deadline,),
        leaves=start + deadline,
    )


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taking(turns: Turns, one: Ticket, stop: Callable[[], None] = lambda: None) -> tuple[threading.Event, list[bool]]:
    """Wait for the engine in a thread; the event says that it has come to an end."""
    done, took = threading.Event(), list[bool]()

    def take() -> None:
        took.append(turns.take(one, stop))
        done.set()

    threading.Thread(target=take, daemon=True).start()
    return done, took


def entered(turns: Turns, *tickets: Ticket) -> None:
    for one in tickets:
        turns.enter(one)


def test_who_was_admitted_first_goes_first() -> None:
    turns, clock = Turns(clock := Clock()), clock
    first, second, third = (ticket(number / 100) for number in range(3))
    entered(turns, first, second, third)
    assert turns.take(first, lambda: None)
    late, _ = taking(turns, third)
    early, _ = taking(turns, second)
    time.sleep(0.05)
    assert not late.is_set()
    assert not early.is_set()
    turns.leave(first)
    assert early.wait(5)
    assert not late.wait(0.05)
    turns.leave(second)
    assert late.wait(5)


def test_a_short_one_passes_who_is_not_ready_and_a_long_one_does_not() -> None:
    for reserved, passes in ((0.01, True), (0.5, False)):
        turns = Turns(Clock())
        pending, other = ticket(0.0), ticket(0.01, reserved)
        entered(turns, pending, other)
        done, _ = taking(turns, other)
        assert done.wait(0.1) is passes
        turns.leave(pending)  # it was refused, so nobody waits for it
        assert done.wait(5)


def test_nobody_waits_for_what_can_no_longer_be_charged() -> None:
    turns, clock = Turns(clock := Clock()), clock
    entered(turns, ticket(0.0), other := ticket(0.01, 0.5, deadline=4.0))
    done, _ = taking(turns, other)
    assert not done.wait(0.05)
    clock.now = 0.31
    assert done.wait(5)


def test_who_runs_too_long_is_stopped_only_if_somebody_would_be_late() -> None:
    turns, clock, stopped = Turns(clock := Clock()), clock, threading.Event()
    long, next_ = ticket(0.0, 0.1), ticket(0.1, 0.1)
    entered(turns, long, next_)
    assert turns.take(long, stopped.set)
    clock.now = 0.6  # long beyond what was reserved: nobody waits
    turns_watch(turns)
    assert not stopped.wait(0.05)
    done, took = taking(turns, next_)
    assert not stopped.wait(0.05)
    clock.now = next_.latest - GRACE
    assert stopped.wait(5)
    assert not done.is_set()
    clock.now += GRACE  # it does not stop, and the next one begins beside it
    assert done.wait(5)
    assert took == [True]
    turns.give(long)  # which takes nothing from who has it now
    assert turns._holder is next_


def test_what_runs_until_its_end_is_stopped_though_nobody_waits() -> None:
    turns, clock, stopped = Turns(clock := Clock()), clock, threading.Event()
    entered(turns, alone := ticket(0.0))
    turns_watch(turns)
    assert turns.take(alone, stopped.set)
    assert not stopped.wait(0.05)
    clock.now = alone.last
    assert stopped.wait(5)


def test_who_comes_too_late_gets_nothing() -> None:
    turns, clock = Turns(clock := Clock()), clock
    entered(turns, first := ticket(0.0), second := ticket(0.01))
    assert turns.take(first, lambda: None)
    done, took = taking(turns, second)
    turns._told = 0.0
    clock.now = second.last
    assert done.wait(5)
    assert took == [False]


def turns_watch(turns: Turns) -> None:
    threading.Thread(target=turns.watch, daemon=True).start()
