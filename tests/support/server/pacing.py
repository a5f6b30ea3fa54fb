"""A question asked at its moments, without the processes of a service: who hands out is the test."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Any, final

from lapwing.catalog.model import Catalog
from lapwing.engines import Engine
from lapwing.ledger.allowances import Limits
from lapwing.server.deadline.admission import ticket
from lapwing.server.deadline.cost import Cost
from lapwing.server.deadline.engines import InPlace
from lapwing.server.deadline.pace import Reached, TicketPace
from lapwing.server.deadline.turns import Ticket, Turns
from lapwing.session import Session

SLOW = 60
"""Seconds in which the slowest machine has done what is waited for."""


class Here:
    """Engines that run in this process, where a test may change them."""

    def of(self, _catalog: Catalog, engine: Engine) -> InPlace:
        return InPlace(engine)

    def warm(self, _catalog: Catalog, _digests: Mapping[str, str]) -> None:
        pass


def paced(
    says: Callable[[TicketPace, Ticket], None], cost: Cost, now: float, turns: Turns | None = None
) -> tuple[TicketPace, Ticket]:
    """Return the pace of a question that is admitted now; `says` is called whenever numbers of a step are there."""
    moments, turns = ticket(cost, now, now), turns or Turns()

    def reached(what: Reached) -> None:
        if what == "ready":
            says(pace, moments)

    turns.enter(moments)
    pace = TicketPace(moments, turns, Here(), reached)
    return pace, moments


def acting(session: Session, pace: TicketPace, name: str = "alice") -> Session:
    """Return the session of somebody who is asked for at a pace."""
    return session.acting_for(name, pace.limited(Limits), timing=pace.timing(session.catalog))


@final
class Waiting:
    """A question asked in a thread. What comes of each step waits for the test's word."""

    def __init__(self, session: Session, asks: Callable[[Session], Any], steps: int = 1, ago: float = 0.0) -> None:
        self._told = SimpleQueue[str]()
        cost = Cost(seconds=0.1, steps=steps)
        self.pace, self.moments = paced(lambda *_: self._told.put("ready"), cost, time.monotonic() - ago)
        threads = ThreadPoolExecutor(1)
        self._asking: Future[Any] = threads.submit(asks, acting(session, self.pace))
        self._asking.add_done_callback(lambda _: self._told.put("ended"))
        threads.shutdown(wait=False)

    def comes_to_wait(self) -> None:
        """Return when the numbers of a step are there, and are waited with."""
        assert self._told.get(timeout=SLOW) == "ready"
        assert not wait([self._asking], timeout=0.05).done

    def goes_on(self) -> None:
        """Say that what came of the step may be recorded."""
        self.pace.hear("proceed")

    def result(self) -> Any:
        """Return what came of the question."""
        return self._asking.result(SLOW)
