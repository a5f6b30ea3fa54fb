"""Work in which people take turns: nobody waits behind somebody else's many.

Theory of operation. Everybody has a line of their own, first come, first served. What is next is of whoever has the
least under way, and of these, of whoever was served the longest ago. So somebody who brings one question to a service
where another person has many waits only until there is room. Nobody has all of it: repeats of one slow question leave
room for others.

Each line is bounded, and so are all together. Somebody with nothing waiting is let in even if the total is reached, as
a few people could otherwise keep everybody out. There are at most as many such exceptions as people.

What waits can be dropped, by cancelling its future; what is under way cannot.

`Lines` say what is next. A `Queue` does it in a few threads; what is done by a process of its own, at moments that are
fixed before, is next in `deadline.admission`.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Generic, TypeVar, final

from lapwing.errors import TooManyRequests

MOST_WAITING: Final = 256
MOST_EACH: Final = 64
T = TypeVar("T")
Work = TypeVar("Work")


@final
@dataclass(frozen=True, slots=True, eq=False)
class QueuedWork(Generic[Work]):
    """Somebody's piece of work, and what comes of it."""

    person: str
    work: Work
    future: Future[Any] = field(default_factory=Future)


@final
class Lines(Generic[Work]):
    """What waits, a line for each person, and how much of each is under way. Thread-safe.

    Args:
        running: How much of one person may be under way.
        each: How much of one person may wait.
        all: How much in all.
    """

    def __init__(self, running: int, *, each: int = MOST_EACH, all: int = MOST_WAITING) -> None:
        self.each = each
        self._most_running, self._all = running, all
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[QueuedWork[Work]]] = {}
        self._running: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._turns = count()
        self._again: set[QueuedWork[Work]] = set()
        self._open = True

    def put(self, person: str, work: Work) -> QueuedWork[Work]:
        """Let work wait for its turn; whoever cancels its future before that drops it.

        Raises:
            TooManyRequests: If too much waits already.
        """
        task = QueuedWork(person, work)
        with self._lock:
            self._require_room(person)
            self._waiting.setdefault(person, deque()).append(task)
        task.future.add_done_callback(lambda _: self._leave(task))
        return task

    def next(self) -> QueuedWork[Work] | None:
        """Return whose turn it is, without taking it."""
        with self._lock:
            person = self._whose_turn()
            return None if person is None else self._waiting[person][0]

    def begin(self, task: QueuedWork[Work]) -> bool:
        """Take work that is to be under way from now on; False if it was dropped or taken meanwhile."""
        with self._lock:
            if not self._remove(task):
                return False
            if task in self._again:
                self._again.remove(task)
            elif not task.future.set_running_or_notify_cancel():
                return False
            self._running[task.person] += 1
            self._served[task.person] = next(self._turns)
            return True

    def end(self, task: QueuedWork[Work]) -> bool:
        """Say that work is under way no more; return whether anything waits."""
        with self._lock:
            self._running[task.person] -= 1
            self._running += Counter()  # without those who have nothing under way
            return bool(self._open and self._waiting)

    def back(self, task: QueuedWork[Work]) -> None:
        """Let work that was under way wait again, before all else of its person; it can no longer be dropped."""
        with self._lock:
            self._running[task.person] -= 1
            self._running += Counter()
            if self._open:
                self._again.add(task)
                self._waiting.setdefault(task.person, deque()).appendleft(task)
                return
        task.future.set_exception(_ending())

    def waits(self, person: str) -> bool:
        """Tell whether anything of somebody waits."""
        with self._lock:
            return person in self._waiting

    def ahead(self, person: str, future: Future[Any]) -> int:
        """Return how many of somebody's own pieces of work wait before one of theirs."""
        with self._lock:
            places = [place for place, task in enumerate(self._waiting.get(person, ())) if task.future is future]
        return places[0] if places else 0

    def depth(self) -> tuple[int, int]:
        """Return how many pieces of work wait, and how many are under way."""
        with self._lock:
            return sum(map(len, self._waiting.values())), self._running.total()

    def close(self) -> None:
        """Let nothing in any more, and drop what waits."""
        with self._lock:
            self._open = False
            waiting = [task for line in self._waiting.values() for task in line]
            if self._again:
                self._waiting.clear()
        for task in waiting:
            if not task.future.cancel():
                task.future.set_exception(_ending())

    def _require_room(self, person: str) -> None:
        own = len(self._waiting.get(person, ()))
        if not self._open:
            raise _ending()
        if own >= self.each:
            raise TooManyRequests(f"{own} of your queries are already waiting. Nothing was charged. Try again later.")
        if own and sum(map(len, self._waiting.values())) >= self._all:
            raise TooManyRequests("Too many queries are waiting. Nothing was charged. Try again later.")

    def _whose_turn(self) -> str | None:
        free = (name for name in self._waiting if self._running[name] < self._most_running)
        return min(free, key=lambda name: (self._running[name], self._served.get(name, -1)), default=None)

    def _leave(self, task: QueuedWork[Work]) -> None:
        """Forget work that was dropped while it waited."""
        with self._lock:
            self._remove(task)

    def _remove(self, task: QueuedWork[Work]) -> bool:
        line = self._waiting.get(task.person)
        if line is None or task not in line:
            return False
        line.remove(task)
        if not line:
            del self._waiting[task.person]
        return True


def _ending() -> TooManyRequests:
    return TooManyRequests("The service is about to stop. Nothing was charged. Try again later.")


@final
class Queue:
    """Runs pieces of work in threads, people in turn.

    Args:
        threads: How many at once.
    """

    def __init__(self, threads: int, *, each: int = MOST_EACH, all: int = MOST_WAITING) -> None:
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="question")
        # Of one person one less: others do not wait for the same slow question.
        self.lines: Lines[Callable[[], Any]] = Lines(max(1, threads - 1), each=each, all=all)

    def put(self, person: str, does: Callable[[], T]) -> Future[T]:
        """Let work wait for its turn; whoever cancels its future before that drops it.

        Raises:
            TooManyRequests: If too much waits already.
        """
        task = self.lines.put(person, does)
        self._look()
        return task.future

    def close(self) -> None:
        """Wait for what is under way; what waits is dropped."""
        self.lines.close()
        self._threads.shutdown(wait=True)

    def _look(self) -> None:
        try:
            self._threads.submit(self._next)
        except RuntimeError:  # it was closed, and what waits was dropped
            return

    def _next(self) -> None:
        """Do what is next, if it was not dropped meanwhile; called as often as there was work."""
        while (task := self.lines.next()) is not None:
            if self.lines.begin(task):
                break
        else:
            return
        try:
            result = task.work()
        except BaseException as error:
            failed: BaseException | None = error
        else:
            failed = None
        if self.lines.end(task):  # of those who had enough under way
            self._look()
        if failed is None:
            task.future.set_result(result)
        else:
            task.future.set_exception(failed)
