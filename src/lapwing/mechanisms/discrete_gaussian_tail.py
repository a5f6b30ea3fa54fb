"""The two-sided tail of the discrete Gaussian, with a proven error: a sum without a closed form.

Let f(x) = e^(−x²/(2v)) on the integers and σ = √v. For small v the terms are added up. For large v the
Euler-Maclaurin formula turns the sum into an integral and corrections that fall like (2πσ)^(−2j).
"""

import math
from fractions import Fraction

from lapwing.exact.bounds import Ball, Enclosure, enclose_tightly, normal_cdf_ball, normal_pdf_ball

_BITS = 128
# Relative to the tail, what is left out is below 2^−(_BITS + 12).
_LEFT_OUT = (_BITS + 12) * math.log(2)
_ADDED_UP = 40**2
# Φ(−39) < 10^−330, and no confidence is within 10^−300 of 1.
_FARTHEST_SQUARED = 39**2


def tail(variance: Fraction, h: int) -> Enclosure:
    """Bound P(|X| > h) for P(X = x) ∝ f(x), h ≥ 0, to 128 binary digits; tails below 10^−330 for v > 1600 from above.

    There the bound is the rounded Gaussian's tail 2Φ(−(h + ½)/σ): f is convex beyond σ, so that f(x) is at most its
    integral over [x − ½, x + ½], and f sums to more than its integral σ√(2π) (`_large`).
    """
    half_odd = Fraction(2 * h + 1, 2)
    if variance <= _ADDED_UP:
        return enclose_tightly(lambda v: 2 * _beyond(v, h) / (1 + 2 * _beyond(v, 0)), variance, bits=_BITS)
    if half_odd**2 > _FARTHEST_SQUARED * variance:
        upper = enclose_tightly(lambda v, a: 2 * normal_cdf_ball(-a / v.sqrt()), variance, half_odd, bits=_BITS).upper
        return Enclosure(Fraction(0), upper)
    order = _order(variance, half_odd)
    return enclose_tightly(lambda v, a: _large(v, a, order), variance, half_odd, bits=_BITS)


def _beyond(v: Ball, h: int) -> Ball:
    """Return Σ f(x) over x > h, as f(x + 1) = f(x)·q_x with q_x = e^(−(2x + 1)/(2v)).

    The ratios fall, so that the terms from N on sum to at most f(N)/(1 − q_N).
    """
    first = h + 1
    spread = 2 * _LEFT_OUT * float(v.mid())
    count = math.ceil(spread / (math.sqrt(float(first**2) + spread) + first)) + 1
    term, ratio, step = (-first * first / (2 * v)).exp(), (-(2 * first + 1) / (2 * v)).exp(), (-1 / v).exp()
    total = term * 0
    for _ in range(count):
        total += term
        term, ratio = term * ratio, ratio * step
    return total + _up_to(term / (1 - ratio))


def _large(v: Ball, a: Ball, order: int) -> Ball:
    """Return 2·Σ f(a + ½ + k)/Σ f(x) over k ≥ 0 and over all integers x, for a half-odd a > 0.

    With y = a/σ, f^(n)(a) = (−1)^n·He_n(y)·f(a)/σ^n, and c_j = −B_2j(½)/(2j)! = (1 − 2^(1−2j))·B_2j/(2j)!, the
    Euler-Maclaurin formula for midpoints says

        Σ f(a + ½ + k) / (σ√(2π))  =  Φ(−y) − φ(y)·Σ_(j ≤ m) c_j·He_(2j−1)(y)/σ^(2j) + R.

    As |B_2m(x)| ≤ |B_2m| on [0, 1] and E[|He_2m(N)|; N > y] ≤ √((2m)!·Φ(−y)) (Cauchy and Schwarz, E[He_n²] = n!),
    |R| ≤ |B_2m|·√(Φ(−y)/(2m)!)/σ^(2m). By Poisson's formula Σ f(x) = σ√(2π)·(1 + 2·Σ_(k ≥ 1) e^(−2π²vk²)).
    """
    y = a / v.sqrt()
    beyond = normal_cdf_ball(-y)
    before, here, factorial, power = 0 * y + 1, y, 0 * y + 1, 0 * y + 1
    corrections = 0 * y
    for j in range(1, order + 1):
        factorial *= 2 * j * (2 * j - 1)
        power *= v
        corrections += (1 - Ball(2) ** (1 - 2 * j)) * Ball.bernoulli(2 * j) / factorial * here / power
        for n in (2 * j - 1, 2 * j):  # He_(n+1) = y·He_n − n·He_(n−1)
            before, here = here, y * here - n * before
    remainder = abs(Ball.bernoulli(2 * order)) * (beyond / factorial).sqrt() / power
    wave = (-2 * Ball.pi() ** 2 * v).exp()
    return (
        2 * (beyond - normal_pdf_ball(y) * corrections + remainder * Ball(0, 1)) / (1 + 2 * _up_to(wave / (1 - wave)))
    )


def _up_to(most: Ball) -> Ball:
    """Return the ball of all numbers from 0 to `most`."""
    return most * Ball(0.5, 0.5)


def _order(variance: Fraction, half_odd: Fraction) -> int:
    """Return how many corrections leave out little enough, by |B_2m| ≈ 2·(2m)!/(2π)^(2m): a guess, proven later."""
    y = float(half_odd) / math.sqrt(variance)
    wanted = -y * y / 4 - math.log1p(y) / 2 - _LEFT_OUT
    fall = math.log(2 * math.pi) + math.log(float(variance)) / 2
    order = 1
    while math.lgamma(2 * order + 1) / 2 - 2 * order * fall > wanted:
        order += 1
    return order
