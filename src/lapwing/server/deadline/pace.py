"""The moments of one question: when what came of it may be known, which is said by who hands out.

Guarantee:
    When a charge and a record are written, and when an answer is kept and sent, are functions of public moments, of
    events that are counted (`deadline.departures`), of what others do to the ledger, and of how busy the machine is
    with that; not of how long the engine took. What the engine returned waits in `TicketPace`, before anything is
    recorded, for the word of the process that hands out; so does a fault.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import Final, Literal, NoReturn, Protocol, final

from lapwing.catalog.model import Catalog, Table
from lapwing.engines import FAILED, NOTHING, Engine, Exact
from lapwing.errors import EngineFault, ServiceFault
from lapwing.ledger.allowances import Limits, LimitsNow
from lapwing.query.plan.capabilities import Capabilities
from lapwing.query.plan.plan import Question
from lapwing.release.request import Timing
from lapwing.server.deadline.engines import Lost, Runner
from lapwing.server.deadline.turns import Ticket, Turns

TOO_BUSY: Final = "The service was too busy to charge the query in time. Nothing was charged. Run it again later."
Run = Callable[[Engine, Question, Mapping[str, str]], Exact]
Said = Literal["proceed", "give up", "nobody"]
"""What the process that hands out says of a step: that it may be recorded, that it is given up; or that it is gone."""
Reached = Literal["ready", "waits"]
"""What is said to it: that what came of a step is there, or that the question waits for somebody else's answer."""


class NotStored(Exception):
    """A question would have to be charged."""


class TooBusy(ServiceFault):
    """A question was not charged in time, so that it was not charged; its turn comes again."""

    charged = False


class Runners(Protocol):
    """What runs questions (`engines.Engines`)."""

    def of(self, catalog: Catalog, engine: Engine) -> Runner:
        """Return what runs questions about a catalog, whose engine here is this one."""

    def warm(self, catalog: Catalog, digests: Mapping[str, str]) -> None:
        """Read data that were not read yet."""


class Pace(Protocol):
    """How a question is asked for somebody who is not trusted with time."""

    def timing(self, catalog: Catalog) -> Timing:
        """Return what the release keeps to."""

    def waits(self) -> None:
        """Note that the same is being asked by somebody else, whose answer is waited for."""

    def limited(self, limits: LimitsNow) -> LimitsNow:
        """Return what charges must keep to."""


@final
@dataclass(frozen=True, slots=True)
class AskedEngine:
    """An engine that is asked in another way.

    Args:
        runs: Asks it.
        before: Is called before each charge, with the digests that were found so far, by table.
    """

    engine: Engine
    runs: Run
    before: Callable[[Mapping[str, str]], None] = lambda _: None
    _found: dict[str, str] = field(default_factory=dict)

    @property
    def capabilities(self) -> Capabilities:
        """Return what the engine can run."""
        return self.engine.capabilities

    def digest(self, table: Table, accepted: Mapping[str, str] = NOTHING) -> str:
        """Return the engine's digest of a table."""
        self._found[table.name] = found = self.engine.digest(table, accepted)
        return found

    def rows(self, table: Table) -> int:
        """Return how many rows the engine finds in a table."""
        return self.engine.rows(table)

    def unfit_columns(self, table: Table) -> Sequence[str]:
        """Return the columns in which the engine finds values that are not of their type."""
        return self.engine.unfit_columns(table)

    def prepare(self, question: Question) -> None:
        """Do what is to be done before a charge."""
        # First: whoever may have only what is stored ends here, before the engine does any work.
        self.before(self._found)
        self.engine.prepare(question)

    def run(self, question: Question, digests: Mapping[str, str]) -> Exact:
        """Ask the engine in that way."""
        return self.runs(self.engine, question, digests)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()


@final
class StoredOnly:
    """The pace of what is served at once: what was bought before. Raises NotStored instead of a charge.

    Args:
        before: Is called instead of a charge, with the digests of the tables that were to be read.
    """

    def __init__(self, before: Callable[[Mapping[str, str]], None] = lambda _: None) -> None:
        self._before = before

    def timing(self, _catalog: Catalog) -> Timing:
        """Return that nothing runs."""
        return Timing(trusted=False, through=lambda engine: AskedEngine(engine, _run_nothing, self._refuse), pays=False)

    def _refuse(self, found: Mapping[str, str]) -> NoReturn:
        self._before(found)
        raise NotStored

    def waits(self) -> None:
        """Wait as anybody."""

    def limited(self, limits: LimitsNow) -> LimitsNow:
        """Return the limits: nothing comes so far."""
        return limits


@final
class TicketPace:
    """The pace of what was admitted.

    Args:
        says: Tells the process that hands out what was reached.
    """

    def __init__(self, ticket: Ticket, turns: Turns, engines: Runners, says: Callable[[Reached], None]) -> None:
        self._ticket, self._turns, self._engines, self._says = ticket, turns, engines, says
        self._said: SimpleQueue[Said] = SimpleQueue()
        self._step = 0
        self._waited = False
        self.lost: Lost | None = None
        """Why the engine that was asked is there no more, if it is not."""

    def timing(self, catalog: Catalog) -> Timing:
        """Return the moments of the ticket."""

        def through(engine: Engine) -> AskedEngine:
            return AskedEngine(engine, partial(self._run, catalog), partial(self._engines.warm, catalog))

        return Timing(trusted=False, through=through, hold=self._hold, waits=self.waits)

    def waits(self) -> None:
        """Say that the same is being asked by somebody else: then nothing is charged at these moments any more."""
        if not self._waited:
            self._waited = True
            self._says("waits")

    def limited(self, limits: LimitsNow) -> LimitsNow:
        """Return limits that refuse what comes too late: they are asked for while the ledger is held."""

        def now() -> Limits:
            if self._waited or self._ticket.given_up:
                raise TooBusy(TOO_BUSY)
            return replace(limits(), timed=True)

        return now

    # ---- said by the process that hands out ----

    def hear(self, said: Said) -> None:
        """Take note of what was said."""
        if said == "give up":
            self._turns.give_up(self._ticket)
        self._said.put(said)

    def leave_alone(self) -> None:
        """Take note that nobody will say anything any more."""
        for _ in self._ticket.known_from:
            self._said.put("nobody")

    def move(self, seconds: float) -> None:
        """Let all moments be later."""
        self._turns.move(self._ticket, seconds)

    # ---- while it is asked ----

    def _run(self, catalog: Catalog, engine: Engine, question: Question, digests: Mapping[str, str]) -> Exact:
        running = self._engines.of(catalog, engine)
        exact = running.run(question, digests) if self._turns.take(self._ticket, running) else None
        self._turns.rest(self._ticket)
        # Noted before anything is raised: it is told when the question leaves, whatever came of it.
        self.lost = running.lost() or self.lost
        if exact is None:
            raise EngineFault(FAILED)
        return exact

    def _hold(self) -> None:
        """Wait until what came of this step may be known; the engine is kept for the next one, if there is one."""
        place = self._step
        if place == len(self._ticket.known_from):  # what follows the last moment follows at once
            return
        # The engine is let go before anybody is told that this is ready, and its place counted before anybody answers.
        if place == len(self._ticket.known_from) - 1:
            self._turns.leave(self._ticket)
        self._step += 1
        self._says("ready")
        said = self._said.get()
        if said == "nobody":  # it is recorded at its moment all the same, and found when it is asked again
            wait_until(self._ticket.known_from[place])
        if said == "give up":
            raise EngineFault(FAILED)


def wait_until(moment: float) -> None:
    """Return at a moment of `time.monotonic`, or at once if it is over."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


def _run_nothing(_engine: Engine, _question: Question, _digests: Mapping[str, str]) -> NoReturn:
    raise NotStored
