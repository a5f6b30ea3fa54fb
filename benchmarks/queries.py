"""Bounded count, sum and mean by 50 public keys: 10 M rows, 1 M people, at most 10 rows each, 1 GB of memory or more.

Each private question is asked through a session: bound, charge, run, noise, answer. Cold, every question bounds the
rows anew; warm, they stand in an index beside the data. In turn and in the same process, plain DuckDB answers the same
question over the same Parquet file without any privacy; OpenDP, before it and in an environment of its own
(`peers/environments.py`), the same with rows truncated per person. What is printed is the median of several and its
ratio to a peer's; the machine is noisy, ratios matter.

    python benchmarks/queries.py [ROWS]
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
from peers import environments

import lapwing as lw
from lapwing.engines.duckdb import engine as engine

REPEATS = 5
OPENDP_REPEATS = 2
KEYS = [f"r{number:02d}" for number in range(50)]
ASKED = {
    "count": "COUNT(*) AS n",
    "people": "COUNT(DISTINCT person) AS n",
    "count, sum and mean": "COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m",
}
OPENDP = ("count", "count, sum and mean")


def make(path: Path, rows: int) -> None:
    """Write rows in random order: about ten a person, a region of fifty, a cost that is partly out of bounds."""
    generator = np.random.default_rng(20260101)
    table = pa.table(
        {
            "person": generator.integers(0, max(rows // 10, 1), rows),
            "region": pa.array(np.array(KEYS)[generator.integers(0, len(KEYS), rows)]),
            "cost": generator.random(rows) * 6000,
        }
    )
    pq.write_table(table, path)


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes by the clock."""
    return timed(action)[0]


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Return how long an action takes, by the clock and of processors."""
    start, used = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - used


def ask(session: lw.Session, question: str) -> None:
    session.sql(question, epsilon=1).rows()


def fetch(plain: duckdb.DuckDBPyConnection, question: str) -> None:
    plain.execute(question).fetchall()


def opendp(path: Path, rows: int, name: str) -> float | None:
    """Return the seconds that OpenDP takes for a question, if it is asked that; if it then cannot, say so aloud."""
    if name not in OPENDP:
        return None
    request = {"data": str(path), "rows": rows, "name": name, "by": "region", "keys": len(KEYS), "delta": 1e-7}
    said = environments.ask("OpenDP", "opendp_times.py", request | {"repetitions": OPENDP_REPEATS + 1})
    if "cannot" in said:
        print(f"OpenDP CANNOT ANSWER {name}: {said['cannot']}")
        return None
    return float(statistics.median(said["seconds"][1:]))


def measured(
    session: lw.Session, plain: duckdb.DuckDBPyConnection, path: Path, aggregates: str, tag: int
) -> list[tuple[float, float]]:
    """Return the medians of the private question, of the plain one, and of plain distinct people, asked in turn."""
    times: list[list[tuple[float, float]]] = [[], [], []]
    for repeat in range(REPEATS):
        rows = f"WHERE cost >= {-tag - repeat} GROUP BY region"
        times[0].append(timed(partial(ask, session, f"SELECT region, {aggregates} FROM visits {rows}")))
        for place, plainly in enumerate((aggregates, ASKED["people"]), 1):
            text = f"SELECT region, {plainly} FROM '{path}' {rows}"
            times[place].append(timed(partial(fetch, plain, text)))
    return [
        (statistics.median(clock), statistics.median(used)) for clock, used in (zip(*t, strict=True) for t in times)
    ]


def line_of(name: str, times: list[tuple[float, float]]) -> str:
    """Return a line: the private question, the plain one, and the ratios of processor time."""
    ours, plain, people = times
    shown = "".join(f"{clock:9.3f}s{used:9.3f}s" for clock, used in (ours, plain))
    return f"  {name:22}{shown}{ours[1] / plain[1]:7.2f}x{ours[1] / people[1]:9.2f}x"


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    memory = int(float(sys.argv[2]) * 1e9) if len(sys.argv) > 2 else engine.MEMORY
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as folder:
        path = Path(folder) / "visits.parquet"
        make(path, rows)
        print(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB of Parquet; medians of {REPEATS}, in turn\n")
        with patch.dict(engine.DuckDB.__init__.__kwdefaults__, memory=memory):
            compare(path, rows, memory)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\npeak memory of the process {peak:.2f} GB: the engine may have {memory / 1e9:g}; the rest are its peers")


def compare(path: Path, rows: int, memory: int) -> None:
    """Print a line for each question, cold and warm."""
    session = lw.protect(
        path,
        privacy_unit="person",
        epsilon=1000,
        delta=1e-6,
        max_rows_per_unit=10,
        bounds={"cost": (0, 5000)},
        domains={"region": KEYS},
    )
    spill = str(path.with_name("plain"))
    plain = duckdb.connect(config={"threads": 2, "memory_limit": f"{memory}B", "temp_directory": spill})
    peers = {name: opendp(path, rows, name) for name in ASKED}
    print(
        f"{'by 50 regions':24}{'private':>10}{'used':>10}{'plain':>10}{'used':>10}{'ratio':>8}{'to people':>10}  OpenDP"
    )
    for warm in (False, True):
        if warm:
            builder = engine.DuckDB(session.catalog)
            took = seconds(partial(builder.build_index, session.catalog.tables[0]))
            builder.close()
            size = path.with_name("visits.lapwing.index").stat().st_size
            print(f"index: written in {took:.2f}s, with one reading through; {size / 1e6:.0f} MB")
        print("warm" if warm else "cold")
        for name, aggregates in ASKED.items():
            with patch.object(engine, "INDEXED_FROM", sys.maxsize):  # no question makes an index here
                times = measured(session, plain, path, aggregates, 1 + 100 * warm)
            line, peer = line_of(name, times), peers[name]
            if peer is not None and not warm:
                line += f"{peer:8.2f}s"
            print(line, flush=True)
    session.close()


if __name__ == "__main__":
    main()
