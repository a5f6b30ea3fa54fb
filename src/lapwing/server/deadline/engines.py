"""The processes in which engines run: one that is asked, and a spare with the data open that takes its place.

Theory of operation. An engine in the midst of a join hardly hears that it is to stop. So it runs in a process of its
own, which is killed: at once its processor is free, and whoever is next is asked of the spare. Another spare is begun
then, on the processors that are not the engine's, and moves to the engine's once it is asked. It is forked from a
process that has loaded what an engine takes, opened nothing, and has no threads, so it is there in no time.

A process is sent questions as they were bound, and the digests of the data that they are about. It sends back exact
integers, which go no further than to the process that adds noise to them. One that is told of a catalog opens its data
and reads what a question would have to read first. A process ends when whoever began it does.

An engine that asks where the data are (`engines.spark`) has processes of its own, and is asked and stopped in place.
"""

import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, Literal, Protocol, final

from lapwing.catalog.model import Catalog
from lapwing.engines import FILE_ENGINE, Engine, Exact, PublicTables, open_engine
from lapwing.errors import EngineFault, LapwingError
from lapwing.machine.switches import Switch
from lapwing.query.plan.plan import Question

KEPT: Final = 2
"""Catalogs of one data set that are open at a time: what is under way is answered by the one before."""
Digests = Mapping[str, str]
Lost = Literal["stopped", "died"]
"""Why an engine is there no more: it was killed, as its time was up or the question was given up; or it has died."""
_Request = tuple[int, Catalog | None, Question | None, Digests]
"""The catalog by its number, itself where it may be new; a question, or none where data are to be opened only."""


class Runner(Protocol):
    """Runs one question at a time."""

    def run(self, question: Question, digests: Digests) -> Exact | None:
        """Return what an engine found, None if it failed or was stopped."""

    def used(self) -> float:
        """Return how many seconds of the processor the question took so far."""

    def stop(self) -> None:
        """Make it end; it is not waited for."""

    def lost(self) -> Lost | None:
        """Return why the engine that it had is there no more; None if it is."""


@final
class InPlace:
    """Runs questions by an engine of this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._switch, self._begun = engine, Switch(), time.monotonic()

    def run(self, question: Question, digests: Digests) -> Exact | None:
        """Return what the engine found, None if it failed or was stopped."""
        self._begun = time.monotonic()
        try:
            with self._switch.heard():
                return self._engine.run(question, digests)
        except (KeyboardInterrupt, EngineFault):
            return None

    def used(self) -> float:
        """Return how long the question runs: on which processors is not known here."""
        return time.monotonic() - self._begun

    def stop(self) -> None:
        """Stop it as Ctrl-C would."""
        self._switch.press()

    def lost(self) -> None:
        """Return None: it stays."""


@final
class Engines:
    """A process for an engine, and the spare.

    Args:
        processors: Those of the engine, None for all.
    """

    def __init__(self, processors: frozenset[int] | None = None) -> None:
        self._processors = processors
        self._lock = threading.Lock()
        self._numbers: dict[int, tuple[int, Catalog]] = {}  # by identity, so a catalog is held for as long
        self._warm: dict[int, tuple[Catalog, Digests]] = {}
        self._ending = False
        self._processes = [_Process(processors)]

    def begin_spare(self) -> None:
        """Open the data in one process more."""
        with self._lock:
            spare = _Process(self._processors)
            self._processes.append(spare)
            warm = dict(self._warm)
        threading.Thread(target=_open, args=(spare, warm), name="spare", daemon=True).start()

    def of(self, catalog: Catalog, engine: Engine) -> Runner:
        """Return what runs questions about a catalog, whose engine here is this one."""
        return _InTurn(self, catalog) if catalog.engine == FILE_ENGINE else InPlace(engine)

    def warm(self, catalog: Catalog, digests: Digests) -> None:
        """Let the processes open the data of a catalog and read them, unless they have; wait until they have."""
        if catalog.engine != FILE_ENGINE:
            return
        with self._lock:
            number, processes = self._number(catalog), list(self._processes)
            known = self._warm.get(number, (catalog, {}))[1]
            if known.items() >= digests.items():
                return
            self._warm[number] = catalog, {**known, **digests}
            for old in [old for old, (known, _) in self._warm.items() if known.name == catalog.name][:-KEPT]:
                del self._warm[old]
        for process in reversed(processes):  # the spare first: it may have to take over meanwhile
            process.ask(number, catalog, None, digests)

    def run(self, process: "_Process", catalog: Catalog, question: Question, digests: Digests) -> Exact | None:
        """Return what the engine found, None if it failed or was stopped."""
        with self._lock:
            number = self._number(catalog)
        found = process.ask(number, catalog, question, digests)
        if not process.lives:
            self._replace(process)
        return found

    @property
    def is_up(self) -> bool:
        """Whether the process that is to be asked lives."""
        with self._lock:
            return self._processes[0].lives

    def asked(self) -> "_Process":
        """Return the process that is asked at present; it is on the processors of the engine."""
        with self._lock:
            process = self._processes[0]
        if not process.lives:
            self._replace(process)
            return self.asked()
        if self._processors is not None:
            process.move(self._processors)
        return process

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._ending = True
        for process in self._processes:
            process.kill()

    def _number(self, catalog: Catalog) -> int:
        return self._numbers.setdefault(id(catalog), (len(self._numbers), catalog))[0]

    def _replace(self, dead: "_Process") -> None:
        """Ask the spare from now on, and begin another."""
        with self._lock:
            if dead not in self._processes or self._ending:
                return
            self._processes.remove(dead)
        self.begin_spare()


def _open(process: "_Process", warm: Mapping[int, tuple[Catalog, Digests]]) -> None:
    for number, (catalog, digests) in warm.items():
        process.ask(number, catalog, None, digests)


@final
class _InTurn:
    """Runs questions about one catalog by the process that is asked at the time."""

    def __init__(self, engines: Engines, catalog: Catalog) -> None:
        self._engines, self._catalog = engines, catalog
        self._process: _Process | None = None
        self._before = 0.0
        self._found_dead = False

    def run(self, question: Question, digests: Digests) -> Exact | None:
        """Return what the engine found, None if it failed or was stopped."""
        self._found_dead = not self._engines.is_up
        process = self._engines.asked()
        self._process, self._before = process, process.seconds()
        return self._engines.run(process, self._catalog, question, digests)

    def used(self) -> float:
        """Return how many seconds of the processor its process took since."""
        return 0.0 if self._process is None else self._process.seconds() - self._before

    def stop(self) -> None:
        """Kill its process, if it runs the question."""
        if self._process is not None:
            self._process.kill_if_running()

    def lost(self) -> Lost | None:
        """Return why the process that was asked last, or the one that was to be asked, is there no more."""
        if self._process is not None and not self._process.lives:
            return "stopped" if self._process.killed else "died"
        return "died" if self._found_dead else None


@final
class _Process:
    """A process that runs questions, one after another.

    Args:
        others: It opens data on all processors but these.
    """

    def __init__(self, others: frozenset[int] | None) -> None:
        self._lock, self._running_lock = threading.Lock(), threading.Lock()
        self._running = False
        self._told: set[int] = set()
        self._on: frozenset[int] | None = None
        self._gone, self.killed = False, False
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), name="engine", daemon=True)
        with _running_on(None if others is None else frozenset(range(os.cpu_count() or 1)) - others):
            self._process.start()
        theirs.close()

    def ask(self, number: int, catalog: Catalog, question: Question | None, digests: Digests) -> Exact | None:
        """Run a question, or open data; return what was found, None if the process failed or has died."""
        with self._lock:
            request: _Request = (number, None if number in self._told else catalog, question, digests)
            self._told.add(number)
            self._note_running(question is not None)
            try:
                self._line.send_bytes(pickle.dumps(request))
                found: Exact | None = self._line.recv()
            except (EOFError, OSError):
                self._gone = True
                return None
            finally:
                self._note_running(False)
        return found

    @property
    def lives(self) -> bool:
        """Whether it can be asked; one that has died while nobody asked it is seen here."""
        return not self._gone and self._process.is_alive()

    def move(self, processors: frozenset[int]) -> None:
        """Let it run on these processors alone."""
        if self._on == processors or not processors:
            return
        self._on = processors
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{self._process.pid}/task"):
                os.sched_setaffinity(int(thread), processors)

    def seconds(self) -> float:
        """Return how many seconds of a processor it took so far."""
        if sys.platform != "linux":
            return time.monotonic()  # as if it had a processor to itself
        try:
            return time.clock_gettime((~(self._process.pid or 0) << 3) | 2)  # of that process, as Linux numbers clocks
        except OSError:  # it is dead
            return 0.0

    def kill_if_running(self) -> None:
        """End it at once if it runs a question; what has just been found stays found."""
        with self._running_lock:
            if self._running:
                self.kill()

    def kill(self) -> None:
        """End it at once."""
        self.killed = True
        self._process.kill()

    def _note_running(self, running: bool) -> None:
        with self._running_lock:
            self._running = running


@contextmanager
def _running_on(processors: frozenset[int] | None) -> Iterator[None]:
    """Let this thread, and what it starts, run on these processors alone."""
    before = os.sched_getaffinity(0) if processors else None
    with suppress(OSError):
        if processors:
            os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)


# ---- in the process ----------------------------------------------------------------------------------------------


def serve(line: Connection) -> None:
    """Run what comes over a line, until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(line,), name="line", daemon=True).start()
    opened = _OpenEngines()
    while True:
        try:
            request: _Request = line.recv()
        except (EOFError, OSError):
            os._exit(0)
        found = opened.answer(*request)
        with suppress(OSError):  # nobody hears it, and the line ends
            line.send(found)


def _end_with(line: Connection) -> None:
    """End this process when whoever began it does, while a question runs, too."""
    wait_for_end(line)
    os._exit(0)


def wait_for_end(line: Connection) -> None:
    """Return once nobody holds the other end of a line; messages wake nobody here."""
    ended = select.poll()
    ended.register(line.fileno(), 0)  # the end is told whatever is waited for
    ended.poll()


@final
class _OpenEngines:
    """The engines of this process, by the number of their catalogs."""

    def __init__(self) -> None:
        self._engines: dict[int, tuple[Catalog, Engine, PublicTables]] = {}

    def answer(self, number: int, catalog: Catalog | None, question: Question | None, digests: Digests) -> Exact | None:
        try:
            if number not in self._engines and catalog is not None:
                self._open(number, catalog)
            known, engine, _ = self._engines[number]
            for table in known.tables if question is None else question.lineage:
                if table.name in digests:  # its links lead to others, whose digests come with it
                    engine.digest(table, digests)
            if question is None:
                return None
            return engine.run(question, digests)
        except (LapwingError, KeyError, KeyboardInterrupt):
            return None

    def _open(self, number: int, catalog: Catalog) -> None:
        same = [old for old, (known, _, _) in self._engines.items() if known.name == catalog.name]
        for old in same[: max(0, len(same) + 1 - KEPT)]:
            _, engine, public = self._engines.pop(old)
            engine.close()
            public.close()
        self._engines[number] = (catalog, *open_engine(catalog))
