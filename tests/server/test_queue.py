"""The law of the line: people take turns, whoever has how much waiting; what is dropped never runs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

import pytest

from lapwing.errors import TooManyRequests
from lapwing.server.fair_queue import Lines, Queue

MANY = 50


@contextmanager
def lined_up(threads: int, **limits: int) -> Iterator[tuple[Queue, list[str], Callable[[], None]]]:
    """Give a queue whose threads all do something, for alice as much as may be; who was served since; what ends it."""
    queue, go_on, served = Queue(threads, **limits), threading.Event(), list[str]()
    came = threading.Barrier(threads + 1)

    def first() -> None:
        came.wait(60)
        assert go_on.wait(60)

    for number in range(threads):
        queue.put("alice" if number < max(1, threads - 1) else "eve", first)
    came.wait(60)
    try:
        yield queue, served, go_on.set
    finally:
        go_on.set()
        queue.close()


def in_turn(queue: Queue, served: list[str], person: str, times: int = 1) -> list[Future[None]]:
    lock = threading.Lock()

    def note() -> None:
        with lock:
            served.append(person)

    return [queue.put(person, note) for _ in range(times)]


def before_bob(threads: int) -> int:
    """Return how many of alice's many were done before the one of bob, who came after them all."""
    with lined_up(threads) as (queue, served, go_on):
        futures = [*in_turn(queue, served, "alice", MANY), *in_turn(queue, served, "bob")]
        go_on()
        for future in futures:
            future.result(60)
        return served.index("bob")


@contextmanager
def repeated(queue: Queue, running: int) -> Iterator[Callable[[], None]]:
    """Put four repeats of one slow question of alice, as a program sends them that is tired of waiting.

    So many of them run when this is entered; gives what ends them.
    """
    go_on, came = threading.Event(), threading.Barrier(running + 1)

    def slow() -> bool:
        if not go_on.is_set():
            came.wait(60)
        return go_on.wait(60)

    futures = [queue.put("alice", slow) for _ in range(4)]
    came.wait(60)
    try:
        yield go_on.set
        go_on.set()
        assert all(future.result(60) for future in futures)  # the last one too, in its turn
    finally:
        go_on.set()
        queue.close()


def test_a_thread_is_left_for_others() -> None:
    queue = Queue(4)
    with repeated(queue, 3):
        assert queue.put("bob", lambda: "bob").result(60) == "bob"


def test_one_person_in_all_threads_is_found() -> None:
    queue = Queue(4)
    queue.lines = Lines(4)
    with repeated(queue, 4) as go_on:
        bob = queue.put("bob", lambda: "bob")
        with pytest.raises(TimeoutError):
            bob.result(0.2)
        go_on()
        assert bob.result(60) == "bob"


@pytest.mark.parametrize("threads", [1, 3])
def test_somebody_with_many_holds_up_others_by_one_a_thread_at_most(threads: int) -> None:
    assert before_bob(threads) <= threads - 1  # what other threads began at the same time


def test_one_line_for_all_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: everybody is the same person."""
    put = Queue.put
    monkeypatch.setattr(Queue, "put", lambda self, person, does: put(self, "anybody", does))
    assert before_bob(1) == MANY


def test_a_line_that_serves_who_came_first_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: whoever has waited the longest goes on until they have nothing left."""
    monkeypatch.setattr(Lines, "_whose_turn", lambda self: next(iter(self._waiting), None))
    assert before_bob(1) == MANY


def test_people_take_turns() -> None:
    with lined_up(1) as (queue, served, go_on):
        futures = [future for name in ("alice", "bob", "carol") for future in in_turn(queue, served, name, 3)]
        go_on()
        for future in futures:
            future.result(60)
    assert served == ["bob", "carol", "alice"] * 3


def test_who_has_something_under_way_comes_after_who_has_not() -> None:
    """Of four threads two are long at work for alice and one for eve; the other is not theirs while bob waits."""
    queue, go_on, held, served = Queue(4), threading.Event(), threading.Event(), list[str]()
    came = threading.Barrier(5)

    def until(event: threading.Event) -> None:
        came.wait(60)
        assert event.wait(60)

    for person, event in (("alice", go_on), ("alice", go_on), ("eve", go_on), ("dora", held)):
        queue.put(person, lambda event=event: until(event))  # type: ignore[misc]
    came.wait(60)
    futures = [*in_turn(queue, served, "alice", 3), *in_turn(queue, served, "bob", 3)]
    held.set()
    for future in futures:
        future.result(60)
    go_on.set()
    queue.close()
    assert served == ["bob"] * 3 + ["alice"] * 3


def test_lines_are_bounded_and_newcomers_are_let_in() -> None:
    with lined_up(1, each=3, all=5) as (queue, served, _):
        in_turn(queue, served, "alice", 3)
        with pytest.raises(TooManyRequests, match="3 of your queries"):
            in_turn(queue, served, "alice")
        in_turn(queue, served, "bob", 2)
        with pytest.raises(TooManyRequests, match="Too many queries"):
            in_turn(queue, served, "bob")
        in_turn(queue, served, "carol")  # who has nothing waiting
        with pytest.raises(TooManyRequests):
            in_turn(queue, served, "carol")


def test_what_is_dropped_never_runs_and_leaves_its_place() -> None:
    with lined_up(1, each=2) as (queue, served, go_on):
        first, second = in_turn(queue, served, "bob", 2)
        assert (queue.lines.ahead("bob", first), queue.lines.ahead("bob", second)) == (0, 1)
        assert first.cancel()
        assert queue.lines.ahead("bob", second) == 0
        (third,) = in_turn(queue, served, "bob")
        go_on()
        for future in (second, third):
            future.result(60)
        assert served == ["bob", "bob"]
        with pytest.raises(CancelledError):
            first.result(0)


def test_what_runs_cannot_be_dropped() -> None:
    with lined_up(1) as (queue, _, go_on):
        began, hold = threading.Event(), threading.Event()

        def work() -> int:
            began.set()
            assert hold.wait(60)
            return 7

        future = queue.put("bob", work)
        go_on()
        assert began.wait(60)
        assert not future.cancel()
        hold.set()
        assert future.result(60) == 7


def test_errors_are_those_of_the_work() -> None:
    def failing() -> Any:
        raise ValueError("as it is")

    queue = Queue(1)
    with pytest.raises(ValueError, match="as it is"):
        queue.put("alice", failing).result(60)
    assert queue.put("alice", lambda: 1).result(60) == 1
    queue.close()


def test_the_end_drops_what_waits_and_waits_for_what_runs() -> None:
    with lined_up(1) as (queue, served, go_on):
        waiting = in_turn(queue, served, "bob", 3)
        threading.Timer(0.2, go_on).start()
        queue.close()
        assert served == []
        assert all(future.cancelled() for future in waiting)
        with pytest.raises(TooManyRequests, match="about to stop"):
            in_turn(queue, served, "bob")
