"""Goodness of fit of every sampler: 10^8 draws each, from the operating system's randomness, against its exact law.

    python benchmarks/fit.py

"law" is the p-value of Pearson's chi-square test over bins of the draws, "low bits" that of their last eight bits being
uniform (at scales where they are), "1 % off" that of a law one percent too wide, which must not fit. P-values are
random: the least of n honest ones is about 1/n. An honest one below 10^-9, or a dishonest one above, fails the run.
"""

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM, Entropy

DRAWS, PIECE = 100_000_000, 1_000_000
LEAST_P_VALUE = 1e-9

Sampler = Callable[[Fraction, int, Entropy], NDArray[np.generic]]
Cumulative = Callable[[int], float]


class Bins(NamedTuple):
    """Bins of numbers: shifted right, from the first to the last; and whether to look at the last bits too."""

    shift: int
    first: int
    last: int
    low_bits: bool


BITS = Bins(shift=0, first=0, last=0, low_bits=False)


class Row(NamedTuple):
    """A sampler, its law made wider by a factor, and the bins."""

    name: str
    draw: Callable[[int], NDArray[np.generic]]
    law: Callable[[float], Cumulative]
    bins: Bins


def laplace(scale: float) -> Cumulative:
    half = 1 / (1 + math.exp(-1 / scale))
    return lambda x: math.exp(x / scale) * half if x < 0 else 1 - math.exp(-(x + 1) / scale) * half


def geometric(scale: float) -> Cumulative:
    return lambda x: -math.expm1(-(x + 1) / scale) if x >= 0 else 0.0


def rounded(sigma: float) -> Cumulative:
    return lambda x: float(stats.norm.cdf((x + 0.5) / sigma))


def discrete(sigma: float) -> Cumulative:
    """Sum the law up to σ = 2000; beyond, it is the rounded one to within 10^-7."""
    if sigma > 2000:
        return rounded(sigma)
    reach = math.ceil(40 * sigma)
    sums = np.cumsum(np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2)))
    return lambda x: float(sums[x + reach] / sums[-1])


def steps(shares: list[float]) -> Cumulative:
    """Return the law of indices with these shares."""
    sums = np.cumsum(shares) / math.fsum(shares)
    return lambda x: float(sums[x]) if x >= 0 else 0.0


def scaled(
    name: str,
    sampler: Sampler,
    law: Callable[[float], Cumulative],
    scale: Fraction,
    reach: float,
    *,
    power: int = 1,
) -> Row:
    """Return a row with 16 to 32 bins a scale, out to `reach` scales."""
    shift = max(0, math.floor(scale / 16).bit_length() - 1)
    last = max(1, math.floor(reach * scale)) >> shift
    return Row(
        f"{name} {float(scale):.4g}",
        lambda count: sampler(scale**power, count, SYSTEM),
        lambda factor: law(float(scale) * factor),
        Bins(shift, 0 if law is geometric else ~last, last, scale >= 1 << 20),
    )


def coins(name: str, sampler: Sampler, parameter: Fraction, chance: float) -> Row:
    return Row(
        f"{name} {float(parameter):.4g}",
        lambda count: sampler(parameter, count, SYSTEM),
        lambda factor: steps([1 - chance * factor, chance * factor]),
        BITS,
    )


def rows() -> list[Row]:
    """List the samplers and scales: tiny, small, the first with several tables, large."""
    result = []
    for scale in (Fraction(1, 2), Fraction(10), Fraction(1000, 3), Fraction(1 << 40)):
        result.append(scaled("discrete Laplace", samplers.discrete_laplace, laplace, scale, 10))
        result.append(scaled("geometric", samplers.geometric, geometric, scale, 10))
        result.append(scaled("rounded Gaussian", samplers.rounded_gaussian, rounded, scale, 4.3, power=2))
        result.append(scaled("discrete Gaussian", samplers.discrete_gaussian, discrete, scale, 4.3, power=2))
    result.append(coins("Bernoulli", samplers.bernoulli, Fraction(1, 3), 1 / 3))
    result.append(coins("Bernoulli e^-x", samplers.bernoulli_exp, Fraction(5, 2), math.exp(-2.5)))
    result.append(
        Row(
            "uniform integers below 1000",
            lambda count: samplers.uniform_integers(1000, count, SYSTEM),
            lambda factor: steps([1.0] * 500 + [factor] * 500),
            BITS._replace(last=998),
        )
    )
    result.append(
        Row(
            "categorical",
            lambda count: samplers.categorical([5, 1, 0, 7, 3], count, SYSTEM),
            lambda factor: steps([5 * factor, 1.0, 0.0, 7.0, 3.0]),
            BITS._replace(last=3),
        )
    )
    return result


def p_value(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    expected = probabilities * counts.sum()
    used = expected > 0
    assert not counts[~used].any()
    return float(stats.chi2.sf(((counts[used] - expected[used]) ** 2 / expected[used]).sum(), used.sum() - 1))


def counted(row: Row) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many draws fall in each bin, the ends included, and how many have each value of the last bits."""
    shift, first, last, low_bits = row.bins
    counts, low = np.zeros(last - first + 2, dtype=np.int64), np.zeros(256, dtype=np.int64)
    for _ in range(DRAWS // PIECE):
        numbers = row.draw(PIECE).astype(np.int64, copy=False)
        counts += np.bincount(np.clip(numbers >> shift, first, last + 1) - first, minlength=len(counts))
        if low_bits:
            low += np.bincount(numbers & 255, minlength=256)
    return counts, low


def shares(row: Row, factor: float) -> NDArray[np.float64]:
    cumulative = row.law(factor)
    ends = [cumulative(((k + 1) << row.bins.shift) - 1) for k in range(row.bins.first, row.bins.last + 1)]
    return np.diff([0.0, *ends, 1.0])


def main() -> None:
    """Print one line a sampler."""
    print(f"{'10^8 draws of':32} {'law':>8} {'low bits':>9} {'1 % off':>9} {'seconds':>8}")
    failed = []
    for row in rows():
        start = time.perf_counter()
        bins, low = counted(row)
        seconds = time.perf_counter() - start
        honest, off = p_value(bins, shares(row, 1)), p_value(bins, shares(row, 1.01))
        even = p_value(low, np.full(256, 1 / 256)) if row.bins.low_bits else math.nan
        print(f"{row.name:32} {honest:8.3f} {even:9.3f} {off:9.0e} {seconds:8.1f}".replace("nan", "  -"), flush=True)
        if min(honest, even if row.bins.low_bits else 1) < LEAST_P_VALUE or off >= LEAST_P_VALUE:
            failed.append(row.name)
    if failed:
        raise SystemExit(f"does not fit: {', '.join(failed)}")


if __name__ == "__main__":
    main()
