"""The engine goes to whoever was admitted first, and nobody is late for somebody else's work."""

import threading
import time

from lapwing.server.deadline.turns import PATIENCE, Ticket, Turns

SLOW = 60
"""Seconds in which the slowest machine has done what is waited for."""


def ticket(begins: float, reserved: float = 0.01, deadline: float = 1.0) -> Ticket:
    return Ticket(
        begins=begins,
        ends=begins + reserved,
        known_from=(begins + 0.65 * deadline,),
        leaves=begins + deadline,
        allowed=0.55 * deadline,
    )


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Work:
    """What runs: it has used what a test says, and ends when it is told to."""

    def __init__(self, used: float = 0.0) -> None:
        self.seconds, self.stopped = used, threading.Event()

    def used(self) -> float:
        return self.seconds

    def stop(self) -> None:
        self.stopped.set()


def taking(turns: Turns, one: Ticket) -> tuple[threading.Event, list[bool]]:
    """Wait for the engine in a thread; the event says that it has come to an end."""
    done, took = threading.Event(), list[bool]()

    def take() -> None:
        took.append(turns.take(one, Work()))
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
    assert turns.take(first, Work())
    late, _ = taking(turns, third)
    early, _ = taking(turns, second)
    time.sleep(0.05)
    assert not late.is_set()
    assert not early.is_set()
    turns.leave(first)
    assert early.wait(SLOW)
    assert not late.wait(0.05)
    turns.leave(second)
    assert late.wait(SLOW)


def test_a_short_one_passes_who_is_not_ready_and_a_long_one_does_not() -> None:
    for reserved, passes in ((0.01, True), (0.5, False)):
        turns = Turns(Clock())
        pending, other = ticket(0.0), ticket(0.01, reserved)
        entered(turns, pending, other)
        done, _ = taking(turns, other)
        assert done.wait(SLOW if passes else 0.1) is passes
        turns.leave(pending)  # it was refused, so nobody waits for it
        assert done.wait(SLOW)


def test_nobody_waits_for_what_is_late_already() -> None:
    turns, clock = Turns(clock := Clock()), clock
    entered(turns, first := ticket(0.0), other := ticket(0.01, 0.5, deadline=4.0))
    done, _ = taking(turns, other)
    assert not done.wait(0.05)
    clock.now = first.latest + 0.01
    assert done.wait(SLOW)


def test_who_used_what_was_reserved_is_stopped_only_if_somebody_would_be_late() -> None:
    turns, clock = Turns(clock := Clock()), clock
    long, next_, work = ticket(0.0, 0.1), ticket(0.1, 0.1), Work(used=0.2)
    entered(turns, long, next_)
    assert turns.take(long, work)
    clock.now = 0.4  # beyond what was reserved: nobody waits
    turns_watch(turns)
    done, took = taking(turns, next_)
    assert not work.stopped.wait(0.05)
    clock.now = next_.latest
    assert work.stopped.wait(SLOW)
    assert not done.is_set()
    turns.rest(long)
    turns.leave(long)
    assert done.wait(SLOW)
    assert took == [True]


def test_who_was_held_up_by_the_machine_goes_on_and_others_wait() -> None:
    turns, clock = Turns(clock := Clock()), clock
    held_up, next_, work = ticket(0.0, 0.1), ticket(0.1, 0.1), Work(used=0.05)
    entered(turns, held_up, next_)
    turns_watch(turns)
    assert turns.take(held_up, work)
    done, _ = taking(turns, next_)
    clock.now = next_.leaves
    assert not work.stopped.wait(0.1)
    for one in (held_up, next_):  # the clock of the data set stands still
        turns.move(one, 2.0)
    clock.now = 0.5 + PATIENCE
    assert not work.stopped.wait(0.05)
    clock.now = next_.latest - next_.moved + PATIENCE + 0.05  # and then no longer
    assert work.stopped.wait(SLOW)
    turns.leave(held_up)
    assert done.wait(SLOW)


def test_who_has_just_begun_is_not_stopped_for_those_who_were_late_before() -> None:
    """Stalls have held up somebody for long. Whoever has the engine since then has taken nothing of that time."""
    turns, clock = Turns(clock := Clock()), clock
    holder, waiting, work = ticket(0.0, 0.1), ticket(0.1, 0.1), Work(used=0.05)
    entered(turns, holder, waiting)
    for one in (holder, waiting):
        turns.move(one, 2 * PATIENCE)
    clock.now = waiting.latest + 1
    turns_watch(turns)
    assert turns.take(holder, work)
    done, _ = taking(turns, waiting)
    clock.now += PATIENCE - 0.1
    assert not work.stopped.wait(0.1)
    clock.now += 0.2
    assert work.stopped.wait(SLOW)
    turns.leave(holder)
    assert done.wait(SLOW)


def test_what_used_more_than_a_quiet_machine_has_is_stopped_by_its_last_moment() -> None:
    turns, clock = Turns(clock := Clock()), clock
    entered(turns, alone := ticket(0.0))
    work = Work(used=0.54)
    turns_watch(turns)
    assert turns.take(alone, work)
    clock.now = alone.last + 1
    assert not work.stopped.wait(0.05)
    work.seconds = 0.56
    assert work.stopped.wait(SLOW)


def test_what_is_given_up_waits_no_longer_and_is_stopped() -> None:
    turns = Turns(Clock())
    entered(turns, first := ticket(0.0), second := ticket(0.01))
    work = Work()
    assert turns.take(first, work)
    done, took = taking(turns, second)
    turns.give_up(second)
    assert done.wait(SLOW)
    assert took == [False]
    assert not work.stopped.is_set()
    turns.give_up(first)
    assert work.stopped.is_set()


def turns_watch(turns: Turns) -> None:
    threading.Thread(target=turns.watch, daemon=True).start()
