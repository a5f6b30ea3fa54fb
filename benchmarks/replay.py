"""How long it takes to find again what a request with an `Idempotency-Key` came to, beside many other answers.

In a store of `--answers` answers, each with its key, the key is looked up and its answer read, as for a request that is
sent a second time: `AnswerStore.begin` and `bought_with`. Beside it, the statement of earlier versions, which looks at
every row. With `--postgres`, in a database of that address, which should be empty.

    python benchmarks/replay.py [--quick] [--answers N] [--postgres ADDRESS]
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from lapwing.server.answer_store import AnswerStore
from lapwing.server.people import People
from lapwing.server.store import ServiceStore, now
from lapwing.server.store_places import open_store

ARROW: Final = bytes(1500)
DOCUMENT: Final = '{"rows": "' + "x" * 1500 + '"}'
BEFORE: Final = "SELECT id FROM answers WHERE id = ? OR id LIKE ?"
SEEN: Final = 500


def fill(store: ServiceStore, number: int) -> None:
    """Keep so many answers, each of a request with a key."""
    People(store).add("alice", "curator", None, by="alice")
    created = now()
    for start in range(0, number, 5_000):
        with store.transaction() as connection:
            for place in range(start, min(start + 5_000, number)):
                row = (name(place), "alice", "open", created, "{}", DOCUMENT, ARROW)
                connection.execute(
                    "INSERT INTO answers (id, person, dataset, created, request, document, arrow)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
                connection.execute(
                    "INSERT INTO requests (person, key, digest, answer) VALUES ('alice', ?, '', ?)",
                    (f"key {place}", name(place)),
                )


def name(place: int) -> str:
    """Return the id of an answer; they lie in no order, as random ones."""
    return f"{place * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}"


def timed(work: Callable[[int], object], number: int, times: int) -> str:
    """Return the median, the 99th percentile and the longest of what takes milliseconds."""
    taken = []
    for turn in range(times):
        place = turn * 7_919 % number
        start = time.perf_counter()
        work(place)
        taken.append(1000 * (time.perf_counter() - start))
    return f"median {np.median(taken):7.3f} ms   p99 {np.percentile(taken, 99):7.3f} ms   most {max(taken):7.3f} ms"


def measure(place: str | Path, number: int) -> None:
    """Fill a store and print what it takes."""
    store = open_store(place)
    fill(store, number)
    answers = AnswerStore(store)

    def replay(turn: int) -> None:
        record = answers.begin("alice", f"key {turn}", "")
        if record is None or record.answer is None or len(answers.bought_with(record.answer)) != 1:
            raise RuntimeError

    def before(turn: int) -> None:
        with store.reading() as connection:
            connection.execute(BEFORE, (name(turn), f"{name(turn)}.%")).fetchall()

    print(f"{number:,} answers in {'a file' if store.is_local else 'PostgreSQL'}")
    print(f"  a key and its answer     {timed(replay, number, SEEN)}")
    print(f"  before, the answer alone {timed(before, number, 10)}")
    store.close()


def main() -> None:
    """Read the options, and measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--postgres")
    options = parser.parse_args()
    number = 500 if options.quick else options.answers
    with TemporaryDirectory() as folder:
        measure(options.postgres or Path(folder) / "people.db", number)


if __name__ == "__main__":
    main()
