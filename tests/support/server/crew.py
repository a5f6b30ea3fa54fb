"""`lapwing serve --workers N` as real processes, and clients that ask them over HTTP; with a bug planted if wanted.

A worker is spawned, so it runs the module again that the command was started by: this one, which then plants the bug
that the environment names, in the parent and in each worker.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import lapwing as lw
from lapwing.cli import main
from lapwing.engines import DuckDB
from lapwing.ledger.allowances import LimitsNow
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.postgres import presence
from lapwing.server import workers
from lapwing.server.execution import QuestionExecutor
from lapwing.server.log import log
from lapwing.server.people import DAY, RIGHTS_OF, People
from lapwing.server.policies import Policies
from lapwing.server.store_places import open_store, people_of
from tests.support.cli.command import write_visits

ROOT: Final = Path(__file__).parents[3]
PLANTED: Final = "LAPWING_TEST_PLANTED"
PATIENCE: Final = 300.0
PRICE: Final = "0.02"
CATALOG: Final = "visits.lapwing.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """A running service: its parent, and where its log goes."""

    parent: subprocess.Popen[bytes]
    log: Path

    def told(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of the log about an event."""
        found: list[dict[str, Any]] = []
        for line in self.log.read_text().splitlines():
            with suppress(ValueError):  # torn, as the disk was full, or of another program
                document = json.loads(line)
                found += [document] if isinstance(document, dict) and document.get("event") == event else []
        return found

    def wait_for(self, event: str, times: int = 1) -> list[dict[str, Any]]:
        """Wait until the log has lines about an event."""
        deadline = time.monotonic() + PATIENCE
        while len(found := self.told(event)) < times:
            assert self.parent.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        return found

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.wait_for("listening")[0]["port"])

    @property
    def wire_port(self) -> int:
        """Where it answers PostgreSQL clients."""
        self.wait_for("listening")
        return int(self.wait_for("listening for PostgreSQL clients")[0]["port"])

    @property
    def workers(self) -> list[int]:
        """The processes of all workers that ever were, in order."""
        return [line["process"] for line in self.told("worker started")]

    @property
    def living(self) -> list[int]:
        """The workers that run. The number of one that has ended may be that of a stranger by now."""
        ours = f"TMPDIR={self.log.parent}".encode()
        found = []
        for process in self.workers:
            with suppress(OSError):
                if ours in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                    found.append(process)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    content: bytes

    @property
    def code(self) -> str:
        return "" if self.status == 200 else str(json.loads(self.content)["code"])


def prepared(
    folder: Path, ledger: str | None = None, epsilon: int = 1, least: Fraction | None = None, people: int | None = None
) -> dict[str, str]:
    """Protect a small file with a pure budget, and return tokens: of alice, who has 0.3 of it, bob and carol.

    Args: least: the part of the budget that a question takes at least; the usual one unless given; people: with rows in
        the file, two of each on average.
    """
    write_visits(folder, *([] if people is None else [people]))
    unit, bounds = {"privacy_unit": "person_id", "max_rows_per_unit": 3}, {"cost": (0, 500)}
    lw.protect(folder / "visits.parquet", epsilon=epsilon, bounds=bounds, **unit).close()  # type: ignore[arg-type]
    if ledger is not None:
        catalog = folder / CATALOG
        catalog.write_text(catalog.read_text().replace("sqlite:visits.lapwing.db", ledger))
    with lw.connect(folder / CATALOG) as session:
        store, view = open_store(people_of(session.catalog)), session.budget()
    known, policies, tokens = People(store), Policies(store), dict[str, str]()
    for name, role in (("carol", "curator"), ("alice", "analyst"), ("bob", "analyst")):
        known.add(name, role, None, by="carol")  # type: ignore[arg-type]
        tokens[name], _ = known.issue(name, label="", scopes=RIGHTS_OF[role], seconds=DAY, by="carol")
    policies.grant("visits", "alice", Fraction("0.3"), view.spending, view.total, view.delta_keys, by="carol")
    policies.grant("visits", "bob", None, view.spending, view.total, view.delta_keys, by="carol")
    policies.divide("visits", "share", None, view.spending, view.total, view.delta_keys, least_share=least, by="carol")
    store.close()
    return tokens


@contextmanager
def crew(folder: Path, *arguments: str, planted: str = "", number: int = 4, padding: bool = False) -> Iterator[Crew]:
    """Run a service with workers on a port that is free, and end it and all that it left."""
    log = folder / "serve.log"
    serve = ("serve", str(folder / CATALOG), "--port", "0", "--rate", "0", f"--{'' if padding else 'no-'}padding")
    command = [sys.executable, "-m", "tests.support.server.crew", *serve]
    with log.open("wb") as file:
        parent = subprocess.Popen(
            [*command, "--workers", str(number), *arguments],
            cwd=ROOT,
            env={**os.environ, PLANTED: planted, "TMPDIR": str(folder)},
            stderr=file,
            stdin=subprocess.DEVNULL,
        )
    running = Crew(parent=parent, log=log)
    try:
        yield running
    finally:
        if parent.poll() is None:
            parent.kill()
        parent.wait()
        for process in running.living:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def question(number: int) -> dict[str, Any]:
    """Return a question that costs a fiftieth of the budget."""
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}", "epsilon": PRICE}


def ask(port: int, token: str, body: object, key: str | None = None) -> Reply:
    """Ask once, on a connection of its own."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers |= {} if key is None else {"Idempotency-Key": key}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", "/v1/datasets/visits/query", json.dumps(body), headers)
        response = connection.getresponse()
        return Reply(status=response.status, content=response.read())
    finally:
        connection.close()


def persistently(port: int, token: str, body: object, key: str) -> Reply:
    """Ask again with the same key until there is an answer, as a client whose connection broke does."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            reply = ask(port, token, body, key)
            if reply.status < 500:
                return reply
        except (OSError, http.client.HTTPException):
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)


def together(work: Sequence[Callable[[], Reply]], clients: int) -> list[Reply]:
    """Do pieces of work by so many clients at once, which begin together."""
    door = threading.Barrier(clients)

    def share(first: int) -> list[tuple[int, Reply]]:
        door.wait(PATIENCE)
        return [(place, work[place]()) for place in range(first, len(work), clients)]

    with ThreadPoolExecutor(clients) as threads:
        done = [found for share_ in threads.map(share, range(clients)) for found in share_]
    return [reply for _, reply in sorted(done, key=lambda pair: pair[0])]


def scrape(port: int, token: str) -> str:
    """Return the metrics of the service."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


# ---- Planted bugs ----


def _decide_before_charging() -> None:
    """Compare allowances with what the process once saw in the ledger, not within the transaction that charges."""
    charge_all = Ledger.charge_all
    seen: list[Any] = []

    def looked_before(self: Ledger, requests: Any, limits: LimitsNow | None = None, since: int | None = None) -> Any:
        from lapwing.ledger.allowances import require_within

        if limits is not None:
            seen.append(seen[0] if seen else self.state())
            require_within(limits(), seen[0].spending, seen[0].registration, requests)
        return charge_all(self, requests, None, since)

    Ledger.charge_all = looked_before  # type: ignore[method-assign]


def _die_at_once() -> None:
    workers.PAUSE = 0.01  # type: ignore[misc]
    workers.MOST_SOON = 2  # type: ignore[misc]
    if __name__ == "__mp_main__":
        workers.opened = lambda *_: os._exit(7)


def _take_a_second() -> None:
    """No bug: an engine that says in the log that it has begun, and takes its time."""
    run = DuckDB.run

    def slowly(self: DuckDB, *given: Any, **named: Any) -> Any:
        log("a question is under way")
        time.sleep(1)
        return run(self, *given, **named)

    DuckDB.run = slowly  # type: ignore[method-assign]


def _hold_questions() -> None:
    """No bug: an engine that says in the log that it has begun, and waits for a file `go` in the service's folder."""
    run = DuckDB.run

    def held(self: DuckDB, *given: Any, **named: Any) -> Any:
        log("a question is under way")
        while not (Path(os.environ["TMPDIR"]) / "go").exists():
            time.sleep(0.02)
        return run(self, *given, **named)

    DuckDB.run = held  # type: ignore[method-assign]


def _hold_questions_on_spark() -> None:
    """No bug: while there is a file `hold`, what the cluster has found is not passed on, and the log says so."""
    from lapwing.engines.spark import queries

    run = queries.run

    def held(question: Any, layers: str, rows: Callable[[str], Any], columns: Any) -> Any:
        def slowly(query: str) -> Any:
            found, hold = rows(query), Path(os.environ["TMPDIR"]) / "hold"
            if hold.exists():
                log("a question is under way")
            while hold.exists():
                time.sleep(0.02)
            return found

        return run(question, layers, slowly, columns)

    queries.run = held


def _answer_from_the_newest() -> None:
    """Answer from what was fetched here last, and take it for what the ledger says."""
    from lapwing.engines.snapshots import SnapshotEngine

    _hold_questions()
    digest = SnapshotEngine.digest

    def told(self: SnapshotEngine, table: Any, accepted: Mapping[str, str] = {}) -> str:
        return accepted.get(table.name) or digest(self, table, accepted)

    def run(self: SnapshotEngine, question: Any, digests: Mapping[str, str]) -> Any:
        newest = self._newest()
        for table in question.lineage:
            newest.engine.digest(table)
        files = {name: table.file_digest for name, table in newest.hold.snapshot.tables.items()}
        return newest.engine.run(question, {**digests, **files})

    SnapshotEngine.digest = told  # type: ignore[method-assign]
    SnapshotEngine.run = run  # type: ignore[method-assign]


def _believe_deaths_soon() -> None:
    """No bug: shorter times, so that a test need not wait a minute until the ledger takes a dead worker for dead."""
    presence.GRACE_SECONDS = 3.0  # type: ignore[misc]
    presence.PULSE_SECONDS = 0.2  # type: ignore[misc]


def _take_longer_for_some() -> None:
    """No bug: an engine that takes a tenth of a second longer if a row is there, as a large file would."""
    run = DuckDB.run

    def slow(self: DuckDB, *arguments: Any) -> Any:
        exact = run(self, *arguments)
        if any(any(numbers) for numbers in exact.cells.values()):
            time.sleep(0.1)
        return exact

    DuckDB.run = slow  # type: ignore[assignment, method-assign]


def _be_stubborn() -> None:
    """No bug: as above; and asked about `cost < 477` the engine works for five minutes, whoever tells it to stop."""
    _take_longer_for_some()
    run = DuckDB.run

    def stubborn(self: DuckDB, question: Any, digests: Any) -> Any:
        begun = time.process_time()
        while "477" in str(question) and time.process_time() - begun < 300:
            pass
        return run(self, question, digests)

    DuckDB.run = stubborn  # type: ignore[method-assign]


def _hold_queries_of_the_wire() -> None:
    """No bug: as above; and the log says when a query arrives, from when on it can be cancelled."""
    _hold_questions()
    ask = QuestionExecutor.ask

    async def noted(self: QuestionExecutor, *given: Any) -> Any:
        log("a query arrived")
        return await ask(self, *given)

    QuestionExecutor.ask = noted  # type: ignore


def _keep_cancel_requests() -> None:
    """Take a cancel request for another worker, and pass it on to nobody."""
    from lapwing.server.pgwire.cancel_lines import CancelLines

    _hold_queries_of_the_wire()
    CancelLines.pass_on = lambda self, request: request.process % len(self.doors) != self.place  # type: ignore


PLANTS: Final[Mapping[str, Callable[[], None]]] = {
    "decide before charging": _decide_before_charging,
    "die at once": _die_at_once,
    "take a second": _take_a_second,
    "take longer for some": _take_longer_for_some,
    "be stubborn": _be_stubborn,
    "believe deaths soon": _believe_deaths_soon,
    "hold questions": _hold_questions,
    "hold queries of the wire": _hold_queries_of_the_wire,
    "keep cancel requests": _keep_cancel_requests,
    "hold questions on Spark": _hold_questions_on_spark,
    "answer from the newest": _answer_from_the_newest,
}

if __name__ in ("__main__", "__mp_main__") and os.environ.get(PLANTED):
    PLANTS[os.environ[PLANTED]]()
if __name__ == "__main__":
    sys.exit(main())
