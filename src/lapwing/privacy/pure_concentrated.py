"""What ε-differential privacy implies in ρ, and the ε that a ρ allows.

Losses err upwards, budgets downwards, as in `conversions`.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import dyadic_unit, dyadic_up, enclose_tightly
from lapwing.privacy.search import largest

_BITS = 64


@lru_cache(maxsize=1 << 12)
def zcdp_from_pure_up(epsilon: Fraction) -> Fraction:
    """Return the ρ of any ε-DP mechanism: ρ = ε·tanh(ε/2), rounded up; at most the classical ε²/2.

    By post-processing it suffices to bound randomized response (Kairouz, Oh and Viswanath 2015), whose divergence of
    order α = t + ½ is ln(cosh(εt)/cosh(ε/2))/(α−1), and α(α−1) = t² − ¼. As a function of u = t², ln cosh(ε√u) is
    concave, its slope ε·tanh(ε√u)/(2√u) being decreasing; so it stays below its tangent at u = ¼, whose slope is
    ε·tanh(ε/2). Hence the divergence is at most α·ε·tanh(ε/2), with equality as α → 1.

    Source:
        Steinke 2024 (Tight RDP & zCDP Bounds from Pure DP); the tangent argument is ours.
    """
    if epsilon == 0:
        return epsilon
    return dyadic_up(enclose_tightly(lambda e: e * (e / 2).tanh(), epsilon, bits=_BITS).upper, _BITS)


@lru_cache(maxsize=1 << 12)
def pure_from_zcdp_down(rho: Fraction) -> Fraction:
    """Return the largest ε of 60 binary digits at which every ε-DP mechanism is ρ-zCDP (see `zcdp_from_pure_up`)."""
    if rho == 0:
        return rho
    near = float(rho)
    guess = rising_root(lambda e: e * math.tanh(e / 2) - near)
    unit = dyadic_unit(guess, 60)
    return unit * largest(lambda n: zcdp_from_pure_up.__wrapped__(n * unit) <= rho, guess=math.floor(guess / unit))


def rising_root(function: Callable[[float], float]) -> Fraction:
    """Return about the root of a rising function on (0, ∞), by bisection of its exponent: a guess, in floats."""
    low, high = -300.0, 300.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if function(2.0**middle) < 0 else (low, middle)
    return Fraction(2.0**high)
