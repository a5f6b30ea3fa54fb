"""The line from a front to its question process, which is started anew if it dies."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import Any, Final, final

from lapwing.errors import InvalidParameter, LapwingError, ServiceFault
from lapwing.server.answer_store import AnswerRecord
from lapwing.server.bodies import BatchBody, QueryBody
from lapwing.server.deadline.cost import Cost, Speed
from lapwing.server.deadline.engines import Lost
from lapwing.server.deadline.handed_plan import HandedPlan
from lapwing.server.deadline.pace import Reached, Said
from lapwing.server.deadline.turns import Ticket
from lapwing.server.log import log
from lapwing.server.people import Caller

PATIENCE: Final = 900.0
"""Seconds in which a process has opened everything. It needs some seconds of a processor, which others may use, too."""
EACH: Final = 30.0
"""Seconds after which the log says again that it is not ready."""
LEAVE: Final = 120.0
"""Seconds in which a process has ended after it is asked to."""
PAUSE, LONGEST_PAUSE = 0.25, 8.0
"""Seconds before a process that died is started anew: at first, and at most."""


_ENDED: Final = "The process that runs queries ended before it was ready. The last lines of the log say why."
_NOT_READY: Final = (
    "The process that runs queries was not ready after {:g} minutes. It measures this machine, which is too busy. "
    "Nothing is served. Run the command again when the machine has less to do. --no-padding starts without this "
    "process, but then people can see how long their queries take."
)


class Bug(Exception):
    """Something failed in the question process that should not have; its log says what."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A question that is to be asked.

    Args:
        job: The queued question that it is; None for one that somebody waits for.
        plan: That was made to know the cost; None if it is to be planned where it is asked.
    """

    caller: Caller
    dataset: str
    body: QueryBody | BatchBody
    key: str | None
    job: str | None
    cost: Cost
    plan: HandedPlan | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the question process is to ask now."""

    number: int
    wanted: Wanted
    ticket: Ticket


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """What is said of an order that is under way (`pace.Said`)."""

    number: int
    said: Said


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """That the moments of orders that are still to come are later by so many seconds."""

    numbers: tuple[int, ...]
    seconds: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What an order has reached (`pace.Reached`)."""

    number: int
    reached: Reached


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOutcome:
    """What came of an order: records, none of a job, or an error.

    Args:
        at_once: Whether it may be told before the ticket's moment, as nothing was charged.
        counted: As what it counts, of a job.
        engine: Why another engine took the place of the one that it had, None if none did.
    """

    number: int
    records: tuple[AnswerRecord, ...] = ()
    error: LapwingError | Bug | None = None
    at_once: bool = False
    counted: str | None = None
    engine: Lost | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """That the process is ready: how fast it is, and which data sets have indexes. Said again after a registration."""

    speed: Speed
    indexed: Mapping[str, bool]


LONGEST_TEMPORARY: Final = 107 - len("/pymp-12345678/listener-12345678")
"""Bytes of the path of the folder for temporary files: engines are started through a socket in it."""
Sent = Order | Say | Move
Heard = Reach | OrderOutcome | Opened


@final
@dataclass(frozen=True, slots=True)
class ProcessorShare:
    """Of the processors: that of the question process, None for all, and how many such processes have it together."""

    processors: frozenset[int] | None
    number: int


def shares(worker: int, workers: int) -> tuple[ProcessorShare, frozenset[int] | None]:
    """Return what the question process of a worker has of the processors, and which the worker itself has.

    Half of the processors, one for each worker at most, are for questions that are timed, so that nothing else which
    the service does slows them down. Where there is one alone, or the system does not say, all share all.
    """
    if not hasattr(os, "sched_getaffinity"):
        return ProcessorShare(None, workers), None
    all_ = sorted(os.sched_getaffinity(0))
    own = min(workers, len(all_) // 2)
    if not own:
        return ProcessorShare(None, workers), None
    return ProcessorShare(frozenset({all_[-1 - worker % own]}), -(-workers // own)), frozenset(all_[:-own])


def require_short(temporary: str) -> None:
    """Refuse a folder for temporary files in which engines could not be started.

    Raises:
        InvalidParameter: If its path is too long.
    """
    if (length := len(os.fsencode(temporary))) > LONGEST_TEMPORARY:
        raise InvalidParameter(
            f"The path of the folder for temporary files has {length} bytes, and at most {LONGEST_TEMPORARY} are "
            f"possible: {temporary}. Set TMPDIR to a shorter one."
        )


@final
class QuestionProcess:
    """A process that asks what was admitted.

    Args:
        begin: What it does, given `arguments`, its share and its end of the line.
        patience: Seconds in which it has opened everything.
    """

    def __init__(
        self,
        begin: Callable[..., None],
        arguments: tuple[Any, ...],
        share: ProcessorShare,
        patience: float = PATIENCE,
    ) -> None:
        self._begin, self._arguments, self.share, self._patience = begin, arguments, share, patience
        self._sending = threading.Lock()
        self._line: Connection | None = None
        self._sent: SimpleQueue[Sent | None] = SimpleQueue()
        self._sender: threading.Thread | None = None
        self._process: SpawnProcess | None = None
        self._ending = threading.Event()
        self._ready = threading.Event()
        self._opened: Opened | None = None
        self._told: Callable[[Heard], None] = lambda _: None
        self._died: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._listen, name="question process", daemon=True)

    def start(self, told: Callable[[Heard], None], died: Callable[[], None]) -> None:
        """Begin, and return when it is ready.

        Args:
            told: Hears what orders have reached, what came of them, and that it is ready.
            died: That nothing will come of those that were sent.

        Raises:
            InvalidParameter: If the folder for temporary files has too long a path.
            ServiceFault: If it ends before it is ready, or is not ready in time. The log says which.
        """
        require_short(tempfile.gettempdir())
        # Set before the process begins, which may say something at once.
        self._told, self._died = told, died
        self._spawn()
        self._thread.start()
        ready = self._is_ready_in_time()
        if not ready or self._ending.is_set():
            self.close()
            raise ServiceFault(_ENDED if ready else _NOT_READY.format(self._patience / 60))

    def _is_ready_in_time(self) -> bool:
        """Wait, and say now and then that this machine is busy; tell whether it is ready or has ended."""
        begun = time.monotonic()
        while (left := self._patience - (time.monotonic() - begun)) > 0:
            if self._ready.wait(min(EACH, left)):
                return True
            log("question process not ready yet", seconds=round(time.monotonic() - begun), most=self._patience)
        return self._ready.is_set()

    @property
    def is_up(self) -> bool:
        """Whether orders are taken."""
        return self._ready.is_set()

    @property
    def speed(self) -> Speed:
        """How fast it is."""
        if self._opened is None:
            raise ServiceFault(
                "The process that runs queries has not started yet. Nothing was charged. Run the query again."
            )
        return self._opened.speed

    def is_indexed(self, dataset: str) -> bool:
        """Tell whether the tables of a data set have indexes."""
        return self._opened is not None and self._opened.indexed.get(dataset, False)

    def send(self, sent: Sent) -> bool:
        """Send something, without waiting until it is taken; False if there is nobody to take it."""
        with self._sending:
            if self._line is None:
                return False
            self._sent.put(sent)
        return True

    def close(self) -> None:
        """Wait for what is under way, and end it; one that was not ready yet is ended at once."""
        self._ending.set()
        with self._sending:
            self._sent.put(None)
        if self._process is not None and not self._ready.is_set():
            self._process.kill()  # it has no query under way; it measures this machine, which takes long on a busy one
        if self._thread.is_alive():
            self._thread.join()
        if self._process is not None:
            self._process.join(LEAVE)
            self._process.kill()
            self._process.join()

    def _spawn(self) -> None:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_begin, args=(self._begin, self._arguments, self.share, theirs), name="questions", daemon=False
        )
        process.start()
        theirs.close()
        self._process = process
        with self._sending:
            self._line, self._sent = ours, SimpleQueue()
            self._sender = threading.Thread(target=_send, args=(ours, self._sent), name="orders", daemon=True)
            self._sender.start()

    def _listen(self) -> None:
        """Hear what the process says; when it has died, start another."""
        pause = PAUSE
        while True:
            line, begun = self._line, time.monotonic()
            if line is None:
                return
            with suppress(EOFError, OSError):
                while True:
                    self._hear(line.recv())
            was_ready = self._ready.is_set()
            # No order is taken from here on: so all that were taken are among those that `died` tells of.
            self._ready.clear()
            with self._sending:
                self._sent.put(None)
                self._line = None
            if self._sender is not None:
                self._sender.join()  # it finds nobody who listens
            line.close()
            if self._ending.is_set() or not (was_ready or self._opened):
                if not self._ending.is_set():
                    log("question process died", status=self._status())
                self._ending.set()
                self._ready.set()  # whoever waits for it sees that it ended
                return
            log("question process died", status=self._status())
            # Told before another process begins: no order of the old one may be taken for one of the new.
            self._died()
            pause = PAUSE if time.monotonic() - begun > LONGEST_PAUSE else min(2 * pause, LONGEST_PAUSE)
            if self._ending.wait(pause):
                return
            self._spawn()

    def _hear(self, said: object) -> None:
        if isinstance(said, Opened):
            if self._opened is not None and not self._ready.is_set():
                log("question process started")
            self._opened = said
            self._ready.set()
        if isinstance(said, Reach | OrderOutcome | Opened):
            self._told(said)

    def _status(self) -> int | None:
        if self._process is None:
            return None
        self._process.join(1)
        return self._process.exitcode


def _send(line: Connection, sent: "SimpleQueue[Sent | None]") -> None:
    """Send what is to be sent, so that whoever says it need not wait for a process that does not listen."""
    with suppress(OSError):
        while True:
            said = sent.get()
            line.send(said)
            if said is None:
                return


def _begin(begin: Callable[..., None], arguments: tuple[Any, ...], share: ProcessorShare, line: Connection) -> None:
    """Begin in the new process."""
    if share.processors is not None:
        os.sched_setaffinity(0, share.processors)
    begin(*arguments, line)
