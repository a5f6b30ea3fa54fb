"""Charges per second, each durable, beside a bare SQLite insert and commit with the same durability.

    python benchmarks/ledger.py

The floor is what the disk and SQLite allow: one row of the same size, one synced commit, no decision, no mark, no
chain. Prints the ledger's rates, the floor's, and their ratio, from 1 and 8 threads, and what opening a ledger costs.
"""

import itertools
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from _runs import keep

from lapwing.ledger.entries import Charge
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.registration import Registration
from lapwing.privacy.measures import GaussianDP

SECONDS = 2.0
UNDER_WAY = 32  # questions that are charged and not yet answered, at most
ROUNDS = 3  # alternating with the floor; the median counts
QUESTION = "SELECT plan, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY plan"
REGISTRATION = Registration(
    dataset="visits",
    privacy_unit="person_id",
    neighbouring="add_remove",
    budget=GaussianDP.from_mu_squared(10**6),
    epsilon=Fraction(10**6),
    delta=Fraction(1, 10**6),
    delta_keys=Fraction(0),
)


def rate(operation: Callable[[], None], threads: int) -> float:
    """Repeat the operation in several threads for a while, and return operations per second."""
    stop = time.perf_counter() + SECONDS / ROUNDS
    counts: list[int] = []

    def work() -> None:
        count = 0
        while time.perf_counter() < stop:
            operation()
            count += 1
        counts.append(count)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - start)


def floor(path: Path) -> tuple[Callable[[], None], sqlite3.Connection]:
    """Return a bare insert and commit, one at a time."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body TEXT)")
    lock = threading.Lock()

    def insert() -> None:
        with lock:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO entries (body) VALUES (?)", ("x" * 700,))
            connection.execute("COMMIT")

    return insert, connection


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        insert, connection = floor(Path(name) / "floor.db")
        path = Path(name) / "ledger.db"
        with closing(connection), closing(open_ledger(f"sqlite:{path.name}", path.parent, REGISTRATION)) as ledger:
            ledger.accept({"visits": "d" * 64}, "curator")

            waiting: list[int] = []
            numbers = itertools.count()

            def charge() -> None:
                request = Charge(
                    key=f"count {next(numbers)} {QUESTION}",  # each another, for an equal one would be waited for
                    question=QUESTION,
                    loss=GaussianDP(0.0123),
                    catalog_digest="c" * 64,
                    principal="analyst",
                    version=1,
                )
                outcome = ledger.charge_all([request])
                if not isinstance(outcome, tuple):
                    raise SystemExit("the budget of the benchmark is too small")
                waiting.append(outcome[0].sequence)
                if len(waiting) >= UNDER_WAY:  # a thread may find another's: each is ended once
                    ledger.record_unanswered([waiting.pop() for _ in range(UNDER_WAY // 2)], "interrupt")

            print(f"{'threads':>7} {'charges/s':>10} {'floor/s':>10} {'ratio':>6}")
            ratios = {}
            for threads in (1, 8):
                pairs = sorted((rate(charge, threads), rate(insert, threads)) for _ in range(ROUNDS))
                ours, bare = pairs[ROUNDS // 2]
                print(f"{threads:>7} {ours:>10.0f} {bare:>10.0f} {ours / bare:>6.2f}")
                ratios[f"charges a second, {threads} thread{'s' * (threads > 1)} / bare inserts"] = ours / bare
            keep("ledger", ratios)
            entries = ledger.state().sequence
        start = time.perf_counter()
        with closing(open_ledger(f"sqlite:{path.name}", path.parent, REGISTRATION)):
            seconds = time.perf_counter() - start
        print(f"opening a ledger of {entries} entries: {seconds:.2f} s, {1e6 * seconds / entries:.0f} µs an entry")


if __name__ == "__main__":
    main()
