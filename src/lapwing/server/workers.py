"""The processes of a service: what each opens, and the parent of several that serve one socket and replaces the dead.

Theory of operation. The parent has the sockets, and nothing else of the service: it opens no data, answers nobody, and
starts workers (`work`) that take connections from them. They are spawned, never forked, so each opens ledger,
data and store for itself; what must hold between them is held there. A worker that dies is replaced at once if it had
been up for a while, and after a growing pause if not. One that dies soon after its start for the fifth time in a row
will not do better at the sixth, so then the service ends. While a worker is missing, the others take its connections,
and if there is none, connections wait in the socket.

With TLS, SIGHUP is passed on to all workers, which read the certificate anew; to one that starts, once it is ready.
SIGTERM and Ctrl-C are passed on as SIGTERM, by which a worker finishes what is under way; a second one ends the wait. A
parent that dies closes the lines to its workers, who end by themselves.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final, final

from lapwing.errors import LapwingError, ServiceFault
from lapwing.machine.garbage import long_lived_objects_frozen
from lapwing.machine.scratch import temporary_folder
from lapwing.opening import connect
from lapwing.server import listener, metrics
from lapwing.server.deadline.asking import work as ask
from lapwing.server.deadline.cost import require_counted
from lapwing.server.deadline.process import QuestionProcess, shares
from lapwing.server.listener import Endpoint
from lapwing.server.log import log, open_log
from lapwing.server.pgwire.cancel_lines import CancelLines, cancel_lines
from lapwing.server.problems import place_of
from lapwing.server.service import Service, ServiceSettings

SETTLED: Final = 10.0
"""Seconds after which a worker that dies has been up for a while."""
MOST_SOON: Final = 5
PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 8.0
PATIENCE: Final = 15.0
"""Seconds beyond those of grace that workers have to close what they opened."""
ENDING: Final = (signal.SIGINT, signal.SIGTERM)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConfig:
    """What a process of a service opens, and where it listens.

    Args:
        people: Where the store is, the usual place unless given.
    """

    catalogs: tuple[Path, ...]
    people: str | None
    settings: ServiceSettings
    endpoint: Endpoint


@contextmanager
def opened(config: ProcessConfig, worker: int | None = None, *, asking: bool = True) -> Iterator[Service]:
    """Open what a configuration says.

    Args:
        worker: Which of several it is for, from 1 on.
        asking: Whether questions are asked there.

    Raises:
        LapwingError: What `lapwing.connect` raises.
        InvalidParameter: If a value is not allowed.
        Fault: If something outside fails.
    """
    if worker not in (None, 1):  # one of them sends what all find
        config = replace(config, settings=replace(config.settings, webhook=None))
    questions = None
    if asking and config.settings.padded:
        share, rest = shares((worker or 1) - 1, config.settings.workers)
        if rest is not None:
            os.sched_setaffinity(0, rest)
        arguments = config.catalogs, config.people, config.settings, worker, share
        questions = QuestionProcess(ask, arguments, share)
    with ExitStack() as stack:
        sessions = []
        for place, path in enumerate(config.catalogs, 1):
            log("opening", catalog=path.name, number=place, of=len(config.catalogs))
            session = connect(path)
            stack.callback(session.close)
            sessions.append(session)
            if config.settings.padded:
                require_counted(session.catalog)
        service = Service(config.people, sessions, config.settings, questions=questions)
        stack.callback(service.close)
        yield service


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Where workers take connections: for HTTP, and for PostgreSQL clients, if there are any.

    Args:
        lines: For cancel requests of PostgreSQL clients: what each worker has of them, in order.
    """

    http: socket.socket
    wire: socket.socket | None = None
    lines: tuple[CancelLines, ...] = ()

    def close(self) -> None:
        """Take no more connections here."""
        self.http.close()
        if self.wire is not None:
            self.wire.close()


def pause(soon: int) -> float:
    """Return the seconds before a worker starts that died so many times in a row soon after its start."""
    return min(PAUSE * 2**soon, LONGEST_PAUSE) if soon else 0.0


def run_workers(config: ProcessConfig, number: int, announce: Callable[[], None] = lambda: None) -> None:
    """Serve by so many workers until told to end.

    Args:
        announce: Is called once, when all workers listen.

    Raises:
        ServiceFault: If a worker dies again and again.
    """
    open_log()
    with (
        temporary_folder("lapwing-metrics-") as counts,
        listener.listening(config.endpoint) as door,
        listener.wire_listening(config.endpoint) as wire_door,
        _signals(renewals=config.endpoint.certificate is not None) as signals,
    ):
        os.environ[metrics.FOLDER] = str(counts)  # the workers inherit it
        lines = cancel_lines(0 if wire_door is None else number)
        doors = Doors(http=door, wire=wire_door, lines=tuple(lines))
        crew = _Crew(replace(config, endpoint=config.endpoint.at(door)), doors, signals, announce)
        try:
            crew.serve(number)
        finally:
            doors.close()
            crew.end()
    log("ended")


@dataclass(slots=True, kw_only=True)
class _Worker:
    """A worker, or the pause before it.

    `soon`: how often it died soon after its start, in a row; `renew`: whether it is to read its certificate anew.
    """

    number: int
    starts: float
    soon: int = 0
    process: SpawnProcess | None = None
    line: Connection | None = None
    ready: bool = False
    renew: bool = False


@dataclass(slots=True)
class _Signals:
    """What the parent was told: how often to end, and whether to renew; and what can be waited for with the workers."""

    reader: socket.socket
    writer: socket.socket
    times: int = 0
    renew: bool = False

    def hear(self, number: int, _frame: object) -> None:
        if number in ENDING:
            self.times += 1
        else:
            self.renew = True
        with suppress(OSError):
            self.writer.send(b"!")


@final
class _Crew:
    def __init__(
        self, config: ProcessConfig, doors: Doors, signals: _Signals, announce: Callable[[], None] = lambda: None
    ) -> None:
        self._config, self._doors, self._signals, self._announce = config, doors, signals, announce
        self._workers: list[_Worker] = []
        self._listening = False

    def serve(self, number: int) -> None:
        """Keep so many workers going until told to end."""
        self._workers = [_Worker(number=place, starts=time.monotonic()) for place in range(1, number + 1)]
        while not self._signals.times:
            for worker in self._workers:
                if worker.process is None and worker.starts <= time.monotonic():
                    self._start(worker)
            self._wait()
            if self._signals.renew:
                self._signals.renew = False
                for worker in self._workers:
                    worker.renew = True
            for worker in self._workers:
                self._look_after(worker)
            self._say_listening()

    def end(self) -> None:
        """Tell the workers to end, and wait until they have."""
        living = [worker.process for worker in self._workers if worker.process is not None]
        for process in living:
            process.terminate()
        first, deadline = self._signals.times, time.monotonic() + self._config.endpoint.grace + PATIENCE
        while any(process.is_alive() for process in living) and time.monotonic() < deadline:
            wait([self._signals.reader, *(process.sentinel for process in living if process.is_alive())], timeout=1)
            self._hear()
            if self._signals.times > max(first, 1):
                break
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()
                worker.process.join()
                self._forget(worker)

    def _start(self, worker: _Worker) -> None:
        context = get_context("spawn")
        worker.line, theirs = context.Pipe()
        worker.starts, worker.ready = time.monotonic(), False
        worker.process = context.Process(
            target=work, args=(self._config, worker.number, self._doors, theirs), name=f"worker {worker.number}"
        )
        worker.process.start()
        theirs.close()
        log("worker started", worker=worker.number, process=worker.process.pid)

    def _wait(self) -> None:
        """Wait until there is something to look after."""
        pauses = [worker.starts - time.monotonic() for worker in self._workers if worker.process is None]
        lines = [worker.line for worker in self._workers if worker.line is not None and not worker.ready]
        ends = [worker.process.sentinel for worker in self._workers if worker.process is not None]
        wait([self._signals.reader, *lines, *ends], timeout=max(0.0, min(pauses)) if pauses else None)
        self._hear()

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            self._signals.reader.recv(16)

    def _look_after(self, worker: _Worker) -> None:
        """Hear whether a worker is ready; if it has died, forget it, and say when the next one starts."""
        process, line = worker.process, worker.line
        if process is None or line is None:
            return
        if process.is_alive():
            with suppress(EOFError, OSError):
                worker.ready = worker.ready or (line.poll() and line.recv_bytes() == b"ready")
            if worker.ready and worker.renew and process.pid is not None:
                worker.renew = False
                os.kill(process.pid, signal.SIGHUP)
            return
        lived = time.monotonic() - worker.starts
        worker.soon = worker.soon + 1 if lived < SETTLED else 0
        log("worker died", worker=worker.number, status=process.exitcode)
        if process.pid is not None:
            metrics.forget_process(process.pid)
        self._forget(worker)
        if worker.soon >= MOST_SOON:
            raise ServiceFault(
                f"Worker {worker.number} died {worker.soon} times in a row soon after its start, so the service "
                f"stopped. The log lines before this one give the reason."
            )
        worker.starts = time.monotonic() + pause(worker.soon)

    def _say_listening(self) -> None:
        if not self._listening and all(worker.ready for worker in self._workers):
            self._listening = True
            self._announce()
            log(
                "listening",
                host=self._config.endpoint.host,
                port=self._config.endpoint.port,
                workers=len(self._workers),
            )

    def _forget(self, worker: _Worker) -> None:
        if worker.line is not None:
            worker.line.close()
        worker.process = worker.line = None
        worker.ready = False


@contextmanager
def _signals(*, renewals: bool) -> Iterator[_Signals]:
    """Hear SIGTERM and Ctrl-C, and nothing else of them; and SIGHUP, if there is a certificate to renew."""
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        signals = _Signals(reader, writer)
        heard = (*ENDING, signal.SIGHUP) if renewals else ENDING
        before = {number: signal.signal(number, signals.hear) for number in heard}
        try:
            yield signals
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def work(config: ProcessConfig, number: int, doors: Doors, parent: Connection) -> None:
    """Serve as one of several workers, until told to end or until the parent has died.

    It leaves the parent's process group, so that Ctrl-C on a terminal reaches the parent alone, which passes it on.
    """
    os.setpgid(0, 0)
    open_log(number)
    listener.keep_threads_quiet()
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()

    said = False

    async def ready() -> None:
        nonlocal said
        if not said:
            said = True
            with suppress(OSError):
                parent.send_bytes(b"ready")

    try:
        with opened(config, number) as service:
            service.executor.start()
            lines = doors.lines[number - 1] if doors.lines else None
            server = listener.server(
                service, config.endpoint, worker=number, ready=ready, wire_door=doors.wire, lines=lines
            )
            if config.endpoint.certificate is not None:
                signal.signal(signal.SIGHUP, lambda *_: listener.renew_certificate(server.config, config.endpoint))
            with long_lived_objects_frozen():
                server.run(sockets=[doors.http])
    except LapwingError as error:
        log("not opened", code=error.code, detail=str(error))
        sys.exit(1)
    except Exception as error:
        log("bug", kind=type(error).__name__, place=place_of(error))
        sys.exit(1)


def _end_after(parent: Connection) -> None:
    """End this process when its parent has ended: it says nothing, so its line is quiet until then."""
    with suppress(EOFError, OSError):
        parent.recv_bytes()
    os.kill(os.getpid(), signal.SIGTERM)
