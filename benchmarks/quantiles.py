"""Quartiles by 50 public keys: 10 M rows, 1 M people, at most 10 rows each, 1 GB of memory.

Each private question is asked through a session: bound, charge, run, noise, answer. Cold, the rows are bounded anew;
warm, they stand in an index beside the data. In turn and in the same process, plain DuckDB computes exact quantiles
over the same Parquet file without any privacy. What is printed is the median of several, and its ratio to DuckDB's.

    python benchmarks/quantiles.py [ROWS]
"""

import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from unittest.mock import patch

import duckdb
from _runs import keep
from queries import KEYS, ask, fetch, make, seconds

import lapwing as lw
from lapwing.engines.duckdb import engine as engine

REPEATS = 5
QUARTILES = "QUANTILE_CONT(cost, 0.25) AS q1, MEDIAN(cost) AS q2, QUANTILE_CONT(cost, 0.75) AS q3"


def protected(path: Path) -> lw.Session:
    return lw.protect(
        path,
        privacy_unit="person",
        epsilon=100,
        delta=1e-6,
        max_rows_per_unit=10,
        bounds={"cost": (0, 5000)},
        domains={"region": KEYS},
    )


def main() -> None:
    """Print one line for every way of asking."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    asked = f"SELECT region, {QUARTILES} FROM visits WHERE cost >= {{}} GROUP BY region"
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as folder:
        path = Path(folder) / "visits.parquet"
        make(path, rows)
        plain = duckdb.connect(config={"threads": 2, "memory_limit": "1GB"})
        kept: dict[str, float] = {}
        with protected(path) as session:
            for number, way in enumerate(("cold", "warm")):
                if way == "warm":
                    builder = engine.DuckDB(session.catalog)
                    builder.build_index(session.catalog.tables[0])
                    builder.close()
                times: list[list[float]] = [[], []]
                with patch.object(engine, "INDEXED_FROM", sys.maxsize):  # no question makes an index here
                    for repeat in range(REPEATS):
                        question = asked.format(-1 - repeat - number * REPEATS)
                        times[0].append(seconds(partial(ask, session, question)))
                        times[1].append(seconds(partial(fetch, plain, question.replace("visits", f"'{path}'"))))
                private, exact = map(statistics.median, times)
                kept[f"{way} / DuckDB, exact"] = private / exact
                print(f"{way}: {private:.2f} s; DuckDB, exact: {exact:.2f} s; {private / exact:.2f} times as long")
        keep("quantiles", kept)


if __name__ == "__main__":
    main()
