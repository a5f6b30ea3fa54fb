"""Bounded count, sum and mean by 50 public keys: 10 M rows, 1 M people, at most 10 rows each, 1 GB of memory.

Each private question is asked cold (no index) through a session: bound, charge, run, noise, answer. Beside it, in
turn and in the same process, plain DuckDB answers the same question over the same Parquet file without any privacy.
What is printed is the median of several and its ratio to the plain query's; the machine is noisy, ratios matter.

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

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw

REPEATS = 5
KEYS = [f"r{number:02d}" for number in range(50)]
ASKED = {
    "count": "COUNT(*) AS n",
    "people": "COUNT(DISTINCT person) AS n",
    "sum": "SUM(cost) AS s",
    "mean": "AVG(cost) AS m",
    "count, sum and mean": "COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m",
}


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
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def ask(session: lw.Session, question: str) -> None:
    session.sql(question, epsilon=1).rows()


def fetch(plain: duckdb.DuckDBPyConnection, question: str) -> None:
    plain.execute(question).fetchall()


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as folder:
        path = Path(folder) / "visits.parquet"
        make(path, rows)
        print(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB of Parquet; medians of {REPEATS}, in turn\n")
        session = lw.protect(
            path,
            privacy_unit="person",
            epsilon=1000,
            delta=1e-6,
            max_rows_per_unit=10,
            bounds={"cost": (0, 5000)},
            domains={"region": KEYS},
        )
        plain = duckdb.connect(config={"threads": 2, "memory_limit": "1GB"})
        print(f"{'by 50 regions':24}{'private':>10}{'plain':>10}{'ratio':>8}{'filtered':>12}")
        for name, aggregates in ASKED.items():
            private_times, filtered_times, plain_times = [], [], []
            for repeat in range(REPEATS):
                question = f"SELECT region, {aggregates} FROM visits WHERE cost >= {{}} GROUP BY region"
                private_times.append(seconds(partial(ask, session, question.format(-repeat))))
                filtered_times.append(seconds(partial(ask, session, question.format(3000 + repeat))))
                ordinary_question = question.format(-repeat).replace("FROM visits", f"FROM '{path}'")
                plain_times.append(seconds(partial(fetch, plain, ordinary_question)))
            private, ordinary = statistics.median(private_times), statistics.median(plain_times)
            filtered = statistics.median(filtered_times)
            print(f"{name:24}{private:9.2f}s{ordinary:9.3f}s{private / ordinary:7.1f}x{filtered:11.2f}s")
        session.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"\npeak memory of the process {peak:.2f} GB, which holds the engine (limit 1 GB) and the generator of the data"
    )


if __name__ == "__main__":
    main()
