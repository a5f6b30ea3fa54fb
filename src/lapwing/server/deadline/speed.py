"""How fast this machine is, measured by questions of made-up rows: never of the data.

Theory of operation. `Calibration` keeps made-up rows, and a service over them (`made_up`), for as long as the question
process lives. A run asks it some questions and takes the time of the processor: what each question takes beside the
engine, also while many are asked at once, and what the engine takes for each nominal nanosecond of the model. On a busy
machine a run finds too much and never too little, as caches and processors are shared; so of several runs the least
counts, time by time. What is published are powers of 2^(1/4), at or above what was measured: so a little noise changes
nothing.

A run of its own is no question of anybody, and runs when nothing that was admitted is still to leave (`asking`).
"""

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.documents.answer_document import answer_document, arrow_stream
from lapwing.engines import Engine, Exact, open_indexed_engine
from lapwing.errors import Fault
from lapwing.machine.scratch import temporary_folder
from lapwing.opening import open_session
from lapwing.privacy.amounts import exact
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question
from lapwing.release.request import Timing
from lapwing.server.deadline.cost import Speed, nanoseconds, numbers, on_grid, parts
from lapwing.server.deadline.made_up import MadeUpService, made_up_service
from lapwing.server.deadline.pace import AskedEngine
from lapwing.server.deadline.plain import LARGEST, QUERIES, seconds_of
from lapwing.session import Session

ROWS: Final = 20_000
PLAIN_ROWS: Final = 160_000
EACH: Final = 4
"""Rows of a unit."""
LABELS: Final = 500
TEXT: Final = "a note of two hundred bytes, about as long as texts are " * 4
TIMES: Final = 3
AT_ONCE: Final = 16
"""Questions that are asked at the same time, as many as a flood has under way."""
LEAST: Final = 0.002
"""Seconds that each question takes at least beside the engine."""
LEAST_PART, LEAST_NANOSECOND, LEAST_NUMBER = 2e-5, 1e-10, 2e-6
"""Seconds of the other figures at least: a difference of times that is too small to tell is not nothing."""
MORE: Final = 1.5
"""So many times what was measured: others are asked meanwhile."""
STEEPER: Final = 2.0
"""So many times what was measured of the model: other questions fit it less well."""
FROM_MEMORY: Final = 3.0
"""By what steps that read a column are multiplied: the measured rows stay in caches, and ten million do not."""
LEAST_STEP: Final = 3e-10
"""Seconds that each step of a plain question takes at least for a row."""
CONFIDENCE: Final = exact(0.95, "confidence")
SMALL: Final = "SELECT COUNT(*) AS n FROM made WHERE serial <> {}"
LIST: Final = ", ".join(map(str, range(0, 1000, 4)))
LONG: Final = f"SELECT COUNT(*) AS n FROM made WHERE serial <> {{}} AND amount IN ({LIST})"
LARGE: Final = "SELECT label, COUNT(*) AS n, SUM(amount) AS s FROM made WHERE serial <> {} GROUP BY label"
OTHERS: Final = (
    "SELECT COUNT(*) AS n FROM plain WHERE amount < 1000 AND serial <> {}",
    "SELECT SUM(amount) AS s FROM plain WHERE serial <> {}",
    "SELECT MEDIAN(amount) AS q FROM made WHERE serial <> {}",
    "SELECT COUNT(*) AS n FROM made WHERE REGEXP_MATCHES(note, 'a .*{}')",
    "SELECT COUNT(*) AS n FROM made WHERE serial <> {} AND note IN ('a', 'b', 'c', 'd', 'e', 'f')",
    "SELECT AVG(s, contribution_bounds_per_row => (0, 1000)) AS a FROM (SELECT person, SUM(amount) AS s FROM made"
    " WHERE serial <> {} GROUP BY person)",
    "SELECT COUNT(DISTINCT note) AS n FROM made WHERE serial <> {}",
    "SELECT COUNT(DISTINCT person) AS n FROM made WHERE serial <> {}",
    "SELECT COUNT(*) AS n FROM (SELECT person, note, COUNT(*) AS m FROM made WHERE serial <> {} GROUP BY person, note)",
    "SELECT COUNT(*) AS n FROM (SELECT person, amount, note FROM made WHERE serial <> {} QUALIFY ROW_NUMBER() OVER"
    " (PARTITION BY person ORDER BY amount) = 1)",
    "SELECT COUNT(s) AS n FROM (SELECT SUM(amount) OVER (PARTITION BY person ORDER BY amount ROWS BETWEEN 3 PRECEDING"
    " AND CURRENT ROW) AS s FROM made WHERE serial <> {})",
    "SELECT COUNT(*) AS n FROM made WHERE person IN (SELECT person FROM made WHERE serial <> {})",
)
"""Plain ones, sorts, texts, groups of a unit, values to be told apart, windows and joins."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Seconds of the processor that a question took, in the engine and beside it, and how much it was."""

    engine: float
    beside: float
    nanoseconds: float
    numbers: int
    parts: int


@final
class Calibration:
    """Made-up rows and a service over them, and the least that any run has found. It is to be closed.

    Args:
        rows: How many are made up; what takes longer with more of them is taken to be in proportion.
    """

    def __init__(self, rows: int = ROWS, plain_rows: int = PLAIN_ROWS) -> None:
        self._stack = ExitStack()
        catalog = _made(self._stack.enter_context(temporary_folder("lapwing-calibration-")), rows, plain_rows)
        self._numbers = count(1)
        with open_session(catalog) as session:
            self._row = self._timed(session, SMALL).engine / rows
        make_indexes(catalog)
        self._service: MadeUpService = self._stack.enter_context(made_up_service(catalog))
        self._engine = open_indexed_engine(catalog)
        self._stack.callback(self._engine.close)
        digests = {table.name: self._engine.digest(table) for table in catalog.tables}
        self._steps = {name: (bind(text, catalog).question, digests) for name, text in QUERIES.items()}
        self._plain_rows = plain_rows
        self._least: Found | None = None

    def close(self) -> None:
        """Remove all of it."""
        self._stack.close()

    def run(self, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Measure once more; it takes about a second of the processor. Tell whether what is published has changed.

        Args:
            go_on: Is asked between questions; where it says no, nothing comes of the run.
        """
        found = self._found(go_on)
        if found is None:
            return False
        before, self._least = self._least, found if self._least is None else least(self._least, found)
        return before is None or published(before.speed(self._row)) != self.speed

    @property
    def speed(self) -> Speed:
        """What is published. At least one run has to have ended."""
        if self._least is None:
            raise Fault("Nothing was measured yet")
        return published(self._least.speed(self._row))

    def _found(self, go_on: Callable[[], bool]) -> "Found | None":
        session, times = self._service.session, list[_Times]()
        for text in (SMALL, LARGE, LONG, *OTHERS):
            if not go_on():
                return None
            times.append(self._timed(session, text))
        if not go_on():
            return None
        (alone, plan), (together, _) = self._together(1), self._together(AT_ONCE)
        steps = {}
        for name, asked in self._steps.items():
            if not go_on():
                return None
            steps[name] = self._of_a_row(*asked)
        return Found(each=max(alone, together), times=tuple(times), plan=plan, steps=steps)

    def _of_a_row(self, question: Question, digests: Mapping[str, str]) -> float:
        """Return the seconds for a row that the engine takes for a plain question."""
        took = []
        for _ in range(2 * TIMES):
            begun = time.process_time()
            self._engine.run(question, digests)
            took.append(time.process_time() - begun)
        return min(took) / self._plain_rows

    def _together(self, threads: int) -> tuple[float, float]:
        """Return what a small question takes with all that belongs to it, many at once, and beside that its plan.

        The plan is handed over, as it is by a front.
        """
        begun = time.process_time()
        questions = [self._service.planned(SMALL.format(next(self._numbers))) for _ in range(max(TIMES, threads))]
        planned = time.process_time()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda ask: ask(), questions))
            return (time.process_time() - planned) / len(questions), (planned - begun) / len(questions)

    def _timed(self, session: Session, text: str) -> _Times:
        """Ask a question several times, each with another constant, so that it is charged and answered anew."""
        engines, besides = [], []
        for _ in range(TIMES + 1):
            watch, begun = _Watch(), time.process_time()
            asking = session.acting_for("speed", timing=Timing(through=watch.over))
            answer = asking.sql(text.format(next(self._numbers)), epsilon=1)
            arrow_stream(answer.to_arrow(CONFIDENCE))
            answer_document(answer, CONFIDENCE)
            besides.append(time.process_time() - begun - watch.seconds)
            engines.append(watch.seconds)
        question = answer.plan.question
        return _Times(
            engine=min(engines[1:]),  # the first one loads what the others find
            beside=min(besides[1:]),
            nanoseconds=nanoseconds(question),
            numbers=numbers(question),
            parts=parts(question),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What runs have found: of a small question with all that belongs to it, and of each question by itself.

    Args:
        steps: Of the questions by which steps are measured, seconds for a row.
    """

    each: float
    times: tuple[_Times, ...]
    plan: float = 0.0
    steps: Mapping[str, float] = field(default_factory=dict)

    def speed(self, row: float) -> Speed:
        """Return the figures that follow.

        Args:
            row: Seconds to read a row of a file that has no index.
        """
        small, large, long, *others = self.times
        part = max(LEAST_PART, (long.engine + long.beside - small.engine - small.beside) / (long.parts - small.parts))
        slopes = [
            (one.engine - small.engine - (one.parts - small.parts) * part) / one.nanoseconds for one in (large, *others)
        ]
        return Speed(
            question=max(LEAST, MORE * self.each),
            nanosecond=STEEPER * max(LEAST_NANOSECOND, *slopes),
            row=row,
            number=MORE * max(LEAST_NUMBER, (large.beside - small.beside) / large.numbers),
            part=STEEPER * part,
            plan=MORE * max(LEAST_PART, self.plan),
            **self._steps(),
        )

    def _steps(self) -> dict[str, float]:
        """Return the figures of the steps of plain questions, as far as any were measured."""
        each = seconds_of(self.steps) if self.steps else {}
        times = dict.fromkeys(("compared", "known", "summed"), FROM_MEMORY)
        return {name: times.get(name, MORE) * max(LEAST_STEP, took) for name, took in each.items()}


def least(one: Found, other: Found) -> Found:
    """Return the least of two runs, time by time: figures that are differences of times come of these together."""
    pairs = zip(one.times, other.times, strict=True)
    times = (replace(a, engine=min(a.engine, b.engine), beside=min(a.beside, b.beside)) for a, b in pairs)
    steps = {name: min(one.steps[name], other.steps[name]) for name in one.steps}
    return Found(each=min(one.each, other.each), times=tuple(times), plan=min(one.plan, other.plan), steps=steps)


def published(speed: Speed) -> Speed:
    """Return a speed in powers of 2^(1/4), each figure at or above what was measured.

    >>> published(Speed(question=0.9, nanosecond=1.0, row=1.1, number=0.0)).question
    1.0
    """
    return Speed(**{name: on_grid(figure) for name, figure in asdict(speed).items()})


@final
@dataclass(slots=True)
class _Watch:
    """Takes the time of an engine."""

    seconds: float = 0.0

    def over(self, engine: Engine) -> Engine:
        """Return an engine whose runs are timed."""
        return AskedEngine(engine, self._run)

    def _run(self, engine: Engine, question: Question, digests: Mapping[str, str]) -> Exact:
        begun = time.process_time()
        try:
            return engine.run(question, digests)
        finally:
            self.seconds += time.process_time() - begun


def make_indexes(catalog: Catalog) -> bool:
    """Write the indexes of all tables, unless they are there; return whether they are there then."""
    engine = open_indexed_engine(catalog)
    try:
        for table in catalog.tables:
            engine.build_index(table)
    except Fault:
        return False
    finally:
        engine.close()
    return True


CATALOG: Final = """
[dataset]
name = "made"
ledger = "sqlite:made.db"
[budget]
epsilon = 1000000
delta = 1e-6
[tables.made]
source = "made.parquet"
privacy_unit = "person"
max_rows_per_unit = {each}
rows_at_most = {rows}
[tables.made.columns]
amount = {{ type = "integer", lower = 0, upper = 1000 }}
serial = {{ type = "integer", lower = 0, upper = 1000000000 }}
label = {{ type = "string", values = {labels} }}
note = {{ type = "string" }}
[tables.plain]
source = "plain.parquet"
privacy_unit = "person"
max_rows_per_unit = {each}
rows_at_most = {plain}
[tables.plain.columns]
amount = {{ type = "integer", lower = 0, upper = 1000 }}
serial = {{ type = "integer", lower = 0, upper = 1000000000 }}
even = {{ type = "integer", lower = 0, upper = 2000000000, nullable = false }}
spotty = {{ type = "integer", lower = 0, upper = 2000000000 }}
"""


def _made(folder: Path, rows: int, plain_rows: int) -> Catalog:
    """Write made-up rows, and return their catalog."""
    labels = [f"label {number}" for number in range(LABELS)]
    for name, length in (("made", rows), ("plain", plain_rows)):
        row = np.arange(length)
        columns: dict[str, Any] = {"person": row // EACH, "amount": row * 7919 % 1000, "serial": row}
        if name == "made":
            columns["label"] = pa.array(labels).take(pa.array(row * 104_729 // 13 % LABELS))
            columns["note"] = pa.array([f"{number * 7919} {TEXT}" for number in range(length)])
        else:
            columns["even"], nothing = _at_random(length)
            columns["spotty"] = pa.array(columns["even"], mask=nothing)
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    path = folder / "made.lapwing.toml"
    path.write_text(CATALOG.format(each=EACH, rows=rows, plain=plain_rows, labels=json.dumps(labels)))
    return load(path)


def _at_random(length: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return numbers without any order, and which of them are NULL: half, without any order too."""
    drawn = np.arange(length, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    drawn = (drawn ^ (drawn >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (drawn >> np.uint64(20)) % np.uint64(LARGEST), drawn >> np.uint64(63) == 1
