"""Rényi divergences of any mechanism on a secret sample, from its own divergences alone, rounded up.

Let ε(l) bound the mechanism's divergences of whole orders l ≥ 2 between neighbours, in both directions, and
E_l = e^((l−1)ε(l)), so that ∫ dP^l/dQ^(l−1) ≤ E_l; E_0 = E_1 = 1. As (l − 1)·D_l is convex in l and 0 at l = 1, orders
between those of the curve have chords for bounds. The same holds for the result, at orders α that are not whole. For a
whole α ≥ 2 the moments ∫ dP'^α/dQ'^(α−1) of the sampled mechanism are bounded as follows. They are jointly convex in
(P', Q'), so it suffices to bound them for the worst sample of the others.

**Poisson sample**, of rate q, under add_remove. With P, Q for the sample with the unit and without, P' = (1 − q)Q + qP.

- A unit that leaves: ∫ dP'^α/dQ^(α−1) = Σ_l C(α, l)·(1 − q)^(α−l)·q^l·∫ dP^l/dQ^(l−1), each at most E_l. Exact where ε
  is.
- A unit that joins: Q/P' = 1 + q(Q − P)/P', so ∫ dQ^α/dP'^(α−1) = 1 + Σ_{l ≥ 2} C(α, l)·q^l·∫ (dQ − dP)^l/dP'^(l−1).
  As x ↦ x^(1−l) is convex, the integral's size is at most the mean, with weights 1 − q and q, of those with Q^(l−1)
  and with P^(l−1) in its place: of E_Q|r − 1|^l for r = P/Q, and the same with P and Q swapped. For l = 2 that is
  E r² − 1 ≤ E_2 − 1. For l ≥ 3 the part of r < 1 is at most the mean of 1 − r there, which is that of r − 1 over
  r ≥ 1; and (r − 1)^l + (r − 1) ≤ r^l − 1 for r ≥ 1. So it is at most E_l.

**Subset of a fixed size**, of q = size/population, under replace_one. A subset without the unit is one of the others
with one of the rest put in its place: so let A, B, C be the laws with the unit before it is replaced, after, and with
that other one, three neighbours of each other. P' = (1 − q)C + qA, Q' = (1 − q)C + qB, and P'/Q' = 1 + q(A − B)/Q'.
As above ∫ dP'^α/dQ'^(α−1) ≤ 1 + Σ_{l ≥ 2} C(α, l)·q^l·((1 − q)·∫|dA − dB|^l/dC^(l−1) + q·∫|dA − dB|^l/dB^(l−1)).
The last integral is at most E_l, or E_2 − 1 for l = 2. With a = A/C, b = B/C, |a − b|^l ≤ a^l + b^l, so the first is at
most 2·E_l; and for l = 2, (a − b)² ≤ 2(a − 1)² + 2(b − 1)², so at most 4·(E_2 − 1) as well.

Source:
    The sums are those of Zhu and Wang 2019 (Poisson Subsampled Rényi Differential Privacy), who have a factor of 3 in
    the second, and of Wang, Balle and Kasiviswanathan 2019 (Subsampled Rényi Differential Privacy and Analytical
    Moments Accountant); the arguments above are ours.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal

from lapwing.exact.bounds import Ball, enclose

MOST_ORDER: Final = 512
"""Sums are taken up to this order; beyond it `RenyiDP.subsampled` has only what convexity says."""

_BITS = 160

Points = Sequence[tuple[Fraction, Fraction]]
"""Orders α > 1, rising, with ε(α)."""


def log_moments_up(points: Points, rate: Fraction, sample: Literal["poisson", "subset"]) -> list[Fraction | None]:
    """Return upper bounds on (α − 1) times the divergence on the sample at each order; None where there is none.

    Args:
        points: The mechanism's curve.
        rate: q, above 0 and below 1.
    """
    logs = [(order, (order - 1) * loss) for order, loss in points]
    most = min(MOST_ORDER, math.floor(points[-1][0]))
    own = [chord(logs, Fraction(order)) for order in range(most + 1)]
    moment = _poisson if sample == "poisson" else _subset
    wanted = {end for order, _ in points for end in (math.floor(order), math.ceil(order)) if 2 <= end <= most}
    found = [(Fraction(end), enclose(lambda q, *e: moment(q, e).log(), rate, *own[: end + 1], bits=_BITS).upper)
             for end in sorted(wanted)]  # fmt: skip
    return [chord(found, order) if found and order <= found[-1][0] else None for order, _ in points]


def chord(logs: Sequence[tuple[Fraction, Fraction]], order: Fraction) -> Fraction:
    """Return a bound on a convex function that is 0 at 1, between bounds; 0 up to 1."""
    if order <= 1:
        return Fraction(0)
    left, low = Fraction(1), Fraction(0)
    for right, high in logs:
        if order <= right:
            return low + (high - low) * (order - left) / (right - left)
        left, low = right, high
    raise ValueError("the order is beyond the curve")


def _poisson(q: Ball, exponents: Sequence[Ball]) -> Ball:
    """Return the larger of both sums, for α one less than the number of exponents (l − 1)·ε(l)."""
    order, powers = len(exponents) - 1, [exponent.exp() for exponent in exponents]
    leaves, joins, term, rest = Ball(0), Ball(1), Ball(1), 1 - q
    for l in range(order + 1):  # noqa: E741
        leaves += math.comb(order, l) * rest ** (order - l) * term * powers[l]
        if l >= 2:
            joins += math.comb(order, l) * term * (powers[l] - (1 if l == 2 else 0))
        term *= q
    return leaves.max(joins)


def _subset(q: Ball, exponents: Sequence[Ball]) -> Ball:
    """Return the sum, for α one less than the number of exponents (l − 1)·ε(l)."""
    order, powers = len(exponents) - 1, [exponent.exp() for exponent in exponents]
    total, term = Ball(1), q
    for l in range(2, order + 1):  # noqa: E741
        term *= q
        if l == 2:
            each = (1 - q) * (4 * (powers[l] - 1)).min(2 * powers[l]) + q * (powers[l] - 1)
        else:
            each = (2 - q) * powers[l]
        total += math.comb(order, l) * term * each
    return total
