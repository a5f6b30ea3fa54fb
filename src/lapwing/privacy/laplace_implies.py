"""What Laplace noise implies in μ and in ρ, directly: less than its ε does, which is that of randomized response.

A vector that moves by at most `distance` in L1, in scales of the noise, has the loss of one number that moves that
far: for the discrete Laplace in μ, or of as many numbers that move by 1 each. What it has in ρ is in
`laplace_divergence`. The loss of the discrete Laplace is below, that of the continuous one in `continuous_laplace`.

In μ. For −Φ⁻¹(a) − Φ⁻¹(b) with a·b = κ: ln Φ is concave, so ln κ ≤ 2·ln Φ((Φ⁻¹(a) + Φ⁻¹(b))/2), and the value is at
most −2Φ⁻¹(√κ). Trade-off functions of Laplace noise consist of points (a, b) with a·b = κ and of chords between such
and the ends (0, 1), (1, 0). That of μ-GDP is convex with the same ends, so it is below as soon as it is at the points:
μ = −2Φ⁻¹(√κ) is enough.

- Laplace at distance x: κ = e^(−x)/4. As h = μ/2 has x = −2·ln(2Φ(−h)), μ² has the slope 4h/λ(h) in x, with λ(h) =
  φ(h)/Φ(−h). It rises, as λ < h + 1/h makes λ/h fall. So μ² is convex in x, 0 at 0, and superadditive.
- Discrete Laplace at distance n ≥ 1: the points are P(X > j) = q^(j+1)/(1 + q) and P(X ≤ j − n) = q^(n−j)/(1 + q), so
  κ = q^(n+1)/(1 + q)². Again μ² is convex in n ≥ 1. Hence the sum of μ² over a vector at L1 distance n is largest if
  all of its moves but one are 1 and then, being convex in how many they are, at one move of n or n moves of 1.

Source:
    The proofs are ours.
"""

from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly, normal_two_sided_quantile_ball
from lapwing.privacy.conversions import gdp_from_pure_up
from lapwing.privacy.laplace_divergence import zcdp_from_discrete_laplace_up
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP

_BITS = 64
_SENSIBLE = 10**4


@lru_cache(maxsize=1 << 10)
def gdp_from_discrete_laplace_up(rate: Fraction, distance: int) -> Fraction:
    """Return the μ² of discrete Laplace noise for integers at L1 distance n, rounded up.

    The larger of μ = −2Φ⁻¹(q^((n+1)/2)/(1 + q)), which one number at an odd distance attains, and of n numbers at
    distance 1. For n·rate > 10⁴ it is 8n·rate, which is more than either, as Φ(−μ/2) ≤ e^(−μ²/8)/2.
    """
    if distance == 0 or distance * rate > _SENSIBLE:
        return 8 * distance * rate

    def square(r: Ball, n: Ball) -> Ball:
        return 4 * normal_two_sided_quantile_ball(2 * (-r * (n + 1) / 2).exp() / (1 + (-r).exp())) ** 2

    together = enclose_tightly(square, rate, Fraction(distance), bits=_BITS).upper
    apart = enclose_tightly(square, rate, Fraction(1), bits=_BITS).upper
    return dyadic_up(max(together, distance * apart), _BITS)


def discrete_laplace_loss(rate: Fraction, distance: int, kind: str) -> Loss:
    """Return the loss of discrete Laplace noise of scale 1/rate in pure, gdp or zcdp, for integers at an L1 distance.

    Raises:
        InvalidParameter: For another kind.
    """
    if kind == GaussianDP.kind:
        # For many moves of 1 the bound for any ε-DP mechanism may be the smaller.
        direct = gdp_from_discrete_laplace_up(rate, distance)
        return GaussianDP.from_amount(min(direct, gdp_from_pure_up(rate * distance)))
    if kind == ZeroConcentratedDP.kind:
        return ZeroConcentratedDP(zcdp_from_discrete_laplace_up(rate, distance))
    return PureDP(rate * distance).to_kind(kind)
