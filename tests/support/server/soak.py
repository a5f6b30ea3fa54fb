"""A day of a service in some minutes: mixed load, on a machine that stalls, kills, fills its disk and restarts.

Clients ask new queries, the same again, and prices, each with a key that they repeat until they know what came of it,
as programs do whose connection broke. Meanwhile something goes wrong every few seconds. A curator resumes a data set
that has stopped. At the end the ledger is compared with what the clients were told:

- *lost*: an answer that somebody was given and the ledger does not have, or not with these numbers, for nothing;
- *double*: a query that was answered for two charges;
- *unexplained*: a charge without an answer, of which the ledger does not say why.

    python -m tests.support.server.soak [--minutes N] [--store sqlite|postgres] [--workers N] [--disk FOLDER]

A full disk is a limit on how large files may become, which a ledger meets in another way than a disk without room. With
`--disk`, a folder on a small file system of its own, everything lies there, and the disk is really filled:

    mount -t tmpfs -o size=64m tmpfs /mnt/small
"""

import argparse
import http.client
import json
import os
import random
import resource
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, Final

import lapwing as lw
from lapwing.errors import LapwingError
from tests.support.postgres import Postgres, server
from tests.support.server.crew import CATALOG, Crew, ask, crew, prepared

CLIENTS: Final = 12
SETTLING: Final = 10.0
"""Seconds after the last thing that went wrong until clients ask nothing new."""
SQL: Final = "SELECT COUNT(*) AS n FROM visits WHERE cost < {}"


@dataclass(slots=True)
class Soak:
    """What happened, and what came of it."""

    told: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    charges: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)
    late: int = 0
    resumed: int = 0
    lost: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    unexplained: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        parts = (
            ("clients were told", dict(self.told)),
            ("went wrong", dict(self.wrong)),
            ("charges", self.charges),
            ("without an answer, by cause", dict(self.unanswered)),
            ("late", self.late),
            ("resumed", self.resumed),
            ("lost", len(self.lost)),
            ("double", len(self.double)),
            ("unexplained", len(self.unexplained)),
        )
        return "\n".join(f"{name}: {what}" for name, what in parts)


def soaked(
    folder: Path, minutes: float, postgres: Postgres | None, seed: int, workers: int = 2, *, own_disk: bool = False
) -> Soak:
    """Run a service for so long once it has started, and return what came of it.

    Args: own_disk: the folder is on a small file system of its own, which may be filled.
    """
    chance, found = random.Random(seed), Soak()
    with ExitStack() as stack:
        ledger = None if postgres is None else f"{stack.enter_context(postgres.database())}&ledger=visits"
        tokens = prepared(folder, ledger, epsilon=10**6, least=Fraction(0))
        running = stack.enter_context(crew(folder, planted="believe deaths soon", number=workers, padding=True))
        running.wait_for("listening")  # once all workers are ready
        load = _Load(running, tokens, found)
        ending = time.monotonic() + 60 * minutes
        with ThreadPoolExecutor(CLIENTS + 1) as threads:
            asking = [threads.submit(load.ask_until, ending, chance.random()) for _ in range(CLIENTS)]
            over = threading.Event()
            looking = threads.submit(_resume, folder, over, found)
            try:
                while time.monotonic() < ending - SETTLING:
                    time.sleep(chance.uniform(0.5, 4))
                    _go_wrong(running, postgres, chance, found.wrong, folder if own_disk else None)
                for one in asking:
                    one.result()
                load.ask_all_again()
            finally:
                over.set()
            looking.result()
        _compare(folder, load, found)
    return found


# ---- Clients ---------------------------------------------------------------------------------------------------------


class _Load:
    """Clients, and what they were answered: the numbers by the text of the query."""

    def __init__(self, running: Crew, tokens: dict[str, str], found: Soak) -> None:
        self._running, self._tokens, self._found = running, tokens, found
        self._numbers, self._lock = count(1), threading.Lock()
        self.answered: dict[str, Any] = {}

    def ask_until(self, ending: float, seed: float) -> None:
        """Ask one query after the other."""
        chance = random.Random(seed)
        while time.monotonic() < ending:
            known = list(self.answered)
            what = chance.choices(("new", "again", "price"), (6, 3 if known else 0, 1))[0]
            if what == "price":
                self._price(next(self._numbers))
            else:
                self._ask(chance.choice(known) if what == "again" else SQL.format(next(self._numbers)))

    def _price(self, number: int) -> None:
        body = json.dumps({"sql": SQL.format(number), "epsilon": 0.001})
        headers = {"Authorization": f"Bearer {self._tokens['bob']}", "Content-Type": "application/json"}
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self._running.port, timeout=60)
            connection.request("POST", "/v1/datasets/visits/explain", body, headers)
            status = connection.getresponse().status
            connection.close()
            with self._lock:
                self._found.told["a price" if status == 200 else "no price"] += 1

    def ask_all_again(self) -> None:
        """Ask again all that was answered: it is stored, with the same numbers."""
        for sql in list(self.answered):
            if self._ask(sql) != "stored":
                self._found.lost.append(f"bought again: {sql}")

    def _ask(self, sql: str) -> str:
        """Ask until there is an answer, with the same key while nobody says that it is used up; return how it came."""
        key, body = f"{sql} {os.urandom(8).hex()}", {"sql": sql, "epsilon": 0.001}
        while True:
            try:
                reply = ask(self._running.port, self._tokens["bob"], body, key)
            except (OSError, http.client.HTTPException):
                outcome = "no reply"
            else:
                outcome = reply.code or ("stored" if json.loads(reply.content)["stored"] else "charged")
            with self._lock:
                self._found.told[outcome] += 1
            assert outcome not in ("query_refused", "invalid_parameter", "budget_exhausted"), reply.content
            if outcome in ("stored", "charged"):
                rows = json.loads(reply.content)["rows"]
                with self._lock:
                    if self.answered.setdefault(sql, rows) != rows:
                        self._found.lost.append(f"other numbers: {sql}")
                return outcome
            if outcome in ("key_conflict", "engine_fault"):  # it was charged, or nobody knows: by this key no more
                key = f"{sql} {os.urandom(8).hex()}"
            time.sleep(0.2)


def _resume(folder: Path, over: threading.Event, found: Soak) -> None:
    """Be the curator, who looks every second."""
    while not over.wait(1):
        with suppress(LapwingError), lw.connect(folder / CATALOG) as session:
            view = session.budget(history=False)
            if view.faults or view.late:
                session.resume()
                found.resumed += 1


# ---- What goes wrong -------------------------------------------------------------------------------------------------


def _go_wrong(
    running: Crew, postgres: Postgres | None, chance: random.Random, wrong: Counter[str], disk: Path | None
) -> None:
    kinds: dict[str, Callable[[], None]] = {
        "front stalled": lambda: _stall(_fronts(running), chance),
        "question process stalled": lambda: _stall(_questions(running), chance),
        "engine stalled": lambda: _stall(_engines(running), chance),
        "question process killed": lambda: _kill(_questions(running), chance),
        "engine killed": lambda: _kill(_engines(running), chance),
        "disk full": lambda: _limit(running, chance) if disk is None else _fill(disk, chance),
    }
    if len(_fronts(running)) > 1:
        kinds["front killed"] = lambda: _kill(_fronts(running), chance)
    if postgres is not None:
        kinds["database restarted"] = lambda: postgres.restart(immediate=chance.random() < 0.5)
    often = {"front stalled": 3, "question process stalled": 6, "engine stalled": 4, "engine killed": 2}
    kind = chance.choices(list(kinds), [often.get(kind, 1) for kind in kinds])[0]
    with suppress(IndexError):  # none is there at the moment
        kinds[kind]()
        wrong[kind] += 1


def _stall(processes: list[int], chance: random.Random) -> None:
    process = chance.choice(processes)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
        time.sleep(chance.choice((0.05, 0.15, 0.4, 1.5)))
        os.kill(process, signal.SIGCONT)


def _kill(processes: list[int], chance: random.Random) -> None:
    with suppress(ProcessLookupError):
        os.kill(chance.choice(processes), signal.SIGKILL)


def _fill(disk: Path, chance: random.Random) -> None:
    """Let the disk have no room for a while: whatever becomes free is taken, too."""
    with tempfile.TemporaryFile(dir=disk, buffering=0) as filler:
        until = time.monotonic() + chance.uniform(0.5, 3)
        while time.monotonic() < until:
            try:
                filler.write(bytes(1 << 12))
            except OSError:
                time.sleep(0.01)


def _limit(running: Crew, chance: random.Random) -> None:
    """Let no file of the service grow beyond a few bytes for a while."""
    with ExitStack() as stack:
        for process in {*_fronts(running), *_questions(running)}:
            with suppress(OSError):
                stack.enter_context(_limited(process))
        time.sleep(chance.uniform(0.5, 3))


@contextmanager
def _limited(process: int) -> Iterator[None]:
    soft, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        with suppress(OSError):
            resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, hard))


def _fronts(running: Crew) -> list[int]:
    return running.living if running.workers else [running.parent.pid]  # where there is one worker, it has no parent


def _questions(running: Crew) -> list[int]:
    return [child for front in _fronts(running) for child in _children(front, "spawn_main")]


def _engines(running: Crew) -> list[int]:
    """Return the processes of engines: forked by a process that was started for that."""
    forking = [child for process in _questions(running) for child in _children(process, "forkserver")]
    return [child for process in forking for child in _children(process, "forkserver")]


def _children(parent: int, named: str) -> list[int]:
    found = []
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):
            status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            if int(status[1]) == parent and status[0] != "Z" and named in Path(f"/proc/{process}/cmdline").read_text():
                found.append(process)
    return found


# ---- What came of it -------------------------------------------------------------------------------------------------


def _compare(folder: Path, load: _Load, found: Soak) -> None:
    """End the service, and compare the ledger with what the clients were told."""
    load._running.parent.send_signal(signal.SIGTERM)
    load._running.parent.wait(120)
    with lw.connect(folder / CATALOG) as session:
        session.faults()  # writes down whose asker has died
        history, entries = session.history(), list(session._ledger.entries())
        session._ledger.verify()
    bought = Counter(row.question for row in history if row.answered)
    found.double = [question for question, times in bought.items() if times > 1]
    found.unexplained = [row.sequence for row in history if not row.answered and row.unanswered is None]
    found.unanswered = Counter(row.unanswered for row in history if row.unanswered is not None)
    found.charges, found.late = len(history), sum(entry.kind == "late" for entry in entries)
    if len(bought) < len(load.answered):
        found.lost.append(f"{len(load.answered)} answers of {len(bought)} queries")


def main() -> None:
    """Run it, and print what came of it."""
    parser = argparse.ArgumentParser(description="Run a service while much goes wrong.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--disk", type=Path, help="a folder on a small file system of its own, which is filled")
    arguments = parser.parse_args()
    seed = int.from_bytes(os.urandom(4), "big") if arguments.seed is None else arguments.seed
    print(
        f"{arguments.minutes:g} minutes, {arguments.store}, {CLIENTS} clients, {arguments.workers} workers, seed {seed}"
    )
    with tempfile.TemporaryDirectory(prefix="lapwing-soak-", dir=arguments.disk) as folder, ExitStack() as stack:
        postgres = stack.enter_context(server()) if arguments.store == "postgres" else None
        own_disk = arguments.disk is not None
        print(soaked(Path(folder), arguments.minutes, postgres, seed, arguments.workers, own_disk=own_disk))


if __name__ == "__main__":
    main()
