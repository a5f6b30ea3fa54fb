"""A question asked at its moments, without the processes of a service: who hands out is a thread."""

import threading
from collections.abc import Mapping

from lapwing.catalog.model import Catalog
from lapwing.engines import Engine
from lapwing.server.deadline.admission import ticket
from lapwing.server.deadline.cost import Cost
from lapwing.server.deadline.engines import InPlace
from lapwing.server.deadline.pace import Reached, TicketPace, wait_until
from lapwing.server.deadline.turns import Ticket, Turns


class Here:
    """Engines that run in this process, where a test may change them."""

    def of(self, _catalog: Catalog, engine: Engine) -> InPlace:
        return InPlace(engine)

    def warm(self, _catalog: Catalog, _digests: Mapping[str, str]) -> None:
        pass


def paced_by_a_thread(turns: Turns, cost: Cost, now: float) -> tuple[TicketPace, Ticket]:
    """Return a pace, each step of which may be recorded from its moment on."""
    moments, step = ticket(cost, now, now), iter(range(9))

    def says(reached: Reached) -> None:
        if reached == "ready":
            threading.Thread(target=go_on, args=(moments.known_from[next(step)],), daemon=True).start()

    def go_on(moment: float) -> None:
        wait_until(moment)
        pace.hear("proceed")

    turns.enter(moments)
    pace = TicketPace(moments, turns, Here(), says)
    return pace, moments
