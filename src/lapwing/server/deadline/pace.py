"""The moments of one question: when it is charged at the latest, and when what came of it may be known.

Guarantee: when a charge and a record are written, and when an answer is kept and sent, are functions of the ticket, of
what others do to the ledger, and of how busy the machine is with that; not of how long the engine took. What the engine
returned waits in `TicketPace.hold`, before anything is recorded, for the moment that the ticket names; so does a fault.
What the engine has not returned by then is a fault.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol, final

from lapwing.catalog.model import Table
from lapwing.engines import FAILED, NOTHING, Engine, Exact
from lapwing.errors import EngineFault, ServiceFault
from lapwing.ledger.allowances import Limits, LimitsNow
from lapwing.query.capabilities import Capabilities
from lapwing.query.plan import Question
from lapwing.release.request import Timing
from lapwing.server.deadline.turns import Ticket, Turns
from lapwing.switches import Switch

TOO_BUSY: Final = "The service was too busy to charge the question in time. Nothing was charged. Ask again later."
Run = Callable[[Engine, Question, Mapping[str, str]], Exact]


class NotStored(Exception):
    """A question would have to be charged."""


class TooBusy(ServiceFault):
    """A question was not charged in time, so that it was not charged; its turn comes again."""

    charged = False


class Pace(Protocol):
    """How a question is asked for somebody who is not trusted with time."""

    @property
    def timing(self) -> Timing:
        """What the release keeps to."""

    def limited(self, limits: LimitsNow) -> LimitsNow:
        """Return what charges must keep to."""


@final
@dataclass(frozen=True, slots=True)
class AskedEngine:
    """An engine that is asked in another way. Args: runs: asks it; before: is called before each charge."""

    engine: Engine
    runs: Run
    before: Callable[[], None] = lambda: None

    @property
    def capabilities(self) -> Capabilities:
        """Return what the engine can run."""
        return self.engine.capabilities

    def digest(self, table: Table, accepted: Mapping[str, str] = NOTHING) -> str:
        """Return the engine's digest of a table."""
        return self.engine.digest(table, accepted)

    def rows(self, table: Table) -> int:
        """Return how many rows the engine finds in a table."""
        return self.engine.rows(table)

    def unfit_columns(self, table: Table) -> Sequence[str]:
        """Return the columns in which the engine finds values that are not of their type."""
        return self.engine.unfit_columns(table)

    def prepare(self, question: Question) -> None:
        """Do what is to be done before a charge."""
        self.before()
        self.engine.prepare(question)

    def run(self, question: Question, digests: Mapping[str, str]) -> Exact:
        """Ask the engine in that way."""
        return self.runs(self.engine, question, digests)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()


@final
class StoredOnly:
    """The pace of what is served at once: what was bought before. Raises NotStored instead of a charge."""

    @property
    def timing(self) -> Timing:
        """Return that nothing runs."""
        return Timing(trusted=False, through=lambda engine: AskedEngine(engine, _run_nothing, _refuse))

    def limited(self, limits: LimitsNow) -> LimitsNow:
        """Return the limits: nothing comes so far."""
        return limits


@final
class TicketPace:
    """The pace of what was admitted."""

    def __init__(self, ticket: Ticket, turns: Turns) -> None:
        self._ticket, self._turns = ticket, turns
        self._step = 0

    @property
    def timing(self) -> Timing:
        """Return the moments of the ticket."""
        return Timing(trusted=False, through=lambda engine: AskedEngine(engine, self._run), hold=self._hold)

    def limited(self, limits: LimitsNow) -> LimitsNow:
        """Return limits that refuse what comes too late: they are asked for while the ledger is held."""

        def now() -> Limits:
            if time.monotonic() > self._ticket.charged_by[self._place]:
                raise TooBusy(TOO_BUSY)
            return limits()

        return now

    def _run(self, engine: Engine, question: Question, digests: Mapping[str, str]) -> Exact:
        exact = self._in_turn(engine, question, digests)
        if time.monotonic() > self._ticket.known_from[self._place]:
            exact = None
        if exact is None:
            raise EngineFault(FAILED)
        return exact

    def _in_turn(self, engine: Engine, question: Question, digests: Mapping[str, str]) -> Exact | None:
        switch = Switch()
        if not self._turns.take(self._ticket, switch.press):
            return None
        try:
            with switch.heard():
                return engine.run(question, digests)
        except (KeyboardInterrupt, EngineFault):
            return None

    def _hold(self) -> None:
        """Wait until what came of this step may be known; the engine is kept for the next one, if there is one."""
        if self._place == len(self._ticket.known_from) - 1:
            self._turns.leave(self._ticket)
        wait_until(self._ticket.known_from[self._place])
        self._step += 1

    @property
    def _place(self) -> int:
        return min(self._step, len(self._ticket.known_from) - 1)


def wait_until(moment: float) -> None:
    """Return at a moment of `time.monotonic`, or at once if it is over."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


def _refuse() -> NoReturn:
    raise NotStored


def _run_nothing(_engine: Engine, _question: Question, _digests: Mapping[str, str]) -> NoReturn:
    raise NotStored
