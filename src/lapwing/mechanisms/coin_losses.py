"""The exact losses of a coin of k faces that shows the true one with probability p, and each other with r ≤ p.

P = (p, r, r, …, r) and Q = (r, p, r, …, r) are its laws for two true faces, so that p + (k − 1)·r = 1; s = p + r, and
the probability 1 − s of the faces that are neither is the same in both.
"""

from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import Ball, dyadic_up, enclose, enclose_tightly
from lapwing.privacy.pure_concentrated import zcdp_from_pure_up

_BITS = 64
_SEARCH_BITS = 256
_FINE = Fraction(1, 1 << 44)
_cached = lru_cache(maxsize=1 << 10)


@_cached
def pure_up(p: Fraction, r: Fraction) -> Fraction:
    """Return ε = ln(p/r), rounded up: attained where the true face shows."""
    return dyadic_up(enclose_tightly(Ball.log, p / r, bits=_BITS).upper, _BITS) if p > r else Fraction(0)


@_cached
def gdp_up(p: Fraction, r: Fraction) -> Fraction:
    """Return μ² for μ = Φ⁻¹(p) − Φ⁻¹(r), rounded up.

    The best tests of P against Q reject at the second face, or at all but the first, and mix these: the trade-off
    function is three chords (two for k = 2) with corners at (r, 1 − p) and (1 − p, r). That of μ-GDP is convex with
    the same ends, so it lies below the chords as soon as it does at the corners: Φ(Φ⁻¹(1 − r) − μ) ≤ 1 − p, and the
    same at the other by symmetry. That is μ ≥ Φ⁻¹(p) − Φ⁻¹(r), and no smaller μ does.
    """
    if p == r:
        return Fraction(0)

    def mu_squared(change: Ball, r: Ball) -> Ball:
        # Φ⁻¹(1 − x) = −Φ⁻¹(x) = √2·erfc⁻¹(2x).
        return 2 * ((2 * change).erfcinv() + (2 * r).erfcinv()) ** 2

    return dyadic_up(enclose_tightly(mu_squared, 1 - p, r, bits=_BITS).upper, _BITS)


@_cached
def zcdp_up(p: Fraction, r: Fraction) -> Fraction:
    """Return ρ = sup over α > 1 of D_α(P‖Q)/α, rounded up, to about 44 binary digits.

    With t = α − ½, u = t² and α(α − 1) = u − ¼, the ratio is R(u) = N(u)/(u − ¼) for

        N(u) = ln(1 − s + s·C(u)),   C(u) = cosh(ε√u)/cosh(ε/2),   N(¼) = 0.

    R is unimodal on u > ¼. For R(u) = ρ says that e^(ρ(u−¼)) − (1 − s) − s·C(u) = 0, a power series in u whose
    coefficients from the first on are a_n − b_n with a_n = e^(−ρ/4)ρ^n/n!, b_n = s·ε^(2n)/((2n)!·cosh(ε/2)). As
    (a_(n+1)/b_(n+1))/(a_n/b_n) = 2(2n + 1)ρ/ε² rises with n, these are first positive, then negative, then positive
    (or fewer of that); with the zeroth there are at most three changes of sign, hence at most three positive roots,
    counted as often as they are repeated (Descartes' rule, which holds for such series). One is ¼. So R takes no value
    more than twice beyond ¼, and it falls to 0: it falls throughout, or rises and then falls.

    If N''(¼) = s·(ε² − 2ετ) − s²ε²τ² < 0, τ = tanh(ε/2), it falls, from R(¼) = N'(¼) = (p − r)·ε, the Kullback-Leibler
    divergence; so it is for k = 2 (`zcdp_from_pure_up`) and up to k = 5 or so. Else its summit is enclosed between
    t_1 < t_2 by comparing values, and R ≤ N(t_2²)/(t_1² − ¼) there, since N rises. Where comparing fails, the ρ of any
    ε-DP mechanism is returned.
    """
    if p == r:
        return Fraction(0)
    if p + r == 1:
        return zcdp_from_pure_up(pure_up(p, r))
    curvature = enclose(_curvature_ball, p, r, bits=_SEARCH_BITS)
    if curvature.upper < 0:
        return dyadic_up(enclose_tightly(lambda p, r: (p - r) * (p / r).log(), p, r, bits=_BITS).upper, _BITS)
    always = zcdp_from_pure_up(pure_up(p, r))
    low, high = _summit(p, r) if curvature.lower > 0 else (Fraction(1, 2), Fraction(1))
    if low == Fraction(1, 2):
        return always
    above = enclose(_log_moment_ball, p, r, high, bits=_SEARCH_BITS).upper
    return min(always, dyadic_up(above / (low**2 - Fraction(1, 4)), _BITS))


def _curvature_ball(p: Ball, r: Ball) -> Ball:
    epsilon = (p / r).log()
    tau = (epsilon / 2).tanh()
    return epsilon - 2 * tau - (p + r) * epsilon * tau**2


def _log_moment_ball(p: Ball, r: Ball, t: Ball) -> Ball:
    epsilon = (p / r).log()
    return ((p + r) * ((epsilon * t).cosh() / (epsilon / 2).cosh() - 1)).log1p()


def _summit(p: Fraction, r: Fraction) -> tuple[Fraction, Fraction]:
    """Return a narrow interval of t that the summit of R lies in, given that R rises from t = ½ on."""

    def ratio(p: Ball, r: Ball, t: Ball) -> Ball:
        return _log_moment_ball(p, r, t) / (t**2 - 0.25)

    def rises(t: Fraction, further: Fraction) -> bool | None:
        here, there = (enclose(ratio, p, r, point, bits=_SEARCH_BITS) for point in (t, further))
        return True if here.upper < there.lower else False if there.upper < here.lower else None

    low, high = Fraction(1, 2), Fraction(2)
    while rises(high / 2, high) is not False:
        high *= 2
    while high - low > _FINE * low:
        third = (high - low) / 3
        first = Fraction(round((low + third) * (1 << 64)), 1 << 64)
        second = first + Fraction(round(third * (1 << 64)), 1 << 64)
        risen = rises(first, second)
        if risen is None:
            break
        low, high = (first, high) if risen else (low, second)
    return low, high
