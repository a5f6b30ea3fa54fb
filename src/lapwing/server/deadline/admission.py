"""Who is asked next, and when: a virtual clock, which goes on by what questions may cost and never by what they did.

Theory of operation. The engine of the question process runs one question after the other. `begins` is when it would be
free if each of those that were admitted took all that it may (`deadline.cost`). A question is admitted once it could
begin soon, within a tenth of its deadline; until then it waits, in the line of its person (`fair_queue`), and costs no
thread. From then on its moments are fixed, as parts of its deadline, on a public grid:

- from `KNOWN` on, what the engine has returned may be recorded. As the question may take a quarter at most
  (`cost.ROOM`), and the engine is free for it, more than that is left for what was not foreseen;
- the rest is for noise, record and the way back. Then it leaves.

This process, which speaks HTTP, decides when anything is recorded and leaves (`deadline.departures`), and waits for no
other: the question process says what is there, and is told what may go on. What is missing at its moment is an event.
It is written to the ledger, and the clock of its data set stands still for as long as it takes. Nothing is admitted
meanwhile. Events that follow each other make deadlines and reservations longer (`doublings`): then less was reserved
than this machine takes. The ledger is looked at for those of other hosts and workers too, every `LOOK` seconds.

All of that rests on public facts: who asked what, and when, and which events there were. So does what others see of it:
how long they wait, and the gauges.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final, final

from lapwing.errors import LapwingError, ServiceFault
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.deadline.cost import Cost
from lapwing.server.deadline.departures import Act, Departures, GivenUp, LateEvent, Moved, Passed, tick_from
from lapwing.server.deadline.pace import TooBusy
from lapwing.server.deadline.process import (
    Heard,
    Move,
    Opened,
    Order,
    OrderOutcome,
    QuestionProcess,
    Say,
    Wanted,
)
from lapwing.server.deadline.turns import Ticket
from lapwing.server.fair_queue import MOST_EACH, Lines, QueuedWork
from lapwing.server.log import log
from lapwing.server.metrics import Metrics
from lapwing.server.rounds import Rounds

SLOTS: Final = 256
"""Questions that are admitted and have not left; of one person three quarters of them."""
KNOWN: Final = {1: (0.65,), 2: (0.45, 0.75)}
"""From which part of the deadline what came of each step may be recorded."""
BEGUN: Final = 0.1
"""Within which part of the deadline the engine is free."""
AGAIN: Final = 0.25
"""Seconds until it is tried again to write an event down."""
LAST_TRIES: Final = 40
"""So often, when the service ends."""
LOOK: Final = 1.0
"""Seconds between two looks at the events of others."""
RECENT: Final = 600.0
"""Seconds in which events follow each other."""
DOUBLINGS: Final = 4
NoteLate = Callable[[str, str, str], Sequence[str]]
"""Writes down an event of a data set, its time, and whose question was missed first; returns all times that stand."""


@dataclass(slots=True, eq=False)
class _Admitted:
    task: QueuedWork[Wanted]
    outcome: OrderOutcome | None = None
    given_up: bool = False
    late: bool = False
    waited: bool = False


def ticket(cost: Cost, begins: float, now: float) -> Ticket:
    """Return the moments of a question that is admitted now."""
    return Ticket(
        begins=begins,
        ends=begins + cost.reserved,
        known_from=tuple(tick_from(now + part * cost.deadline) for part in KNOWN[cost.steps]),
        leaves=tick_from(now + cost.deadline),
        allowed=(KNOWN[cost.steps][-1] - BEGUN) * cost.deadline,
    )


def doublings(late: Sequence[str], now: datetime) -> int:
    """Return how often deadlines are doubled: as often as there were events lately, but for the first.

    It follows from the ledger's entries alone. One stall changes nothing; what follows it soon says that the machine
    takes longer than was reserved.

    >>> at = datetime(2026, 11, 2, 12, tzinfo=UTC)
    >>> doublings(["2026-11-02T11:58:00+00:00", "2026-11-02T11:59:00+00:00"], at)
    1
    """
    since = (now - timedelta(seconds=RECENT)).isoformat()
    return min(DOUBLINGS, max(0, sum(tick >= since for tick in late) - 1))


@final
class Admission:
    """Admits questions to a question process, and hands out what came of them at their moments.

    Args:
        counted: Hears what came of queued questions, for the metrics.
        note: Writes down what was late.
        standing: What is written down of a data set already.
        metrics: Hears of late answers, and of processes that were replaced.
        clock: Seconds that only grow.
        notes: Runs what writes events down, one at a time; a thread of its own unless given.
    """

    def __init__(
        self,
        process: QuestionProcess,
        counted: Callable[[str, str], None],
        note: NoteLate,
        standing: Callable[[str], Sequence[str]],
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        notes: Executor | None = None,
    ) -> None:
        self.process, self._clock = process, clock
        self._counted, self._note, self._standing, self._metrics = counted, note, standing, metrics
        self.lines: Lines[Wanted] = Lines(SLOTS * 3 // 4, each=2 * MOST_EACH)
        self._changed = threading.Condition()
        self._admitted: dict[int, _Admitted] = {}
        self._departures: dict[str, Departures] = {}
        self._late: dict[str, Sequence[str]] = {}
        self._at_once: list[int] = []
        self._begins = 0.0
        self._numbers = count()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="admission", daemon=True)
        self._notes = notes or ThreadPoolExecutor(max_workers=1, thread_name_prefix="events")
        self.rounds = Rounds("events", LOOK, self._look_at_events)

    def start(self) -> None:
        """Begin, and return when the process is ready.

        Raises:
            ServiceFault: If it does not get ready.
        """
        self.begin()
        self._thread.start()
        self.rounds.start()

    def begin(self) -> None:
        """Begin the process, without a thread: who calls this calls `turn` too."""
        self.process.start(self._told, self._died)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that was admitted is still to leave: a public fact, as moments are."""
        with self._changed:
            return not self._admitted

    def put(self, wanted: Wanted) -> "Future[tuple[AnswerRecord, ...]]":
        """Let a question wait for its turn; whoever cancels its future before that drops it, uncharged.

        Raises:
            TooManyRequests: If too much waits already.
        """
        task = self.lines.put(wanted.caller.name, wanted)
        task.future.add_done_callback(lambda _: self._look())
        self._look()
        return task.future

    def cost_now(self, dataset: str, cost: Cost) -> Cost:
        """Return what a question costs that is admitted now, by the events of its data set.

        The first time it asks the ledger, so it is not for the threads that hand out or speak HTTP.
        """
        if dataset not in self._late:
            with suppress(LapwingError):  # it cannot be charged either
                self._late.setdefault(dataset, self._standing(dataset))
        return self._doubled(dataset, cost)

    def close(self) -> None:
        """Let nothing in any more, wait for what is under way, and end the process."""
        self.lines.close()
        with self._changed:
            self._open = False
            self._changed.notify_all()
        self.rounds.close()
        if self._thread.is_alive():
            self._thread.join()
        # Entries are written before the process ends, and after all that could ask for one.
        self._notes.shutdown()
        self.process.close()

    # ---- from the process --------------------------------------------------------------------------------------------

    def _told(self, said: Heard) -> None:
        if isinstance(said, Opened):
            self._look()
            return
        with self._changed:
            admitted = self._admitted.get(said.number)
            if admitted is None:
                if isinstance(said, OrderOutcome):  # it was given up
                    self._note_engine(said, None)
                return
            if isinstance(said, OrderOutcome):
                self._know(admitted, said)
            elif said.reached == "ready":
                self._of(admitted).ready(said.number)
            else:  # for somebody else's answer, which comes at a moment of its own
                admitted.waited = True
                self._of(admitted).remove(said.number)

    def _note_engine(self, outcome: OrderOutcome, dataset: str | None) -> None:
        """Say that another engine is asked from now on: only when its question leaves, as when it died is private."""
        if outcome.engine is not None:
            log("engine replaced", dataset=dataset, reason=outcome.engine)
            if self._metrics is not None:
                self._metrics.count_restart("engine")

    def _died(self) -> None:
        """Note that nothing comes any more of what is under way: it leaves at its moment, as all do."""
        if self._metrics is not None:
            self._metrics.count_restart("questions")
        with self._changed:
            for number, admitted in self._admitted.items():
                if admitted.outcome is None:
                    self._know(admitted, OrderOutcome(number=number, error=_gone()))

    def _know(self, admitted: _Admitted, outcome: OrderOutcome) -> None:
        admitted.outcome = outcome
        departures = self._of(admitted)
        if outcome.at_once and not admitted.given_up:
            departures.remove(outcome.number)
            self._at_once.append(outcome.number)
        elif departures.holds(outcome.number):
            departures.ready(outcome.number, gates=len(KNOWN) + 1)
        else:  # it waited for somebody else's answer
            self._at_once.append(outcome.number)
        self._changed.notify_all()

    def _of(self, admitted: _Admitted) -> Departures:
        return self._departures[admitted.task.work.dataset]

    # ---- one thread --------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _run(self) -> None:
        while self.turn(self._changed.wait):
            pass

    def turn(self, wait: Callable[[float | None], object]) -> bool:
        """Do what is to be done by now; if nothing leaves, wait until something may change. False when all is over."""
        with self._changed:
            leaving = self._leaving()
            pause = self._admit()
            if not leaving:
                if not self._open and not self._admitted:
                    return False
                wait(pause)
        for admitted in leaving:
            self._hand_out(admitted)
        return True

    def _leaving(self) -> list[_Admitted]:
        """Do what is to be done by now, and take what leaves."""
        now, leaving = self._clock(), [self._admitted.pop(number) for number in self._at_once]
        self._at_once = []
        for admitted in leaving:
            if _is_too_busy(admitted) and not admitted.waited:
                self._carry_out(admitted.task.work.dataset, self._of(admitted).stop(now, admitted.task.person))
        # After those: if one of them stops the clock of a data set, nothing passes a gate of it.
        for dataset, departures in self._departures.items():
            stood, behind = departures.stands, departures.behind
            leaving += self._carry_out(dataset, departures.step(now))
            if stood and not departures.stands:
                late = len(self._late.get(dataset, ()))
                log("answers go on", dataset=dataset, seconds=departures.behind - behind, late=late)
        return leaving

    def _carry_out(self, dataset: str, acts: Sequence[Act]) -> list[_Admitted]:
        """Do what is to be done of a data set, and return what leaves."""
        leaving = []
        for act in acts:
            match act:
                case Passed(number, last):
                    if last:
                        leaving.append(self._admitted.pop(number))
                    elif not self._admitted[number].given_up and self._admitted[number].outcome is None:
                        self.process.send(Say(number=number, said="proceed"))
                case LateEvent(tick, person):
                    self._write(dataset, tick, person)
                case Moved(numbers, seconds):
                    self._begins = max(self._begins, self._clock()) + seconds
                    for number in numbers:
                        self._admitted[number].late = True
                    self.process.send(Move(numbers=numbers, seconds=seconds))
                case GivenUp(number):
                    self._admitted[number].given_up = True
                    self.process.send(Say(number=number, said="give up"))
        return leaving

    def _write(self, dataset: str, tick: float, person: str) -> None:
        """Let an event be written to the ledger, in a thread of its own: nothing leaves by it before."""
        at = datetime.now(UTC) + timedelta(seconds=tick - self._clock())
        log("answers late", dataset=dataset, tick=at.isoformat(timespec="milliseconds"), person=person)
        self._notes.submit(self._written, dataset, at.isoformat(timespec="milliseconds"), person)

    def _written(self, dataset: str, tick: str, person: str) -> None:
        tries, late = 0, None
        while late is None:
            try:
                late = self._note(dataset, tick, person)
            except LapwingError as error:
                log("late answers not noted", dataset=dataset, code=error.code)
                tries = tries + 1 if not self._open else 0
                if tries > LAST_TRIES:
                    with self._changed:
                        self._admitted.clear()  # the service ends, and nothing of it leaves
                        self._changed.notify_all()
                    return
                time.sleep(AGAIN)
        with self._changed:
            # Deadlines are longer before the clock may go on, so that nothing is admitted by the old ones.
            self._late[dataset] = late
            self._departures[dataset].written()
            self._changed.notify_all()

    def _admit(self) -> float | None:
        """Admit whoever is next for as long as there is room; return how long nothing will change, None if unknown."""
        while (
            # Looked at first: gates are reckoned by a clock that goes on.
            not any(departures.stands for departures in self._departures.values())
            and (task := self.lines.next()) is not None
            and self.process.is_up
            and len(self._admitted) < SLOTS
        ):
            now, cost = self._clock(), self._doubled(task.work.dataset, task.work.cost)
            begins = max(self._begins, now)
            wait = begins - now - BEGUN * cost.deadline
            if wait > 0:
                return self._until_next(now, wait)
            # Begun before it is sent: what its asker has cancelled by then is dropped, and not charged.
            if self.lines.begin(task):
                self._begins = begins + cost.reserved
                self._send(task, ticket(cost, begins, now))
        return self._until_next(self._clock(), None)

    def _doubled(self, dataset: str, cost: Cost) -> Cost:
        late = self._late.get(dataset, ())
        return replace(cost, doublings=doublings(late, datetime.now(UTC)) if late else 0)

    def _look_at_events(self) -> float:
        for dataset in list(self._late):
            self._late[dataset] = self._standing(dataset)
        return LOOK

    def _until_next(self, now: float, wait: float | None) -> float | None:
        moments = [departures.next_moment() for departures in self._departures.values()]
        waits = [max(0.0, moment - now) for moment in moments if moment is not None]
        return min(waits + ([] if wait is None else [wait]), default=None)

    def _send(self, task: QueuedWork[Wanted], moments: Ticket) -> None:
        number, dataset = next(self._numbers), task.work.dataset
        self._admitted[number] = admitted = _Admitted(task)
        if dataset not in self._departures:
            self._departures[dataset] = Departures()
        departures = self._departures[dataset]
        # Its moments are noted before it is sent: what comes back at once finds them.
        departures.add(number, task.person, (*moments.known_from, moments.leaves))
        if not self.process.send(Order(number=number, wanted=task.work, ticket=moments)):
            self._know(admitted, OrderOutcome(number=number, error=_gone(), at_once=True))

    def _hand_out(self, admitted: _Admitted) -> None:
        task, outcome = admitted.task, admitted.outcome
        if _is_too_busy(admitted) and not admitted.given_up:
            self.lines.back(task)  # its turn comes again
            return
        # Its place is free before its asker hears of it, who may ask the next at once.
        self.lines.end(task)
        if outcome is not None:
            self._note_engine(outcome, task.work.dataset)
            if outcome.counted is not None:
                self._counted(task.work.dataset, outcome.counted)
        if admitted.late and self._metrics is not None:
            self._metrics.count_delayed(task.work.dataset)
        if outcome is None:
            task.future.set_exception(_missing())
        elif outcome.error is None:
            records = outcome.records
            if admitted.late:
                records = tuple(replace(record, document={**record.document, "delayed": True}) for record in records)
            task.future.set_result(records)
        else:
            task.future.set_exception(outcome.error)


def _is_too_busy(admitted: _Admitted) -> bool:
    return admitted.outcome is not None and isinstance(admitted.outcome.error, TooBusy)


def _gone() -> ServiceFault:
    return ServiceFault(
        "The process that runs queries died. Check your history: if the query is there, it was charged; if not, "
        "nothing was. Run it again."
    )


def _missing() -> ServiceFault:
    return ServiceFault(
        "The result was not ready by its deadline. Check your history: if the query is there, it was charged; if not, "
        "nothing was. Run it again: if Lapwing has recorded its result since, it is free."
    )
