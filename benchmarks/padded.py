"""What answers at deadlines cost: plain counts a second of a service that holds answers back, beside one that does not.

Sixty-four connections of sixteen analysts, who are not trusted with time, ask `COUNT(*)` with a condition on a number,
each time with another constant, so that each is charged and answered anew. Both services have an index of the table. A
service measures its speed when it starts, and again when nothing is under way: so it is left alone for a minute first,
as it goes by the least that it has found. What it reserves for all that a question takes beside its rows is printed.

Late answers double what a service reserves for ten minutes (`admission.doublings`). So those of the warm-up are
printed, and nothing is measured before no doubling holds any more, or `--settle` seconds are over. Each line says which
events there were while it was measured, and what doubling held.

The catalog says that the column has no NULL, as it has none. With `--nullable` it does not say so: then the service
reserves for a column of which half is NULL.

    python benchmarks/padded.py [--rows N …] [--seconds X] [--rounds N] [--nullable] [--settle X]
"""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
from _runs import keep
from serving import Load, Setup, analysts, drive, listening, processors_of, request_bytes

from lapwing.server.deadline.admission import RECENT, doublings

CONNECTIONS: Final = 64
EACH: Final = 10
"""Rows of a unit."""
MEASURED_AGAIN: Final = 60.0
"""Seconds until the speed has been measured three times."""


def made(folder: Path, rows: int, *, nullable: bool = True) -> Path:
    """Write rows, their catalog and their index; return the catalog's path."""
    path, catalog, setup = folder / "visits.parquet", folder / "visits.lapwing.toml", Setup()
    with duckdb.connect() as connection:
        chosen = f"SELECT i // {EACH} AS person, hash(i) % 100000 AS cost FROM range({rows}) rows(i) ORDER BY hash(i)"
        connection.execute(f"COPY ({chosen}) TO '{path}'")
    bounded = ("--max-rows", EACH, "--bounds", "cost=0:100000", "--rows-at-most", rows)
    run = partial(subprocess.run, check=True, cwd=folder, env=setup.environment, capture_output=True)
    budget = ("--privacy-unit", "person", "--epsilon", 10**6, "--delta", "1e-6")
    run(setup.command("init", path, *budget, *bounded, "--output", catalog))
    if not nullable:
        sure = catalog.read_text().replace("upper = 100000 }", "upper = 100000, nullable = false }")
        catalog.write_text(sure)
    run(setup.command("index", "build", "--catalog", catalog))
    return catalog


@contextmanager
def service(folder: Path, catalog: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Run the service without anything that an earlier one kept; give its process and port."""
    setup = Setup()
    for old in folder.glob("*.db*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    with (folder / "log").open("w+b") as log:
        command = setup.command("serve", catalog, "--port", "0", "--rate", "0", "--parallel", "0", *options)
        process = subprocess.Popen(command, cwd=folder, env=setup.environment, stderr=log)
        try:
            yield process.pid, listening(process, folder / "log")
        finally:
            process.terminate()
            process.wait()


def asked(number: int) -> dict[str, object]:
    """Return a question that is like no other."""
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE cost >= {number}", "epsilon": 0.5}


def logged(folder: Path, event: str) -> list[dict[str, Any]]:
    """Return what the service has logged of a kind so far."""
    lines = (json.loads(line) for line in (folder / "log").read_text().splitlines() if line.endswith("}"))
    return [line for line in lines if line["event"] == event]


def late(folder: Path) -> list[str]:
    """Return when answers were late."""
    return [line["tick"] for line in logged(folder, "answers late")]


def settled(folder: Path, most: float) -> str:
    """Wait until no doubling holds, for so many seconds at most; say which events there were and how long it took."""
    begun = time.monotonic()
    while doublings(late(folder), datetime.now(UTC)) and time.monotonic() - begun < most:
        time.sleep(1)
    events = len(late(folder))
    return f"{events} late in the warm-up" + (f", waited {time.monotonic() - begun:.0f} s" if events > 1 else "")


def measure(folder: Path, catalog: Path, seconds: float, settle: float, *options: str) -> tuple[Load, str]:
    """Return what came of the questions, with what processors took, what was reserved, and which events there were."""
    with service(folder, catalog, *options) as (process, port):
        tokens = analysts(port, trusted=False)

        def requests(first: int, count: int) -> list[bytes]:
            path, of = "/v1/datasets/visits/query", len(tokens)
            return [request_bytes("POST", path, tokens[n % of], asked(first + n)) for n in range(count)]

        drive(port, requests(1, 100), 10.0)
        time.sleep(0.0 if options else MEASURED_AGAIN)
        warmed = settled(folder, settle)
        before, known, held = processors_of(process), len(late(folder)), doublings(late(folder), datetime.now(UTC))
        load = drive(port, requests(1000, int(400 * seconds)), seconds, clients=CONNECTIONS)
        worked = (processors_of(process) - before) * 1000 / max(load.well, 1)
        text = f"{worked:6.1f} ms of processors each, p50 {load.waited_at_most(0.5):5.0f} ms"
        if options:
            return load, f"{text}, answered at once"
        reserved, now = logged(folder, "speed")[-1]["question"], late(folder)
        most = max(held, doublings(now, datetime.now(UTC)))
        doubled = f"doubled {most} times" if most else "no doubling held"
        text += f", {1000 * reserved:.1f} ms reserved beside the rows"
        return load, f"{text}, {warmed}, {len(now) - known} while measured: {doubled}"


def main() -> None:
    """Print a line for each number of rows and way of serving, and their ratio."""
    parser = argparse.ArgumentParser(description="Measure what deadlines cost.")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 200_000, 1_000_000])
    parser.add_argument("--seconds", type=float, default=15.0, help="for each way of serving")
    parser.add_argument("--rounds", type=int, default=1, help="how often both are measured in turn")
    parser.add_argument("--nullable", action="store_true", help="the catalog allows NULLs in the column")
    parser.add_argument(
        "--settle", type=float, default=RECENT + 10, help="seconds to wait at most until no doubling holds"
    )
    arguments = parser.parse_args()
    kept: dict[str, float] = {}
    for rows in arguments.rows:
        ratios = []
        with tempfile.TemporaryDirectory(prefix="lapwing-bench-") as name:
            catalog = made(Path(name), rows, nullable=arguments.nullable)
            for _ in range(arguments.rounds):
                rates = []
                for options in ((), ("--no-padding",)):
                    load, text = measure(Path(name), catalog, arguments.seconds, arguments.settle, *options)
                    rates.append(load.rate)
                    print(f"{rows:>11,} rows {load.rate:7.1f} a second, {load.ill} failed, {text}", flush=True)
                ratios.append(rates[0] / rates[1])
        kept[f"{rows:,} rows, with deadlines / without"] = statistics.median(ratios)
        print(f"{rows:>11,} rows: {statistics.median(ratios):.2f} times as many with deadlines", flush=True)
    keep("padded", kept)


if __name__ == "__main__":
    main()
