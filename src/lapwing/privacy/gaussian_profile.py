"""The meaning of μ-Gaussian differential privacy in (ε, δ): its privacy profile, exactly, and the largest μ within it.

Arguments are exact and results certified: `_up` is never below the true value, `_down` never above it. The profile is
evaluated in ball arithmetic. An inverse is searched on a grid of rationals, where only a point counts that the profile
is proven to accept.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly, normal_cdf_ball, normal_pdf_ball
from lapwing.privacy.amounts import GRID
from lapwing.privacy.search import largest, minus_log

_BITS = 64
SEARCH_BITS = 160
_NEGLIGIBLE = Fraction(1, 1 << 16384)
_SENSIBLE = 10**12


def gdp_delta_ball(mu: Ball, epsilon: Ball) -> Ball:
    """Return δ_μ(ε) as a ball; see `gdp_delta_up`."""
    far = epsilon / mu
    return normal_cdf_ball(mu / 2 - far) - epsilon.exp() * normal_cdf_ball(-mu / 2 - far)


def _gdp_delta_of_square_ball(mu_squared: Ball, epsilon: Ball) -> Ball:
    return gdp_delta_ball(mu_squared.sqrt(), epsilon)


@lru_cache(maxsize=1 << 12)
def gdp_delta_up(mu_squared: Fraction, epsilon: Fraction, bits: int = _BITS) -> Fraction:
    """Return the δ for which μ-GDP is (ε, δ)-DP, for μ², ε ≥ 0.

    δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2), exactly: no smaller δ holds.

    At the ends of the range one term is bounded instead: δ ≤ Φ(−x) ≤ e^(−x²/2) < 2⁻¹⁶³⁸⁴ for
    x = ε/μ − μ/2 ≥ 160, and δ ≤ Φ(−x) for μ² > 10¹².

    Source:
        Dong, Roth and Su 2022, Corollary 1; Balle and Wang 2018, Theorem 8.
    """
    if mu_squared == 0:
        return Fraction(0)
    gap = epsilon - mu_squared / 2
    if gap > 0 and gap**2 >= 160**2 * mu_squared:
        return _NEGLIGIBLE
    if mu_squared > _SENSIBLE:
        bounds = enclose_tightly(lambda m, g: normal_cdf_ball(-g / m.sqrt()), mu_squared, gap, bits=bits)
    else:
        bounds = enclose_tightly(_gdp_delta_of_square_ball, mu_squared, epsilon, bits=bits)
    return min(Fraction(1), bounds.upper)


@lru_cache(maxsize=1 << 12)
def gdp_mu_squared_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest μ² on GRID for which μ-GDP is (ε, δ)-DP, for ε ≥ 0, 0 < δ < 1 (0 if there is none)."""
    tail = normal_tail(delta)
    root = Fraction(math.isqrt(math.floor((tail**2 + 2 * epsilon) * 4**_BITS)) + 1, 2**_BITS)  # a guess
    start = 2 * epsilon / (tail + root)
    guess = newton(_mu_step_ball, max(start, 5 * delta / 2), epsilon, delta)
    return GRID * largest(  # points of a search are not asked twice: they go around the cache, not into it
        lambda n: gdp_delta_up.__wrapped__(n * GRID, epsilon, SEARCH_BITS) <= delta,
        guess=math.floor(guess**2 / GRID),
    )


def _mu_step_ball(mu: Ball, epsilon: Ball, delta: Ball) -> Ball:
    # Newton's method on log δ_μ(ε), which rises in μ with slope φ(ε/μ − μ/2)/δ_μ(ε).
    here = gdp_delta_ball(mu, epsilon)
    return mu - (here / delta).log() * here / normal_pdf_ball(epsilon / mu - mu / 2)


def newton(step: Callable[..., Ball], start: Fraction, *arguments: Fraction) -> Fraction:
    """Return a guess near the fixed point of a step; where the step cannot be evaluated, the last point before."""
    point = start
    for _ in range(64):
        try:
            after = enclose_tightly(step, point, *arguments, bits=128).upper
        except ArithmeticError:
            return point
        after = dyadic_up(max(after, point / 8), 128)
        if abs(after - point) <= point / (1 << 100):
            return after
        point = after
    return point


def normal_tail(delta: Fraction) -> Fraction:
    """Return about √(2·ln(1/δ)), which is above the standard normal's quantile at δ."""
    return Fraction(math.sqrt(2 * minus_log(delta)))
