"""Exact laws of choosing the best of some candidates, for *selection*: which candidate is chosen how often.

Permute-and-flip: candidate i's coin is heads with p_i = e^((s_i − best)/scale), and one of the heads is chosen, each
equally likely. With a uniform mark u on each, P(i) = p_i·∫₀¹ Π_(j≠i) (1 − p_j·u) du. The largest of s_i + E_i with
exponential noise is i if E_i = best − s_i + y, y ≥ 0, and no other is above: P(i) = p_i·∫ e^(−y)·Π (1 − p_j·e^(−y)) dy,
which is the same with u = e^(−y). Product out, and it is Σ over sets S of the others of (−1)^|S|·Π p_S/(|S| + 1).

Report noisy max with discrete Laplace noise, ties broken by uniform marks: P(i) = Σ_v P(V_i = v)·∫₀¹ Π_(j≠i)
(P(V_j < v) + u·P(V_j = v)) du. Integrals of polynomials are taken by Gauss and Legendre's rule.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import ceil, exp, log, prod

import numpy as np
from numpy.typing import NDArray

_FAR = 30
"""Laplace noise is beyond so many scales with probability e^−30."""
_WIDE = 50
WIDEST = 500
"""Noise of a larger scale is summed over some of its values, in equal steps."""
_BLOCK = 10_000

Floats = NDArray[np.float64]


def exponential_mechanism(scores: NDArray[np.int64], scale: float) -> Floats:
    """Return P(i) ∝ e^(s_i/scale)."""
    weights = np.exp((scores - scores.max()) / scale)
    return np.asarray(weights / weights.sum())


def permute_and_flip(scores: NDArray[np.int64], scale: float) -> Floats:
    """Return P(i) by the integral, a polynomial of degree below the number of candidates."""
    heads = np.exp((scores - scores.max()) / scale)
    marks, weights = _rule(scores.size // 2 + 1)
    factors = 1 - heads[None, :] * marks[:, None]
    return np.asarray(heads * (weights[:, None] * factors.prod(axis=1, keepdims=True) / factors).sum(axis=0))


def noisy_max_laplace(scores: NDArray[np.int64], scale: float, widest: int = WIDEST) -> Floats:
    """Return P(i) of report noisy max, by summing over the value that is the largest.

    Args:
        widest: Noise of a larger scale is summed over some of its values, in equal steps.
    """
    levels, level_of, many = np.unique(scores, return_inverse=True, return_counts=True)
    # Ties are rare where the noise is wide; a few marks are then as good as all.
    marks, weights = _rule(scores.size // 2 + 1 if scale < _WIDE else 4)
    reach = ceil(_FAR * scale)
    law = np.zeros(levels.size)
    # Of very wide noise every so many values will do: the law then adds up to 1 within 10^−5.
    stride = max(1, int(scale / widest))
    values = np.arange(int(levels.max()) - reach, int(levels.max()) + reach + 1, stride)
    for start in range(0, values.size, _BLOCK):
        away = values[start : start + _BLOCK, None] - levels[None, :]
        here = _log_here(away, scale)
        for mark, weight in zip(marks, weights, strict=True):
            below = _log_below(away, scale, mark)
            all_others = (below * many).sum(axis=1, keepdims=True) - below
            law += weight * np.exp(here + all_others).sum(axis=0)
    return np.asarray(stride * law[level_of])


def by_permutations(heads: Sequence[Fraction]) -> list[Fraction]:
    """Return the law of permute-and-flip by its definition: each order of the candidates, each first heads."""
    law = [Fraction(0)] * len(heads)
    orders = list(permutations(range(len(heads))))
    for order in orders:
        none_yet = Fraction(1, len(orders))
        for i in order:
            law[i] += none_yet * heads[i]
            none_yet *= 1 - heads[i]
    return law


def by_exponential_noise(heads: Sequence[Fraction]) -> list[Fraction]:
    """Return the law of the largest of s_i + E_i, by inclusion and exclusion."""
    law = []
    for i, p in enumerate(heads):
        others = [q for j, q in enumerate(heads) if j != i]
        sets = (chosen for size in range(len(heads)) for chosen in combinations(others, size))
        law.append(p * sum(prod(chosen, start=Fraction((-1) ** len(chosen), len(chosen) + 1)) for chosen in sets))
    return law


def _log_here(away: NDArray[np.int64], scale: float) -> Floats:
    """Return ln P(x = away) of discrete Laplace noise: ln((1 − q)/(1 + q)) − |away|/scale."""
    q = exp(-1 / scale)
    return log((1 - q) / (1 + q)) - np.abs(away) / scale


def _log_below(away: NDArray[np.int64], scale: float, mark: float) -> Floats:
    """Return ln(P(x < away) + mark·P(x = away)), from the nearer side, so that small figures keep their digits."""
    q = exp(-1 / scale)
    left = np.minimum(away, 0) / scale + log((q + mark * (1 - q)) / (1 + q))
    right = np.log1p(-np.exp(-np.maximum(away, 1) / scale) * (1 - mark * (1 - q)) / (1 + q))
    return np.where(away <= 0, left, right)


def _rule(count: int) -> tuple[Floats, Floats]:
    """Return the marks and weights of Gauss and Legendre's rule on [0, 1], exact below degree 2·count."""
    marks, weights = np.polynomial.legendre.leggauss(count)
    return (marks + 1) / 2, weights / 2
