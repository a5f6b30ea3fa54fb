"""Rényi divergences of the pairs that matter, order by order, rounded up.

D_α(P‖Q) = ln(Σ P^α·Q^(1−α))/(α − 1) for α > 1. A mechanism is (α, ε)-Rényi private if that is at most ε between its
laws on any two neighbours, in both directions (Mironov 2017, Definition 4). Each function takes an exact order α > 1
and returns such an ε. They are written so that no term overflows.
"""

from collections.abc import Callable
from fractions import Fraction

from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly

_BITS = 64


def gaussian(mu_squared: Fraction, order: Fraction) -> Fraction:
    """Return α·μ²/2, exactly: the divergence of N(0, 1) and N(μ, 1), which no μ-GDP mechanism exceeds.

    Source:
        Mironov 2017, Proposition 7; a μ-GDP pair is a post-processing of the Gaussian one (Blackwell 1951).
    """
    return order * mu_squared / 2


def zero_concentrated(rho: Fraction, order: Fraction) -> Fraction:
    """Return α·ρ, exactly: the definition of ρ-zCDP (Bun and Steinke 2016, Definition 1.1)."""
    return order * rho


def pure_up(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of randomized response, which is the most that any ε-DP mechanism has.

    ln((e^(αε) + e^((1−α)ε))/(1 + e^ε))/(α − 1), of which (α − 1)·ε is taken out.

    Source:
        Mironov 2017, Proposition 5, for randomized response; Steinke 2024 (Tight RDP & zCDP Bounds from Pure DP), which
        rests on Kairouz, Oh and Viswanath 2015: every ε-DP pair is a post-processing of it.
    """

    def divergence(e: Ball, a: Ball) -> Ball:
        return e + ((-(2 * a - 1) * e).exp().log1p() - (-e).exp().log1p()) / (a - 1)

    return _rounded_up(divergence, epsilon, order)


def laplace_up(distance: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of Laplace noise, where `distance` is the L1 sensitivity over the scale.

    ln((α·e^((α−1)x) + (α−1)·e^(−αx))/(2α − 1))/(α − 1) for x = distance, of which x is taken out. As a function of x
    the logarithm is convex and 0 at 0, hence superadditive: no vector at this L1 distance has more than one number.

    Source:
        Mironov 2017, Proposition 6; the argument for vectors is ours.
    """

    def divergence(x: Ball, a: Ball) -> Ball:
        return x + ((a + (a - 1) * (-(2 * a - 1) * x).exp()) / (2 * a - 1)).log() / (a - 1)

    return _rounded_up(divergence, distance, order)


def discrete_laplace_up(rate: Fraction, shift: int, order: Fraction) -> Fraction:
    """Return the divergence of discrete Laplace noise, P(x) ∝ q^|x|, q = e^(−rate), at the integer L1 distance `shift`.

    With s = q^(2α−1) and n = shift, sum the geometric series of P(x)^α·P(x−n)^(1−α) over x ≤ 0, 0 < x < n and x ≥ n:

        q^((1−α)n) · ((1 − qs) + (q − s)·s^n) / ((1 + q)(1 − s)).

    As q ≥ s, this is a sum of two exponentials in n with positive weights, and 1 at n = 0: its logarithm is convex,
    hence superadditive, and no vector of integers at this L1 distance has more than one number.
    """

    def divergence(r: Ball, n: Ball, a: Ball) -> Ball:
        q, s, far = (-r).exp(), (-(2 * a - 1) * r).exp(), (-(2 * a - 1) * r * n).exp()
        return r * n + ((1 - q * s + (q - s) * far) / ((1 + q) * (1 - s))).log() / (a - 1)

    return _rounded_up(divergence, rate, Fraction(shift), order) if shift else Fraction(0)


def bounded_range_up(eta: Fraction, order: Fraction) -> Fraction:
    """Return the most that any η-bounded-range mechanism has (the exponential mechanism, for one).

    The ratio L = P/Q lies between e^(t−η) and e^t for some t in [0, η], with mean 1 under Q. The mean of L^α, a convex
    function, is largest if L is at its ends only, with probabilities that the mean fixes. With r = e^(−η) and u = e^t
    that is (u^(α−1)·(1 − r^α) − u^α·(r − r^α))/(1 − r), largest at u = (α−1)(1 − r^α)/(α(r − r^α)), where it is
    u^(α−1)·(1 − r^α)/(α(1 − r)). This u is within [1, 1/r], by r^α ≥ 1 + α(r − 1) and by weighing 1 and r^α with 1/α
    and (α−1)/α against r^(α−1). The reverse direction is a pair of the same kind.

    Source:
        The two-point form is in Dong, Durfee and Rogers 2020 (Optimal Differential Privacy Composition for Exponential
        Mechanisms); the maximum is ours.
    """

    def divergence(e: Ball, a: Ball) -> Ball:
        whole, less = -(-a * e).expm1(), -(-(a - 1) * e).expm1()
        peak = e + ((a - 1) * whole / (a * less)).log()
        return peak + (whole / (-a * (-e).expm1())).log() / (a - 1)

    return _rounded_up(divergence, eta, order)


def _rounded_up(formula: Callable[..., Ball], size: Fraction, *others: Fraction) -> Fraction:
    """Evaluate a divergence, which is 0 for a size of 0 and is not above what it is at the finest precision."""
    if size == 0:
        return size
    return dyadic_up(max(Fraction(0), enclose_tightly(formula, size, *others, bits=_BITS).upper), _BITS)
