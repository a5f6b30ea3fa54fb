"""How fast this machine is, measured by questions of made-up rows: never of the data."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.draft import draft
from lapwing.catalog.model import Catalog
from lapwing.documents.answer_document import answer_document, arrow_stream
from lapwing.engines import Engine, Exact, open_indexed_engine
from lapwing.errors import Fault
from lapwing.opening import open_session
from lapwing.privacy.amounts import exact
from lapwing.query.plan import Question
from lapwing.release.request import Timing
from lapwing.server.deadline.cost import Speed, nanoseconds, numbers
from lapwing.server.deadline.pace import AskedEngine
from lapwing.session import Session

ROWS: Final = 40_000
EACH: Final = 4
"""Rows of a unit."""
LABELS: Final = 500
TIMES: Final = 3
LEAST: Final = 0.002
"""Seconds that each question takes at least beside the engine."""
MORE: Final = 1.5
"""So many times what was measured: other questions fit the model less well, and others are asked meanwhile."""
CONFIDENCE: Final = exact(0.95, "confidence")
SMALL: Final = "SELECT COUNT(*) AS n FROM made WHERE amount < {}"
LARGE: Final = "SELECT label, COUNT(*) AS n, SUM(amount) AS s FROM made WHERE amount > {} GROUP BY label"
OTHERS: Final = (
    "SELECT MEDIAN(amount) AS q FROM made WHERE amount > {}",
    "SELECT COUNT(*) AS n FROM made WHERE REGEXP_MATCHES(note, 'a.*{}')",
    "SELECT AVG(s, contribution_bounds_per_row => (0, 1000)) AS a FROM (SELECT person, SUM(amount) AS s FROM made"
    " WHERE amount > {} GROUP BY person)",
    "SELECT COUNT(DISTINCT note) AS n FROM made WHERE amount < {}",
    "SELECT COUNT(*) AS n FROM made WHERE person IN (SELECT person FROM made WHERE amount < 500) AND"
    " REGEXP_MATCHES(LPAD(note, 250, 'ab'), '(.{{1,9}}){{2}}x{}')",
)
"""Sorts, texts, groups of a unit, values to be told apart, and dear patterns over rows that are joined."""


def measured(rows: int = ROWS) -> Speed:
    """Return what this process takes for questions; it takes a second or two.

    Args: rows: how many are made up; what takes longer with more of them is taken to be in proportion.
    """
    with TemporaryDirectory(prefix="lapwing-") as folder:
        catalog = _made(Path(folder), rows)
        with open_session(catalog) as session:
            unindexed = _timed(session, SMALL)
        make_indexes(catalog)
        with open_session(catalog) as session:
            small, large, *others = [_timed(session, text) for text in (SMALL, LARGE, *OTHERS)]
    question = max(LEAST, MORE * (small.beside + small.engine))
    return Speed(
        question=question,
        nanosecond=MORE * max(one.engine / one.nanoseconds for one in (small, large, *others)),
        row=unindexed.engine / rows,
        number=MORE * max(0.0, large.beside - small.beside) / large.numbers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Seconds of the processor that a question took, in the engine and beside it, and how much it was."""

    engine: float
    beside: float
    nanoseconds: float
    numbers: int


def _timed(session: Session, text: str) -> _Times:
    """Ask a question several times, each with another constant, so that it is charged and answered anew."""
    engines, besides = [], []
    for turn in range(TIMES + 1):
        watch, begun = _Watch(), time.process_time()
        answer = session.acting_for("speed", timing=Timing(through=watch.over)).sql(text.format(turn + 1), epsilon=1)
        arrow_stream(answer.to_arrow(CONFIDENCE))
        answer_document(answer, CONFIDENCE)
        besides.append(time.process_time() - begun - watch.seconds)
        engines.append(watch.seconds)
    question = answer.plan.question
    return _Times(
        engine=median(engines[1:]),  # the first one loads what the others find
        beside=median(besides[1:]),
        nanoseconds=nanoseconds(question),
        numbers=numbers(question),
    )


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


def _made(folder: Path, rows: int) -> Catalog:
    """Write made-up rows, and return their catalog."""
    row = np.arange(rows)
    labels = [f"label {number}" for number in range(LABELS)]
    table = pa.table(
        {
            "person": row // EACH,
            "amount": row * 7919 % 1000,
            "label": pa.array(labels).take(pa.array(row * 104_729 // 13 % LABELS)),
            "note": pa.array([f"a note of {number} and {number * 7919}" for number in range(rows)]),
        }
    )
    path = folder / "made.parquet"
    pq.write_table(table, path)
    drafted = draft(
        path,
        privacy_unit="person",
        epsilon=10**6,
        delta=exact(1e-6, "delta"),
        max_rows_per_unit=EACH,
        bounds={"amount": (0, 1000)},
        values={"label": labels},
    ).catalog
    described = replace(drafted.tables[0], rows_at_most=rows)
    return replace(drafted.with_table(described), file=folder / "made.lapwing.toml")
