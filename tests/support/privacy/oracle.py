"""The formulas of `privacy.conversions` written again, in 60-digit floating point and by other routes."""

from collections.abc import Callable
from fractions import Fraction

from mpmath import mp, mpf

DIGITS = 60
Real = mpf


def real(x: Fraction | float) -> mpf:
    """The number at 60 digits; a float is taken at its binary value."""
    x = Fraction(x)
    return mpf(x.numerator) / x.denominator


def normal(x: mpf) -> mpf:
    """Φ(x)."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gdp_delta(mu_squared: Fraction, epsilon: Fraction | mpf) -> mpf:
    """δ_μ(ε), as the mass by which N(μ, 1) exceeds e^ε·N(0, 1) beyond the point where they cross."""
    mu, e = mp.sqrt(real(mu_squared)), epsilon if isinstance(epsilon, mpf) else real(epsilon)
    crossing = e / mu + mu / 2
    return normal(mu - crossing) - mp.exp(e) * normal(-crossing)


def zcdp_delta(rho: Fraction, epsilon: Fraction | mpf) -> mpf:
    """min(1, inf over α of e^((α−1)(αρ−ε))/(α−1)·(1−1/α)^α), searched by thirds over ln(α − 1)."""
    r, e = real(rho), epsilon if isinstance(epsilon, mpf) else real(epsilon)

    def log_delta(u: mpf) -> mpf:
        a = mp.exp(u)
        return a * ((1 + a) * r - e) - mp.log(a) + (1 + a) * mp.log(a / (1 + a))

    low, high = mpf(-60), mpf(60)
    for _ in range(180):
        third = (high - low) / 3
        low, high = (low, high - third) if log_delta(low + third) < log_delta(high - third) else (low + third, high)
    return mp.exp(min(mpf(0), log_delta(low)))


def mu_of_pure(epsilon: Fraction) -> mpf:
    """2·Φ⁻¹(e^ε/(1 + e^ε))."""
    c = 1 / (1 + mp.exp(-real(epsilon)))
    return bisect(lambda mu: normal(mu / 2) - c, mpf(0), mpf(200))


def bisect(rising: Callable[[mpf], mpf], low: mpf, high: mpf, steps: int = 140) -> mpf:
    """The root of a rising function."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return high


def quantile(level: mpf) -> mpf:
    """Φ⁻¹ of a level up to a half, by Newton's steps on ln Φ, which is concave, from where a bisection stops.

    The error is squared by every step. mpmath's inverse of erf loses digits near its ends.
    """
    z = bisect(lambda at: normal(at) - level, mpf(-80), mpf(0), steps=14)
    for _ in range(6):
        z -= mp.log(normal(z) / level) * normal(z) / mp.npdf(z)
    return z


def discrete_delta(law: Callable[[int], mpf], shift: int, epsilon: Fraction, reach: int) -> mpf:
    """Σ over x of max(0, P(x) − e^ε·P(x − shift)), the δ of an integer noise at one shift, over |x| ≤ reach."""
    factor = mp.exp(real(epsilon))
    return mp.fsum(max(mpf(0), law(x) - factor * law(x - shift)) for x in range(-reach, reach + 1))


def renyi(law: Callable[[int], mpf], shift: int, order: mpf, reach: int) -> mpf:
    """The Rényi divergence of an integer noise from its shift, over |x| ≤ reach."""
    terms = (law(x) ** order * law(x - shift) ** (1 - order) for x in range(-reach, reach + 1))
    return mp.log(mp.fsum(terms)) / (order - 1)
