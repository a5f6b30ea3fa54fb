"""How long a release of many cells takes, and how much memory, next to its largest table by itself.

    python benchmarks/releases.py [CELLS]

The people are made up: municipalities in districts in regions, age, sex and month. The release has eight tables of
counts by levels of places. The largest has CELLS cells (a million unless given). Each way runs in its own process on
the same rows. The floor is the exact count of the largest table by DuckDB, without privacy. Next to it stands that
table as one query, and the release without adjusted numbers and with them. Times are of the processor and of the clock.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _runs import keep, machine

import lapwing as lw
from lapwing.tabulation import TableRelease, run_release

PEOPLE, AGES, MONTHS, INSIDE = 2_000_000, 50, 10, 10
LARGEST: Final = "SELECT municipality, age, sex, month, COUNT(*) AS people FROM people GROUP BY ALL"
WAYS: Final = ("exact counts", "largest table", "release", "release, adjusted")


def build(folder: Path, cells: int) -> None:
    """Write people, places, a catalog and a release file."""
    municipalities = round(cells / (AGES * 2 * MONTHS))
    generator = np.random.default_rng(58)
    shares = 1 / np.arange(1, municipalities + 1)
    columns: dict[str, np.ndarray] = {
        "municipality": generator.choice(municipalities, PEOPLE, p=shares / shares.sum()),
        "age": generator.integers(0, AGES, PEOPLE),
        "sex": generator.integers(0, 2, PEOPLE),
        "month": generator.integers(0, MONTHS, PEOPLE),
    }
    pq.write_table(pa.table(columns), folder / "people.parquet")
    numbers = np.arange(municipalities)
    places = {"region": numbers // INSIDE**2, "district": numbers // INSIDE, "municipality": numbers}
    pq.write_table(pa.table(places), folder / "places.parquet")
    sizes = {"municipality": municipalities, "age": AGES, "sex": 2, "month": MONTHS}
    listed = "\n".join(
        f'{name} = {{ type = "integer", nullable = false, values = {list(range(size))} }}'
        for name, size in sizes.items()
    )
    (folder / "catalog.toml").write_text(f"""
[dataset]
name = "people"
ledger = "sqlite:people.db"
[budget]
epsilon = 5
delta = 1e-9
[tables.people]
source = "people.parquet"
privacy_unit = "row"
[tables.people.columns]
{listed}
[tables.places]
source = "places.parquet"
public = true
[tables.places.columns]
region = {{ type = "integer" }}
district = {{ type = "integer" }}
municipality = {{ type = "integer" }}
""")
    (folder / "release.toml").write_text("""
title = "People"
epsilon = 1
adjusted = ADJUSTED
[hierarchies.place]
table = "places"
levels = ["region", "district", "municipality"]
[tables.people]
select = "COUNT(*) AS people"
from = "people"
by = [[], ["region"], ["district"], ["municipality"], ["age", "sex"], ["region", "age", "sex"],
    ["district", "age", "month"], ["municipality", "age", "sex", "month"]]
""")


def exact(folder: Path) -> int:
    """Count the largest table without privacy."""
    source = folder / "people.parquet"
    return len(duckdb.connect().sql(LARGEST.replace("FROM people", f"FROM '{source}'")).to_arrow_table())


def largest(folder: Path) -> int:
    """Ask for the largest table by itself, with intervals."""
    with lw.connect(folder / "catalog.toml") as session:
        return int(session.sql(LARGEST, epsilon=1).to_arrow(0.95).num_rows)


def release(folder: Path, adjusted: str) -> int:
    """Run the release, and write its files."""
    text = (folder / "release.toml").read_text().replace("ADJUSTED", adjusted)
    with lw.connect(folder / "catalog.toml") as session:
        released = run_release(session, TableRelease.from_text(text))
        released.write(folder / "published")
    return sum(len(table.answer) for table in released.tables)


RUN: Final[dict[str, Callable[[Path], int]]] = {
    "exact counts": exact,
    "largest table": largest,
    "release": lambda folder: release(folder, "false"),
    "release, adjusted": lambda folder: release(folder, "true"),
}


def measured(way: str, cells: int) -> dict[str, float]:
    """Run one way in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), cells)
        told = subprocess.run(
            [sys.executable, __file__, "--way", way, folder], check=True, capture_output=True, text=True
        ).stdout
    return dict(json.loads(told.splitlines()[-1]))


def main() -> None:
    if sys.argv[1:2] == ["--way"]:
        start = time.perf_counter()
        rows = RUN[sys.argv[2]](Path(sys.argv[3]))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = usage.ru_utime + usage.ru_stime
        facts = {"rows": rows, "processor": used, "clock": time.perf_counter() - start, "mib": usage.ru_maxrss / 1024}
        print(json.dumps(facts))
        return
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(machine())
    print(f"{'':18} {'rows':>10} {'processor s':>12} {'clock s':>8} {'GiB':>5}")
    found: dict[str, dict[str, float]] = {}
    for way in WAYS:
        one = found[way] = measured(way, cells)
        print(f"{way:18} {one['rows']:10,.0f} {one['processor']:12.1f} {one['clock']:8.1f} {one['mib'] / 1024:5.1f}")
    floor = found["largest table"]["processor"]
    keep("releases", {f"{way} / largest table": found[way]["processor"] / floor for way in WAYS[2:]})


if __name__ == "__main__":
    main()
