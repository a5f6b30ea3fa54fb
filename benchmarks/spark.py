"""Count, sum and mean by 50 public keys on Spark in local mode: beside DuckDB in one process, and Tumult, in one run.

Every question goes through a session: bound, charge, run, noise, answer. Cold is the first question about a version,
which reads and bounds all rows; the second keeps the rows that exist in the executors' memory, so that the third is
warm. Spark's start, and the one reading through when data are accepted, are measured apart. For DuckDB cold is without
an index and warm with one. Clock times on a busy machine say little, their ratio in one run more; processor time is
that of both processes together.

Tumult Analytics answers count and mean by key on the Spark that it asks for, in an environment of its own: with the
same memory and number of partitions, and its own cached view of ten rows a person. Both are asked warm, once every
question's kind has been asked before, and what either takes to start is left out.

    python benchmarks/spark.py [ROWS …]
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.environments import ask

import lapwing as lw
from lapwing.engines.spark.cluster import Cluster

ROWS = (1_000_000, 10_000_000)
BESIDE_TUMULT = 1_000_000
TIMES = 2
MEMORY = os.environ.get("LAPWING_SPARK_MEMORY", "1500m")
FILES = 8
KEYS = [f"r{number:02d}" for number in range(50)]
QUESTION = "SELECT region, COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m FROM visits WHERE cost > {} GROUP BY region"
TEXT = """
[dataset]
name = "visits"
engine = "{engine}"
{cluster}
ledger = "sqlite:{engine}.db"
[budget]
epsilon = 100
delta = 1e-6
[tables.visits]
source = "visits/*.parquet"
privacy_unit = "person"
max_rows_per_unit = 10
[tables.visits.columns]
region = {{ type = "string", values = {keys} }}
cost = {{ type = "decimal", lower = 0, upper = 5000, step = 0.01 }}
"""


def make(folder: Path, rows: int) -> None:
    """Write rows in random order: about ten a person, a region of fifty, a cost that is partly out of bounds."""
    folder.mkdir()
    generator = np.random.default_rng(20260101)
    for part in range(FILES):
        few = rows // FILES
        columns = {
            "person": generator.integers(0, max(rows // 10, 1), few),
            "region": pa.array(np.array(KEYS)[generator.integers(0, len(KEYS), few)]),
            "cost": generator.random(few) * 6000,
        }
        pq.write_table(pa.table(columns), folder / f"{part}.parquet")


def processor_seconds() -> float:
    """Return the processor time of this process and of the JVM that it started."""
    ticks, own = os.sysconf("SC_CLK_TCK"), os.times()
    total = own.user + own.system
    for child in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for process in child.read_text().split():
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Return how long an action takes by the clock, and of the processors."""
    clock, worked = time.perf_counter(), processor_seconds()
    action()
    return time.perf_counter() - clock, processor_seconds() - worked


def measure(folder: Path, engine: str) -> list[tuple[float, float]]:
    """Return what it takes to open and accept, to answer the first question, and a later one."""
    cluster = 'cluster = "local[*]"' if engine == "spark" else ""
    (folder / f"{engine}.toml").write_text(TEXT.format(engine=engine, cluster=cluster, keys=KEYS))
    sessions: list[lw.Session] = []
    opened = timed(lambda: sessions.append(lw.connect(folder / f"{engine}.toml")))
    with sessions[0] as session:
        taken = [timed(partial(session.sql, QUESTION.format(least), epsilon=1)) for least in range(4)]
    return [opened, taken[0], min(taken[2:])]


def beside_tumult(folder: Path) -> None:
    """Print what count and mean by key take, warm: ours, Tumult's, and the ratio."""
    questions = {"count by key": "COUNT(*)", "mean by key": "AVG(cost)"}
    ours: dict[str, list[tuple[float, float]]] = {name: [] for name in questions}
    with lw.connect(folder / "spark.toml") as session:
        for least in range(TIMES + 2):
            for name, aggregate in questions.items():
                asked = f"SELECT region, {aggregate} AS n FROM visits WHERE cost > {least + 100} GROUP BY region"
                taken = timed(partial(session.sql, asked, epsilon=0.1))
                if least >= 2:  # the first two keep the rows
                    ours[name].append(taken)
    request: dict[str, object] = {"data": str(folder / "visits"), "scratch": str(folder / "tumult"), "memory": MEMORY}
    request |= {"keys": KEYS, "by": "region", "person": "person", "value": "cost", "bounds": [0, 5000], "rows": 10}
    theirs = ask("Tumult", "tumult_times.py", request | {"partitions": 2 * (os.cpu_count() or 1), "repetitions": TIMES})
    for name in questions:
        (mine, work), (other, other_work) = min(ours[name]), min(theirs[name])
        print(
            f"  {name:12} warm: Lapwing {mine:6.2f} s ({work:5.1f} of the processors)   Tumult {other:6.2f} s "
            f"({other_work:5.1f})   {other / mine:5.1f} times as long, {other_work / work:5.1f} times the work"
        )


def main() -> None:
    """Print a line for every size and engine, and the ratios."""
    from lapwing.engines.spark import cluster

    started = Cluster(cluster.LOCAL, seconds=600, further={"spark.driver.memory": MEMORY})
    clock, worked = timed(started.open)
    print(f"Spark's start with {MEMORY}: {clock:.1f} s, {worked:.1f} processor seconds")
    for rows in [int(text) for text in sys.argv[1:]] or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder) / "visits", rows)
            spark, duckdb = (measure(Path(folder), engine) for engine in ("spark", "duckdb"))
            if rows == BESIDE_TUMULT:
                beside_tumult(Path(folder))
        print(f"{rows:,} rows")
        for place, name in enumerate(("accepting", "cold", "warm")):
            (ours, work), (theirs, their_work) = spark[place], duckdb[place]
            both = f"Spark {ours:7.2f} s ({work:6.1f} of the processors)   DuckDB {theirs:6.2f} s ({their_work:5.1f})"
            print(f"  {name:10} {both}   {ours / theirs:5.1f} times as long")
    started.close()


if __name__ == "__main__":
    main()
