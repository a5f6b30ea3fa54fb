"""How quick Lapwing is to start, and what a small question costs beside its statement: processor time on one core.

Three figures, each beside a peer that is measured in turn with it, in one run; the machine is noisy, ratios matter.

- `lapwing query` on a small table, as a whole process, beside a process that only imports the libraries that it needs:
  whatever is not Lapwing's own among the modules that the command was seen to import;
- `lapwing --help`, beside a process that does nothing;
- `session.sql` of a small question that was not asked before, beside DuckDB's own run of the SQL that it led to. The
  sync of the ledger to the disk takes no processor, and is left out with all other waiting.

With `--charges N`, instead: `lapwing query`, `budget` and `explain` on a ledger of N charges with their answers, beside
one of a single charge.

    python benchmarks/start.py [REPEATS] [--charges N]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from _runs import keep

import lapwing as lw
from lapwing.engines.duckdb.engine import DuckDB
from lapwing.ledger.entries import Charge
from lapwing.privacy.measures import GaussianDP

REPEATS = 11
QUESTIONS = 100
WARM_UP = 50
"""Questions before those that are timed: by then the small table has its index (`engines.duckdb`)."""
TOGETHER = 200
"""Charges that are written at once."""
COMMAND = "from lapwing.cli import run; run()"


def write(folder: Path) -> Path:
    path = folder / "visits.parquet"
    rows = 200
    table = {
        "person": [row % 60 for row in range(rows)],
        "plan": ["ab"[row % 2] for row in range(rows)],
        "cost": [float(row) for row in range(rows)],
    }
    pq.write_table(pa.table(table), path)
    return path


def opened(path: Path, epsilon: int = 1000) -> lw.Session:
    return lw.protect(
        path,
        privacy_unit="person",
        epsilon=epsilon,
        delta=1e-6,
        max_rows_per_unit=5,
        bounds={"cost": (0, 200)},
        domains={"plan": ["a", "b"]},
    )


def question(number: int) -> str:
    return f"SELECT plan, COUNT(*) AS n FROM visits WHERE cost > {number}.5 GROUP BY plan"


def libraries_of(*arguments: str) -> str:
    """Return a program that imports what a command imports, but for Lapwing itself."""
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", COMMAND, *arguments], capture_output=True, text=True, check=True
    )
    imported = [line.rpartition("|")[2].strip() for line in seen.stderr.splitlines() if line.startswith("import time:")]
    wanted = [name for name in imported if name != "imported package" and name.partition(".")[0] != "lapwing"]
    return f"""
from contextlib import suppress
for name in {wanted}:
    with suppress(ImportError):
        __import__(name)
"""


def of_process(*arguments: str) -> float:
    """Return the processor time of a Python process, in seconds."""
    sink = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    child = os.posix_spawn(sys.executable, [sys.executable, *arguments], os.environ, file_actions=sink)
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(arguments)} failed; run it to see why")
    return usage.ru_utime + usage.ru_stime


def of_call(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def asking(catalog: Path, number: int) -> tuple[str, ...]:
    return ("query", question(number), "--epsilon", "0.01", "--catalog", str(catalog))


def processes(catalog: Path, repeats: int) -> dict[str, float]:
    """Print what commands take as whole processes, and return it as ratios."""
    times: dict[str, list[float]] = {name: [] for name in ("query", "libraries", "help", "nothing")}
    libraries = libraries_of(*asking(catalog, 999))
    for number in range(repeats):
        times["query"].append(of_process("-c", COMMAND, *asking(catalog, 1000 + number)))
        times["libraries"].append(of_process("-c", libraries))
        times["help"].append(of_process("-c", COMMAND, "--help"))
        times["nothing"].append(of_process("-c", "pass"))
    query, alone, shown, nothing = (statistics.median(times[name]) for name in times)
    print(f"lapwing query   {query:6.3f} s   its libraries alone {alone:6.3f} s   ratio {query / alone:5.2f}")
    print(f"lapwing --help  {shown:6.3f} s   an empty process    {nothing:6.3f} s")
    return {"lapwing query / its libraries alone": query / alone, "lapwing --help / an empty process": shown / nothing}


def small_questions(session: lw.Session) -> dict[str, float]:
    """Print what a small question takes beside its statement, and return it as a ratio."""
    statements: list[tuple[duckdb.DuckDBPyConnection, str]] = []
    fetch = DuckDB.fetch

    def noted(engine: DuckDB, query: str) -> object:
        statements.append((engine._database.connection, query))  # the same database, asked without anything around it
        return fetch(engine, query)

    asked, alone = [], []
    with patch.object(DuckDB, "fetch", noted):
        for number in range(WARM_UP + QUESTIONS):
            del statements[:]
            asked.append(of_call(lambda number=number: session.sql(question(number), epsilon=0.01)))  # type: ignore[misc]
            alone.append(of_call(lambda: [plain.execute(text).fetchall() for plain, text in statements]))
    whole, engine = (1000 * statistics.median(times[WARM_UP:]) for times in (asked, alone))
    print(f"session.sql     {whole:6.2f} ms  its statement alone {engine:6.2f} ms  beyond {whole - engine:5.2f} ms")
    return {"session.sql / its statement alone": whole / engine}


def charged(session: lw.Session, count: int) -> None:
    """Write charges and their answers to a session's ledger, some at a time."""
    ledger = session._ledger
    for first in range(0, count, TOGETHER):
        requests = [
            Charge(
                key=f"{number}",
                question=question(number),
                loss=GaussianDP(0.0123),
                catalog_digest="c" * 64,
                principal="analyst",
                version=1,
            )
            for number in range(first, min(count, first + TOGETHER))
        ]
        came = ledger.charge_all(requests)
        if not isinstance(came, tuple):
            raise SystemExit("the budget of the benchmark is too small")
        for charge in came:
            ledger.record_answer(charge.sequence, "x" * 400)


def long_ledgers(charges: int, repeats: int) -> None:
    """Print what commands take on a ledger of many charges, beside one of a single charge."""
    with tempfile.TemporaryDirectory() as long, tempfile.TemporaryDirectory() as short:
        catalogs = []
        for name, count in ((long, charges), (short, 1)):
            path = write(Path(name))
            with opened(path, epsilon=10**6) as session:
                session.sql(question(0), epsilon=0.01)
                charged(session, count)
            catalogs.append(str(path.with_suffix(".lapwing.toml")))
        for number, command in enumerate(("query", "budget", "explain")):
            times: list[list[float]] = [[], []]
            for turn in range(repeats):
                sql = () if command == "budget" else (question(1000 * number + turn + 1), "--epsilon", "0.01")
                for catalog, taken in zip(catalogs, times, strict=True):
                    taken.append(of_process("-c", COMMAND, command, *sql, "--catalog", catalog))
            many, one = map(statistics.median, times)
            took = f"{charges:>9,} charges {many:6.3f} s   1 charge {one:6.3f} s"
            print(f"lapwing {command:8}{took}   ratio {many / one:5.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how quick Lapwing is to start.")
    parser.add_argument("repeats", type=int, nargs="?", default=REPEATS)
    parser.add_argument("--charges", type=int, help="of a long ledger")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before DuckDB counts the cores
    repeats = arguments.repeats
    if arguments.charges is not None:
        long_ledgers(arguments.charges, repeats)
        return
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name))
        with opened(path) as session:
            ratios = small_questions(session)
        keep("start", ratios | processes(path.with_suffix(".lapwing.toml"), repeats))


if __name__ == "__main__":
    main()
