"""Implications of a loss in one measure for another: the table, and what ε-differential privacy implies, with inverses.

Losses err upwards, budgets downwards, so that no rounding makes a stated loss too small. Every ε-DP pair of laws is a
post-processing of randomized response, P = (e^ε, 1)/(1 + e^ε) and Q = (1, e^ε)/(1 + e^ε). (Kairouz, Oh and Viswanath
2015 have the proof.) So a bound for that pair is one for all.

Each formula is written once, with its source: what ε, μ and ρ mean in (ε, δ) in `pure_profile`, `gaussian_profile` and
`concentrated_profile`, what ε means in ρ in `pure_concentrated`, what bounded range implies in `bounded_range`, what
Laplace noise implies beyond its ε in `laplace_implies`, `continuous_laplace` and `laplace_divergence`, and groups in
`groups`.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly, normal_cdf_ball
from lapwing.privacy.pure_concentrated import pure_from_zcdp_down, zcdp_from_pure_up

_BITS = 64
_SENSIBLE = 10**12


@lru_cache(maxsize=1 << 12)
def gdp_from_pure_up(epsilon: Fraction) -> Fraction:
    """Return the μ² of any ε-DP mechanism: μ = 2·Φ⁻¹(e^ε/(1 + e^ε)), rounded up.

    An ε-DP mechanism's trade-off function is at least max(0, 1 − e^ε·x, e^(−ε)·(1 − x)) (Wasserman and Zhou 2010),
    which is made of two chords, from (0, 1) to (c, c) to (1, 0) with c = 1/(1 + e^ε). For μ-GDP it is convex with
    the same ends. So it lies below both as soon as it is at most c at c: Φ(Φ⁻¹(1 − c) − μ) ≤ c, so μ ≥ 2·Φ⁻¹(1 − c).
    """
    if epsilon == 0:
        return epsilon
    return dyadic_up(
        enclose_tightly(lambda e: 8 * (2 / (1 + e.exp())).erfcinv() ** 2, epsilon, bits=_BITS).upper, _BITS
    )


@lru_cache(maxsize=1 << 12)
def pure_from_gdp_down(mu_squared: Fraction) -> Fraction:
    """Return an ε at which every ε-DP mechanism is μ-GDP: ln(Φ(μ/2)/Φ(−μ/2)), the inverse of `gdp_from_pure_up`.

    For μ² > 10¹² it is μ²/8, which is less, as Φ(−μ/2) ≤ e^(−μ²/8)/2 ≤ 1/(1 + e^(μ²/8)).
    """
    if mu_squared == 0 or mu_squared > _SENSIBLE:
        return mu_squared / 8

    def bound(m: Ball) -> Ball:
        return normal_cdf_ball(m.sqrt() / 2).log() - normal_cdf_ball(-m.sqrt() / 2).log()

    return enclose_tightly(bound, mu_squared, bits=_BITS).lower


_AMOUNTS: dict[tuple[str, str], Callable[[Fraction], Fraction]] = {
    ("pure", "gdp"): gdp_from_pure_up,
    ("pure", "zcdp"): zcdp_from_pure_up,
    # A μ-GDP pair is a post-processing of N(0, 1) and N(μ, 1), whose divergence of order α is α·μ²/2.
    ("gdp", "zcdp"): lambda mu_squared: mu_squared / 2,
}

_PURE: dict[str, Callable[[Fraction], Fraction]] = {
    "pure": lambda epsilon: epsilon,
    "gdp": pure_from_gdp_down,
    "zcdp": pure_from_zcdp_down,
}

_NO_CONVERSION = {
    ("zcdp", "gdp"): "ρ-zCDP does not imply √(2ρ)-GDP: the discrete Gaussian of σ = 1 has 1.2 times the δ at ε = 3",
    ("gdp", "pure"): "Gaussian noise has no finite ε at δ = 0",
    ("zcdp", "pure"): "a zCDP loss has no finite ε at δ = 0",
}


def pure_epsilon_down(kind: str, amount: Fraction) -> Fraction:
    """Return about the largest ε whose every ε-DP mechanism has at most this amount in measure `kind`."""
    return _PURE[kind](amount)


def amount_in(kind: str, source: str, amount: Fraction) -> Fraction:
    """Return the amount in measure `kind` that an amount in measure `source` implies, rounded up.

    Raises:
        InvalidParameter: If a loss in `source` implies none in `kind`.
    """
    if kind == source or amount == 0:
        return amount
    if (source, kind) in _AMOUNTS:
        return _AMOUNTS[source, kind](amount)
    reason = _NO_CONVERSION.get((source, kind), "no theorem is known")
    raise InvalidParameter(
        f"A {source} loss does not convert to {kind} ({reason}); use a mechanism that states {kind}."
    )
