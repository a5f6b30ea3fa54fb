"""What Laplace noise implies in ρ, directly: less than its ε does, which is that of randomized response.

Let K(α) = (α − 1)·D_α, t = α − ½, and u = t², so that α(α − 1) = u − ¼. If K is a concave function of u, it stays
below its tangent at u = ¼, where it is 0 and has the slope K'(1) = KL: so D_α ≤ α·KL for all α > 1, and ρ = KL is
the least possible. A function of u that is a product of factors 1 + u/v², v real, has a concave logarithm.

- Laplace at distance x: e^(K + x/2) = cosh(xt) + sinh(xt)/(2t), an entire function of u of order ½. Where it is 0,
  y(s) = sinh(ts)/t solves y'' = u·y with y(0) = 0 and y'(x) = −y(x)/2, a self-adjoint problem in which u·∫y² =
  −∫y'² − y(x)²/2 < 0. So all its zeros are real and negative, and Hadamard's product has the form above.
- Discrete Laplace, q = e^(−r), at distance n: e^(K + rn/2)·(1 + q)·sinh(rt) = sinh((n+1)rt) − q·sinh((n−1)rt). Over
  sinh(rt) that is a polynomial of degree n in cosh(rt). It has n zeros cos θ in (−1, 1), as
  sin((n+1)θ) − q·sin((n−1)θ) changes sign between each two of the n + 1 angles with sin((n+1)θ) = ±1; they are
  symmetric about 0. Its factors are cosh²(rt) − cos²θ = (cosh(2rt) − cos(2θ))/2, and cosh(rt) if n is odd, both of
  which are products of the form above.

KL is convex in the distance and 0 at 0, hence superadditive: a vector that moves by at most `distance` in L1, in scales
of the noise, has no more than one number that moves that far.

Source:
    Harrison and Manurangsi 2025 (arXiv 2510.25746) have ρ for Laplace noise; the proofs here are ours.
"""

from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly

_BITS = 64


@lru_cache(maxsize=1 << 10)
def zcdp_from_laplace_up(distance: Fraction) -> Fraction:
    """Return the ρ of Laplace noise, x + e^(−x) − 1 for x = L1 sensitivity over scale, rounded up."""
    if distance == 0:
        return distance
    return dyadic_up(enclose_tightly(lambda x: x + (-x).expm1(), distance, bits=_BITS).upper, _BITS)


@lru_cache(maxsize=1 << 10)
def zcdp_from_discrete_laplace_up(rate: Fraction, distance: int) -> Fraction:
    """Return the ρ of discrete Laplace noise for integers at L1 distance n, rounded up: the least possible.

    r·(n − 2q(1 − q^n)/(1 − q²)) for r = rate = 1/scale, q = e^(−r).
    """
    if distance == 0 or rate == 0:
        return Fraction(0)

    def divergence(r: Ball, n: Ball) -> Ball:
        q = (-r).exp()
        return r * (n - 2 * q / (1 + q) * (-r * n).expm1() / (-r).expm1())

    return dyadic_up(enclose_tightly(divergence, rate, Fraction(distance), bits=_BITS).upper, _BITS)
