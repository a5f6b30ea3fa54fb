"""What the question process does: it opens what its front has opened, and asks in threads, each at its pace."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, final

from lapwing.catalog.toml import load
from lapwing.errors import LapwingError, was_charged
from lapwing.machine.garbage import long_lived_objects_frozen
from lapwing.opening import open_session
from lapwing.server.bodies import QueryBody
from lapwing.server.datasets import ServedDataset
from lapwing.server.deadline.admission import SLOTS
from lapwing.server.deadline.cost import require_counted
from lapwing.server.deadline.engines import Engines
from lapwing.server.deadline.handed_plan import take_over
from lapwing.server.deadline.pace import NotStored, Reached, StoredOnly, TicketPace, TooBusy
from lapwing.server.deadline.process import (
    Bug,
    Heard,
    Move,
    Opened,
    Order,
    OrderOutcome,
    ProcessorShare,
    Reach,
    Say,
    Sent,
)
from lapwing.server.deadline.speed import Calibration, make_indexes
from lapwing.server.deadline.turns import Turns
from lapwing.server.execution import Ask, RepeatedProblem
from lapwing.server.log import log, open_log
from lapwing.server.problems import place_of
from lapwing.server.rounds import Rounds
from lapwing.server.service import Service, ServiceSettings
from lapwing.tables import quoted

SWITCH: Final = 0.0005
"""Seconds after which a thread lets others go on: each has a deadline."""
LOOK: Final = 5.0
"""Seconds between two looks whether data are new."""
RUNS: Final = 1
"""So often the speed is measured before anything is asked."""
AGAIN, LONGEST_AGAIN = 15.0, 3600.0
"""Seconds after which it is measured again: at first, and at most, as the pause doubles."""


def work(
    catalogs: tuple[Path, ...],
    people: str | None,
    settings: ServiceSettings,
    worker: int | None,
    share: ProcessorShare,
    line: Connection,
) -> None:
    """Ask what comes over a line, until it ends; then wait for what is under way.

    Args:
        catalogs: As `workers.ProcessConfig` has them.
        people: As `workers.ProcessConfig` has them.
        settings: As `workers.ProcessConfig` has them.
        worker: As `log.open_log` has it.
        share: Of the processors, that of the engine.
    """
    # Before anything is opened: Ctrl-C in a terminal reaches this process too.
    for number in (signal.SIGINT, signal.SIGTERM):  # its front says when to end
        signal.signal(number, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH)
    open_log(worker)
    try:
        with ExitStack() as stack:
            sessions = [stack.enter_context(open_session(load(path))) for path in catalogs]
            saying = _Line(line)
            service = Service(people, sessions, replace(settings, padded=False), count=_COUNTED.note)
            stack.callback(service.close)
            engines = Engines(share.processors)
            stack.callback(engines.close)
            _serve(service, engines, saying)
    except LapwingError as error:
        log("questions not opened", code=error.code, detail=str(error))
    except Exception as error:
        log("bug", kind=type(error).__name__, place=place_of(error))


@final
class _Line:
    """Says what came of questions, from any thread."""

    def __init__(self, line: Connection) -> None:
        self._line, self._lock = line, threading.Lock()

    def say(self, said: Heard) -> None:
        """Say something; nothing if nobody listens any more."""
        with self._lock, suppress(OSError):
            self._line.send(said)

    def next(self) -> Sent | None:
        """Return what the front says next, None if there will be nothing."""
        try:
            sent: Sent | None = self._line.recv()
        except (EOFError, OSError):
            return None
        return sent


def _serve(service: Service, engines: Engines, line: _Line) -> None:
    calibration, quiet = Calibration(), _Quiet()
    for _ in range(RUNS):
        calibration.run()
    turns, warming = Turns(), _Warming(service, engines, line, calibration, quiet)
    # Before the first order is taken: what is opened and read later takes the time of a question.
    warming.look()
    engines.begin_spare()
    warming.rounds.start()
    service.settler.rounds.start()
    threading.Thread(target=turns.watch, name="turns", daemon=True).start()
    paces: dict[int, TicketPace] = {}
    slots = ThreadPoolExecutor(max_workers=SLOTS, thread_name_prefix="question")
    with long_lived_objects_frozen(), slots as threads:
        while (sent := line.next()) is not None:
            if isinstance(sent, Order):
                # The first thing of all: it ends a measurement of the speed, which would take the question's time.
                quiet.until(sent.ticket.leaves)
                # Before any thread has it: the order of admission must not depend on which thread begins first.
                turns.enter(sent.ticket)
                paces[sent.number] = TicketPace(sent.ticket, turns, engines, _reaching(line, sent.number))
                threads.submit(_ask, service, turns, sent, paces, line)
                continue
            if isinstance(sent, Move):
                quiet.later(sent.seconds)
            _pass_on(sent, paces)
        for pace in list(paces.values()):
            pace.leave_alone()
    warming.rounds.close()
    calibration.close()


@final
class _Quiet:
    """Knows when everything that was admitted has left: a public fact, as tickets are, and events that move them."""

    def __init__(self) -> None:
        self._leaves = 0.0

    def until(self, leaves: float) -> None:
        """Note a question that leaves at a moment."""
        self._leaves = max(self._leaves, leaves)

    def later(self, seconds: float) -> None:
        """Note that what is to leave leaves so many seconds later."""
        self._leaves = max(self._leaves, time.monotonic()) + seconds

    def __call__(self) -> bool:
        """Tell whether nothing is under way."""
        return time.monotonic() > self._leaves


def _reaching(line: _Line, number: int) -> Callable[[Reached], None]:
    return lambda reached: line.say(Reach(number=number, reached=reached))


def _pass_on(sent: Say | Move, paces: Mapping[int, TicketPace]) -> None:
    """Tell what was said to those that are still under way."""
    numbers = (sent.number,) if isinstance(sent, Say) else sent.numbers
    for pace in [paces[number] for number in numbers if number in paces]:
        if isinstance(sent, Say):
            pace.hear(sent.said)
        else:
            pace.move(sent.seconds)


@final
class _Warming:
    """Does what no question is to do while its time runs: opens what was registered, reads data, writes indexes."""

    def __init__(
        self, service: Service, engines: Engines, line: _Line, calibration: Calibration, quiet: _Quiet
    ) -> None:
        self._service, self._engines, self._line = service, engines, line
        self._calibration, self._quiet = calibration, quiet
        self._pause = AGAIN
        self._again = time.monotonic() + AGAIN
        self._indexed: dict[str, bool] = {}
        self._versions: dict[str, tuple[int, int]] = {}
        self._cold: set[str] = set()
        self._told = False
        self.rounds = Rounds("warming", LOOK, self._round)

    def look(self) -> None:
        """Look at all data sets, and say it if something is new."""
        before = dict(self._indexed)
        self._service.datasets.look()
        for served in self._service.datasets.everything():
            try:
                self._warm(served)
                self._cold.discard(served.name)
            except LapwingError as error:
                if served.name not in self._cold:
                    log("not warm", dataset=served.name, code=error.code)
                self._cold.add(served.name)
        if self._indexed != before or not self._told:
            self._told = True
            self._say()

    def measure_again(self) -> None:
        """Measure the speed again if it is time to and nothing is under way, as a start may have been a busy moment.

        Nobody's question runs meanwhile, and whoever comes stops it: when it runs follows from tickets and the clock.
        """
        if time.monotonic() < self._again or not self._quiet():
            return
        self._pause = min(2 * self._pause, LONGEST_AGAIN)
        self._again = time.monotonic() + self._pause
        if self._calibration.run(self._quiet):
            self._say()

    def _say(self) -> None:
        speed = self._calibration.speed
        log("speed", **{name: float(f"{figure:.3g}") for name, figure in asdict(speed).items()})
        self._line.say(Opened(speed=speed, indexed=dict(self._indexed)))

    def _warm(self, served: ServedDataset) -> None:
        catalog, version = served.session.catalog, (served.session.budget(history=False).version, served.number)
        if self._versions.get(served.name) != version:
            self._indexed[served.name] = make_indexes(catalog)
            self._versions[served.name] = version
            require_counted(catalog)
        pace = StoredOnly(before=partial(self._engines.warm, catalog))
        nobody = served.session.acting_for("nobody", timing=pace.timing(catalog))
        for table in catalog.tables:
            with suppress(NotStored):  # by then it is known that the data are those of the version
                nobody.sql(f"SELECT COUNT(*) AS n FROM {quoted(table.name)}", epsilon=1)

    def _round(self) -> float:
        self.look()
        self.measure_again()
        return LOOK


@final
class _Counted(threading.local):
    """What the queued question counts as that this thread has asked; it is told when the question leaves."""

    outcome: str | None = None

    def note(self, _dataset: str, outcome: str) -> None:
        self.outcome = outcome


_COUNTED: Final = _Counted()


def _ask(service: Service, turns: Turns, order: Order, paces: dict[int, TicketPace], line: _Line) -> None:
    pace = paces[order.number]
    try:
        outcome = replace(_outcome(service, order, pace), counted=_COUNTED.outcome, engine=pace.lost)
    except BaseException as error:
        log("bug", kind=type(error).__name__, place=place_of(error))
        outcome = OrderOutcome(number=order.number, error=Bug())
    finally:
        turns.leave(order.ticket)
        del paces[order.number]
    # After the engine was let go: whoever hears of a question may count on that.
    line.say(outcome)


def _outcome(service: Service, order: Order, pace: TicketPace) -> OrderOutcome:
    wanted, _COUNTED.outcome = order.wanted, None
    caller, body = wanted.caller, wanted.body
    try:
        if wanted.job is not None and isinstance(body, QueryBody):
            if wanted.plan is not None and (known := service.datasets.known(caller, wanted.dataset)) is not None:
                take_over(wanted.plan, known.session, caller.name, body)
            # What comes of it is in the store, where its asker looks.
            charged = service.job_runner.run_at(wanted.job, wanted, pace)
            return OrderOutcome(number=order.number, at_once=charged is False)
        served = service.datasets.visible(caller, wanted.dataset)
        if wanted.plan is not None:
            take_over(wanted.plan, served.session, caller.name, body)
        records = service.executor.answered(Ask(caller=caller, served=served, body=body, key=wanted.key, pace=pace))
    except RepeatedProblem as known:
        return OrderOutcome(number=order.number, error=known, at_once=True)
    except TooBusy as error:
        return OrderOutcome(number=order.number, error=error, at_once=True)
    except LapwingError as error:
        return OrderOutcome(number=order.number, error=error, at_once=was_charged(error) is False)
    free = all(record.document.get("stored") for record in records)
    return OrderOutcome(number=order.number, records=records, at_once=free)
