"""What bounded range implies in each measure: the exponential mechanism loses less than its ε-DP says.

If the range does not wander, so that log-ratios lie in one interval whatever the neighbours, less is implied still.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly, square_root_up
from lapwing.privacy.conversions import amount_in, gdp_from_pure_up, pure_from_gdp_down

_BITS = 64


def gdp_from_bounded_range_up(eta: Fraction) -> Fraction:
    """Return the μ² of any η-bounded-range mechanism: μ = 2·Φ⁻¹(1/(1 + e^(−η/2))), rounded up.

    A mechanism has bounded range η if its log-ratio log P(y)/Q(y) on neighbours varies by at most η over all outputs y
    (Durfee and Rogers 2019). Its trade-off function is then no lower than those of all pairs of coins with
    P(heads)/Q(heads) = e^t, P(tails)/Q(tails) = e^(t−η), 0 ≤ t ≤ η: every such ratio is a mixture of the two ends.
    Such a pair has q = Q(heads), p = e^t·q and logit(p) − logit(q) = η, and its trade-off function is two chords that
    meet at (q, 1 − p). That of μ-GDP is convex with the same ends, so it lies below both chords as soon as it does at
    q: Φ⁻¹(p) − Φ⁻¹(q) ≤ μ. With g = Φ⁻¹∘logistic the left side is g(a + η/2) − g(a − η/2) for some a, which is
    largest at a = 0, where it is 2·g(η/2), because g is odd and its slope falls with distance from 0.

    For that slope, let x > 0 and L(x) = logit Φ(x), of slope φ/(Φ(1−Φ)), the inverse of g; its logarithmic derivative
    is φ(2Φ−1)/(Φ(1−Φ)) − x, so that L is convex on x > 0 (and g concave) if k = φ(2Φ−1) − xΦ(1−Φ) ≥ 0. Now k is 0 at
    0 and at infinity, and k' = 2φ² − Φ(1−Φ) is positive at 0 and changes sign once: 2φ²/(Φ(1−Φ)) falls, as its
    logarithmic derivative is m − 2x with m = φ(2Φ−1)/(Φ(1−Φ)). For x² ≥ ½, m < φ/(1−Φ) ≤ (x + √(x²+4))/2 ≤ 2x
    (Birnbaum 1942). For x² < ½, 2Φ−1 ≤ 2xφ(0), φ ≤ φ(0) and Φ(1−Φ) > 0.18, so m < 1.8x. Hence k ≥ 0.
    """
    return gdp_from_pure_up(eta / 2)


def zcdp_from_bounded_range(eta: Fraction) -> Fraction:
    """Return the ρ of any η-bounded-range mechanism: ρ = η²/8.

    Source:
        Cesar and Rogers 2021 (Bounding, Concentrating, and Truncating), Lemma 3.2.
    """
    return eta**2 / 8


_BOUNDED_RANGE: dict[str, Callable[[Fraction], Fraction]] = {
    "pure": lambda eta: eta,
    "gdp": gdp_from_bounded_range_up,
    "zcdp": zcdp_from_bounded_range,
}


def bounded_range_amount(kind: str, eta: Fraction) -> Fraction:
    """Return the amount in measure `kind` of any η-bounded-range mechanism, rounded up; in pure it is η itself.

    For pure: probabilities sum to 1 on both sides, so 0 lies within the range, and no log-ratio exceeds its length.
    """
    return _BOUNDED_RANGE[kind](eta)


def interval_amount(kind: str, below: Fraction, above: Fraction) -> Fraction:
    """Return the amount in measure `kind` of any mechanism whose log-ratios lie in [−below, above], rounded up.

    That is for neighbours in one order; then those of the other order lie in [−above, below]. Both ends are > 0.

    In pure it is the larger end. In gdp, let S be a test of Q against P, α = Q(S) its size, P(S) its power. As P ≤
    e^above·Q everywhere, P(S) ≤ e^above·α; as P ≥ e^(−below)·Q, P(S) = 1 − P(not S) ≤ 1 − e^(−below)·(1 − α). So the
    trade-off function is no lower than two chords that meet where both bounds are p: with q = p·e^(−above),

        p = (1 − e^(−below))/(1 − e^(−below − above)).

    That of μ-GDP is convex with the same ends, so it lies below both as soon as it does at q: μ = Φ⁻¹(p) − Φ⁻¹(q). The
    coins (p, 1 − p) and (q, 1 − q) have these log-ratios and attain it. In the other order the trade-off function is
    the inverse, and that of μ-GDP is its own. In zcdp it is that of the bounded range below + above, or that of the
    larger end as ε, if it is less.
    """
    if kind == "gdp":
        return _gdp_from_interval_up(below, above)
    pure = amount_in(kind, "pure", max(below, above))
    return pure if kind == "pure" else min(pure, bounded_range_amount(kind, below + above))


@lru_cache(maxsize=1 << 10)
def _gdp_from_interval_up(below: Fraction, above: Fraction) -> Fraction:
    def square(a: Ball, b: Ball) -> Ball:
        p = (-a).expm1() / (-a - b).expm1()
        return 2 * ((2 * p * (-b).exp()).erfcinv() - (2 * p).erfcinv()) ** 2

    return dyadic_up(enclose_tightly(square, below, above, bits=_BITS).upper, _BITS)


def bounded_range_down(kind: str, amount: Fraction) -> Fraction:
    """Return about the largest η whose every η-bounded-range mechanism has at most this amount in measure `kind`."""
    if kind == "gdp":
        return 2 * pure_from_gdp_down(amount)
    if kind == "zcdp":
        # The root is exact, or too large by less than 2⁻⁶⁰ of itself.
        root = square_root_up(8 * amount)
        return root if root**2 == 8 * amount else root * (1 - Fraction(1, 1 << 60))
    return amount
