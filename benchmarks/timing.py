"""Whether the clock tells if a person is in the data: a hostile analyst of `lapwing serve`, and a classifier.

Two data sets differ in one person, whose eight rows are in one of them alone. In each trial an analyst who is not
trusted with time asks one of them, drawn at random, a question about this person that is new and so is charged, at a
price that buys no answer to speak of. On other connections the analyst asks what everybody may meanwhile: prices, the
budget, the history, one's answers, whether the service is ready, and a small question that is charged as well. Of a
trial remain times and statuses alone: of the question, of the small one, and of each kind of the others how many
there were, the least, mean, greatest and last time, and when its reply first was another.

Half of the trials of a family, drawn at random, train a classifier: boosted stumps or nearest neighbours, chosen by
cross-validation in this half. It then says of each trial of the other half where it was asked. Half of its guesses
are right if nothing tells. The table has the average over nine such halves. *control* is about a person who is in
both: what is told there are the two data sets and not the person.

Where the work that a unit can cause is bounded, the families are the dearest forms found that are answered to people
who are not trusted, and the joins of one person's rows and of different units in their first form, which are refused
before the charge; these and the control are not part of the sum. Against a version without that bound
(`--against CHECKOUT`) the families have their first form.

A million rows take hours for all families: `--only NAME` attacks one of them, and `--loops 2` keeps two processors busy
beside it. What is printed of statuses says how many trials were faults.

A late answer is counted and public. Several of them double the deadlines of their data set for ten minutes, and that
tells it from the other, whoever is in them. So they are printed, and so is what the classifier says of the trials that
began while nothing was doubled.

With `--wire`, the question and the small one are sent as a PostgreSQL client sends them, and all that is beside them
over HTTP. Batches are left out, because that protocol has none.

    python benchmarks/timing.py [--quick] [--no-padding] [--against CHECKOUT] [--trials N] [--streams N] [--rows N]
        [--only NAME] [--loops N] [--wire]
"""

import argparse
import json
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray
from serving import PASSWORD, asked, complete, connected, listening, request_bytes, told, told_port
from wire import EVENT, simple, wire_complete, wire_connected, wire_error

from lapwing.server.deadline.admission import doublings

CATALOG: Final = """
[dataset]
name = "{name}"
ledger = "sqlite:{name}.lapwing.db"
[budget]
epsilon = 1000000
delta = 1e-3
delta_keys = 5e-4
[tables.t]
source = "t.parquet"
privacy_unit = "uid"
max_rows_per_unit = 8
{rows_at_most}
[tables.t.columns]
name = {{ type = "string" }}
ill = {{ type = "boolean" }}
x = {{ type = "integer", lower = 0, upper = 1000 }}
z = {{ type = "integer", lower = 0, upper = 9 }}
note = {{ type = "string" }}
"""
NOTE: Final = " || ".join(f"md5(u || ' ' || r || ' {place}')" for place in range(7))
ROWS: Final = """
COPY (
    SELECT u AS uid, 'p' || u AS name, u % 3 <> 1 AS ill, hash(u, r) % 1000 AS x, 0 AS z,
        translate({note}, '0123456789abcdef', 'abababababababab') AS note
    FROM range({units}) units(u), range(8) rows(r) WHERE {condition} ORDER BY hash(u, r)
) TO '{path}'
"""
DATASETS: Final = ("absent", "within")
"""The data set in which the person is not, and the one in which she is; their names have the same length."""

Reals = NDArray[np.float64]
Truths = NDArray[np.bool_]


# ---- Questions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Questions that differ in a number alone, which stands for NUMBER; counted: whether they are part of the sum.

    Args: texts: of a batch, the questions beside the first. path: where it is sent, after the data set's address.
    """

    name: str
    text: str
    body: tuple[tuple[str, object], ...] = ()
    counted: bool = True
    texts: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where it is sent, after the data set's address."""
        return "batch" if self.texts else "query"

    def asked(self, number: int) -> dict[str, object]:
        """Return the body of a request."""
        if not self.texts:
            return body(self.text, number, self.body)
        questions = [{"sql": text.replace("NUMBER", str(number))} for text in (self.text, *self.texts)]
        return {"questions": questions, "epsilon": EPSILON * len(questions), **dict(self.body)}


def copies(count: int, on: str = "") -> str:
    """Return a join of copies of the rows of v, within each unit."""
    return "v a0 " + " ".join(f"JOIN v a{i} ON a0.uid = a{i}.uid{on}" for i in range(1, count))


OF: Final = "WITH v AS (SELECT * FROM t WHERE name = '{}' AND ill AND note <> 'kNUMBER') "
HER: Final = OF.format("p17")
PATTERN: Final = "REGEXP_MATCHES(LPAD({}, 1000, 'ab'), '(a.{{6}}|b)*c')"
COPIES: Final = f"{HER}SELECT COUNT(*) FROM {copies(5)} WHERE {PATTERN.format('a0.note || a4.note')}"
SHARED: Final = (
    f"{HER}SELECT COUNT(*, contribution_bounds_per_group => (0, 100)) FROM v a JOIN t b ON a.z = b.z "
    "WHERE REGEXP_MATCHES(a.note || b.note, '(a.{6}|b)*c')"
)
NOTES: Final = "a0.note || a1.note || a2.note || a3.note"
KEYS: Final = (("delta", 1e-9),)
WORDS: Final = ", ".join(f"SUM(x + {i}) OVER (PARTITION BY uid ORDER BY x, z) AS w{i}" for i in range(3))

DEAR: Final = "(SELECT * FROM t WHERE NOT REGEXP_MATCHES(LPAD(note, 1000, 'ab'), '(a|b)*c'))"
LIST: Final = ", ".join(f"'{'ab' * number}NUMBER'" for number in range(1, 9))

UNBOUNDED: Final = (
    Family(name="copies", text=COPIES),
    Family(name="shared", text=SHARED),
    Family(
        name="patterns",
        text=f"{HER}SELECT COUNT(*) FROM {copies(4)} WHERE REGEXP_REPLACE({NOTES}, '(a|b)(a|b)', 'c', 'g') = 'q'",
    ),
    Family(
        name="windows",
        text=f"{HER}SELECT COUNT(w) FROM (SELECT COUNT(DISTINCT a1.note) OVER (PARTITION BY a0.uid ORDER BY a2.x, "
        f"a3.note, a4.note ROWS BETWEEN 1000 PRECEDING AND CURRENT ROW) AS w FROM {copies(5)})",
    ),
    Family(
        name="quantiles",
        text=f"{HER}SELECT MEDIAN(CASE WHEN REVERSE(a0.note || a3.note || a5.note) > 'c' THEN a0.x ELSE a1.x END) "
        f"FROM {copies(6)}",
    ),
    Family(
        name="private keys",
        text=f"{HER}SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) {NOTES} || a4.note AS k, "
        f"COUNT(*) AS n FROM {copies(5)} GROUP BY {NOTES} || a4.note",
        body=KEYS,
    ),
    Family(name="memory", text=f"{HER}SELECT COUNT(DISTINCT {NOTES} || a4.note || a5.note) FROM {copies(6)}"),
)
BOUNDED: Final = (
    Family(name="copies", text=f"{HER}SELECT COUNT(*) FROM {copies(3)}"),
    Family(
        name="everybody's rows",
        text=f"{HER}SELECT COUNT(*) FROM t a WHERE a.uid IN (SELECT uid FROM v) "
        "AND REGEXP_MATCHES(LPAD(a.note, 1000, 'ab'), '(a|b)*c')",
    ),
    Family(name="patterns", text=f"{HER}SELECT COUNT(*) FROM v WHERE REGEXP_REPLACE(note, 'a.{{3}}c', 'c', 'g') = 'q'"),
    Family(name="windows", text=f"{HER}SELECT COUNT(*) FROM (SELECT {WORDS} FROM v) WHERE w0 + w1 + w2 > 3"),
    Family(name="quantiles", text=f"{HER}SELECT MEDIAN(x), QUANTILE_CONT(x, 0.1), QUANTILE_CONT(x, 0.9) FROM v"),
    Family(
        name="private keys",
        text=f"{HER}SELECT a0.note, COUNT(*) AS n FROM {copies(2)} GROUP BY a0.note",
        body=KEYS,
    ),
    Family(
        name="memory",
        text=f"{HER}SELECT COUNT(*) FROM (SELECT uid, note FROM t UNION SELECT uid, LPAD(note, 300, 'b') FROM t) a "
        "JOIN v b ON a.uid = b.uid",
    ),
    Family(name="semi-joins", text=f"{HER}SELECT COUNT(*) FROM {DEAR} a WHERE a.uid IN (SELECT uid FROM v)"),
    Family(name="marks", text=f"{HER}SELECT COUNT(*) FROM v WHERE x > 2000 OR uid IN (SELECT uid FROM {DEAR} a)"),
    Family(
        name="lists",
        text=f"{HER}SELECT COUNT(*) FROM v WHERE note IN ({LIST}) OR name IN ({LIST}) OR REVERSE(note) IN ({LIST})",
    ),
    Family(name="distinct", text=f"{HER}SELECT COUNT(DISTINCT LPAD(note, 900, 'ab') || name) FROM v"),
    Family(name="distinct rows", text=f"{HER}SELECT COUNT(*) FROM (SELECT DISTINCT uid, REVERSE(note) AS n FROM v)"),
    Family(
        name="set operations",
        text=f"{HER}SELECT COUNT(*) FROM (SELECT uid, note FROM t EXCEPT SELECT uid, REVERSE(note) FROM v)",
    ),
    Family(
        name="bounds that are found",
        text=f"{HER}SELECT SUM(x, contribution_bounds_per_group => AUTO) AS s FROM v",
    ),
    Family(
        name="spills",
        text=f"{HER}SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY uid ORDER BY note) AS r, uid FROM t) a "
        "JOIN v ON a.uid = v.uid WHERE a.r > 1",
    ),
    Family(
        name="batches",
        text=f"{HER}SELECT COUNT(*) FROM {copies(3)}",
        texts=tuple(f"{HER}SELECT {one} FROM v" for one in ("COUNT(DISTINCT note)", "MEDIAN(x)", "SUM(x)")),
    ),
    Family(  # cells of hers that are there or not, in an answer that is compressed on its way
        name="sizes of answers",
        text=f"{HER}SELECT x, z, COUNT(*) AS n FROM v GROUP BY CUBE (x, z)",
    ),
    Family(name="copies, first form", text=COPIES, counted=False),
    Family(name="shared, first form", text=SHARED, counted=False),
)
CONTROL: Final = Family(name="control", text=f"{OF.format('p18')}SELECT COUNT(*) FROM {copies(3)}", counted=False)
SMALL: Final = "SELECT COUNT(*) FROM t WHERE x < 500 AND note <> 'cNUMBER'"
EPSILON: Final = 0.001


def body(text: str, number: int, more: Sequence[tuple[str, object]] = ()) -> dict[str, object]:
    """Return the body of a request."""
    return {"sql": text.replace("NUMBER", str(number)), "epsilon": EPSILON, **dict(more)}


# ---- The service -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a version of Lapwing can do: whether it bounds the work of a unit, and answers at fixed moments."""

    environment: dict[str, str]
    bounded: bool
    padding: bool

    @property
    def families(self) -> tuple[Family, ...]:
        """The questions that are asked of it."""
        return (*(BOUNDED if self.bounded else UNBOUNDED), CONTROL)


def version(checkout: Path | None) -> Version:
    """Return what the version in a folder can do, or this one."""
    environment = {**os.environ, "LAPWING_CURATOR_PASSWORD": PASSWORD, "COLUMNS": "200"}
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout / "src")

    def said(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
        )

    return Version(
        environment=environment,
        bounded=said("-c", "import lapwing.query.plan.work").returncode == 0,
        padding="--no-padding" in said("-m", "lapwing", "serve", "--help").stdout,
    )


def make(folder: Path, *, bounded: bool = True, rows: int = 10_000) -> None:
    """Write the two data sets, each in a folder of its own, with their catalogs."""
    for name, condition in zip(DATASETS, ("u <> 17", "true"), strict=True):
        (folder / name).mkdir()
        with duckdb.connect() as connection:
            path = folder / name / "t.parquet"
            connection.execute(ROWS.format(units=rows // 8, note=NOTE, condition=condition, path=path))
        more = f"rows_at_most = {rows}" if bounded else ""
        (folder / name / "lapwing.toml").write_text(CATALOG.format(name=name, rows_at_most=more))


@contextmanager
def service(folder: Path, tested: Version, *, padded: bool, rows: int, wire: bool = False) -> Iterator[int]:
    """Serve the two data sets, and give the port; wire: PostgreSQL clients are answered, too."""
    make(folder, bounded=tested.bounded, rows=rows)
    command = [sys.executable, "-m", "lapwing", "serve", *(f"{name}/lapwing.toml" for name in DATASETS)]
    command += ["--port", "0", "--rate", "0", *([] if padded or not tested.padding else ["--no-padding"])]
    command += ["--postgres", "0"] if wire else []
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(command, cwd=folder, env=tested.environment, stderr=log)
        try:
            yield listening(process, folder / "log")
        finally:
            process.terminate()
            process.wait()


def people(port: int, count: int, tested: Version) -> tuple[str, list[str]]:
    """Make analysts who may ask both data sets, for next to nothing; return the curator's token, and theirs."""
    curator = told(port, "POST", "/v1/login", body={"name": "curator", "password": PASSWORD})["token"]
    tokens = []
    if tested.bounded:  # a question may cost as little as it likes, as so many are asked
        for dataset in DATASETS:
            told(port, "PUT", f"/v1/datasets/{dataset}/policy", curator, {"division": "share", "least_share": "0"})
    for number in range(count):
        name = f"analyst{number}"
        told(port, "POST", "/v1/people", curator, {"name": name, "role": "analyst"})
        for dataset in DATASETS:
            told(port, "PUT", f"/v1/datasets/{dataset}/grants/{name}", curator, {"share": None})
        tokens.append(told(port, "POST", f"/v1/people/{name}/tokens", curator, {"scopes": ["read", "ask"]})["token"])
    return curator, tokens


# ---- Trials ----------------------------------------------------------------------------------------------------------

KINDS: Final = ("explain", "budget", "history", "answers", "ready")
BESIDE: Final = ("how many", "least", "mean", "greatest", "last", "when another")
FEATURES: Final = (
    *("question", "its status", "small question", "its status"),
    *(f"{kind}: {what}" for kind in KINDS for what in BESIDE),
)
BETWEEN: Final = 0.02
"""Seconds between two requests of the attacker beside the question."""
LATER: Final = 0.005
"""The small question is sent so many seconds after the question."""
QUICK: Final = 2
PATIENCE: Final = 120.0
RESTING: Final = 20.0
NOT_ASKED: Final = (429, 503)
"""Statuses of questions that are uncharged, and are asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What an attacker saw: where it was asked, of which family, and a number for each of `FEATURES`."""

    family: str
    within: bool
    status: str
    seen: tuple[float, ...]
    began: float = 0.0
    """When it began, in seconds of the clock (`time.time`)."""


@dataclass(slots=True)
class Watched:
    """A connection on which one reply is waited for; whole: returns the status of a whole reply; port: over HTTP."""

    socket: socket.socket
    whole: Callable[[bytes], int | None] = complete
    port: int = 0
    began: float = 0.0
    received: bytes = b""
    kind: str = ""

    def renew(self) -> None:
        """Connect again over HTTP after a while without a request: the service closes what rests for a minute."""
        if self.whole is complete and self.began and time.perf_counter() - self.began > RESTING:
            closed, self.socket = self.socket, connected(self.port)
            closed.close()

    def send(self, request: bytes, kind: str) -> None:
        self.kind, self.received = kind, b""
        self.began = time.perf_counter()
        self.socket.sendall(request)

    def read(self) -> int | None:
        """Return the status of the reply, once it is whole."""
        more = self.socket.recv(1 << 18)
        self.received += more
        return self.whole(self.received) if more else 0

    @property
    def content(self) -> bytes:
        return self.received.partition(b"\r\n\r\n")[2]

    @property
    def code(self) -> str:
        """The code of the problem that was replied."""
        if self.whole is complete:
            return str(json.loads(self.content or b"{}").get("code", ""))
        return wire_error(self.received).get("D", "").partition(".")[0]


@dataclass(slots=True)
class Beside:
    """What came of the requests of one kind beside a question."""

    times: list[float] = field(default_factory=list)
    newest: bytes = b""
    another: float = -1.0

    def add(self, took: float, since: float, content: bytes) -> None:
        if self.times and self.another < 0 and content != self.newest:
            self.another = since
        self.times.append(took)
        self.newest = content

    @property
    def seen(self) -> tuple[float, ...]:
        times = self.times or [-1.0]
        return len(self.times), min(times), sum(times) / len(times), max(times), times[-1], self.another


@dataclass(slots=True)
class Attacker:
    """An analyst with three connections: for the question, for a small one, and for everything beside.

    Args: wire_port: where the question and the small one are sent, on connections for each data set; None: to `port`.
    """

    port: int
    token: str
    person: str
    wire_port: int | None = None
    paged: bool = True
    """Whether lists come in pages, as they do but in old versions."""
    charged: dict[str, int] = field(default_factory=dict)
    """The last charge that was seen in the history of each data set."""
    asking: Mapping[str, Watched] = field(init=False)
    small: Mapping[str, Watched] = field(init=False)
    beside: Watched = field(init=False)

    def __post_init__(self) -> None:
        self.asking, self.small = self.opened(), self.opened()
        self.beside = Watched(connected(self.port), port=self.port)
        pages = request_bytes("GET", f"/v1/datasets/{DATASETS[0]}/history?limit=1&after=0", self.token)
        self.paged = asked(self.beside.socket, pages) == 200

    def opened(self) -> Mapping[str, Watched]:
        """Return a connection by data set: over HTTP, the same for both."""
        if self.wire_port is None:
            return dict.fromkeys(DATASETS, Watched(connected(self.port), port=self.port))
        options = f"-c lapwing.epsilon={EPSILON}"
        return {
            name: Watched(wire_connected(self.wire_port, self.person, self.token, name, options), wire_complete)
            for name in DATASETS
        }

    def query(self, dataset: str, path: str, body: Mapping[str, object]) -> bytes:
        """Return a request with a question."""
        if self.wire_port is None:
            return request_bytes("POST", f"/v1/datasets/{dataset}/{path}", self.token, body)
        delta = f"SET lapwing.delta = '{body['delta']}'" if "delta" in body else "RESET lapwing.delta"
        return simple(f"{delta}; {body['sql']}")

    def free(self, dataset: str, kind: str, number: int) -> bytes:
        """Return a request that is not charged."""
        of = f"/v1/datasets/{dataset}"
        if kind == "explain":
            return request_bytes("POST", f"{of}/explain", self.token, body(SMALL, number))
        newest, later = ("?limit=1", f"?after={self.charged.get(dataset, 0)}") if self.paged else ("", "")
        path = {"budget": f"{of}/budget", "history": f"{of}/history{later}", "answers": f"{of}/answers{newest}"}
        return request_bytes("GET", path.get(kind, "/readyz"), self.token)

    def trial(self, family: Family, within: bool, number: int) -> Trial:
        """Ask a question, and watch the service until it and the small question are answered."""
        dataset, began = DATASETS[within], time.time()
        asking, small = self.asking[dataset], self.small[dataset]
        beside = {kind: Beside() for kind in KINDS}
        ended: dict[str, tuple[float, int]] = {}
        with selectors.DefaultSelector() as selector:
            for watched in (asking, small, self.beside):
                watched.renew()
                selector.register(watched.socket, selectors.EVENT_READ, watched)
            asking.send(self.query(dataset, family.path, family.asked(number)), "question")
            start = following = asking.began
            turn, sent, waiting = 0, False, False
            while len(ended) < 2 or waiting:
                now = time.perf_counter()
                if now - start > PATIENCE:
                    raise SystemExit(f"no answer in {PATIENCE:.0f} seconds: {family.name}")
                if not sent and now - start >= LATER:
                    small.send(self.query(dataset, "query", body(SMALL, number)), "small")
                    sent = True
                if not waiting and "question" not in ended and now >= following:
                    kind = KINDS[turn % len(KINDS)]
                    self.beside.send(self.free(dataset, kind, number), kind)
                    turn, following, waiting = turn + 1, now + BETWEEN, True
                for key, _ in selector.select(LATER):
                    watched = key.data
                    status = watched.read()
                    if status is None:
                        continue
                    now = time.perf_counter()
                    if watched is self.beside:
                        beside[watched.kind].add(now - watched.began, now - start, watched.content)
                        waiting = False
                    else:
                        ended[watched.kind] = now - watched.began, status
        if self.paged and beside["history"].newest.startswith(b"[{"):
            self.charged[dataset] = json.loads(beside["history"].newest)[-1]["sequence"]
        seen = (*ended["question"], *ended["small"], *(one for kind in KINDS for one in beside[kind].seen))
        status = ended["question"][1]
        said = f"{status}" if status == 200 else f"{status} {asking.code}"
        return Trial(family=family.name, within=within, status=said, seen=seen, began=began)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one attacker does, in a process of its own."""

    port: int
    wire_port: int | None
    token: str
    person: str
    curator: str
    families: tuple[Family, ...]
    trials: int
    first: int


def attack(task: Task) -> tuple[list[Trial], Counter[str]]:
    """Return trials of all families in a random order, and what had to be asked again for which status."""
    attacker, chance = Attacker(task.port, task.token, task.person, task.wire_port), random.SystemRandom()
    trials, again, number = list[Trial](), Counter[str](), task.first
    for dataset in (0, 1) * 3:  # what the service does once only is done by then
        attacker.trial(CONTROL, bool(dataset), number := number + 1)
    fewer = max(1, task.trials // 4)
    coming = [family for family in task.families for _ in range(task.trials if family.counted else fewer)]
    chance.shuffle(coming)
    while coming:
        trial = attacker.trial(coming[-1], chance.random() < 0.5, number := number + 1)
        stopped = "data_stopped" in trial.status
        if stopped:
            told(task.port, "POST", f"/v1/datasets/{DATASETS[trial.within]}/resume", task.curator)
        if stopped or int(trial.seen[1]) in NOT_ASKED:
            again[trial.status] += 1
            time.sleep(chance.random() / 10)
        else:
            trials.append(trial)
            coming.pop()
    return trials, again


# ---- The classifier --------------------------------------------------------------------------------------------------

Guesser = Callable[[Reals], Truths]
Learner = Callable[[Reals, Truths], Guesser]
SHRUNK: Final = 0.5


def stumps(rounds: int) -> Learner:
    """Return a learner that adds up stumps, each fitted to what those before it got wrong (LogitBoost, shrunk).

    Source: Friedman, Hastie and Tibshirani 2000, algorithm 3.
    """

    def learn(seen: Reals, within: Truths) -> Guesser:
        order = np.argsort(seen, axis=0, kind="stable")
        ordered = np.take_along_axis(seen, order, axis=0)
        apart = np.diff(ordered, axis=0) > 0
        margin, made = np.zeros(len(within)), list[tuple[int, float, float, float]]()
        for _ in range(rounds if apart.any() else 0):
            chance = 1 / (1 + np.exp(-2 * margin))
            weight = np.maximum(chance * (1 - chance), 1e-6)
            wanted = np.clip((within - chance) / weight, -4, 4)
            below, heavy = (np.cumsum(each[order], axis=0)[:-1] for each in (weight * wanted, weight))
            above, light = (weight * wanted).sum() - below, weight.sum() - heavy
            gain = np.where(apart, below**2 / heavy + above**2 / light, -1.0)
            row, column = np.unravel_index(int(gain.argmax()), gain.shape)
            edge = (ordered[row, column] + ordered[row + 1, column]) / 2
            values = below[row, column] / heavy[row, column], above[row, column] / light[row, column]
            low, high = (SHRUNK * value / 2 for value in values)
            made.append((int(column), float(edge), float(low), float(high)))
            margin += np.where(seen[:, column] < edge, low, high)

        def guess(other: Reals) -> Truths:
            total = np.full(len(other), 1e-12 if 2 * within.sum() >= len(within) else -1e-12)
            for column, edge, low, high in made:
                total += np.where(other[:, column] < edge, low, high)
            return np.asarray(total > 0)

        return guess

    return learn


def neighbours(count: int) -> Learner:
    """Return a learner that asks the nearest trials, by the ranks of what was seen."""

    def learn(seen: Reals, within: Truths) -> Guesser:
        ordered = np.sort(seen, axis=0)

        def ranked(other: Reals) -> Reals:
            pairs = zip(ordered.T, other.T, strict=True)
            places = [(np.searchsorted(one, values) + np.searchsorted(one, values, "right")) for one, values in pairs]
            return np.array(places, dtype=float).T

        known = ranked(seen)

        def guess(other: Reals) -> Truths:
            places = ranked(other)
            far = (places**2).sum(1)[:, None] + (known**2).sum(1)[None] - 2 * places @ known.T
            nearest = np.argsort(far, axis=1)[:, :count]
            return np.asarray(2 * within[nearest].sum(axis=1) > nearest.shape[1])

        return guess

    return learn


LEARNERS: Final = (stumps(1), stumps(8), stumps(40), stumps(150), neighbours(5), neighbours(25))
FOLDS: Final = 5


def guessed(seen: Reals, within: Truths, generator: np.random.Generator) -> tuple[int, int, float]:
    """Train on one half of trials, and return how many of the other were guessed right, of how many.

    The third number is the share that was right in cross-validation within the first half.
    """
    order = generator.permutation(len(within))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    folds = np.arange(len(train)) % FOLDS
    scores = []
    for learner in LEARNERS:
        right = 0
        for fold in range(FOLDS):
            learned, asked_of = train[folds != fold], train[folds == fold]
            right += int((learner(seen[learned], within[learned])(seen[asked_of]) == within[asked_of]).sum())
        scores.append(right)
    best = LEARNERS[int(np.argmax(scores))]
    right = int((best(seen[train], within[train])(seen[test]) == within[test]).sum())
    return right, len(test), max(scores) / max(1, len(train))


def interval(right: int, count: int) -> tuple[float, float]:
    """Return Wilson's interval, which covers the chance of a right guess with 95 % probability."""
    share, z = right / count, 1.96
    middle, width = share + z**2 / (2 * count), z * sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return (middle - width) / (1 + z**2 / count), (middle + width) / (1 + z**2 / count)


def telling(seen: Reals, within: Truths) -> str:
    """Return which feature alone tells most, in all trials, with the share that it guesses right at its best edge."""
    best = (0.0, "")
    for column, name in enumerate(FEATURES):
        order = np.argsort(seen[:, column], kind="stable")
        edges = np.flatnonzero(np.diff(seen[order, column]) > 0)
        hits = np.cumsum(within[order])[edges] + (~within).sum() - np.cumsum(~within[order])[edges]
        share = max((float(max(hit, len(within) - hit)) / len(within) for hit in hits), default=0.0)
        best = max(best, (share, name))
    return f"{best[1]} ({best[0]:.0%})"


# ---- The table -------------------------------------------------------------------------------------------------------


def faults(trials: Sequence[Trial], again: Counter[str]) -> str:
    """Return how many of what was charged were faults."""
    count = sum(trial.status.startswith("5") for trial in trials)
    stopped = sum(times for status, times in again.items() if "data_stopped" in status)
    return f"faults: {count:,} of {len(trials):,}; the data set was found stopped {stopped:,} times"


LEAST_KEPT: Final = 20
HALVES: Final = 9
"""Over so many random halves the share of right guesses is averaged: one alone varies by five percent."""


def late_answers(log: Path) -> dict[str, list[str]]:
    """Return the ticks of late answers of each data set."""
    lines = (json.loads(text) for text in log.read_text().splitlines() if text.endswith("}"))
    late = [line for line in lines if line["event"] == "answers late"]
    return {name: [line["tick"] for line in late if line["dataset"] == name] for name in DATASETS}


def undoubled(trials: Sequence[Trial], late: Mapping[str, Sequence[str]]) -> list[Trial]:
    """Return the trials that began while late answers had doubled the deadlines of neither data set.

    Each late answer is counted, and public. Doubled deadlines of one data set tell it from the other for ten minutes.
    """
    whens = [(trial, datetime.fromtimestamp(trial.began, UTC)) for trial in trials]
    return [trial for trial, when in whens if not any(doublings(before(ticks, when), when) for ticks in late.values())]


def before(ticks: Sequence[str], when: datetime) -> list[str]:
    """Return the ticks up to a moment."""
    return [tick for tick in ticks if tick <= when.isoformat(timespec="milliseconds")]


def report(trials: Sequence[Trial], families: Sequence[Family]) -> None:
    """Print how often the classifier was right: for each family, and for all together that were charged."""
    generator = np.random.default_rng()
    print(f"{'':20}{'held out':>9}{'right':>9}{'95 %':>17}{'absent':>9}{'within':>9}   most telling alone; statuses")
    sums = [0, 0]
    for family in families:
        own = [trial for trial in trials if trial.family == family.name]
        seen, within = np.array([trial.seen for trial in own]), np.array([trial.within for trial in own])
        halves = [guessed(seen, within, generator) for _ in range(HALVES)]
        right, count = round(sum(one[0] for one in halves) / HALVES), halves[0][1]
        sums = [sums[0] + right, sums[1] + count] if family.counted else sums
        middles = [1000 * float(np.median(seen[within == one, 0])) if (within == one).any() else 0 for one in (0, 1)]
        statuses = Counter(f"{DATASETS[trial.within]} {trial.status}" for trial in own)
        came = ", ".join(f"{status} {times}" for status, times in sorted(statuses.items()))
        took = f"{middles[0]:6.0f} ms{middles[1]:6.0f} ms"
        print(f"{line(family.name, right, count)}{took}   {telling(seen, within)}; {came}")
    if sums[1]:
        print(line("all that are charged", *sums))


def line(name: str, right: int, count: int) -> str:
    """Return how many guesses were right, with an interval."""
    low, high = interval(right, count)
    return f"{name:20}{count:9,}{right / count:9.1%}{f'{low:.1%} to {high:.1%}':>17}"


def main() -> None:
    """Attack, and print what it found."""
    parser = argparse.ArgumentParser(description="Try to read off the clock whether a person is in the data.")
    parser.add_argument("--quick", action="store_true", help="few trials, to see that it runs")
    parser.add_argument("--no-padding", dest="padded", action="store_false", help="serve without it")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="attack the service of another version")
    parser.add_argument("--trials", type=int, default=600, help="of each family, half of them held out")
    parser.add_argument("--rows", type=int, default=10_000, help="of each data set; toggled work grows with them")
    parser.add_argument("--loops", type=int, default=0, help="so many processes that are busy beside it")
    parser.add_argument("--streams", type=int, help="attackers at a time: 4, or 1 unless padded")
    parser.add_argument("--only", action="append", metavar="NAME", help="of the families, this one; may be repeated")
    parser.add_argument("--wire", action="store_true", help="ask as a PostgreSQL client")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write what was seen, as JSON")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that whoever ends this ends the service with it
    tested = version(arguments.against)
    padded = arguments.padded and tested.padding
    streams = arguments.streams or (4 if padded else 1)
    trials = QUICK if arguments.quick else arguments.trials // streams
    print(f"work of a unit {'bounded' if tested.bounded else 'not bounded'}, answers {'' if padded else 'not '}padded")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lapwing-timing-")))
        port = stack.enter_context(service(folder, tested, padded=padded, rows=arguments.rows, wire=arguments.wire))
        curator, tokens = people(port, streams, tested)
        wire_port = told_port(folder / "log", EVENT)
        families = [one for one in tested.families if not arguments.only or one.name in arguments.only]
        families = [one for one in families if wire_port is None or not one.texts]
        for _ in range(arguments.loops):
            loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(loop.kill)
        began = time.perf_counter()
        tasks = [
            Task(
                port=port,
                wire_port=wire_port,
                token=token,
                person=f"analyst{place}",
                curator=curator,
                families=tuple(families),
                trials=trials,
                first=place * 10**8,
            )
            for place, token in enumerate(tokens)
        ]
        pool = stack.enter_context(ProcessPoolExecutor(streams, get_context("spawn")))
        came = list(pool.map(attack, tasks))
        late = late_answers(folder / "log")
    found = [trial for own, _ in came for trial in own]
    again = sum((times for _, times in came), Counter[str]())
    print(f"{len(found):,} trials by {streams} attackers in {time.perf_counter() - began:.0f} seconds")
    print(f"asked again: {', '.join(f'{status} {times}' for status, times in again.items()) or 'none'}")
    print(faults(found, again))
    print(f"late answers: {', '.join(f'{name} {len(ticks)}' for name, ticks in late.items())}")
    report(found, families)
    kept = undoubled(found, late)
    families = [family for family in families if sum(trial.family == family.name for trial in kept) > LEAST_KEPT]
    if families and len(kept) < len(found):
        print(f"the {len(kept):,} trials that began while no deadline was doubled:")
        report(kept, families)
    if arguments.save:
        arguments.save.write_text(json.dumps([[t.family, t.within, t.status, t.seen] for t in found]))


if __name__ == "__main__":
    main()
