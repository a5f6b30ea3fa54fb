"""Who is asked next, and when: a virtual clock, which goes on by what questions may cost and never by what they did.

Theory of operation. The engine of the question process runs one question after the other. `begins` is when it would be
free if each of those that were admitted took all that it may (`deadline.cost`). A question is admitted once it could
begin soon, within a tenth of its deadline; until then it waits, in the line of its person (`fair_queue`), and costs no
thread. From then on its moments are fixed, as parts of its deadline:

- by `CHARGED` it is charged, or not at all;
- by `KNOWN` the engine has returned, or it is a fault. As the question may take a quarter at most (`cost.ROOM`), and
  the engine is free for it, more than that is left for what was not foreseen;
- the rest is for noise, record and the way back. Then it leaves.

All of that rests on public facts: who asked what, and when. So does what others see of it: how long they wait, and the
gauges. Nobody who waits is ever charged and then late because many ask: whatever is admitted has its time reserved. If
the machine is too busy with other things, so that a question is not charged in time, its turn comes again.
"""

import heapq
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import Final, final

from lapwing.errors import ServiceFault
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.deadline.cost import Cost
from lapwing.server.deadline.pace import TooBusy
from lapwing.server.deadline.process import Counted, Opened, Order, Outcome, QuestionProcess, Wanted
from lapwing.server.deadline.turns import Ticket
from lapwing.server.fair_queue import MOST_EACH, Lines, Task

SLOTS: Final = 256
"""Questions that are admitted and have not left; of one person three quarters of them."""
CHARGED: Final = {1: (0.3,), 2: (0.25, 0.6)}
"""By which part of the deadline each step is charged, by how many there are."""
KNOWN: Final = {1: (0.85,), 2: (0.5, 0.85)}
"""From which part of the deadline what came of each step may be known."""
BEGUN: Final = 0.1
"""Within which part of the deadline the engine is free."""


@dataclass(slots=True, eq=False)
class _Admitted:
    task: Task[Wanted]
    ticket: Ticket
    outcome: Outcome | None = None


def ticket(cost: Cost, begins: float, now: float) -> Ticket:
    """Return the moments of a question that is admitted now."""
    return Ticket(
        begins=begins,
        ends=begins + cost.reserved,
        charged_by=tuple(now + part * cost.deadline for part in CHARGED[cost.steps]),
        known_from=tuple(now + part * cost.deadline for part in KNOWN[cost.steps]),
        leaves=now + cost.deadline,
    )


@final
class Admission:
    """Admits questions to a question process, and hands out what came of them at their moments.

    Args: counted: hears what came of each question, for the metrics.
    """

    def __init__(self, process: QuestionProcess, counted: Callable[[str, str], None]) -> None:
        self.process = process
        self._counted = counted
        self.lines: Lines[Wanted] = Lines(SLOTS * 3 // 4, each=2 * MOST_EACH)
        self._changed = threading.Condition()
        self._admitted: dict[int, _Admitted] = {}
        self._leaving: list[tuple[float, int]] = []  # a heap
        self._begins = 0.0
        self._numbers = count()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="admission", daemon=True)

    def start(self) -> None:
        """Begin, and return when the process is ready.

        Raises: ServiceFault if it does not get ready.
        """
        self.process.start(self._told, self._died)
        self._thread.start()

    def put(self, wanted: Wanted) -> "Future[tuple[AnswerRecord, ...]]":
        """Let a question wait for its turn; whoever cancels its future before that drops it, uncharged.

        Raises: TooManyRequests if too much waits already.
        """
        task = self.lines.put(wanted.caller.name, wanted)
        task.future.add_done_callback(lambda _: self._look())
        self._look()
        return task.future

    def close(self) -> None:
        """Let nothing in any more, wait for what is under way, and end the process."""
        self.lines.close()
        with self._changed:
            self._open = False
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self.process.close()

    # ---- from the process --------------------------------------------------------------------------------------------

    def _told(self, said: Outcome | Counted | Opened) -> None:
        if isinstance(said, Opened):
            self._look()
            return
        if isinstance(said, Counted):
            self._counted(said.dataset, said.outcome)
            return
        with self._changed:
            admitted = self._admitted.get(said.number)
            if admitted is None:
                return
            self._know(admitted, said)

    def _died(self) -> None:
        """Note that nothing comes any more of what is under way: it leaves at its moment, as all do."""
        with self._changed:
            for number, admitted in self._admitted.items():
                if admitted.outcome is None:
                    self._know(admitted, Outcome(number=number, error=_gone()))

    def _know(self, admitted: _Admitted, outcome: Outcome) -> None:
        admitted.outcome = outcome
        if outcome.at_once or time.monotonic() >= admitted.ticket.leaves:
            heapq.heappush(self._leaving, (0.0, outcome.number))
        self._changed.notify_all()

    # ---- one thread --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                left, pause = self._due(), self._admit()
                if not left:
                    if not self._open and not self._admitted:
                        return
                    self._changed.wait(pause)
            for task, outcome in left:
                self._hand_out(task, outcome)

    def _due(self) -> list[tuple[Task[Wanted], Outcome]]:
        """Take what is to leave now; what the machine was too busy for leaves once its outcome is known."""
        now, left = time.monotonic(), []
        while self._leaving and self._leaving[0][0] <= now:
            _, number = heapq.heappop(self._leaving)
            admitted = self._admitted.get(number)
            if admitted is not None and admitted.outcome is not None:
                del self._admitted[number]
                left.append((admitted.task, admitted.outcome))
        return left

    def _admit(self) -> float | None:
        """Admit whoever is next for as long as there is room; return how long nothing will change, None if unknown."""
        while (task := self.lines.next()) is not None and self.process.is_up and len(self._admitted) < SLOTS:
            now, cost = time.monotonic(), task.work.cost
            begins = max(self._begins, now)
            wait = begins - now - BEGUN * cost.deadline
            if wait > 0:
                return self._until_next(now, wait)
            if self.lines.begin(task):
                self._begins = begins + cost.reserved
                self._send(task, ticket(cost, begins, now))
        return self._until_next(time.monotonic(), None)

    def _until_next(self, now: float, wait: float | None) -> float | None:
        waits = [max(0.0, moment - now) for moment, _ in self._leaving[:1]] + ([] if wait is None else [wait])
        return min(waits, default=None)

    def _send(self, task: Task[Wanted], moments: Ticket) -> None:
        number = next(self._numbers)
        self._admitted[number] = admitted = _Admitted(task, moments)
        heapq.heappush(self._leaving, (moments.leaves, number))
        order = Order(number=number, wanted=task.work, ticket=moments)
        if not self.process.send(order):
            self._know(admitted, Outcome(number=number, error=_gone(), at_once=True))

    def _hand_out(self, task: Task[Wanted], outcome: Outcome) -> None:
        if outcome.at_once and isinstance(outcome.error, TooBusy):
            # Its turn comes again; and as the clock was too fast for this machine, it is set back.
            self.lines.back(task)
            self._begins = max(self._begins, time.monotonic()) + BEGUN * task.work.cost.deadline
            return
        self.lines.end(task)
        if outcome.error is None:
            task.future.set_result(outcome.records)
        else:
            task.future.set_exception(outcome.error)


def _gone() -> ServiceFault:
    return ServiceFault(
        "The process that asks questions died. Look at your history: if the question is there, it was charged; if not, "
        "nothing was. Ask again."
    )
