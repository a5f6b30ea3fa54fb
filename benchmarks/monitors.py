"""What a monitor costs in time and in noise, beside a tree of the same guarantee and jax-privacy's buffers.

    python benchmarks/monitors.py [--short] [--alone]

- ingest: events a second that are read from one Parquet file, cleaned, and put by for their ticks: of the wall, and of
  processor time.
- replay: 1,000 cells × 10,000 ticks, 100 ticks a commit, with 10⁵ events; and of it, a tick.
- live: a commit for each tick, 1,000 cells; processor time and wall of one tick, without what is read.
- state: bytes of a mechanism's state for a cell.
- noise: the largest standard deviation over the horizon, for one event and μ = 1, and processor time of the search:
  five buffers at most, as many of jax-privacy's, and a binary tree with the same Gaussian noise.

With `--short` all but the noise is ten times smaller, to see that it runs; with `--alone` jax-privacy is left out.
"""

import math
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peers.environments import ask

from lapwing.mechanisms import Events
from lapwing.mechanisms.continual.fitting import fitted
from lapwing.monitors import Monitor, create_monitor
from lapwing.monitors.running import MonitorRun

START = datetime(2026, 1, 1)
SMALLER = 10 if "--short" in sys.argv else 1

BUFFERS = 5


def catalog(folder: Path, cells: int) -> Path:
    (folder / "events").mkdir(parents=True)
    names = ", ".join(f'"c{cell}"' for cell in range(cells))
    path = folder / "lapwing.toml"
    path.write_text(
        f"""[dataset]
name = "bench"
engine = "duckdb"
ledger = "sqlite:bench.db"
[budget]
epsilon = 10
delta = 1e-6
[tables.moves]
source = "events/*.parquet"
privacy_unit = "person"
max_rows_per_unit = 10
[tables.moves.columns]
at = {{ type = "timestamp" }}
cell = {{ type = "string", values = [{names}] }}
"""
    )
    return path


def events(path: Path, number: int, cells: int, seconds: int) -> None:
    random = np.random.default_rng(1)
    stamps = np.datetime64(START, "us") + np.sort(random.integers(0, seconds, number)).astype("timedelta64[s]")
    cell = pa.array([f"c{cell}" for cell in range(cells)]).take(pa.array(random.integers(0, cells, number)))
    table = pa.table({"person": random.integers(0, number // 5, number), "at": stamps, "cell": cell})
    pq.write_table(table, path.parent / "events" / "a.parquet")


def monitor(path: Path, ticks: int, *, present: bool = True) -> Monitor:
    question = "SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell"
    schedule = {"every": "1 minute", "horizon": f"{ticks} minutes", "starting": "2026-01-01"}
    return create_monitor(path, "bench", question, epsilon=1, time="at", present=present, **schedule)  # type: ignore[arg-type]


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    wall, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - used


def ingest(folder: Path) -> None:
    number, ticks = 2_000_000 // SMALLER, 1_440
    path = catalog(folder, 50)
    events(path, number, 50, ticks * 60)
    with monitor(path, ticks) as made:
        wall = used = 0.0
        honest = MonitorRun.ingest

        def measured(run: MonitorRun) -> None:
            nonlocal wall, used
            one, two = timed(lambda: honest(run))
            wall, used = wall + one, used + two

        MonitorRun.ingest = measured  # type: ignore[method-assign,assignment]
        next(made.run(replay=True))
        MonitorRun.ingest = honest  # type: ignore[method-assign]
    print(
        f"ingest    {number:,} events: {number / wall:,.0f} a second, {number / used:,.0f} a second of processor time"
    )


def replay(folder: Path) -> None:
    cells, ticks = 1_000, 10_000 // SMALLER
    path = catalog(folder, cells)
    events(path, 100_000 // SMALLER, cells, ticks * 60)
    with monitor(path, ticks) as made:
        wall, used = timed(lambda: [None for _ in made.run(replay=True, commit=100)])
        states = made._store.states().values()
        print(
            f"replay    {cells:,} cells × {ticks:,} ticks in {wall:.1f} s, {used:.1f} s of processor time: "
            f"{1000 * used / ticks:.2f} ms a tick"
        )
        print(f"state     {sum(map(len, states)) / cells:.0f} bytes a cell")


def live(folder: Path) -> None:
    cells, ticks = 1_000, 500 // SMALLER
    path = catalog(folder, cells)
    events(path, 50_000 // SMALLER, cells, ticks * 60)
    with monitor(path, ticks) as made:
        running = made.run(replay=True)
        next(running)
        wall, used = timed(lambda: [None for _ in running])
    each = f"{1000 * used / ticks:.2f} ms of processor time, {1000 * wall / ticks:.2f} ms in all"
    print(f"live      a tick and its commit: {each}")


def noise() -> None:
    exponents = (10, 16, 20)
    request = {"ticks": [1 << exponent for exponent in exponents[:1]], "buffers": BUFFERS}  # minutes each
    theirs = ask("jax-privacy", "jax_privacy_errors.py", request) if "--alone" not in sys.argv else None
    for place, exponent in enumerate(exponents):
        begun = time.process_time()
        ours = fitted(1 << exponent, None, Events(1), BUFFERS)
        spent = time.process_time() - begun
        tree = math.sqrt(
            (exponent + 1) * exponent
        )  # each event is in so many nodes, and a sum is one of as many less 1
        line = f"{ours.error(Events(1)):.4f} with {len(ours.thetas)} buffers found in {spent:.1f} s, tree {tree:.2f}"
        if theirs is not None and place < len(theirs):
            peer = theirs[place]
            line += f", jax-privacy {peer['error']:.4f} with {peer['buffers']} in {peer['seconds']:.1f} s"
        print(f"noise     2^{exponent} ticks: {line}")


def main() -> None:
    for name, measure in (("ingest", ingest), ("replay", replay), ("live", live)):
        with tempfile.TemporaryDirectory(prefix=name) as folder:
            measure(Path(folder) / "city")
    noise()


if __name__ == "__main__":
    main()
