"""Seconds to choose the best of a million, beside NumPy's Gumbel argmax and OpenDP's exact mechanisms.

    python benchmarks/selection.py

Ours and the peers run in turn, several rounds, one thread; the medians count. NumPy's choice is neither exact nor safe
to release; OpenDP's is exact: permute-and-flip for a pure loss, the exponential mechanism for zCDP. All get the scores
as an array of int64. The ratios are of times, to NumPy's choice and to OpenDP's permute-and-flip. "New scale" is what
the first choice of two at a scale nobody has asked for before takes: the price of building tables.
"""

import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from _runs import keep
from numpy.typing import NDArray

from lapwing.mechanisms import ExponentialMechanism, IntervalExponential, PermuteAndFlip, ReportNoisyMax, TopK

ROUNDS = 7
CANDIDATES = 1_000_000
SCALES = (1, 40, 1000, 1 << 20)
TEN = 10
PEER = "OpenDP permute-and-flip"


def seconds(operation: Callable[[], object]) -> float:
    start = time.perf_counter()
    operation()
    return time.perf_counter() - start


def medians(operations: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median seconds of operations that are run in turn."""
    times: dict[str, list[float]] = {name: [] for name in operations}
    for operation in operations.values():
        operation()
    for _ in range(ROUNDS):
        for name, operation in operations.items():
            times[name].append(seconds(operation))
    return {name: statistics.median(several) for name, several in times.items()}


def ours(scores: NDArray[np.int64], scale: int) -> dict[str, Callable[[], object]]:
    exponential, flip = ExponentialMechanism(scale=Fraction(scale)), PermuteAndFlip(scale=Fraction(scale))
    laplace, ten = ReportNoisyMax(scale=Fraction(scale), noise="laplace"), TopK(scale=Fraction(scale), count=TEN)
    starts = np.arange(scores.size) * 1000
    interval = IntervalExponential(scale=Fraction(scale), lower=0, upper=1000 * scores.size)
    return {
        "exponential": lambda: exponential.release(scores),
        "permute-and-flip": lambda: flip.release(scores),
        "noisy max (Laplace)": lambda: laplace.release(scores),
        "top ten": lambda: ten.release(scores),
        "10^9 points in 10^6 pieces": lambda: interval.release(starts, scores),
    }


def numpys(scores: NDArray[np.int64], scale: int) -> dict[str, Callable[[], object]]:
    generator = np.random.default_rng()
    return {"NumPy Gumbel argmax": lambda: np.argmax(scores + generator.gumbel(0.0, scale, scores.size))}


def opendps(scores: NDArray[np.int64], scale: int) -> dict[str, Callable[[], object]]:
    """Return OpenDP's mechanisms, if OpenDP is here."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    flip = dp.m.make_noisy_max(*space, dp.max_divergence(), float(scale))
    exponential = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), float(scale))
    ten = dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), k=TEN, scale=float(scale))
    return {
        PEER: lambda: flip(scores),
        "OpenDP exponential": lambda: exponential(scores),
        "OpenDP top ten": lambda: ten(scores),
    }


def new_scale(scale: int, build: Callable[[Fraction], ExponentialMechanism | PermuteAndFlip]) -> float:
    """Return the median seconds of the first choice of two at a new scale."""
    two = np.array([0, 1])
    build(Fraction(scale)).release(two)  # what is made once in a process is not the price of a scale
    return statistics.median(
        seconds(lambda i=i: build(scale - Fraction(i + 1, 1000)).release(two))  # type: ignore[misc]
        for i in range(ROUNDS)
    )


def main() -> None:
    """Print one line a scale and mechanism."""
    scores = np.random.default_rng(1).integers(0, 1000, CANDIDATES)
    print(f"{CANDIDATES:,} scores from 0 to 999")
    print(f"{'scale':>8} {'':27} {'ms':>8} {'x NumPy':>8} {'x OpenDP':>9}")
    kept: dict[str, float] = {}
    for scale in SCALES:
        times = medians({**ours(scores, scale), **numpys(scores, scale), **opendps(scores, scale)})
        for name, took in times.items():
            share = took / times["NumPy Gumbel argmax"]
            peer = f"{took / times[PEER]:9.2f}" if PEER in times else f"{'skipped':>9}"
            print(f"{scale:>8} {name:27} {took * 1e3:8.2f} {share:8.2f} {peer}")
            if not name.startswith(("NumPy", "OpenDP")):
                kept[f"{name}, scale {scale} / NumPy's Gumbel noise"] = share
        first = new_scale(scale, lambda x: ExponentialMechanism(scale=x))
        flip = new_scale(scale, lambda x: PermuteAndFlip(scale=x))
        print(f"{scale:>8} {'new scale: exponential, flip':27} {first * 1e3:7.2f}, {flip * 1e3:.2f}")
    keep("selection", kept)


if __name__ == "__main__":
    main()
