"""Goodness of fit of many draws to bins of exactly known probability."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

# Every run draws from a fixed stream, so this is what a reader may trust the streams by, and what a twin must beat.
LEAST_P_VALUE = 1e-8

FEW, MANY, FRESH = 2_000_000, 10_000_000, 1_000_000
AT_SIZES = pytest.mark.parametrize("draws", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
"""How many draws are fitted: few in the short run, many in the long one, of fresh randomness always as many.

What n draws can tell: a scale that is a share h off moves Pearson's sum by n h² I, the Fisher information I of its
logarithm being 1 of a Laplace law and 2 of a normal one. Few draws with 1 % off move it by 200 or more. In 41 bins the
sum has mean 40 without, and is beyond 109 with probability LEAST_P_VALUE; with, it has mean 240 and deviation 30, and
misses 109 with probability below 10^-5. Many draws move it by 1000, in 201 bins by four times what they can hide.
"""


def p_value(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Return the p-value of Pearson's chi-square test; the probabilities sum to 1 and every bin expects 10 or more."""
    expected = probabilities * counts.sum()
    assert abs(probabilities.sum() - 1) < 1e-9
    assert expected.min() >= 10
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


def binned(
    draws: NDArray[np.int64], edges: list[int], cumulative: Callable[[int], float]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count draws in (−∞, e_0], (e_0, e_1], …, (e_n, ∞) and return the bins' probabilities beside the counts."""
    counts = np.bincount(np.searchsorted(np.array(edges), draws, side="left"), minlength=len(edges) + 1)
    shares = np.diff([0.0, *(cumulative(edge) for edge in edges), 1.0])
    return counts, shares


def laplace_cumulative(scale: Fraction) -> Callable[[int], float]:
    """P(X ≤ x) of the discrete Laplace law, accurate to a few units of the last place on the lower half."""
    rate = 1 / scale
    head = 1 / (1 + math.exp(-rate))

    def cumulative(x: int) -> float:
        if x < 0:
            return math.exp(float(x * rate)) * head
        return 1 - math.exp(float(-(x + 1) * rate)) * head

    return cumulative


def gaussian_cumulative(sigma: Fraction) -> Callable[[int], float]:
    """P(X ≤ x) of the rounded Gaussian law."""
    return lambda x: float(stats.norm.cdf(float((2 * x + 1) / (2 * sigma))))


def geometric_cumulative(scale: Fraction) -> Callable[[int], float]:
    """P(X ≤ x) of the geometric law."""
    return lambda x: -math.expm1(float(-(x + 1) / scale)) if x >= 0 else 0.0


def discrete_gaussian_cumulative(variance: Fraction) -> Callable[[int], float]:
    """P(X ≤ x) of the discrete Gaussian law: summed up to σ = 2000, beyond that the normal law to within 10^-7."""
    sigma = math.sqrt(variance)
    if sigma > 2000:
        return lambda x: float(stats.norm.cdf((x + 0.5) / sigma))
    reach = math.ceil(12 * sigma) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * float(variance)))
    sums = np.cumsum(weights) / weights.sum()
    return lambda x: float(sums[min(max(x + reach, 0), 2 * reach)])


def edges_of(scale: Fraction, *, reach: float, draws: int = MANY) -> list[int]:
    """Return distinct integers that spread over ± reach · scale, as many as draws can fill."""
    ends = np.linspace(-reach, reach, 41 if draws == FEW else 201)
    return sorted({math.floor(Fraction(float(end)) * scale) for end in ends})
