"""Whose question the engine runs next: one at a time, in the order of admission, but for those who are not ready.

Theory of operation. A question is admitted if the engine could begin with it early enough even if all that were
admitted before took as long as they may (`deadline.admission`). That holds if nobody is overtaken. So the engine goes
to the earliest of those that wait for it. If an earlier one is not ready yet, as its charge is being written, a later
one is let by only if it is so short that the earlier one does not miss its moment for it.

Who has the engine keeps it until it is done, but for three cases. Then it is stopped, which is a fault:

- It took more of the processor than was reserved for it, and somebody who waits would be late.
- Its last moment has come, and it took more of the processor than a quiet machine would have had for it until then. If
  it took less, the machine was not quiet: then it goes on, and is late (`deadline.departures`).
- Somebody has waited `PATIENCE` seconds too long, and it has had the engine for as long, whatever it took: it may wait
  for a disk that does not answer. How late somebody was before it began is nothing that it could help.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, final

SHORT: Final = 4
"""A later question may pass by if it takes at most this part of what an earlier one has between record and answer."""
LOOK: Final = 0.02
"""Seconds between two looks at whether somebody waits for what runs too long."""
PATIENCE: Final = 2.5
"""Seconds by which somebody may be late for one that the machine holds up."""


class Stoppable(Protocol):
    """What runs a question."""

    def used(self) -> float:
        """Return how many seconds of the processor the question took so far."""

    def stop(self) -> None:
        """Make it end; it is not waited for."""


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """An admitted question, with its moments in seconds of `time.monotonic`. Those to come may be moved.

    Args:
        begins: The time of the engine that is reserved for it.
        ends: The time of the engine that is reserved for it.
        known_from: When what came of each step may be recorded.
        leaves: When it is answered.
        allowed: Seconds of the processor that a quiet machine has for it.
        moved: By how much its moments are later than they were.
    """

    begins: float
    ends: float
    known_from: tuple[float, ...]
    leaves: float
    allowed: float
    moved: float = 0.0
    waiting: bool = False
    given_up: bool = False

    @property
    def last(self) -> float:
        """When what came of the last step is to be there."""
        return self.known_from[-1]

    @property
    def reserved(self) -> float:
        """Seconds of the engine."""
        return self.ends - self.begins

    @property
    def latest(self) -> float:
        """When the engine has to begin."""
        return self.last - self.reserved - (self.leaves - self.last) / 4

    def move(self, seconds: float) -> None:
        """Let all moments be later."""
        self.begins, self.ends, self.leaves = self.begins + seconds, self.ends + seconds, self.leaves + seconds
        self.known_from = tuple(moment + seconds for moment in self.known_from)
        self.moved += seconds


@final
class Turns:
    """Hands out one engine.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        self._runs = threading.Condition(lock)  # who watches waits for this alone, and is not woken by each change
        self._watched = False
        self._open: list[Ticket] = []  # in the order of admission
        self._holder: Ticket | None = None
        self._running: Stoppable | None = None
        self._begun = 0.0

    def enter(self, ticket: Ticket) -> None:
        """Note a question, in the order of admission."""
        with self._changed:
            self._open.append(ticket)

    def take(self, ticket: Ticket, running: Stoppable) -> bool:
        """Wait for the engine; False if the question was given up by then. Who has it keeps it until `give`."""
        with self._changed:
            ticket.waiting = True
            self._changed.notify_all()
            try:
                while self._holder is not ticket and not self._may_begin(ticket):
                    if ticket.given_up:
                        return False
                    self._hurry(ticket)
                    self._changed.wait(LOOK)
            finally:
                ticket.waiting = False
            self._holder, self._running, self._begun = ticket, running, self._clock()
            self._changed.notify_all()
            if not self._watched:  # else it looks again soon anyway
                self._runs.notify()
            return not ticket.given_up

    def rest(self, ticket: Ticket) -> None:
        """Say that the engine has returned: who has it keeps it for the next step, and nothing is to be stopped."""
        with self._changed:
            if self._holder is ticket:
                self._running = None

    def give(self, ticket: Ticket) -> None:
        """Let go of the engine."""
        with self._changed:
            if self._holder is ticket:
                self._holder = self._running = None
                self._changed.notify_all()

    def leave(self, ticket: Ticket) -> None:
        """Forget a question that has ended, or that needs the engine no more."""
        self.give(ticket)
        with self._changed:
            if ticket in self._open:
                self._open.remove(ticket)
                self._changed.notify_all()

    def move(self, ticket: Ticket, seconds: float) -> None:
        """Let all moments of a question be later."""
        with self._changed:
            ticket.move(seconds)

    def give_up(self, ticket: Ticket) -> None:
        """Stop a question, or let it no longer wait."""
        with self._changed:
            ticket.given_up = True
            if self._holder is ticket:
                self._stop()
            self._changed.notify_all()

    def watch(self) -> None:
        """Stop whatever has used up what it may by its last moment; for a thread that does nothing else."""
        while True:
            with self._changed:
                holder, running = self._holder, self._running
                ending = holder is not None and self._clock() >= holder.last - 2 * LOOK
                if ending and holder is not None and running is not None and running.used() > holder.allowed:
                    self._stop()
                self._watched = self._running is not None
                self._runs.wait(LOOK if self._watched else None)

    def _may_begin(self, ticket: Ticket) -> bool:
        now = self._clock()
        if self._holder is not None and (self._running is not None or now <= ticket.latest - ticket.moved + PATIENCE):
            return False
        for other in self._open:
            if other is ticket:
                return True
            if now > other.latest and not other.waiting:
                continue
            if other.waiting or ticket.reserved * SHORT > other.leaves - other.last:
                return False
        return True

    def _hurry(self, waiting: Ticket) -> None:
        """Stop who has the engine if the one who waits would be late, and it took what it may."""
        holder, running, late = self._holder, self._running, self._clock() - waiting.latest
        if holder is None or running is None or late < -LOOK:
            return
        impatient = min(late + waiting.moved, self._clock() - self._begun) > PATIENCE
        if impatient or running.used() > holder.reserved:
            self._stop()

    def _stop(self) -> None:
        # Forgotten before it is stopped: nobody stops it twice, as another question may run in it by then.
        running, self._running = self._running, None
        if running is not None:
            running.stop()
