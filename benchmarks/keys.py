"""Distinct people by 100,000 private keys: 10 M rows, 1 M people, at most 10 rows each, 1 GB of memory.

Each private question is asked through a session: bound, charge, run, selection, noise, answer. Cold, every question
bounds the rows anew; warm, they stand in an index beside the data. In turn and in the same process, DuckDB answers
the same question over the same file, with every key and without any privacy. What is printed is the median of
several and its ratio to DuckDB's, of seconds by the clock and of seconds of processor time, which a busy machine
disturbs less. OpenDP is asked the same question once, in an environment of its own, and what it says is printed.

    python benchmarks/keys.py [ROWS]
"""

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _runs import keep
from numpy.typing import NDArray
from peers.environments import ask

import lapwing as lw
from lapwing.engines.duckdb import engine as engine

REPEATS = 5
KEYS = 100_000
ASKED = {
    "people": "COUNT(DISTINCT person) AS n",
    "people, rows and sum": "COUNT(DISTINCT person) AS n, COUNT(*) AS m, SUM(cost) AS s",
    "rows": "COUNT(*) AS n",
}
CATALOG = """
[dataset]
name = "keys"
ledger = "sqlite:keys.lapwing.db"
[budget]
epsilon = 1000
delta = 1e-5
delta_keys = 5e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 10
[tables.visits.columns]
shop = { type = "string" }
cost = { type = "decimal", lower = 0, upper = 5000, step = 0.01 }
"""


def keys_of(law: str, rows: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw a key for every row: all equally likely, or by a Zipf law."""
    if law == "uniform":
        return generator.integers(0, KEYS, rows)
    shares = np.cumsum(1 / np.arange(1, KEYS + 1))
    drawn: NDArray[np.int64] = np.searchsorted(shares, generator.random(rows) * shares[-1])
    return drawn


def make(path: Path, rows: int, law: str) -> None:
    """Write rows in random order: about ten a person, a shop, a cost that is partly out of bounds."""
    generator = np.random.default_rng(20260101)
    names = np.array([f"shop {number:06d}" for number in range(KEYS)])
    table = pa.table(
        {
            "person": generator.integers(0, max(rows // 10, 1), rows),
            "shop": pa.array(names[keys_of(law, rows, generator)]),
            "cost": generator.random(rows) * 6000,
        }
    )
    pq.write_table(table, path)


def clocked(action: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that an action takes: by the clock, and of processors."""
    start, started = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - started


def measured(
    session: lw.Session, plain: duckdb.DuckDBPyConnection, path: Path, aggregates: str, tag: int
) -> tuple[list[float], list[float], int]:
    """Return the medians of the private question and of the plain one, asked in turn, and how many keys came out."""
    times: tuple[list[tuple[float, float]], ...] = ([], [])
    found = 0

    def private(question: str) -> None:
        nonlocal found
        found = len(session.sql(question, epsilon=1, delta=1e-8).rows())

    for repeat in range(REPEATS):
        question = f"SELECT shop, {aggregates} FROM visits WHERE cost >= {-tag - repeat} GROUP BY shop"
        times[0].append(clocked(partial(private, question)))
        ordinary = question.replace("FROM visits", f"FROM '{path}'")
        times[1].append(clocked(lambda ordinary=ordinary: plain.execute(ordinary).fetchall()))  # type: ignore[misc]
    ours, theirs = ([statistics.median(column) for column in zip(*pairs, strict=True)] for pairs in times)
    return ours, theirs, found


def opendp(path: Path, rows: int) -> str:
    """Return what OpenDP says to the same question."""
    request = {"data": str(path), "rows": rows, "name": "people", "by": "shop", "keys": None, "delta": 1e-8}
    said = ask("OpenDP", "opendp_times.py", request | {"repetitions": 1})
    if "cannot" in said:
        return f"CANNOT ANSWER: {said['cannot']}"
    return f"took {said['seconds'][0]:.1f} s and released {said['rows']:,} keys"


def main() -> None:
    """Print one line for every law, way of asking and question."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    kept: dict[str, float] = {}
    for law in ("Zipf", "uniform"):
        with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as folder:
            path = Path(folder) / "visits.parquet"
            make(path, rows, law)
            path.with_name("lapwing.toml").write_text(CATALOG)
            print(f"{rows:,} rows, {KEYS:,} keys, {law}; medians of {REPEATS}, in turn")
            print(f"  {'':28}{'private':>9}{'plain':>9}{'ratio':>7}{'processors':>14}{'keys':>9}")
            plain = duckdb.connect(config={"threads": 2, "memory_limit": "1GB"})
            with lw.connect(path.with_name("lapwing.toml")) as session:
                for name, ratio in compare(session, plain, path).items():
                    kept[f"{law}, {name} / plain DuckDB"] = ratio
            print(f"  OpenDP {opendp(path, rows)}")
    keep("keys", kept)
    print(
        f"peak memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB, peers and all"
    )


def compare(session: lw.Session, plain: duckdb.DuckDBPyConnection, path: Path) -> dict[str, float]:
    """Print a line for every question, cold and warm; return the ratios of processor time."""
    ratios: dict[str, float] = {}
    for number, way in enumerate(("cold", "warm")):
        if way == "warm":
            builder = engine.DuckDB(session.catalog)
            builder.build_index(session.catalog.tables[0])
            builder.close()
        for place, (name, aggregates) in enumerate(ASKED.items()):
            with patch.object(engine, "INDEXED_FROM", sys.maxsize):  # no question makes an index here
                tag = 1 + 100 * (len(ASKED) * number + place)
                (ours, work), (theirs, labour), found = measured(session, plain, path, aggregates, tag)
            line = f"  {f'{way}: {name}':28}{ours:8.2f}s{theirs:8.2f}s{ours / theirs:6.2f}x"
            print(f"{line}{f'{work:.1f} / {labour:.1f}s':>14}{found:9,}")
            ratios[f"{way}: {name}"] = work / labour
    return ratios


if __name__ == "__main__":
    main()
