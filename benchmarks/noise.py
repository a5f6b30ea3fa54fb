"""Exact noise per second, beside NumPy's floating-point generators and OpenDP's exact vector mechanisms.

    python benchmarks/noise.py

Ours and the peers run in turn, several rounds, one thread, in processor time; the medians count. NumPy's numbers are
neither exact nor safe to release; OpenDP's are exact, and its Gaussian is the discrete one. "One" is the time of a
single number at a scale whose tables are there, "new scale" at one seen for the first time: the price of building
tables.
"""

import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from _runs import keep

from lapwing import noise

ROUNDS = 5
OURS, NUMPY, OPENDP, SINGLE = 4_000_000, 2_000_000, 10_000, 2_000
KEPT = ("10", "2^40")
"""Scales whose ratios to NumPy go into the history."""
SCALES = {"1": 1, "10": 10, "40": 40, "1000": 1000, "2^20": 1 << 20, "2^40": 1 << 40}


class Law(NamedTuple):
    """One of our samplers, NumPy's that comes nearest, OpenDP's if there is one."""

    ours: Callable[..., object]
    numpy: str
    opendp: str | None


LAWS = {
    "Laplace": Law(noise.discrete_laplace, "laplace", "laplace"),
    "geometric": Law(noise.geometric, "exponential", None),
    "rounded Gaussian": Law(noise.rounded_gaussian, "normal", "gaussian"),
    "discrete Gaussian": Law(noise.discrete_gaussian, "normal", "gaussian"),
}


def seconds(operation: Callable[[], object]) -> float:
    start = time.process_time()
    operation()
    return time.process_time() - start


def rates(operations: dict[str, tuple[int, Callable[[], object]]]) -> dict[str, float]:
    """Return numbers per second of operations that draw so many each: medians of rounds taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in operations}
    for _ in range(ROUNDS):
        for name, (_, operation) in operations.items():
            times[name].append(seconds(operation))
    return {name: count / statistics.median(times[name]) for name, (count, _) in operations.items()}


def opendp_vector(law: str, scale: int) -> Callable[[], object] | None:
    """Return OpenDP's mechanism on a vector of zeros, if OpenDP is here."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    zeros = [0] * OPENDP
    if law == "laplace":
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64), scale=float(scale))
    else:
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T=dp.i64), scale=float(scale))
    return lambda: mechanism(zeros)


def compare(law: Law, scale: int) -> tuple[dict[str, float], float, float]:
    """Return rates of all, and our seconds for one number, at a scale with tables and at one without."""
    generator = np.random.default_rng()
    theirs = getattr(generator, law.numpy)
    arguments = (float(scale),) if law.numpy == "exponential" else (0.0, float(scale))
    law.ours(scale)  # what is made once in a process is not the price of a scale
    first = [seconds(lambda new=scale - Fraction(i + 1, 1000): law.ours(new)) for i in range(ROUNDS)]  # type: ignore[misc]
    operations: dict[str, tuple[int, Callable[[], object]]] = {
        "ours": (OURS, lambda: law.ours(scale, OURS)),
        "numpy": (NUMPY, lambda: theirs(*arguments, NUMPY)),
        "one": (SINGLE, lambda: [law.ours(scale) for _ in range(SINGLE)]),
    }
    peer = opendp_vector(law.opendp, scale) if law.opendp else None
    if peer is not None:
        operations["opendp"] = (OPENDP, peer)
    rate = rates(operations)
    return rate, 1 / rate["one"], statistics.median(first)


def main() -> None:
    """Print one line a law and scale."""
    print(f"{'law':17} {'scale':>6} {'ours M/s':>9} {'x NumPy':>8} {'x OpenDP':>9} {'one µs':>7} {'new scale ms':>13}")
    kept = {}
    for name, law in LAWS.items():
        for spelled, scale in SCALES.items():
            rate, one, first = compare(law, scale)
            peer = f"{rate['ours'] / rate['opendp']:9.0f}" if "opendp" in rate else f"{'-':>9}"
            ratio = rate["ours"] / rate["numpy"]
            speed = f"{rate['ours'] / 1e6:9.0f} {ratio:8.1f} {peer}"
            print(f"{name:17} {spelled:>6} {speed} {one * 1e6:7.1f} {first * 1e3:13.1f}", flush=True)
            if spelled in KEPT:
                kept[f"{name}, scale {spelled}: numbers a second / NumPy's"] = ratio
    keep("noise", kept)


if __name__ == "__main__":
    main()
