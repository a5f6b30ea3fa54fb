"""What ε a loss of μ implies at a δ: the inverse of the privacy profile that `gaussian_profile` has."""

import math
from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import Ball, dyadic_unit, normal_cdf_ball, square_root_up
from lapwing.privacy.gaussian_profile import SEARCH_BITS, gdp_delta_ball, gdp_delta_up, newton, normal_tail
from lapwing.privacy.search import smallest


@lru_cache(maxsize=1 << 12)
def gdp_epsilon_up(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Return the ε for which μ-GDP is (ε, δ)-DP, for 0 < δ < 1: the inverse of δ_μ, to 60 binary digits."""

    def holds(epsilon: Fraction) -> bool:
        # Points of a search are not asked twice: they go around the cache, not into it.
        return gdp_delta_up.__wrapped__(mu_squared, epsilon, SEARCH_BITS) <= delta

    if holds(Fraction(0)):
        return Fraction(0)
    mu = square_root_up(mu_squared)
    start = mu_squared / 2 + mu * normal_tail(delta)
    guess = newton(_epsilon_step_ball, start, mu, delta)
    unit = dyadic_unit(guess, 60)
    return smallest(lambda n: holds(n * unit), guess=math.ceil(guess / unit)) * unit


def _epsilon_step_ball(epsilon: Ball, mu: Ball, delta: Ball) -> Ball:
    # Newton's method on log δ_μ(ε), which is concave and falls with slope −e^ε·Φ(−ε/μ − μ/2)/δ_μ(ε).
    here = gdp_delta_ball(mu, epsilon)
    slope = epsilon.exp() * normal_cdf_ball(-epsilon / mu - mu / 2)
    return epsilon + (here / delta).log() * here / slope
