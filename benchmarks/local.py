"""Microseconds a person of local mechanisms, from true values to estimated shares, beside multi-freq-ldpy and pure-ldp.

    python benchmarks/local.py [--quick]

Ours and the peers run in turn, several rounds, in one process; the medians count. A peer's figure is of fewer people
than ours, and all are per person: it draws and counts reports one by one. Ours are drawn as exactly as on devices, from
the operating system's randomness; the peers draw floating-point numbers from a Mersenne Twister. "error" is n times the
mean squared error of the raw shares: by our formula, and as ours and the peer's came out, which may not be told apart
by chance. multi-freq-ldpy clips and scales its shares; what its estimator is given is compared, before that. "must" is
what we mean to reach. Hadamard response and RAPPOR (of one hash, with eight cohorts and a regression that shrinks, so
that its error is another thing) are there to compare with.
"""

import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import sqrt
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from lapwing.local import (
    FrequencyEstimate,
    KaryResponse,
    LocalHashing,
    Randomizer,
    SubsetSelection,
    UnaryEncoding,
    estimate,
)
from lapwing.local.frequencies.variance import mean_variance
from lapwing.local.simulation.blocks import simulate_counts

EPSILON = 1
ROUNDS = 3
OURS = {100: 1_000_000, 10_000: 50_000}
DEVIATIONS = 4

Shares = NDArray[np.float64]
Run = Callable[[NDArray[np.int64], int], Shares]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another library's mechanism; of how many people, by how many values there are."""

    library: str
    run: Run
    people: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One mechanism: ours, how many times as fast it must be, and the peers'."""

    name: str
    ours: Callable[[int], Randomizer] | None
    must: int
    peers: Sequence[Peer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Microseconds a person, and n times the mean squared error."""

    took: float
    error: float


def people(count: int, k: int) -> NDArray[np.int64]:
    """Return values of which few are common."""
    weights = 1 / np.arange(1, k + 1)
    return np.random.default_rng().choice(k, count, p=weights / weights.sum()).astype(np.int64)


def ours(mechanism: Randomizer) -> Run:
    """Return reports drawn and counted block after block, as a simulation would."""
    names = tuple(map(str, range(mechanism.categories)))

    def run(values: NDArray[np.int64], k: int) -> Shares:
        counts = simulate_counts(mechanism, values)
        return FrequencyEstimate(values=names, mechanism=mechanism, reports=len(values), supports=counts).raw

    return run


def multi_freq(file: str, name: str, **options: bool) -> Run:
    """Return a mechanism of multi-freq-ldpy that returns what its estimator is given, unclipped."""
    module: Any = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{file}")
    client, server = getattr(module, f"{name}_Client"), getattr(module, f"{name}_Aggregator_MI")
    original = module.MI

    def run(values: NDArray[np.int64], k: int) -> Shares:
        raw: list[Shares] = []

        def recorded(count: Any, n: int, p: float, q: float) -> Any:
            raw.append((np.asarray(count) / n - q) / (p - q))
            return original(count, n, p, q)

        reports = [client(value, k, EPSILON, **options) for value in values.tolist()]
        with patch.object(module, "MI", recorded):
            server(reports, *(() if name == "UE" else (k,)), EPSILON, **options)
        return raw[0]

    return run


def pure(make: Callable[[Any, int], tuple[Any, Any]]) -> Run:
    """Return a mechanism of pure-ldp, given how its client and server are made."""

    def run(values: NDArray[np.int64], k: int) -> Shares:
        client, server = make(import_module("pure_ldp.frequency_oracles"), k)
        for value in values.tolist():
            server.aggregate(client.privatise(value))
        return np.asarray(server.estimate_all(range(k), suppress_warnings=True)) / len(values)

    return run


def plain(name: str, **options: bool) -> Run:
    same = {"index_mapper": lambda value: value}
    return pure(
        lambda library, k: (
            getattr(library, f"{name}Client")(EPSILON, k, **same, **options),
            getattr(library, f"{name}Server")(EPSILON, k, **same, **options),
        )
    )


def hadamard(library: Any, k: int) -> tuple[Any, Any]:
    server = library.HadamardResponseServer(EPSILON, k, index_mapper=lambda value: value)
    return library.HadamardResponseClient(EPSILON, k, server.get_hash_funcs(), index_mapper=lambda value: value), server


def rappor(library: Any, k: int) -> tuple[Any, Any]:
    share = round(2 / (np.exp(EPSILON / 2) + 1), 4)
    server = library.RAPPORServer(share, 128, 1, k, index_mapper=lambda value: value)
    return library.RAPPORClient(share, 128, server.get_hash_funcs(), index_mapper=lambda value: value), server


def contests(quick: bool) -> list[Contest]:
    few = 20 if quick else 1

    def peers(of: dict[str, Run], small: int, large: int) -> list[Peer]:
        sizes = {100: small // few, 10_000: large // few} if large else {100: small // few}
        return [Peer(library=library, run=run, people=sizes) for library, run in of.items()]

    multi, pure_ldp = "multi-freq-ldpy", "pure-ldp"
    unary = [("OUE", UnaryEncoding.optimised, True), ("SUE", UnaryEncoding.symmetric, False)]
    return [
        Contest(
            name="k-RR",
            ours=lambda k: KaryResponse.for_epsilon(EPSILON, k),
            must=3,
            peers=peers({multi: multi_freq("GRR", "GRR"), pure_ldp: plain("DE")}, 200_000, 10_000),
        ),
        Contest(
            name="subset selection",
            ours=lambda k: SubsetSelection.for_epsilon(EPSILON, k),
            must=10,
            peers=peers({multi: multi_freq("SS", "SS")}, 50_000, 4_000),
        ),
        *(
            Contest(
                name=name,
                ours=lambda k, make=make: make(EPSILON, k),  # type: ignore[misc]
                must=10,
                peers=peers(
                    {multi: multi_freq("UE", "UE", optimal=best), pure_ldp: plain("UE", use_oue=best)}, 50_000, 4_000
                ),
            )
            for name, make, best in unary
        ),
        Contest(
            name="OLH",
            ours=lambda k: LocalHashing.for_epsilon(EPSILON, k),
            must=10,
            peers=peers({multi: multi_freq("LH", "LH"), pure_ldp: plain("LH", use_olh=True)}, 20_000, 500),
        ),
        Contest(name="Hadamard response", ours=None, must=0, peers=peers({pure_ldp: pure(hadamard)}, 50_000, 10_000)),
        Contest(name="RAPPOR", ours=None, must=0, peers=peers({pure_ldp: pure(rappor)}, 20_000, 0)),
    ]


def measure(run: Run, count: int, k: int) -> Measured:
    values = people(count, k)
    truth = np.bincount(values, minlength=k) / count
    begun = time.perf_counter()
    raw = run(values, k)
    took = time.perf_counter() - begun
    return Measured(took=took / count * 1e6, error=count * float(np.mean((raw - truth) ** 2)))


def middle(rounds: list[Measured]) -> Measured:
    """Return the median time and the average error."""
    return Measured(
        took=statistics.median(each.took for each in rounds), error=statistics.fmean(each.error for each in rounds)
    )


def compete(contest: Contest, k: int, quick: bool) -> None:
    """Run ours and the peers in turn, and print a line for each peer."""
    runs: dict[str, tuple[Run, int]] = {peer.library: (peer.run, peer.people[k]) for peer in contest.peers}
    mechanism = contest.ours(k) if contest.ours else None
    if mechanism:
        runs["ours"] = ours(mechanism), OURS[k]
    for name, (run, count) in runs.items():
        run(people(count if name == "ours" else 100, k), k)  # compiles, and takes memory from the system
    rounds: dict[str, list[Measured]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, (run, count) in runs.items():
            rounds[name].append(measure(run, count, k))
    found = {name: middle(several) for name, several in rounds.items()}
    spread = DEVIATIONS * sqrt(2 * 2 / (k * ROUNDS))
    for peer in contest.peers:
        other, line = found[peer.library], f"{k:>6,} {contest.name:17} {peer.library:15}"
        if mechanism is None:
            print(f"{line} {'':8} {other.took:9.2f} {'':26} {'':8} {other.error:9.2f}")
            continue
        mine, formula = found["ours"], float(mean_variance(mechanism))
        ratio, no_worse = other.took / mine.took, mine.error <= other.error * (1 + spread)
        verdict = "ok" if ratio >= contest.must and no_worse else "MISSED"
        print(
            f"{line} {mine.took:8.3f} {other.took:9.2f} {ratio:7.0f}x {contest.must:>5}x {formula:10.2f}"
            f" {mine.error:9.2f} {other.error:9.2f} {verdict:>8}",
            flush=True,
        )


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def decoding(quick: bool) -> None:
    """Print how long many reports take from packed bytes, or from numbers, to intervals."""
    count = 1_000_000 // (20 if quick else 1)
    unary, hashing = UnaryEncoding.optimised(EPSILON, 100), LocalHashing.for_epsilon(EPSILON, 1000)
    packed = [row.tobytes() for row in np.packbits(unary.randomize(people(count, 100)), axis=1, bitorder="little")]
    faces = hashing.randomize(people(count, 1000))
    every: list[tuple[str, int, Callable[[], object]]] = [
        ("OUE, 100 values", 2, lambda: estimate(unary, unary.gather(packed)).interval()),
        ("OLH, 1,000 values", 30, lambda: estimate(hashing, faces).interval()),
    ]
    for name, must, decode in every:
        seconds = statistics.median(timed(decode) for _ in range(ROUNDS))
        print(f"{count:,} reports of {name}: {seconds:.2f} s, must {must}: {'ok' if seconds < must else 'MISSED'}")


def blocks(quick: bool) -> None:
    """Print what a simulation of many people with many values takes that keeps no report."""
    count, k = 100_000 // (20 if quick else 1), 10_000
    values, mechanism = people(count, k), UnaryEncoding.optimised(EPSILON, k)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = timed(lambda: simulate_counts(mechanism, values))
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        f"{count:,} people, {k:,} values, OUE, drawn and counted in blocks: {took:.1f} s, {more / 1e3:.0f} MB more than"
        f" before, where all reports at once are {count * k / 1e6:,.0f} MB"
    )


def main() -> None:
    """Print one line for each number of values, mechanism and peer."""
    quick = "--quick" in sys.argv
    warnings.simplefilter("ignore")
    blocks(quick)
    decoding(quick)
    if not all(map(find_spec, ("multi_freq_ldpy", "pure_ldp", "sklearn"))):
        print("The peers are not here: pip install multi-freq-ldpy pure-ldp scikit-learn, as `make test` does.")
        return
    print(f"\nepsilon = {EPSILON}; microseconds a person, client and server together")
    print(
        f"{'values':>6} {'':17} {'peer':15} {'ours':>8} {'peer':>9} {'ratio':>8} {'must':>6} {'error':>10} {'ours':>9}"
        f" {'peer':>9}"
    )
    every = contests(quick)
    for k in OURS:
        for contest in every:
            if all(k in peer.people for peer in contest.peers):
                compete(contest, k, quick)


if __name__ == "__main__":
    main()
