"""How far a weighted sum of independent noise strays: bounds that hold for any weights of a given size.

Theory of operation. Let S = Σ c_i·X_i, X_i independent noise of one symmetric law, |c_i| ≤ 1 and Σ c_i² ≤ K. With
g(t) = ln E[e^(tX)], P(|S| > h) ≤ 2·e^(−th + Σ g(t·c_i)) for every t > 0 (Chernoff). Wherever g is at most a convex
function γ of t² that is 0 at 0, g(t·c) ≤ c²·γ(t²) as c² ≤ 1, and so P(|S| > h) ≤ 2·e^(−th + K·γ(t²)). The laws:

Discrete Laplace of scale s: g(t) = −ln(1 − A·(2cosh t − 2)), A = q/(1 − q)², q = e^(−1/s), for t < 1/s. In t², cosh t
is a series with positive terms, and −ln(1 − x) rises and is convex: so γ = g. As 2cosh t − 2 = (2·sinh(t/2))² and
A = 1/(2·sinh(1/(2s)))², the product of the two is the square of sinh(t/2)/sinh(1/(2s)).

Discrete Gaussian of variance parameter v: γ = v·t²/2. E[e^(tX)] is e^(vt²/2)·Σ f(x − vt)/Σ f(x) over the integers, with
f(x) = e^(−x²/(2v)), and the quotient is at most 1 by Poisson's formula, as the Fourier transform of f is positive.

Rounded Gaussian: γ = (σ² + ¼)·t²/2. P(X = k) is the density at k of σZ + U, U uniform on [−½, ½], whose E[e^(z(σZ+U))]
is F(z) = e^(σ²z²/2)·sinh(z/2)/(z/2). By Poisson's formula E[e^(tX)] = Σ F(t + 2πim) over all integers m. The terms of m
and −m together are F(t)·(−1)^m·e^(−2π²m²σ²) times t·((t/2)·cos θ + πm·sin θ)/((t/2)² + π²m²), θ = 2πmσ²t, which is at
most t²·(1/(2π²m²) + 2σ²) in size, since |sin θ| ≤ θ. With sinh(t/2)/(t/2) ≤ e^(t²/24) and 1 + x ≤ e^x, g(t) is at most
t²/2 times

    σ² + 1/12 + Σ_(m ≥ 1) e^(−am²)·(1/m² + 2a)/π²,   a = 2π²σ².

The sum falls as a grows. Its derivative is Σ e^(−am²)·(1 − 2am²)/π², which is negative term by term for a > ½. For
a ≤ ½, ϑ(a) = 1 + 2Σ e^(−am²) = √(π/a)·ϑ(π²/a), and 1 + 2Σ e^(−am²)·(1 − 2am²) = 2√a·(√a·ϑ(a))' =
4π·(π/a)^(3/2)·Σ m²·e^(−π²m²/a) < 10⁻⁴, so that it is negative again. For a → 0 the sum tends to Σ 1/(π²m²) = 1/6, as
2a·Σ e^(−am²) ≤ √(πa). So it is at most 1/6 always, and 1/12 + 1/6 = ¼.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch
from math import ceil, exp, expm1, inf, log, log1p

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.exact.floats import float_near
from lapwing.mechanisms.discrete_gaussian import DiscreteGaussian
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.search import minus_log

Noise = DiscreteLaplace | RoundedGaussian | DiscreteGaussian


@singledispatch
def sum_half_width(noise: object, weight: Fraction, tail: Fraction) -> int:
    """Return an h with P(|Σ c_i·X_i| > h) ≤ tail, for any weights with |c_i| ≤ 1 and Σ c_i² ≤ weight.

    Args:
        noise: A mechanism that adds noise.
        weight: K > 0.
        tail: Above 0, below 1.

    Raises:
        InvalidParameter: For any other mechanism, for which no bound is proven here.
    """
    raise InvalidParameter(
        f"A {type(noise).__name__} was given; it must be DiscreteLaplace, RoundedGaussian or DiscreteGaussian."
    )


@sum_half_width.register
def _(noise: DiscreteLaplace, weight: Fraction, tail: Fraction) -> int:
    rate = 1 / noise.scale

    def bound(t: Ball, r: Ball, k: Ball, p: Ball) -> Ball:
        return ((2 / p).log() - k * (1 - ((t / 2).sinh() / (r / 2).sinh()) ** 2).log()) / t

    def h(t: Fraction) -> Fraction:
        return enclose_tightly(bound, t, rate, weight, tail).upper

    # Every t gives a bound, so the best is looked for in floating point, and its bound is certified.
    width, far = float_near(rate / 2), log(2) + minus_log(tail)

    def near(share: float) -> float:
        part = exp(width * (share - 1)) * expm1(-2 * width * share) / expm1(-2 * width)  # sinh(t/2)/sinh(1/(2s))
        return (far - float_near(weight) * log1p(-(part**2))) / share if part < 1 else inf

    return ceil(h(rate * _lowest(near)))


@sum_half_width.register
def _(noise: RoundedGaussian, weight: Fraction, tail: Fraction) -> int:
    return _subgaussian(noise.sigma**2 + Fraction(1, 4), weight, tail)


@sum_half_width.register
def _(noise: DiscreteGaussian, weight: Fraction, tail: Fraction) -> int:
    return _subgaussian(noise.variance, weight, tail)


def _subgaussian(variance: Fraction, weight: Fraction, tail: Fraction) -> int:
    """Return √(2·K·v·ln(2/tail)) rounded up: the best t is h/(K·v)."""

    def bound(v: Ball, k: Ball, p: Ball) -> Ball:
        return (2 * k * v * (2 / p).log()).sqrt()

    return ceil(enclose_tightly(bound, variance, weight, tail).upper)


def _lowest(function: Callable[[float], float]) -> Fraction:
    """Return about where, between 0 and 1, a function that falls and then rises is lowest."""
    low, high = 0.0, 1.0
    for _ in range(64):
        first, second = (3 * low + 2 * high) / 5, (2 * low + 3 * high) / 5
        low, high = (low, second) if function(first) <= function(second) else (first, high)
    return Fraction(min(max(1, round((low + high) * (1 << 47))), (1 << 48) - 1), 1 << 48)
