"""Looking at a ledger: what it costs after a thousand and after a hundred thousand charges, and what lookers cost.

    python benchmarks/looking.py

Two ledgers of one catalog differ in the number of their charges alone. A budget is what `GET …/budget` reads; a history
is a page of a thousand charges, the first or the last. Then somebody charges, alone and beside sixteen who look at the
budget ten times a second each: the median and the 99th percentile of a charge. Both in turn; medians of ROUNDS.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from _runs import keep

from lapwing.budget import budget_view
from lapwing.ledger.entries import Charge
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.registration import Registration
from lapwing.ledger.transitions import charging, fold
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import GaussianDP

FEW, MANY = 1_000, 100_000
ROUNDS = 5
LOOKERS, PAUSE = 16, 0.1
LOOKS, CHARGES = 200, 400
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


def request(number: int, version: int) -> Charge:
    """Return a charge as a session makes it."""
    return Charge(
        key=f"{QUESTION} {number}",
        question=QUESTION,
        loss=GaussianDP.from_mu_squared(Fraction(1, 1000)),
        catalog_digest="c" * 64,
        principal=f"analyst {number % 50}",
        version=version,
    )


def made(folder: Path, charges: int) -> Ledger:
    """Return a ledger with so many charges, written many at a time."""
    folder.mkdir()
    ledger = open_ledger("sqlite:visits.db", folder, REGISTRATION)
    ledger.accept({"visits": "a" * 64}, "curator")
    for start in range(0, charges, 5_000):
        with ledger._chain.transaction() as transaction:
            state, entries = transaction.state, []
            for number in range(start, min(start + 5_000, charges)):
                entry = charging(state, request(number, state.version), "2026-01-01T00:00:00.000000+00:00")
                assert not isinstance(entry, Refused)
                state = fold(state, entry)
                entries.append(entry)
            transaction.commit(*entries)
    return ledger


def milliseconds(operation: Callable[[], object], times: int) -> float:
    """Return the processor time of an operation, repeated."""
    start = time.process_time()
    for _ in range(times):
        operation()
    return 1000 * (time.process_time() - start) / times


def charge_times(ledger: Ledger, numbers: range) -> list[float]:
    """Return how long each of some charges took."""
    times = []
    for number in numbers:
        start = time.perf_counter()
        charged = ledger.charge_all([request(number, 1)])
        times.append(1000 * (time.perf_counter() - start))
        assert isinstance(charged, tuple)
        ledger.record_answer(charged[0].sequence, "{}")
    return times


def watched(ledger: Ledger, numbers: range) -> list[float]:
    """Return the same beside people who look."""
    ended = threading.Event()

    def look(first: float) -> None:
        ended.wait(first)  # they come one after another, as people do
        while not ended.wait(PAUSE):
            budget_view(ledger.seen(), ())

    lookers = [threading.Thread(target=look, args=(PAUSE * place / LOOKERS,)) for place in range(LOOKERS)]
    for looker in lookers:
        looker.start()
    try:
        return charge_times(ledger, numbers)
    finally:
        ended.set()
        for looker in lookers:
            looker.join()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledgers = {number: made(Path(folder) / str(number), number) for number in (FEW, MANY)}
        looks: dict[str, Callable[[Ledger], object]] = {
            "budget": lambda ledger: budget_view(ledger.seen(), ()),
            "first page": lambda ledger: ledger.history(most=1_000),
            "one name's": lambda ledger: ledger.history(most=20, principal="analyst 7"),
        }
        kept: dict[str, float] = {}
        for name, look in looks.items():
            times = LOOKS if name == "budget" else 5
            pairs = [[milliseconds(lambda: look(ledger), times) for ledger in ledgers.values()] for _ in range(ROUNDS)]  # noqa: B023
            few, many = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = kept[f"{name}, after {MANY:,} / after {FEW:,}"] = statistics.median(
                many / few for few, many in pairs
            )
            print(f"{name:12} after {FEW:,}: {few:7.2f} ms   after {MANY:,}: {many:7.2f} ms   ratio {ratio:.2f}")
        ledger, rounds = ledgers[MANY], []
        for number in range(ROUNDS):
            begin = 10**6 + 2 * number * CHARGES
            alone = charge_times(ledger, range(begin, begin + CHARGES))
            beside = watched(ledger, range(begin + CHARGES, begin + 2 * CHARGES))
            rounds.append([statistics.quantiles(times, n=100) for times in (alone, beside)])
        for percent in (50, 99):
            alone, beside = (statistics.median(q[percent - 1] for q in column) for column in zip(*rounds, strict=True))
            ratio = statistics.median(b[percent - 1] / a[percent - 1] for a, b in rounds)
            beside_them = f"beside {LOOKERS} lookers {beside:6.2f} ms"
            print(f"a charge, p{percent}: alone {alone:6.2f} ms   {beside_them}   ratio {ratio:.2f}")
            kept[f"a charge, p{percent}, beside lookers / alone"] = ratio
        keep("looking", kept)
        for ledger in ledgers.values():
            ledger.close()


if __name__ == "__main__":
    main()
