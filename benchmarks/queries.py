"""Bounded counts, people, sums and means by 50 public keys: 10 M rows, 1 M people, at most 10 rows each, in 1 GB.

Each private question is asked through a session: bound, charge, run, noise, answer. Cold, every question bounds the
rows anew; warm, they stand in an index beside the data. In turn and in the same process, plain DuckDB answers the same
question over the same Parquet file without any privacy; OpenDP, before it and in an environment of its own
(`peers/environments.py`), the same with rows truncated per person. What is printed is the median of several and its
ratio to a peer's; the machine is noisy, ratios matter. Of more rows a tenth is measured first, without an index, which
shows how time grows.

    python benchmarks/queries.py
    python benchmarks/queries.py 100000000 --memory 4 --repeats 1 --without-opendp
"""

import argparse
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
from peers import environments

import lapwing as lw
from lapwing.engines.duckdb import engine as engine

REPEATS = 5
TENTH_FROM = 20_000_000
"""Rows from which on a tenth of them is measured too."""
AT_ONCE = 10_000_000
"""Rows that are made at a time, so that what making them takes is not taken for what questions do."""
OPENDP_REPEATS = 2
KEYS = [f"r{number:02d}" for number in range(50)]
ASKED = {
    "count": "COUNT(*) AS n",
    "people": "COUNT(DISTINCT person) AS n",
    "count, sum and mean": "COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m",
    "count, sum and people": "COUNT(*) AS n, SUM(cost) AS s, COUNT(DISTINCT person) AS p",
}
OPENDP = ("count", "count, sum and mean")


def make(path: Path, rows: int) -> None:
    """Write rows in random order: about ten a person, a region of fifty, a cost that is partly out of bounds."""
    generator = np.random.default_rng(20260101)
    schema = pa.schema({"person": pa.int64(), "region": pa.string(), "cost": pa.float64()})
    with pq.ParquetWriter(path, schema) as file:
        for size in [*[AT_ONCE] * (rows // AT_ONCE), *([rows % AT_ONCE] if rows % AT_ONCE else [])]:
            columns = {
                "person": generator.integers(0, max(rows // 10, 1), size),
                "region": pa.array(np.array(KEYS)[generator.integers(0, len(KEYS), size)]),
                "cost": generator.random(size) * 6000,
            }
            file.write_table(pa.table(columns, schema=schema))


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
    session: lw.Session, plain: duckdb.DuckDBPyConnection, path: Path, aggregates: str, tag: int, repeats: int = REPEATS
) -> list[tuple[float, float]]:
    """Return the medians of the private question, of the plain one, and of plain distinct people, asked in turn."""
    times: list[list[tuple[float, float]]] = [[], [], []]
    for repeat in range(repeats):
        rows = f"WHERE cost >= {-tag - repeat} GROUP BY region"
        times[0].append(timed(partial(ask, session, f"SELECT region, {aggregates} FROM {path.stem} {rows}")))
        times[1].append(timed(partial(fetch, plain, f"SELECT region, {aggregates} FROM '{path}' {rows}")))
        people = f"SELECT region, {ASKED['people']} FROM '{path}' {rows}"
        alike = aggregates == ASKED["people"]
        times[2].append(times[1][-1] if alike else timed(partial(fetch, plain, people)))
    return [
        (statistics.median(clock), statistics.median(used)) for clock, used in (zip(*t, strict=True) for t in times)
    ]


def line_of(name: str, times: list[tuple[float, float]]) -> str:
    """Return a line: the private question, the plain one, and the ratios of processor time."""
    ours, plain, people = times
    shown = "".join(f"{clock:9.3f}s{used:9.3f}s" for clock, used in (ours, plain))
    return f"  {name:22}{shown}{ours[1] / plain[1]:7.2f}x{ours[1] / people[1]:9.2f}x"


def main() -> None:
    said = argparse.ArgumentParser()
    said.add_argument("rows", nargs="?", type=int, default=10_000_000)
    said.add_argument("--memory", type=float, default=engine.MEMORY / 1e9, help="of the engine, in GB")
    said.add_argument("--repeats", type=int, default=REPEATS)
    said.add_argument("--questions", nargs="+", default=[*ASKED], choices=[*ASKED])
    said.add_argument("--without-opendp", action="store_true")
    options = said.parse_args()
    memory = int(options.memory * 1e9)
    limited = patch.dict(engine.DuckDB.__init__.__kwdefaults__, memory=memory)
    with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as folder, limited:
        tenth: dict[str, float] = {}
        if options.rows >= TENTH_FROM:
            tenth = compare(Path(folder) / "tenth.parquet", options.rows // 10, options, memory, {}, warm=False)
        kept: dict[str, float] = {}
        compare(Path(folder) / "visits.parquet", options.rows, options, memory, tenth, warm=True, kept=kept)
        keep("queries", kept)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\npeak memory of the process {peak:.2f} GB: the engine may have {memory / 1e9:g}; the rest are its peers")


def compare(
    path: Path,
    rows: int,
    options: argparse.Namespace,
    memory: int,
    tenth: dict[str, float],
    *,
    warm: bool,
    kept: dict[str, float] | None = None,
) -> dict[str, float]:
    """Print a line for each question, cold and warm; return the seconds of processors of each, cold.

    Args: tenth: those of a tenth of the rows, if it was measured. warm: whether an index is measured, too. kept: gets
        the ratio of each question to plain DuckDB.
    """
    make(path, rows)
    print(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB of Parquet; medians of {options.repeats}, in turn\n")
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
    peers = {} if options.without_opendp else {name: opendp(path, rows, name) for name in options.questions}
    head = (
        f"{'by 50 regions':24}{'private':>10}{'used':>10}{'plain':>10}{'used':>10}{'ratio':>8}{'to people':>10}  OpenDP"
    )
    print(head, flush=True)
    cold: dict[str, float] = {}
    for indexed in (False, True) if warm else (False,):
        if indexed:
            builder = engine.DuckDB(session.catalog)
            took, used = timed(partial(builder.build_index, session.catalog.tables[0]))
            builder.close()
            size = path.with_name(f"{path.stem}.lapwing.index").stat().st_size
            print(f"index: written in {took:.2f}s, {used:.2f}s used, with one reading through; {size / 1e6:.0f} MB")
        print("warm" if indexed else "cold", flush=True)
        for name in options.questions:
            with patch.object(engine, "INDEXED_FROM", sys.maxsize):  # no question makes an index here
                times = measured(session, plain, path, ASKED[name], 1 + 100 * indexed, options.repeats)
            line, peer = line_of(name, times), peers.get(name)
            if kept is not None:
                kept[f"{name}, {'warm' if indexed else 'cold'} / plain DuckDB"] = times[0][1] / times[1][1]
            if not indexed:
                cold[name] = times[0][1]
                line += "" if peer is None else f"{peer:8.2f}s"
                line += f"{cold[name] / tenth[name]:8.2f} times a tenth" if name in tenth else ""
            print(line, flush=True)
    plain.close()
    session.close()
    return cold


if __name__ == "__main__":
    main()
