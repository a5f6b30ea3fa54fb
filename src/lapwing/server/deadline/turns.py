"""Whose question the engine runs next: one at a time, in the order of admission, but for those who are not ready.

Theory of operation. A question is admitted if the engine could begin with it early enough even if all that were
admitted before took as long as they may (`deadline.admission`). That holds if nobody is overtaken. So the engine goes
to the earliest of those that wait for it. If an earlier one is not ready yet, as its charge is being written, a later
one is let by only if it is so short that the earlier one does not miss its deadline for it. What is not charged in time
is not charged at all (`Ticket.charged_by`), and holds up nobody after that.

Somebody who has the engine keeps it for the time that was reserved, and longer for as long as nobody who waits would be
late. Then it is told to stop, and after `GRACE` the next one begins all the same, beside it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

GRACE: Final = 0.05
"""Seconds in which an engine stops that was told to."""
PASSING: Final = 8
"""A later question may pass by if it takes at most this part of an earlier one's deadline."""
LOOK: Final = 0.02
"""Seconds between two looks at whether somebody waits for what runs too long."""


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """An admitted question, with its moments in seconds of `time.monotonic`.

    Args: begins, ends: the time of the engine that is reserved for it; charged_by: until when each of its steps is
        charged, or not at all; known_from: when what came of each step may be known; leaves: when it is answered.
    """

    begins: float
    ends: float
    charged_by: tuple[float, ...]
    known_from: tuple[float, ...]
    leaves: float
    waiting: bool = False
    stop: Callable[[], None] | None = None

    @property
    def last(self) -> float:
        """When what came of the last step may be known: what runs until then is too late."""
        return self.known_from[-1]

    @property
    def reserved(self) -> float:
        """Seconds of the engine."""
        return self.ends - self.begins

    @property
    def latest(self) -> float:
        """When the engine has to begin."""
        return self.last - self.reserved - (self.leaves - self.last) / 4


@final
class Turns:
    """Hands out one engine. Args: clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._open: list[Ticket] = []  # in the order of admission
        self._holder: Ticket | None = None
        self._since = 0.0
        self._told = 0.0

    def enter(self, ticket: Ticket) -> None:
        """Note a question, in the order of admission."""
        with self._changed:
            self._open.append(ticket)

    def take(self, ticket: Ticket, stop: Callable[[], None]) -> bool:
        """Wait for the engine; False if it is too late by then. Who has it keeps it until `give`.

        Args: stop: tells the engine to stop.
        """
        with self._changed:
            if self._holder is ticket:
                ticket.stop = stop
                return True
            ticket.waiting = True
            self._changed.notify_all()
            try:
                while not self._may_begin(ticket):
                    now = self._clock()
                    if now >= ticket.last:
                        return False
                    if now >= ticket.latest - GRACE:
                        self._hurry(now)
                    self._changed.wait(min(LOOK, ticket.last - now))
            finally:
                ticket.waiting = False
            self._holder, self._since, self._told = ticket, self._clock(), 0.0
            ticket.stop = stop
            self._changed.notify_all()
            return True

    def give(self, ticket: Ticket) -> None:
        """Let go of the engine."""
        with self._changed:
            ticket.stop = None
            if self._holder is ticket:
                self._holder = None
                self._changed.notify_all()

    def leave(self, ticket: Ticket) -> None:
        """Forget a question that has ended, or that needs the engine no more."""
        self.give(ticket)
        with self._changed:
            if ticket in self._open:
                self._open.remove(ticket)
                self._changed.notify_all()

    def watch(self) -> None:
        """Tell whatever runs until its very end to stop; for a thread that does nothing else."""
        while True:
            with self._changed:
                if self._holder is not None and self._clock() >= self._holder.last:
                    self._tell()
                self._changed.wait(None if self._holder is None else LOOK)

    def _may_begin(self, ticket: Ticket) -> bool:
        now = self._clock()
        holder = self._holder
        if holder is not None and not (self._told and now >= self._told + GRACE):
            return False
        for other in self._open:
            if other is ticket:
                return True
            if other is holder or (now > other.charged_by[0] and not other.waiting):
                continue
            if other.waiting or ticket.reserved * PASSING > other.leaves - other.charged_by[0]:
                return False
        return True

    def _hurry(self, now: float) -> None:
        """Tell who has the engine to stop if the time that was reserved is over, as somebody would be late."""
        holder = self._holder
        if holder is not None and now >= max(holder.ends, self._since + holder.reserved):
            self._tell()

    def _tell(self) -> None:
        if not self._told and self._holder is not None:
            self._told = self._clock()
            if self._holder.stop is not None:
                self._holder.stop()
