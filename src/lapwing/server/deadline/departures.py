"""When what came of the charged questions of a data set leaves: by public moments, and by the events that are counted.

Theory of operation. A question passes *gates*: from the first one or two on, what came of its steps may be recorded; at
the last, its answer leaves. They are moments on the clock of its data set, all on one public grid of `TICK` seconds.
Once a gate has come, what has to be there is there, and the gate is passed; or it is not, and that is an *event*: the
clock of the data set stands still at this tick. It goes on at the first of the moments `LATER` seconds after at which

- nothing is missing any more of what has a gate at the tick,
- the event is in the ledger (`ledger.events`), so that it is counted before anything leaves by it,
- and this process is punctual itself.

While the clock stands, no gate of the data set comes. So whatever else was to be recorded or to leave is moved by as
much, ready or not: who waited for what shows nothing but the tick, and which of the later moments it was. A stall that
holds up a hundred questions is one event, and by the time that the clock goes on they have all had as much more time.

What is still missing at the last moment gets an entry of its own in the ledger. If it is missing at the moment after
too, it is given up: it is a fault, and leaves as one, whatever the process does that was to ask it.

This is a pure state machine: `step` is told what time it is, and says what is to be done.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final, final

TICK: Final = 0.025
"""Seconds between two moments at which anything leaves."""
LATER: Final = (0.5, 1.0, 2.0, 4.0)
"""Seconds from a tick to the moments at which what was late leaves (`ledger.events.MOMENTS` of them)."""
PUNCTUAL: Final = 0.1
"""Seconds that the process which hands out may be late itself without that being an event."""
_FUZZ: Final = 1e-6
"""Of a tick, for floats that are a moment beside it."""


def tick_from(moment: float) -> float:
    """Return the first tick that is not before a moment."""
    return ceil(moment / TICK - _FUZZ) * TICK


def tick_until(moment: float) -> float:
    """Return the last tick that is not after a moment."""
    return floor(moment / TICK + _FUZZ) * TICK


@final
@dataclass(frozen=True, slots=True)
class Passed:
    """A question has passed a gate; `last`: it leaves."""

    number: int
    last: bool


@final
@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event is to be written down: from a tick on, in seconds of the clock, and whose question was missed first."""

    tick: float
    person: str


@final
@dataclass(frozen=True, slots=True)
class Moved:
    """All moments of these questions that are still to come are so many seconds later."""

    numbers: tuple[int, ...]
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class GivenUp:
    """A question is not waited for any longer."""

    number: int


Act = Passed | LateEvent | Moved | GivenUp


@dataclass(slots=True, eq=False)
class _WaitingQuestion:
    number: int
    person: str
    gates: tuple[float, ...]
    ready: int = 0
    passed: int = 0

    @property
    def is_ready(self) -> bool:
        return self.ready > self.passed


@dataclass(slots=True, eq=False)
class _Event:
    """An event: from which tick on, by the clock that goes on, and by that of the data set.

    `level`: which later moment comes; `unwritten`: how many entries are not in the ledger yet; `closing`: whether what
    is missing at the next moment is given up.
    """

    tick: float
    gate: float
    level: int = 0
    unwritten: int = 1
    closing: bool = False

    @property
    def moment(self) -> float:
        beyond = self.level - len(LATER) + 1  # after the last: as far again, while the ledger cannot be written
        return self.tick + (LATER[self.level] if beyond <= 0 else LATER[-1] * (1 + beyond))


@final
class Departures:
    """What is under way of one data set. Times are seconds of a clock that only grows."""

    def __init__(self) -> None:
        self._questions: dict[int, _WaitingQuestion] = {}
        self._due: list[tuple[float, int]] = []  # a heap of the next gates, by the clock of the data set
        self.behind = 0.0
        """Seconds for which the clock of the data set has stood still so far."""
        self._event: _Event | None = None

    @property
    def stands(self) -> bool:
        """Whether the clock stands still."""
        return self._event is not None

    def add(self, number: int, person: str, moments: Sequence[float]) -> None:
        """Add a question with the moments of its gates, in order; not while the clock stands still."""
        gates = tuple(moment - self.behind for moment in moments)
        self._questions[number] = _WaitingQuestion(number, person, gates)
        heapq.heappush(self._due, (gates[0], number))

    def ready(self, number: int, gates: int = 1) -> None:
        """Say that what a question needs for its next gate is there, or for so many."""
        question = self._questions.get(number)
        if question is not None:
            question.ready = min(len(question.gates), question.ready + gates)

    def holds(self, number: int) -> bool:
        """Tell whether a question is still to leave by its gates."""
        return number in self._questions

    def remove(self, number: int) -> None:
        """Forget a question: nothing was charged, or it waits for what is public."""
        self._questions.pop(number, None)

    def stop(self, now: float, person: str) -> list[Act]:
        """Begin an event now, unless there is one: somebody's question could not be charged in time."""
        return [] if self.stands else self._begin(tick_until(now), person)

    def written(self) -> None:
        """Say that an entry of the event is in the ledger."""
        if self._event is not None:
            self._event.unwritten -= 1

    def next_moment(self) -> float | None:
        """Return when `step` has something to do; None if not before something is told."""
        if self._event is not None:
            return self._event.moment
        self._drop_passed()
        return self._due[0][0] + self.behind if self._due else None

    def step(self, now: float) -> list[Act]:
        """Return what is to be done by now, in order."""
        acts: list[Act] = []
        while (moment := self.next_moment()) is not None and moment <= now + _FUZZ:
            punctual, event = now - moment <= PUNCTUAL, self._event
            acts += self._gate(moment, punctual) if event is None else self._later(event, punctual)
        return acts

    def _gate(self, tick: float, punctual: bool) -> list[Act]:
        gate = self._due[0][0]
        due = self._at(gate)
        missing = [question for question in due if not question.is_ready]
        # If one is missing, none passes: who leaves at a moment must not depend on who is ready.
        if missing or not punctual:
            return self._begin(tick, min(missing or due, key=lambda question: question.number).person)
        return self._pass(due)

    def _begin(self, tick: float, person: str) -> list[Act]:
        self._event = _Event(tick, tick - self.behind)
        return [LateEvent(tick, person), self._moved(LATER[0])]

    def _later(self, event: _Event, punctual: bool) -> list[Act]:
        """Let the clock go on if it may; else wait for the next moment."""
        due = self._at(event.gate)
        missing = [question for question in due if not question.is_ready]
        acts: list[Act] = []
        if event.unwritten or not punctual or (missing and not event.closing):
            if missing and event.level == len(LATER) - 1:
                # An entry for each of them, and all are written before the first is given up: so each counts.
                event.closing = True
                event.unwritten += len(missing)
                acts += [LateEvent(event.moment, question.person) for question in missing]
            before = event.moment
            event.level += 1
            return [*acts, self._moved(event.moment - before)]
        for question in missing:
            question.ready = len(question.gates)
            acts.append(GivenUp(question.number))
        # Set before the clock goes on: gates that are still to come are later by as much as it stood.
        self.behind += event.moment - event.tick
        self._event = None
        return [*acts, *self._pass(due)]

    def _pass(self, due: Sequence[_WaitingQuestion]) -> list[Act]:
        acts: list[Act] = []
        for question in due:
            question.passed += 1
            last = question.passed == len(question.gates)
            acts.append(Passed(question.number, last))
            if last:
                del self._questions[question.number]
            else:
                heapq.heappush(self._due, (question.gates[question.passed], question.number))
        return acts

    def _at(self, gate: float) -> list[_WaitingQuestion]:
        """Return the questions that have a gate by then, in the order of admission."""
        found = [question for question in self._questions.values() if question.gates[question.passed] <= gate + _FUZZ]
        return sorted(found, key=lambda question: question.number)

    def _drop_passed(self) -> None:
        while self._due:
            gate, number = self._due[0]
            question = self._questions.get(number)
            if question is not None and question.gates[question.passed] == gate:
                return
            heapq.heappop(self._due)

    def _moved(self, seconds: float) -> Moved:
        return Moved(tuple(self._questions), seconds)
