"""What a loss towards one unit implies towards several together, where more than one number is at stake.

Groups of k units are k steps from neighbour to neighbour. For ε, μ and ρ alone see `for_group` of the measures.
"""

import math
from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import (
    Ball,
    dyadic_up,
    enclose_tightly,
    normal_cdf_ball,
    normal_two_sided_quantile_ball,
)
from lapwing.privacy.search import minus_log

_BITS = 64


@lru_cache(maxsize=1 << 12)
def group_delta_up(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """Return the δ of an (ε, δ) loss towards `size` units: δ·(e^(size·ε) − 1)/(e^ε − 1), rounded up, at most 1.

    Source:
        Vadhan 2017 (The Complexity of Differential Privacy), Lemma 2.2, summing its geometric series.
    """
    if delta == 0 or size == 1:
        return delta
    if epsilon == 0:
        return min(Fraction(1), size * delta)
    if (size - 1) * epsilon > math.ceil(minus_log(delta)) + 1:
        return Fraction(1)
    bounds = enclose_tightly(
        lambda e, d, k: d * (k * e).expm1() / e.expm1(), epsilon, delta, Fraction(size), bits=_BITS
    )
    return min(Fraction(1), dyadic_up(bounds.upper, _BITS))


def gaussian_group_delta_up(mu_squared: Fraction, delta: Fraction, size: int) -> Fraction:
    """Return a δ' for which a (μ, δ) loss towards one unit is (size·μ, δ') towards `size` units, rounded up.

    Let g_μ(x) = Φ(Φ⁻¹(x) + μ), the power of a test of level x between N(0, 1) and N(μ, 1). A test between (μ, δ)
    neighbours of level x has power at most F_{μ,δ}(x) = δ + (1 − δ)·g_μ(min(1, x/(1 − δ))), and a pair of laws is
    (μ, δ) if and only if that holds for all tests: F_{μ,δ} is attained by the pair that shows with probability δ which
    law it is and else draws from N(0, 1) or N(μ, 1), and every pair that is no easier to tell apart is a
    post-processing of it (Blackwell 1951). From neighbour to neighbour powers compose, so it suffices that

        F_{μ,δ}∘F_{m,d} ≤ F_{μ+m,e} for e = max(F_{μ,δ}(d), F_{m,d}(δ)),

    applied to halves: size = i + j with the group's δ_i and δ_j, δ_1 = δ. For two units this is F_{μ,δ}(δ) exactly,
    below which no δ' is, as F_{2μ,δ'}(0) = δ'. For more it exceeds the least value possible, F_{μ,δ} applied `size`
    times to 0, by a few per cent.

    Proof. F_{μ,δ} = A_δ∘g_μ∘B_δ with A_δ(y) = 1 − (1 − δ)(1 − y), B_δ(x) = min(1, x/(1 − δ)). If δ + d ≥ 1 then e = 1.
    Else B_δ∘A_d = A_a∘B_b with a = d/(1 − δ), b = δ/(1 − d).

    1. g(st) ≤ g(s)·g(t): with s = Φ(z), the function x ↦ −ln g at x = −ln s has slope λ(z + μ)/λ(z), λ = φ/Φ, whose
       logarithm has the slope (ln λ)'(z + μ) − (ln λ)'(z) in z. This is negative as ln λ is concave: its second
       derivative is −1 + zλ + λ², minus the variance of a normal number below z. So −ln g grows ever faster from 0
       at x = 0, hence is superadditive.
    2. With G(u) = 1 − g(1 − u), the inverse of g, G(uv) ≥ G(u)·G(v): apply the first to s = G(u), t = G(v). That says
       g∘A_a ≤ A_{g(a)}∘g.
    3. B_b∘g ≤ g∘B_{g(b)}: for t = 1 − g(b) and st = x ≤ t the first says g(x) ≤ g(s)·g(t), and g(t) = 1 − b.

    So F_{μ,δ}∘F_{m,d} = A_δ∘g_μ∘A_a∘B_b∘g_m∘B_d ≤ A_δ∘A_{g_μ(a)}∘g_μ∘g_m∘B_{g_m(b)}∘B_d. The two A are that of
    1 − (1 − δ)(1 − g_μ(a)) = F_{μ,δ}(d), the two B that of F_{m,d}(δ), and A and B grow with their index. ∎

    Source:
        Dong, Roth and Su 2022, on group privacy, for composing trade-off functions; the bound is ours.
    """
    if size == 1 or delta in (0, 1):
        return delta
    if mu_squared == 0 or size * delta >= 1:
        return min(Fraction(1), size * delta)
    return _halved(mu_squared, delta, size)


@lru_cache(maxsize=1 << 10)
def _halved(mu_squared: Fraction, delta: Fraction, size: int) -> Fraction:
    if size == 1:
        return delta
    i, j = size // 2, size - size // 2
    first, second = _halved(mu_squared, delta, i), _halved(mu_squared, delta, j)
    return max(
        _power_up(i**2 * mu_squared, first, level=second),
        _power_up(j**2 * mu_squared, second, level=first) if i != j else Fraction(0),
    )


def _power_up(mu_squared: Fraction, delta: Fraction, *, level: Fraction) -> Fraction:
    """Return F_{μ,δ}(level), rounded up to 64 binary digits."""
    share = level / (1 - delta) if delta < 1 else Fraction(1)
    if share >= 1:
        return Fraction(1)

    def power(m: Ball, d: Ball, x: Ball) -> Ball:
        return d + (1 - d) * normal_cdf_ball(m.sqrt() - normal_two_sided_quantile_ball(2 * x))

    return min(Fraction(1), dyadic_up(enclose_tightly(power, mu_squared, delta, share, bits=_BITS).upper, _BITS))
