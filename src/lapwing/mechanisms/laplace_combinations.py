"""How far a combination of independent Laplace numbers strays, by the exact law of the continuous one.

Theory of operation. Let X be discrete Laplace noise of scale s, r = 1/s, and U uniform on [−½, ½], independent of it.
X + U has a density, symmetric and falling away from 0. For h ≥ 0 and |t| ≤ ½, h + t ≥ 0, P(|X + U| > h + t) is a
straight line in t, e^(−rh)·(1 − g·t) with g = 2·tanh(r/2): at t = ∓½ it is P(|X| > h − 1) and P(|X| > h). As g ≤ r and
1 − gt ≤ e^(−gt), it is at most e^(−g(h + t)), the tail of a Laplace number of scale 1/g, which is s and hardly more.

Call Y less peaked than Z if P(|Y| > x) ≥ P(|Z| > x) for every x. For a V with a density that is symmetric and falls
away from 0, P(|V + y| > x) rises with |y|, so that V + Y is less peaked than V + Z where Y and Z are symmetric and Y is
less peaked (Birnbaum 1948); and sums of such numbers have such densities again (Wintner 1938). One after the other,
then, each of the X_i + U_i may be put in the place of a Laplace number of scale 1/g_i, and each weight in that of a
smaller one:

    P(|Σ c_i·X_i| > T + ½·Σ |c_i|)  ≤  P(|Σ c_i·(X_i + U_i)| > T)  ≤  P(|Σ a_i·L_i| > T),   a_i ≥ |c_i|/g_i,

with standard Laplace L_i. The characteristic function of the last sum is Π 1/(1 + a_i²t²), and for distinct a_i its
partial fractions say

    P(|Σ a_i·L_i| > T) = Σ A_i·e^(−T/a_i),   A_i = Π_(j ≠ i) a_i²/(a_i² − a_j²).

To have them distinct, and few, ratios to the largest a are rounded up.

**Convex in the scales.** Let T(a) be the least T with P(|Σ a_i·L_i| > T) ≤ chance. It is even in each a_i, and convex
in a. Proof: for a convex body K that is symmetric around 0 and x uniform in it, call T_K(a) the least T with
P(|⟨a, x⟩| > T) ≤ chance. All half-spaces that cut off a share of chance/2 of K support one convex body (Meyer and
Reisner 1991), whose support function T_K is, so that it is convex. Take for K all (x, y) with y in m dimensions and
|y| ≤ 1 − Σ |x_i|/m: it is convex and symmetric, and the density of x in it is in proportion to (1 − Σ |x_i|/m)^m. As m
grows that tends to the density of the L_i, and T_K((a, 0)) to T(a): a limit of convex functions is convex. ∎ So
along a line in a, T is largest at an end, and below its chord. Halves of Σ |c_i| are convex as well.

Source:
    Meyer and Reisner 1991 (A geometric property of the boundary of symmetric convex bodies and convexity of flotation
    surfaces, Geometriae Dedicata 37).
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, inf, log
from typing import Final

from lapwing.exact.bounds import Ball, dyadic_up, enclose, enclose_tightly
from lapwing.privacy.search import smallest

_GRID: Final = 1 << 12
"""Ratios are rounded up to a multiple of one over this, and moved apart by quarters of it."""
_UNIT: Final = Fraction(1, 1 << 14)
"""Quantiles are rounded up to a multiple of this, for the largest scale as 1."""
_SCALE_BITS: Final = 32


def continuous_scale(scale: Fraction) -> Fraction:
    """Return 1/g = 1/(2·tanh(1/(2·scale))), rounded up: a Laplace number of this scale is less peaked than X + U."""
    return dyadic_up(enclose_tightly(lambda s: 1 / (2 * (1 / (2 * s)).tanh()), scale).upper, _SCALE_BITS)


def combination_quantile(scales: Sequence[Fraction], chance: Fraction) -> Fraction:
    """Return a T with P(|Σ a_i·L_i| > T) ≤ chance for scales a_i ≥ 0: at most about a 4000th above the least.

    Args:
        scales: At most three of them.
        chance: Above 0, below 1.
    """
    first, *others = sorted(scales, reverse=True)
    if first == 0:
        return Fraction(0)
    return first * _of_ratios(tuple(ceil(scale / first * _GRID) for scale in others), chance)


@lru_cache(maxsize=1 << 13)  # of public scales, or few ratios
def _of_ratios(ratios: tuple[int, ...], chance: Fraction) -> Fraction:
    """Return the quantile for the scales 1 and these, in parts of the grid, each moved a quarter farther up."""
    scales = (Fraction(1), *(Fraction(4 * ratio + place, 4 * _GRID) for place, ratio in enumerate(ratios, 1)))
    weights = tuple(_weight(scale, scales) for scale in scales)

    def holds(units: int) -> bool:
        return enclose(_tail, units * _UNIT, *scales, *weights).upper <= chance

    return smallest(holds, guess=ceil(_near(scales, weights, chance) / _UNIT)) * _UNIT


def _weight(scale: Fraction, scales: tuple[Fraction, ...]) -> Fraction:
    product = Fraction(1)
    for other in scales:
        if other != scale:
            product *= scale**2 / (scale**2 - other**2)
    return product


def _tail(distance: Ball, *terms: Ball) -> Ball:
    scales, weights = terms[: len(terms) // 2], terms[len(terms) // 2 :]
    return sum((weight * (-distance / scale).exp() for scale, weight in zip(scales, weights, strict=True)), Ball(0))


def _near(scales: tuple[Fraction, ...], weights: tuple[Fraction, ...], chance: Fraction) -> float:
    """Return about the quantile: Newton's steps on the logarithm of the tail, which is concave. A guess, in floats."""
    terms = [(float(weight), float(scale)) for scale, weight in zip(scales, weights, strict=True)]
    wanted, distance, before = log(chance.numerator) - log(chance.denominator), 1.0, inf
    for _ in range(40):
        tail = sum(weight * exp(-distance / scale) for weight, scale in terms)
        slope = sum(weight / scale * exp(-distance / scale) for weight, scale in terms)
        if tail <= 0 or slope <= 0 or abs(before - distance) < 1e-9:
            break
        before, distance = distance, max(0.0, distance + (log(tail) - wanted) * tail / slope)
    return distance
