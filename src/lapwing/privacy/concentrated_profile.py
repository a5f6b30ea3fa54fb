"""What ρ-zero-concentrated differential privacy implies in (ε, δ): a bound on its privacy profile, and its inverses.

Arguments are exact and results certified: `_up` is never below the bound's true value, `_down` never above it. The
order α at which a bound is evaluated is a guess in floating point; every order gives a valid bound.
"""

import math
from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.privacy.amounts import grid_down
from lapwing.privacy.pure_concentrated import rising_root
from lapwing.privacy.search import minus_log

_BITS = 64
_SEARCH_BITS = 160


@lru_cache(maxsize=1 << 12)
def zcdp_delta_up(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return a δ for which ρ-zCDP implies (ε, δ)-DP, for ρ, ε ≥ 0.

    δ = inf over α > 1 of e^((α−1)(αρ−ε)) / (α−1) · (1 − 1/α)^α. Every α gives a valid δ, so the best α is found in
    floating point, as the root of (2α−1)ρ − ε + ln(1 − 1/α), and the bound is certified there.

    Source:
        Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    if rho == 0:
        return Fraction(0)
    rho_near, epsilon_near = float(rho), float(epsilon)
    order = rising_root(lambda a: (2 * a + 1) * rho_near - epsilon_near - math.log1p(1 / a))

    def bound(r: Ball, e: Ball, a: Ball) -> Ball:
        return (a * ((1 + a) * r - e) + a * a.log() - (1 + a) * a.log1p()).min(0).exp()

    return min(Fraction(1), enclose_tightly(bound, rho, epsilon, order, bits=_BITS).upper)


@lru_cache(maxsize=1 << 12)
def zcdp_epsilon_up(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an ε for which ρ-zCDP implies (ε, δ)-DP, for 0 < δ < 1.

    The bound of `zcdp_delta_up` solved for ε: ε = inf over α > 1 of ρα + ln(1/(αδ))/(α−1) + ln(1 − 1/α). The best α
    is the root of ρ(α−1)² = ln(1/(αδ)), at which the derivative in α vanishes.
    """
    if rho == 0:
        return Fraction(0)
    rho_near, log_near = float(rho), minus_log(delta)
    order = rising_root(lambda a: rho_near * a * a + math.log1p(a) - log_near)

    def bound(r: Ball, d: Ball, a: Ball) -> Ball:
        return r * (1 + a) - (d.log() + a.log1p()) / a - (1 / a).log1p()

    return max(Fraction(0), enclose_tightly(bound, rho, delta, order, bits=_BITS).upper)


@lru_cache(maxsize=1 << 12)
def zcdp_rho_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a ρ on GRID for which ρ-zCDP implies (ε, δ)-DP, for ε ≥ 0, 0 < δ < 1 (0 if there is none).

    The bound of `zcdp_delta_up` solved for ρ: ρ = sup over α > 1 of (ε − ln(1/(αδ))/(α−1) − ln(1 − 1/α))/α. The best
    α is the root of (α−1)²·(ε − ln(1 − 1/α)) = (2α−1)·ln(1/(αδ)).
    """
    epsilon_near, log_near = float(epsilon), minus_log(delta)
    order = rising_root(lambda a: a * a / (2 * a + 1) * (epsilon_near + math.log1p(1 / a)) + math.log1p(a) - log_near)

    def bound(e: Ball, d: Ball, a: Ball) -> Ball:
        return (e + (d.log() + a.log1p()) / a + (1 / a).log1p()) / (1 + a)

    return max(Fraction(0), grid_down(enclose_tightly(bound, epsilon, delta, order, bits=_SEARCH_BITS).lower))
