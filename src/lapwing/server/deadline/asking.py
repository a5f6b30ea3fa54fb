"""What the question process does: it opens what its front has opened, and asks in threads, each at its pace."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, final

from lapwing.catalog.toml import load
from lapwing.errors import LapwingError
from lapwing.opening import open_session
from lapwing.server.bodies import QueryBody
from lapwing.server.deadline import speed
from lapwing.server.deadline.admission import SLOTS
from lapwing.server.deadline.cost import require_counted
from lapwing.server.deadline.pace import TicketPace
from lapwing.server.deadline.process import Bug, Counted, Opened, Order, Outcome
from lapwing.server.deadline.turns import Turns
from lapwing.server.execution import RepeatedProblem, was_charged
from lapwing.server.log import log, open_log
from lapwing.server.problems import place_of
from lapwing.server.rounds import Rounds
from lapwing.server.service import Service, ServiceSettings

LOOK: Final = 5.0
"""Seconds between two looks whether data sets were registered."""


def work(
    catalogs: tuple[Path, ...], people: str | None, settings: ServiceSettings, worker: int | None, line: Connection
) -> None:
    """Ask what comes over a line, until it ends; then wait for what is under way.

    Args: catalogs, people, settings: as `workers.ProcessConfig` has them; worker: as `log.open_log` has it.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # its front says when to end
        signal.signal(number, signal.SIG_IGN)
    open_log(worker)
    try:
        with ExitStack() as stack:
            sessions = [stack.enter_context(open_session(load(path))) for path in catalogs]
            saying = _Line(line)
            service = Service(people, sessions, replace(settings, padded=False), count=saying.count)
            stack.callback(service.close)
            _serve(service, saying)
    except LapwingError as error:
        log("questions not opened", code=error.code, detail=str(error))
    except Exception as error:
        log("bug", kind=type(error).__name__, place=place_of(error))


@final
class _Line:
    """Says what came of questions, from any thread."""

    def __init__(self, line: Connection) -> None:
        self._line, self._lock = line, threading.Lock()

    def say(self, said: Opened | Outcome | Counted) -> None:
        """Say something; nothing if nobody listens any more."""
        with self._lock, suppress(OSError):
            self._line.send(said)

    def count(self, dataset: str, outcome: str) -> None:
        """Say what came of a question, for the metrics."""
        self.say(Counted(dataset=dataset, outcome=outcome))

    def next(self) -> Order | None:
        """Return the next order, None if there will be none."""
        try:
            order: Order | None = self._line.recv()
        except (EOFError, OSError):
            return None
        return order


def _serve(service: Service, line: _Line) -> None:
    measured, turns = speed.measured(), Turns()
    indexed: dict[str, bool] = {}

    def look() -> float:
        """Open what was registered, and write indexes, so that no question has to, while its time runs."""
        service.datasets.look()
        new = [served for served in service.datasets.everything() if served.name not in indexed]
        for served in new:
            indexed[served.name] = speed.make_indexes(served.session.catalog)
            try:
                require_counted(served.session.catalog)
            except LapwingError as error:
                log("too many rows", dataset=served.name, code=error.code)
        if new or not indexed:
            line.say(Opened(speed=measured, indexed=dict(indexed)))
        return LOOK

    look()
    looking = Rounds("registered", LOOK, look)
    looking.start()
    service.settler.rounds.start()
    threading.Thread(target=turns.watch, name="turns", daemon=True).start()
    with ThreadPoolExecutor(max_workers=SLOTS, thread_name_prefix="question") as threads:
        while (order := line.next()) is not None:
            turns.enter(order.ticket)
            threads.submit(_ask, service, turns, order, line)
    looking.close()


def _ask(service: Service, turns: Turns, order: Order, line: _Line) -> None:
    pace = TicketPace(order.ticket, turns)
    try:
        outcome = _outcome(service, order, pace)
    except BaseException as error:
        log("bug", kind=type(error).__name__, place=place_of(error))
        outcome = Outcome(number=order.number, error=Bug())
    finally:
        turns.leave(order.ticket)
    line.say(outcome)


def _outcome(service: Service, order: Order, pace: TicketPace) -> Outcome:
    if order.job is not None and isinstance(order.body, QueryBody):
        # What comes of it is in the store, where its asker looks.
        charged = service.job_runner.run_at(pace, order.job, order.caller, order.dataset, order.body, order.key)
        return Outcome(number=order.number, at_once=charged is False)
    try:
        served = service.datasets.visible(order.caller, order.dataset)
        records = service.executor.answered(order.caller, served, order.body, order.key, pace=pace)
    except RepeatedProblem as known:
        return Outcome(number=order.number, error=known, at_once=True)
    except LapwingError as error:
        return Outcome(number=order.number, error=error, at_once=was_charged(error) is False)
    free = all(record.document.get("stored") for record in records)
    return Outcome(number=order.number, records=records, at_once=free)
