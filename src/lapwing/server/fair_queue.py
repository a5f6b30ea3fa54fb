"""A queue in which people take turns: a few pieces of work run at once, and nobody waits behind somebody else's many.

Theory of operation. Everybody has a line of their own, first come, first served. A thread that is free takes from the
line of whoever has the least under way, and of these, of whoever was served the longest ago. So somebody who
brings one question to a service where another person has many waits only until a thread is free. If there are several
threads, nobody has all of them: repeats of one slow question leave one for the others.

Each line is bounded, and so are all together. Somebody with nothing waiting is let in even if the total is reached, as
a few people could otherwise keep everybody out. There are at most as many such exceptions as people.

What waits can be dropped, by cancelling its future; what runs cannot.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeVar, final

from lapwing.errors import TooManyRequests

MOST_WAITING: Final = 256
MOST_EACH: Final = 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    person: str
    does: Callable[[], Any]
    future: Future[Any]


@final
class Queue:
    """Runs pieces of work in threads, people in turn.

    Args: threads: how many at once; each: how many of one person may wait; all: how many of all people.
    """

    def __init__(self, threads: int, *, each: int = MOST_EACH, all: int = MOST_WAITING) -> None:
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="question")
        self._most_running = max(1, threads - 1)  # of one person: others do not wait for the same slow question
        self._each, self._all = each, all
        self._lock = threading.Lock()
        self._lines: dict[str, deque[_Task]] = {}
        self._running: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._turns = count()
        self._open = True

    def put(self, person: str, does: Callable[[], T]) -> Future[T]:
        """Let work wait for its turn; whoever cancels its future before that drops it.

        Raises: TooManyRequests if too much waits already.
        """
        work = _Task(person, does, Future())
        with self._lock:
            self._require_room(person)
            self._lines.setdefault(person, deque()).append(work)
            self._threads.submit(self._next)
        work.future.add_done_callback(lambda _: self._leave(work))
        return work.future

    def ahead(self, person: str, future: Future[Any]) -> int:
        """Return how many of somebody's own pieces of work wait before one of theirs."""
        with self._lock:
            places = [place for place, work in enumerate(self._lines.get(person, ())) if work.future is future]
        return places[0] if places else 0

    def depth(self) -> tuple[int, int]:
        """Return how many pieces of work wait, and how many are under way."""
        with self._lock:
            return sum(map(len, self._lines.values())), self._running.total()

    def close(self) -> None:
        """Wait for what is under way; what waits is dropped."""
        with self._lock:
            self._open = False
            waiting = [work for line in self._lines.values() for work in line]
        for work in waiting:
            work.future.cancel()
        self._threads.shutdown(wait=True)

    def _require_room(self, person: str) -> None:
        own = len(self._lines.get(person, ()))
        if not self._open:
            raise TooManyRequests("The service is about to end. Nothing was charged. Ask again later.")
        if own >= self._each:
            raise TooManyRequests(
                f"{own} questions of yours wait for their turn already. Nothing was charged. Ask again later."
            )
        if own and sum(map(len, self._lines.values())) >= self._all:
            raise TooManyRequests("Too many questions wait for their turn. Nothing was charged. Ask again later.")

    def _next(self) -> None:
        """Do what is next, if it was not dropped meanwhile; called as often as there was work."""
        work = self._take()
        if work is None:
            return
        try:
            result = work.does()
        except BaseException as error:
            failed: BaseException | None = error
        else:
            failed = None
        with self._lock:
            self._running[work.person] -= 1
            self._running += Counter()  # without those who have nothing under way
            if self._open and self._lines:  # of those who had enough under way
                self._threads.submit(self._next)
        if failed is None:
            work.future.set_result(result)
        else:
            work.future.set_exception(failed)

    def _take(self) -> _Task | None:
        with self._lock:
            while (person := self._whose_turn()) is not None:
                line = self._lines[person]
                work = line.popleft()
                if not line:
                    del self._lines[person]
                if work.future.set_running_or_notify_cancel():
                    self._running[person] += 1
                    self._served[person] = next(self._turns)
                    return work
        return None

    def _whose_turn(self) -> str | None:
        free = (name for name in self._lines if self._running[name] < self._most_running)
        return min(free, key=lambda name: (self._running[name], self._served.get(name, -1)), default=None)

    def _leave(self, work: _Task) -> None:
        """Forget work that was dropped while it waited."""
        with self._lock:
            line = self._lines.get(work.person)
            if line is not None and work in line:
                line.remove(work)
                if not line:
                    del self._lines[work.person]
