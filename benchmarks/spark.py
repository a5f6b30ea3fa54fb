"""Count, sum and mean by 50 public keys on Spark in local mode: beside DuckDB in one process, and Tumult, in one run.

Every question goes through a session: bound, charge, run, noise, answer. Cold is the first question about a version,
which reads and bounds all rows and keeps those that exist in the executors' memory; the second and later ones are warm.
Spark's start is measured apart, in processes of its own beside a plain SparkSession with the same settings; so is the
one reading through when data are accepted. For DuckDB cold is without
an index and warm with one. Clock times on a busy machine say little, their ratio in one run more; processor time is
that of both processes together.

Tumult Analytics answers count and mean by key on the Spark that it asks for, in an environment of its own: with the
same memory and number of partitions, and its own cached view of ten rows a person. Both are asked warm, once every
question's kind has been asked before, and what either takes to start is left out.

With --standalone a cluster of one master and two workers of a core each is started on this machine, each executor with
LAPWING_SPARK_MEMORY (1500m), and Spark is asked there alone. The greatest resident memory of an executor is that of the
whole process, of which the setting bounds the heap.

    python benchmarks/spark.py [--standalone] [ROWS …]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.environments import ask

import lapwing as lw
from lapwing.engines.spark.cluster import LOCAL, Cluster

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' cluster
from tests.support.engines.standalone import standalone

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
    """Return the processor time of this process and of the JVMs that it started."""
    ticks, own = os.sysconf("SC_CLK_TCK"), os.times()
    total = own.user + own.system
    for process in started_by(os.getpid()):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def started_by(process: int) -> Iterator[int]:
    """Yield the processes that a process started, and those that they did."""
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            yield child
            yield from started_by(child)


def memory_of_executors() -> list[str]:
    """Return the greatest resident memory that executors of a cluster have had, in MB."""
    found = []
    for process in started_by(os.getpid()):
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
            (line,) = [one for one in Path(f"/proc/{process}/status").read_text().splitlines() if "VmHWM" in one]
            found.append(f"{int(line.split()[1]) / 1024:,.0f} MB")
    return found


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Return how long an action takes by the clock, and of the processors."""
    clock, worked = time.perf_counter(), processor_seconds()
    action()
    return time.perf_counter() - clock, processor_seconds() - worked


def measure(folder: Path, engine: str, master: str = LOCAL) -> Iterator[tuple[float, float]]:
    """Yield what it takes to open and accept, to answer the first question, the second, and later ones."""
    cluster = f'cluster = "{master}"' if engine == "spark" else ""
    (folder / f"{engine}.toml").write_text(TEXT.format(engine=engine, cluster=cluster, keys=KEYS))
    sessions: list[lw.Session] = []
    yield timed(lambda: sessions.append(lw.connect(folder / f"{engine}.toml")))
    with sessions[0] as session:
        asked = (timed(partial(session.sql, QUESTION.format(least), epsilon=1)) for least in range(6))
        yield next(asked)
        yield next(asked)
        yield sorted(asked)[1]


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


PHASES = ("accepting", "cold", "second", "warm")


def beside_duckdb(folder: Path, rows: int) -> None:
    """Print a line for each phase, of both engines, and the ratio; and of some rows Tumult's."""
    spark, duckdb = (list(measure(folder, engine)) for engine in ("spark", "duckdb"))
    if rows == BESIDE_TUMULT:
        beside_tumult(folder)
    print(f"{rows:,} rows")
    for name, (ours, work), (theirs, their_work) in zip(PHASES, spark, duckdb, strict=True):
        both = f"Spark {ours:7.2f} s ({work:6.1f} of the processors)   DuckDB {theirs:6.2f} s ({their_work:5.1f})"
        print(f"  {name:10} {both}   {ours / theirs:5.1f} times as long")


def on_workers(folder: Path, rows: int, master: str) -> None:
    """Print a line for each phase, and what executors took."""
    print(f"{rows:,} rows on two workers")
    for name, (clock, work) in zip(PHASES, measure(folder, "spark", master), strict=True):
        print(f"  {name:10} {clock:7.2f} s ({work:6.1f} of the processors)", flush=True)


@contextmanager
def started(master: str, further: dict[str, str]) -> Iterator[None]:
    """Hold the application that all sessions share, so that its start is measured apart."""
    cluster = Cluster(master, seconds=3600, further=further)
    clock, worked = timed(cluster.open)
    print(f"Spark's start with {MEMORY}: {clock:.1f} s, {worked:.1f} processor seconds", flush=True)
    try:
        yield
    finally:
        cluster.close()


STARTS = {
    "Lapwing": "from lapwing.engines.spark.cluster import LOCAL, Cluster\n"
    "cluster = Cluster(LOCAL, seconds=3600, further={{'spark.driver.memory': '{memory}'}})\n"
    "cluster.open()\nprint(time.perf_counter() - begun)\ncluster.close()",
    "plain": "from pyspark.sql import SparkSession\n"
    "spark = SparkSession.builder.master('local[*]').config('spark.driver.memory', '{memory}').getOrCreate()\n"
    "print(time.perf_counter() - begun)\nspark.stop()",
}


def starts() -> None:
    """Print how long a process takes from its first line to a session of Spark: here, plain, and the ratio."""
    taken: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(3):
        for name, text in STARTS.items():
            program = "import time\nbegun = time.perf_counter()\n" + text.format(memory=MEMORY)
            run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            taken[name].append(float(run.stdout.split()[-1]))
    ours, plain = (statistics.median(taken[name]) for name in STARTS)
    print(
        f"start of a process: Lapwing {ours:.2f} s, plain SparkSession {plain:.2f} s, {ours / plain:.2f} times",
        flush=True,
    )


def main() -> None:
    """Print a line for every size and engine, and the ratios."""
    words = [word for word in sys.argv[1:] if word != "--standalone"]
    sizes = [int(word) for word in words] or ROWS
    if len(words) == len(sys.argv[1:]):
        starts()
        with started(LOCAL, {"spark.driver.memory": MEMORY}):
            for rows in sizes:
                with tempfile.TemporaryDirectory() as folder:
                    make(Path(folder) / "visits", rows)
                    beside_duckdb(Path(folder), rows)
        return
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder, standalone(Path(folder), memory="2g") as cluster:
            make(Path(folder) / "visits", rows)
            ours = {"spark.driver.memory": "1g", "spark.executor.memory": MEMORY, "spark.executor.cores": "1"}
            with started(cluster.master, ours | {"spark.driver.host": "127.0.0.1"}):
                on_workers(Path(folder), rows, cluster.master)
                print(f"  resident   {', '.join(memory_of_executors())}")


if __name__ == "__main__":
    main()
