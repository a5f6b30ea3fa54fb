"""What a loss in one measure implies in another: every formula once, with its source.

Arguments are exact and results are certified: `_up` means never below the true value, `_down` never above it. A
formula is evaluated in ball arithmetic (`exact.bounds`); an inverse is searched on a grid of rationals, where only a
point that the formula is proven to accept counts. Losses err upwards, budgets downwards, so that no rounding makes a
stated loss too small.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import (
    Ball,
    dyadic_unit,
    dyadic_up,
    enclose_tightly,
    normal_cdf_ball,
    normal_pdf_ball,
    square_root_up,
)
from lapwing.privacy.amounts import GRID, grid_down
from lapwing.privacy.search import largest, smallest

_BITS = 64
_SEARCH_BITS = 160
_NEGLIGIBLE = Fraction(1, 1 << 16384)
_SENSIBLE = 10**12

_cached = lru_cache(maxsize=1 << 12)


# Gaussian


def _gdp_delta_ball(mu: Ball, epsilon: Ball) -> Ball:
    far = epsilon / mu
    return normal_cdf_ball(mu / 2 - far) - epsilon.exp() * normal_cdf_ball(-mu / 2 - far)


def _gdp_delta_of_square_ball(mu_squared: Ball, epsilon: Ball) -> Ball:
    return _gdp_delta_ball(mu_squared.sqrt(), epsilon)


@_cached
def gdp_delta_up(mu_squared: Fraction, epsilon: Fraction, bits: int = _BITS) -> Fraction:
    """Return the δ for which μ-GDP is (ε, δ)-DP, for μ², ε ≥ 0.

    δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2), exactly: no smaller δ holds.

    At the ends of the range one term is bounded instead: δ ≤ Φ(−x) ≤ e^(−x²/2) < 2⁻¹⁶³⁸⁴ for
    x = ε/μ − μ/2 ≥ 160, and δ ≤ Φ(−x) for μ² > 10¹².

    Source: Dong, Roth and Su 2022, Corollary 1; Balle and Wang 2018, Theorem 8.
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


@_cached
def gdp_epsilon_up(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Return the ε for which μ-GDP is (ε, δ)-DP, for 0 < δ < 1: the inverse of δ_μ, to 60 binary digits."""

    def holds(epsilon: Fraction) -> bool:
        # Points of a search are not asked twice: they go around the cache, not into it.
        return gdp_delta_up.__wrapped__(mu_squared, epsilon, _SEARCH_BITS) <= delta

    if holds(Fraction(0)):
        return Fraction(0)
    mu = square_root_up(mu_squared)
    start = mu_squared / 2 + mu * _normal_tail(delta)
    guess = _newton(_epsilon_step_ball, start, mu, delta)
    unit = dyadic_unit(guess, 60)
    return smallest(lambda n: holds(n * unit), guess=math.ceil(guess / unit)) * unit


@_cached
def gdp_mu_squared_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest μ² on GRID for which μ-GDP is (ε, δ)-DP, for ε ≥ 0, 0 < δ < 1 (0 if there is none)."""
    tail = _normal_tail(delta)
    start = 2 * epsilon / (tail + square_root_up(tail**2 + 2 * epsilon)) if epsilon else Fraction(0)
    guess = _newton(_mu_step_ball, max(start, 5 * delta / 2), epsilon, delta)
    return GRID * largest(
        lambda n: gdp_delta_up.__wrapped__(n * GRID, epsilon, _SEARCH_BITS) <= delta,
        guess=math.floor(guess**2 / GRID),
    )


def _epsilon_step_ball(epsilon: Ball, mu: Ball, delta: Ball) -> Ball:
    # Newton's method on log δ_μ(ε), which is concave and falls with slope −e^ε·Φ(−ε/μ − μ/2)/δ_μ(ε).
    here = _gdp_delta_ball(mu, epsilon)
    slope = epsilon.exp() * normal_cdf_ball(-epsilon / mu - mu / 2)
    return epsilon + (here / delta).log() * here / slope


def _mu_step_ball(mu: Ball, epsilon: Ball, delta: Ball) -> Ball:
    # Newton's method on log δ_μ(ε), which rises in μ with slope φ(ε/μ − μ/2)/δ_μ(ε).
    here = _gdp_delta_ball(mu, epsilon)
    return mu - (here / delta).log() * here / normal_pdf_ball(epsilon / mu - mu / 2)


def _newton(step: Callable[..., Ball], start: Fraction, *arguments: Fraction) -> Fraction:
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


def _normal_tail(delta: Fraction) -> Fraction:
    """Return about √(2·ln(1/δ)), which is above the standard normal's quantile at δ."""
    return Fraction(math.sqrt(2 * _minus_log(delta)))


# Zero-concentrated


@_cached
def zcdp_delta_up(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return a δ for which ρ-zCDP implies (ε, δ)-DP, for ρ, ε ≥ 0.

    δ = inf over α > 1 of e^((α−1)(αρ−ε)) / (α−1) · (1 − 1/α)^α. Every α gives a valid δ, so the best α is found in
    floating point, as the root of (2α−1)ρ − ε + ln(1 − 1/α), and the bound is certified there.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    if rho == 0:
        return Fraction(0)
    rho_near, epsilon_near = float(rho), float(epsilon)
    order = _rising_root(lambda a: (2 * a + 1) * rho_near - epsilon_near - math.log1p(1 / a))

    def bound(r: Ball, e: Ball, a: Ball) -> Ball:
        return (a * ((1 + a) * r - e) + a * a.log() - (1 + a) * a.log1p()).min(0).exp()

    return min(Fraction(1), enclose_tightly(bound, rho, epsilon, order, bits=_BITS).upper)


@_cached
def zcdp_epsilon_up(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an ε for which ρ-zCDP implies (ε, δ)-DP, for 0 < δ < 1.

    The bound of `zcdp_delta_up` solved for ε: ε = inf over α > 1 of ρα + ln(1/(αδ))/(α−1) + ln(1 − 1/α). The best α
    is the root of ρ(α−1)² = ln(1/(αδ)), at which the derivative in α vanishes.
    """
    if rho == 0:
        return Fraction(0)
    rho_near, log_near = float(rho), _minus_log(delta)
    order = _rising_root(lambda a: rho_near * a * a + math.log1p(a) - log_near)

    def bound(r: Ball, d: Ball, a: Ball) -> Ball:
        return r * (1 + a) - (d.log() + a.log1p()) / a - (1 / a).log1p()

    return max(Fraction(0), enclose_tightly(bound, rho, delta, order, bits=_BITS).upper)


@_cached
def zcdp_rho_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a ρ on GRID for which ρ-zCDP implies (ε, δ)-DP, for ε ≥ 0, 0 < δ < 1 (0 if there is none).

    The bound of `zcdp_delta_up` solved for ρ: ρ = sup over α > 1 of (ε − ln(1/(αδ))/(α−1) − ln(1 − 1/α))/α. The best
    α is the root of (α−1)²·(ε − ln(1 − 1/α)) = (2α−1)·ln(1/(αδ)).
    """
    epsilon_near, log_near = float(epsilon), _minus_log(delta)
    order = _rising_root(lambda a: a * a / (2 * a + 1) * (epsilon_near + math.log1p(1 / a)) + math.log1p(a) - log_near)

    def bound(e: Ball, d: Ball, a: Ball) -> Ball:
        return (e + (d.log() + a.log1p()) / a + (1 / a).log1p()) / (1 + a)

    return max(Fraction(0), grid_down(enclose_tightly(bound, epsilon, delta, order, bits=_SEARCH_BITS).lower))


def _rising_root(function: Callable[[float], float]) -> Fraction:
    """Return about the root a = α − 1 of a rising function on (0, ∞), by bisection of its exponent."""
    low, high = -300.0, 300.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if function(2.0**middle) < 0 else (low, middle)
    return Fraction(2.0**high)


def _minus_log(x: Fraction) -> float:
    return math.log(x.denominator) - math.log(x.numerator)


# Pure


@_cached
def pure_delta_up(loss: Fraction, epsilon: Fraction) -> Fraction:
    """Return the δ for which `loss`-DP is (ε, δ)-DP.

    δ = (e^loss − e^ε)/(1 + e^loss), attained by randomized response, of which every loss-DP pair is a
    post-processing; 0 from ε = loss upwards.

    Source: Kairouz, Oh and Viswanath 2015 (The Composition Theorem for Differential Privacy), on one mechanism.
    """
    if epsilon >= loss:
        return Fraction(0)
    bounds = enclose_tightly(lambda gap, x: (1 - (-gap).exp()) / (1 + (-x).exp()), loss - epsilon, loss, bits=_BITS)
    return min(Fraction(1), bounds.upper)


@_cached
def gdp_from_pure_up(epsilon: Fraction) -> Fraction:
    """Return the μ² of any ε-DP mechanism: μ = 2·Φ⁻¹(e^ε/(1 + e^ε)), rounded up.

    An ε-DP mechanism's trade-off function is at least max(0, 1 − e^ε·x, e^(−ε)·(1 − x)) (Wasserman and Zhou 2010),
    which is made of two chords, from (0, 1) to (c, c) to (1, 0) with c = 1/(1 + e^ε). That of μ-GDP is convex with
    the same ends, so it lies below both as soon as it is at most c at c: Φ(Φ⁻¹(1 − c) − μ) ≤ c, so μ ≥ 2·Φ⁻¹(1 − c).
    """
    if epsilon == 0:
        return epsilon
    return dyadic_up(
        enclose_tightly(lambda e: 8 * (2 / (1 + e.exp())).erfcinv() ** 2, epsilon, bits=_BITS).upper, _BITS
    )


@_cached
def zcdp_from_pure_up(epsilon: Fraction) -> Fraction:
    """Return the ρ of any ε-DP mechanism: ρ = ε·tanh(ε/2), rounded up; at most the classical ε²/2.

    By post-processing it suffices to bound randomized response (Kairouz, Oh and Viswanath 2015), whose divergence of
    order α = t + ½ is ln(cosh(εt)/cosh(ε/2))/(α−1), and α(α−1) = t² − ¼. As a function of u = t², ln cosh(ε√u) is
    concave, its slope ε·tanh(ε√u)/(2√u) being decreasing; so it stays below its tangent at u = ¼, whose slope is
    ε·tanh(ε/2). Hence the divergence is at most α·ε·tanh(ε/2), with equality as α → 1.

    Source: Steinke 2024 (Tight RDP & zCDP Bounds from Pure DP); the tangent argument is ours.
    """
    if epsilon == 0:
        return epsilon
    return dyadic_up(enclose_tightly(lambda e: e * (e / 2).tanh(), epsilon, bits=_BITS).upper, _BITS)


@_cached
def pure_from_gdp_down(mu_squared: Fraction) -> Fraction:
    """Return an ε at which every ε-DP mechanism is μ-GDP: ln(Φ(μ/2)/Φ(−μ/2)), the inverse of `gdp_from_pure_up`.

    For μ² > 10¹² it is μ²/8, which is less, as Φ(−μ/2) ≤ e^(−μ²/8)/2 ≤ 1/(1 + e^(μ²/8)).
    """
    if mu_squared == 0 or mu_squared > _SENSIBLE:
        return mu_squared / 8

    def bound(m: Ball) -> Ball:
        return normal_cdf_ball(m.sqrt() / 2).log() - normal_cdf_ball(-m.sqrt() / 2).log()

    return enclose_tightly(bound, mu_squared, bits=_BITS).lower


@_cached
def pure_from_zcdp_down(rho: Fraction) -> Fraction:
    """Return the largest ε of 60 binary digits at which every ε-DP mechanism is ρ-zCDP (see `zcdp_from_pure_up`)."""
    if rho == 0:
        return rho
    near = float(rho)
    guess = _rising_root(lambda e: e * math.tanh(e / 2) - near)
    unit = dyadic_unit(guess, 60)
    return unit * largest(lambda n: zcdp_from_pure_up.__wrapped__(n * unit) <= rho, guess=math.floor(guess / unit))


# Bounded range


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

    Source: Cesar and Rogers 2021 (Bounding, Concentrating, and Truncating), Lemma 3.2.
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


def bounded_range_down(kind: str, amount: Fraction) -> Fraction:
    """Return about the largest η whose every η-bounded-range mechanism has at most this amount in measure `kind`."""
    if kind == "gdp":
        return 2 * pure_from_gdp_down(amount)
    if kind == "zcdp":
        # The root is exact, or too large by less than 2⁻⁶⁰ of itself.
        root = square_root_up(8 * amount)
        return root if root**2 == 8 * amount else root * (1 - Fraction(1, 1 << 60))
    return amount


# Approximate


@_cached
def group_delta_up(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """Return the δ of an (ε, δ) loss towards `size` units: δ·(e^(size·ε) − 1)/(e^ε − 1), rounded up, at most 1.

    Source: Vadhan 2017 (The Complexity of Differential Privacy), Lemma 2.2, summing its geometric series.
    """
    if delta == 0 or size == 1:
        return delta
    if epsilon == 0:
        return min(Fraction(1), size * delta)
    if (size - 1) * epsilon > math.ceil(_minus_log(delta)) + 1:
        return Fraction(1)
    bounds = enclose_tightly(
        lambda e, d, k: d * (k * e).expm1() / e.expm1(), epsilon, delta, Fraction(size), bits=_BITS
    )
    return min(Fraction(1), dyadic_up(bounds.upper, _BITS))


# Between the measures of a ledger

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

    Raises: InvalidParameter if a loss in `source` implies none in `kind`.
    """
    if kind == source or amount == 0:
        return amount
    if (source, kind) in _AMOUNTS:
        return _AMOUNTS[source, kind](amount)
    reason = _NO_CONVERSION.get((source, kind), "no theorem is known")
    raise InvalidParameter(
        f"A {source} loss does not convert to {kind} ({reason}); use a mechanism that states {kind}."
    )
