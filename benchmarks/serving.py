"""The service under load: charged answers, free answers and prices a second, beside what nothing can beat.

Sixteen clients, each an analyst with a connection of their own, send one request after another over the loopback
device to `lapwing serve`. All clients are one process, which waits for all of their sockets at once and has its
requests made beforehand, so that it takes little of the processors that it shares with the service; how much it took is
printed.

- *charged*: every question has another constant, so each is a new one: charged, synced, asked of the engine, recorded.
- *the same*: 96 of these questions again and again, as a page that many look at asks them; *by id*: answers that
  are opened again.
- *explain*: prices.
- *charged, with idle ones*: a thousand more connections are open meanwhile, and each is still served at the end.

The floors are measured in the same run: uvicorn with a route that says hello, to the same clients; a row with a synced
commit, of which a charged answer takes three; DuckDB, which counts and sums the same rows without privacy; the charge
and the answer in the ledger alone; and `session.sql` in one thread without HTTP. Milliseconds of processors for one
request mean more than rates on a machine that others use too.

    python benchmarks/serving.py [--quick] [--workers N]
"""

import argparse
import asyncio
import http.client
import json
import os
import re
import resource
import selectors
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _runs import keep

import lapwing as lw
from lapwing.ledger.entries import Charge
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.registration import Registration
from lapwing.privacy.measures import GaussianDP

CLIENTS: Final = 16
ROWS: Final = 5_000
AGAIN: Final = 96
PASSWORD: Final = "a password of the benchmark"
PLANS: Final = ["a", "b", "c"]
PROTECT: Final = (
    *("--privacy-unit", "person", "--epsilon", "1000000", "--delta", "1e-6", "--max-rows", "10"),
    *("--bounds", "cost=0:5000", "--values", f"plan={','.join(PLANS)}"),
)
TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured: requests of a kind, seconds at most for each kind, idle connections."""

    requests: int = 3_000
    seconds: float = 20.0
    idle: int = 1_000
    alone: int = 300


QUICK: Final = Size(requests=60, seconds=20.0, idle=40, alone=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What came of requests: how many were answered well, and ill; seconds; and what the processors took."""

    well: int
    ill: int
    seconds: float
    waited: Sequence[float]
    client: float
    server: float = 0.0
    idle_well: int = 0

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return self.well / self.seconds

    def waited_at_most(self, share: float) -> float:
        """Return the milliseconds in which this share of the requests was answered."""
        return float(np.quantile(self.waited, share)) * 1000 if self.waited else float("nan")


# ---- Clients: one process, one loop ----------------------------------------------------------------------------------


def request_bytes(method: str, path: str, token: str, body: object = None) -> bytes:
    """Return a request as it goes over the wire."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if content else ""
    return f"{head}{kind}\r\n".encode() + content


def complete(received: bytes) -> int | None:
    """Return the status of a response once it is whole."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = received[:end].lower()
    place = head.find(b"content-length:")
    length = int(head[place + 15 :].split(b"\r\n", 1)[0])
    return int(head[9:12]) if len(received) >= end + 4 + length else None


def connected(port: int) -> socket.socket:
    """Return a new connection."""
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def asked(made: socket.socket, request: bytes) -> int:
    """Return the status of one response, which is waited for; 0 if the connection is gone."""
    received = b""
    with suppress(OSError):
        made.sendall(request)
        while (status := complete(received)) is None:
            more = made.recv(1 << 16)
            if not more:
                return 0
            received += more
        return status
    return 0


class Speaker(Protocol):
    """What clients speak: how the connection of each is made, and when a response is whole, and good if it is 200."""

    def connected(self, client: int) -> socket.socket: ...

    def complete(self, received: bytes) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Http:
    """Clients that speak HTTP."""

    port: int

    def connected(self, client: int) -> socket.socket:
        return connected(self.port)

    def complete(self, received: bytes) -> int | None:
        return complete(received)


def drive(
    port: int,
    requests: Sequence[bytes],
    seconds: float,
    idle: int = 0,
    clients: int = CLIENTS,
    speaker: Speaker | None = None,
) -> Load:
    """Send requests from several connections, the next of each when the last one is answered.

    Each of sixteen takes every sixteenth request, so that it sends those of one analyst, if they take turns in them.
    The first request is for connections that rest.
    """
    resting = [connected(port) for _ in range(idle)]
    for made in resting:
        asked(made, requests[0])
    speaker = speaker or Http(port)
    opened = [speaker.connected(client) for client in range(clients)]
    began, processor = time.perf_counter(), time.process_time()
    statuses, waited = _loop(opened, speaker.complete, requests[1:], began + seconds)
    took, worked = time.perf_counter() - began, time.process_time() - processor
    still = sum(asked(made, requests[0]) == 200 for made in resting)
    for made in resting:
        made.close()
    well = sum(status == 200 for status in statuses)
    return Load(well=well, ill=len(statuses) - well, seconds=took, waited=waited, client=worked, idle_well=still)


def _loop(
    opened: Sequence[socket.socket],
    complete: Callable[[bytes], int | None],
    requests: Sequence[bytes],
    deadline: float,
) -> tuple[list[int], list[float]]:
    statuses: list[int] = []
    waited: list[float] = []
    with selectors.DefaultSelector() as selector:
        sent: dict[socket.socket, tuple[float, bytes]] = {}
        coming: dict[socket.socket, Iterator[bytes]] = {}

        def send(made: socket.socket) -> None:
            request = next(coming[made], None) if time.perf_counter() < deadline else None
            if request is None:
                selector.unregister(made)
                made.close()
                sent.pop(made, None)
                return
            sent[made] = time.perf_counter(), b""
            made.sendall(request)

        for client, made in enumerate(opened):
            coming[made] = iter(requests[client :: len(opened)])
            selector.register(made, selectors.EVENT_READ, made)
            send(made)
        while sent:
            for key, _ in selector.select():
                made = key.data
                begun, received = sent[made]
                more = made.recv(1 << 16)
                received += more
                status = complete(received) if more else 0
                if status is None:
                    sent[made] = begun, received
                    continue
                statuses.append(status)
                waited.append(time.perf_counter() - begun)
                send(made)
    return statuses, waited


def clients(pipe: Connection) -> None:
    """Do what comes through a pipe, in a process of its own."""
    while (task := pipe.recv()) is not None:
        pipe.send(drive(*task))


# ---- The service -----------------------------------------------------------------------------------------------------


def make(folder: Path) -> Path:
    """Write the rows: five a person, with a plan and a cost that is partly out of bounds."""
    generator = np.random.default_rng(20260101)
    path = folder / "visits.parquet"
    table = pa.table(
        {
            "person": generator.integers(0, ROWS // 5, ROWS),
            "plan": pa.array(np.array(PLANS)[generator.integers(0, len(PLANS), ROWS)]),
            "cost": generator.random(ROWS) * 6000,
        }
    )
    pq.write_table(table, path)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is started: by how many workers, of which source tree (None for what is imported here), on which server."""

    workers: int = 1
    source: Path | None = None
    postgres: str | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """What the commands run with."""
        source = {} if self.source is None else {"PYTHONPATH": str(self.source)}
        return {**os.environ, **source, "LAPWING_CURATOR_PASSWORD": PASSWORD}

    @property
    def may_pad(self) -> bool:
        """Whether this Lapwing holds answers until a deadline, unless told otherwise."""
        return "--no-padding" in subprocess.check_output(
            self.command("serve", "--help"), env={**self.environment, "COLUMNS": "200"}, text=True
        )

    def command(self, *arguments: object) -> list[str]:
        """Return a command line of Lapwing."""
        return [sys.executable, "-m", "lapwing", *map(str, arguments)]


@contextmanager
def service(folder: Path, setup: Setup, *options: object) -> Iterator[tuple[int, int]]:
    """Run `lapwing serve` on a port that is free, with more options; give its process and the port."""
    with nullcontext(None) if setup.postgres is None else database(setup.postgres) as address:
        where = in_file(folder) if address is None else in_database(folder, setup, address)
        command = setup.command("serve", *where, "--port", "0", "--rate", "0", "--workers", setup.workers, *options)
        command += ["--no-padding"] if setup.may_pad else []
        with (folder / "log").open("w+b") as log:
            process = subprocess.Popen(command, cwd=folder, env=setup.environment, stderr=log)
            try:
                yield process.pid, listening(process, folder / "log")
            finally:
                process.terminate()
                process.wait()


def in_file(folder: Path) -> list[object]:
    """Return what is served with a ledger in a file."""
    return [make(folder), *PROTECT]


def in_database(folder: Path, setup: Setup, address: str) -> list[object]:
    """Return what is served with ledger and people in a database."""
    catalog = folder / "visits.lapwing.toml"
    run = partial(
        subprocess.run,
        check=True,
        cwd=folder,
        env=setup.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    run(setup.command("init", make(folder), *PROTECT, "--output", catalog))
    ledger = f'ledger = "{address}{"&" if "?" in address else "?"}ledger=visits"'
    catalog.write_text(re.sub(r'(?m)^ledger *= *"[^"]*"', lambda _: ledger, catalog.read_text()))
    return [catalog, "--people", address]


@contextmanager
def database(server: str) -> Iterator[str]:
    """Make a database on a server, give its address, and drop it."""
    import psycopg  # here: only with --postgres is it needed
    from psycopg import sql

    name = f"lapwing_benchmark_{os.getpid()}_{time.monotonic_ns()}"
    path, question_mark, options = server.partition("?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"{path.rpartition('/')[0]}/{name}{question_mark}{options}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def listening(process: subprocess.Popen[bytes], log: Path) -> int:
    """Return the port that a process says it listens on."""
    while process.poll() is None:
        if (port := told_port(log, "listening")) is not None:
            return port
        time.sleep(0.05)
    raise SystemExit(log.read_text())


def told_port(log: Path, event: str) -> int | None:
    """Return the port that a log names with an event; None before it does."""
    for line in log.read_text().splitlines():
        if line.startswith("{") and line.endswith("}") and json.loads(line)["event"] == event:
            return int(json.loads(line)["port"])
    return None


def told(port: int, method: str, path: str, token: str | None = None, body: object = None) -> Any:
    """Return the document that a request is answered."""
    status, content = replied(port, method, path, token, body)
    if status >= 300:
        raise SystemExit(f"{method} {path}: {content.decode()}")
    return json.loads(content) if content else None


def replied(port: int, method: str, path: str, token: str | None, body: object) -> tuple[int, bytes]:
    """Return what a request is answered."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        headers = {"Content-Type": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()


def analysts(port: int, *, trusted: bool = True) -> list[str]:
    """Make an analyst for each client, who may ask and is trusted with time or not, and return a token of each."""
    curator = told(port, "POST", "/v1/login", body={"name": "curator", "password": PASSWORD})["token"]
    if not trusted:
        told(port, "PUT", "/v1/datasets/visits/policy", curator, {"division": "share", "least_share": "0"})
    tokens = []
    for number in range(CLIENTS):
        name = f"analyst{number}"
        told(port, "POST", "/v1/people", curator, {"name": name, "role": "analyst"})
        path = f"/v1/datasets/visits/grants/{name}"
        status, _ = replied(port, "PUT", path, curator, {"share": None, "trusted_with_time": trusted})
        if status >= 300:  # an older Lapwing, which trusts everybody with it
            told(port, "PUT", path, curator, {"share": None})
        tokens.append(told(port, "POST", f"/v1/people/{name}/tokens", curator, {"scopes": ["read", "ask"]})["token"])
    return tokens


def processors_of(process: int) -> float:
    """Return the seconds that processors have worked for a process and those that it started, where that is known."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        own = (int(fields[11]) + int(fields[12])) / TICKS
        tasks = Path(f"/proc/{process}/task").iterdir()
        started = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return 0.0
    return own + sum(map(processors_of, started))


# ---- What is measured ------------------------------------------------------------------------------------------------


def question(number: float) -> dict[str, object]:
    """Return a question that is like no other."""
    sql = f"SELECT plan, COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE cost >= {number} GROUP BY plan"
    return {"sql": sql, "epsilon": 0.5}


def posted(port: int, tokens: Sequence[str], route: str, first: float, count: int) -> list[bytes]:
    """Return requests with different questions, by all analysts in turn."""
    path = f"/v1/datasets/visits/{route}"
    return [
        request_bytes("POST", path, tokens[number % len(tokens)], question(first + number)) for number in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Bench:
    """Sends loads to a process from another."""

    pipe: Connection
    size: Size

    def load(
        self, process: int, port: int, requests: Sequence[bytes], idle: int = 0, speaker: Speaker | None = None
    ) -> Load:
        """Return what came of requests, with what they took."""
        before = processors_of(process)
        self.pipe.send((port, requests, self.size.seconds, idle, CLIENTS, speaker))
        came: Load = self.pipe.recv()
        return Load(**{**asdict(came), "server": processors_of(process) - before})

    def charged(self, folder: Path, setup: Setup) -> Load:
        """Return what came of charged questions to the service."""
        with service(folder, setup) as (process, port):
            tokens = analysts(port)
            self.load(process, port, posted(port, tokens, "query", -100, 100))  # the engine has seen the file by then
            return self.load(process, port, posted(port, tokens, "query", 1, self.size.requests))

    def served(self, folder: Path, setup: Setup) -> dict[str, Load]:
        """Return what came of every kind of request to the service."""
        count = self.size.requests
        with service(folder, setup) as (process, port):
            tokens = analysts(port)
            self.load(process, port, posted(port, tokens, "query", -100, 100))
            charged = posted(port, tokens, "query", 1, count)
            loads = {"charged": self.load(process, port, charged)}
            loads["the same"] = self.load(process, port, (charged[:AGAIN] * (1 + count // AGAIN))[:count])
            path = "/v1/datasets/visits/answers"
            own = [(token, kept["id"]) for token in tokens for kept in told(port, "GET", path, token)]
            opened = [request_bytes("GET", f"/v1/answers/{id_}", token) for token, id_ in own]
            loads["by id"] = self.load(process, port, (opened * (1 + count // len(opened)))[:count])
            loads["explain"] = self.load(process, port, posted(port, tokens, "explain", 1.5, count))
            further = [opened[0], *posted(port, tokens, "query", 10_000_000, count)]
            loads["charged, with idle ones"] = self.load(process, port, further, self.size.idle)
        return loads

    def hello(self) -> Load:
        """Return what came of requests to uvicorn with a route that does nothing."""
        with closing(socket.create_server(("127.0.0.1", 0))) as door:
            door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else its answers wait for acknowledgements
            port = door.getsockname()[1]
            context = get_context("spawn")
            process = context.Process(target=hello, args=(door,))
            process.start()
            try:
                told(port, "GET", "/")
                return self.load(process.pid or 0, port, [request_bytes("GET", "/", "-")] * self.size.requests)
            finally:
                process.terminate()
                process.join()


def hello(door: socket.socket) -> None:
    """Serve a route that does nothing, by the protocol of the service."""
    import uvicorn

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"2")],
            }
        )
        await send({"type": "http.response.body", "body": b"{}"})

    config = uvicorn.Config(application, http="h11", ws="none", lifespan="off", log_config=None, access_log=False)
    asyncio.run(uvicorn.Server(config).serve(sockets=[door]))


def repeated(count: int, action: Callable[[int], object]) -> tuple[float, float]:
    """Return how often a second an action is done in one thread, and what of processors it takes each time."""
    begun, processor = time.perf_counter(), time.process_time()
    for number in range(count):
        action(number)
    return count / (time.perf_counter() - begun), (time.process_time() - processor) / count


def bare(folder: Path, count: int) -> tuple[float, float]:
    """Return the rate of a row with a synced commit."""
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body TEXT)")

        def insert(_: int) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO entries (body) VALUES (?)", ("x" * 700,))
            connection.execute("COMMIT")

        return repeated(count, insert)


def ledger(folder: Path, count: int) -> tuple[float, float]:
    """Return the rate of a charge and its answer in the ledger alone."""
    registration = Registration(
        dataset="visits",
        privacy_unit="person",
        neighbouring="add_remove",
        budget=GaussianDP.from_mu_squared(10**6),
        epsilon=Fraction(10**6),
        delta=Fraction(1, 10**6),
        delta_keys=Fraction(0),
    )
    with closing(open_ledger("sqlite:ledger.db", folder, registration)) as opened:
        opened.accept({"visits": "d" * 64}, "curator")
        text = str(question(0)["sql"])

        def charge(number: int) -> None:
            request = Charge(
                key=f"{number}",
                question=text,
                loss=GaussianDP(0.0123),
                catalog_digest="c" * 64,
                principal="analyst",
                version=1,
            )
            charged = opened.charge_all([request])
            if not isinstance(charged, tuple):
                raise SystemExit("the budget of the benchmark is too small")
            opened.record_answer(charged[0].sequence, "x" * 400)

        return repeated(count, charge)


def library(folder: Path, count: int) -> tuple[float, float]:
    """Return the rate of charged answers without HTTP."""
    session = lw.protect(
        make(folder),
        privacy_unit="person",
        epsilon=Fraction(10**6),
        delta=1e-6,
        max_rows_per_unit=10,
        bounds={"cost": (0, 5000)},
        domains={"plan": PLANS},
    )
    with session:

        def ask(number: int) -> None:
            asked = question(number)
            session.sql(str(asked["sql"]), epsilon=0.5).rows()

        repeated(100, lambda number: ask(-number - 1))
        return repeated(count, ask)


def statement(folder: Path, count: int) -> tuple[float, float]:
    """Return the rate at which DuckDB alone counts and sums the rows of a question, without privacy."""
    with closing(duckdb.connect()) as connection:
        connection.execute(f"CREATE TABLE visits AS FROM '{make(folder)}'")

        def ask(number: int) -> None:
            text = f"SELECT plan, COUNT(*), COUNT(cost), SUM(cost) FROM visits WHERE cost >= {number} GROUP BY plan"
            connection.execute(text).fetchall()

        ask(-1)
        return repeated(count, ask)


# ---- The table -------------------------------------------------------------------------------------------------------


def line(name: str, load: Load, floor: float) -> str:
    """Return what came of a load, with its rate as a part of a floor."""
    each = 1000 / max(load.well, 1)
    times = f"{load.waited_at_most(0.5):8.0f}{load.waited_at_most(0.99):8.0f}"
    work = f"{load.server * each:10.2f}{load.client * each:10.2f}"
    ill = f"   {load.ill} failed" if load.ill else ""
    return f"{name:26}{load.rate:9.0f}{times}{work}{load.rate / floor:9.2f}{ill}"


def alone(name: str, measured: tuple[float, float], floor: float) -> str:
    """Return what one thread did without HTTP."""
    rate, work = measured
    return f"{name:26}{rate:9.0f}{1000 / rate:8.1f}{'':8}{1000 * work:10.2f}{'':10}{rate / floor:9.2f}"


def main() -> None:
    """Print a line for every kind of request."""
    parser = argparse.ArgumentParser(description="Measure the service under load.")
    parser.add_argument("--quick", action="store_true", help="few requests, to see that it runs")
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    parser.add_argument("--against", type=Path, metavar="SOURCE", help="a source tree that is measured in turn")
    parser.add_argument("--rounds", type=int, default=3, help="with --against: how often each is measured")
    parser.add_argument("--postgres", metavar="ADDRESS", help="a server in which databases may be made")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else Size()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * size.idle)), hard))
    print(f"{ROWS:,} rows, {CLIENTS} clients, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before")
    print(f"{'':26}{'a second':>9}{'p50 ms':>8}{'p99 ms':>8}{'server ms':>10}{'client ms':>10}{'of floor':>9}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that whoever ends this ends the service with it
    context = get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=clients, args=(theirs,), daemon=True)
    process.start()
    setup = Setup(workers=arguments.workers, postgres=arguments.postgres)
    try:
        if arguments.against is None:
            report(Bench(pipe, size), setup)
        else:
            compare(Bench(pipe, size), replace(setup, source=arguments.against.resolve()), setup, arguments.rounds)
    finally:
        pipe.send(None)
        process.join()


def compare(bench: Bench, before: Setup, after: Setup, rounds: int) -> None:
    """Measure two source trees in turn, and print each round and the ratios of the medians."""
    loads: dict[str, list[Load]] = {"before": [], "after": []}
    for _ in range(rounds):
        for name, setup in (("before", before), ("after", after)):
            with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as folder:
                load = bench.charged(Path(folder), setup)
            loads[name].append(load)
            print(line(f"charged, {name}", load, loads["before"][-1].rate), flush=True)
    for name, figure in FIGURES.items():
        was, now = (float(np.median([figure(load) for load in loads[name]])) for name in ("before", "after"))
        print(f"{name:26}{was:9.2f} before{now:9.2f} after{now / was:9.2f} times")


FIGURES: Final[Mapping[str, Callable[[Load], float]]] = {
    "charged a second": lambda load: load.rate,
    "processor ms of one": lambda load: 1000 * (load.server + load.client) / max(load.well, 1),
    "p50 ms": lambda load: load.waited_at_most(0.5),
    "p99 ms": lambda load: load.waited_at_most(0.99),
}


def report(bench: Bench, setup: Setup) -> None:
    """Measure the floors and the service, and print them."""
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name:
        folder = Path(name)
        for part in ("bare", "statement", "ledger", "library", "service"):
            (folder / part).mkdir()
        greeting = bench.hello()
        print(line("uvicorn says hello", greeting, greeting.rate))
        synced = bare(folder / "bare", 10 * bench.size.alone)
        print(alone("a row, synced", synced, synced[0]))
        print(alone("DuckDB, the rows alone", statement(folder / "statement", bench.size.alone), synced[0]))
        print(alone("ledger, charge and answer", ledger(folder / "ledger", 2 * bench.size.alone), synced[0]))
        charged = library(folder / "library", bench.size.alone)
        print(alone("session.sql, charged", charged, synced[0]))
        loads = bench.served(folder / "service", setup)
        ratios = {"session.sql, charged, a second / rows synced": charged[0] / synced[0]}
        for kind, load in loads.items():
            floor, of = (
                (charged[0], "session.sql") if kind.startswith("charged") else (greeting.rate, "uvicorn's hello")
            )
            print(line(kind, load, floor))
            ratios[f"{kind}, a second / {of}"] = load.rate / floor
        keep("serving", ratios)
        idle = loads["charged, with idle ones"]
        print(f"idle connections that were still served: {idle.idle_well} of {bench.size.idle}")
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
