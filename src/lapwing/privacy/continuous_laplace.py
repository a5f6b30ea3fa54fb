"""What continuous Laplace noise implies in μ and in ρ, for whoever lists such a mechanism: no question draws it.

The proofs stand in `laplace_implies` (μ) and `laplace_divergence` (ρ), with those of the discrete law.
"""

from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import dyadic_up, enclose_tightly, normal_two_sided_quantile_ball
from lapwing.privacy.laplace_divergence import zcdp_from_laplace_up
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP

_BITS = 64
_SENSIBLE = 10**4


@lru_cache(maxsize=1 << 10)
def gdp_from_laplace_up(distance: Fraction) -> Fraction:
    """Return the μ² of Laplace noise, μ = −2Φ⁻¹(e^(−x/2)/2) for x = L1 sensitivity over scale, rounded up.

    The least possible for one number. For x > 10⁴ it is 4x, which is more, as e^(−x/2)/2 = Φ(−μ/2) ≤ e^(−μ²/8)/2.
    """
    if distance == 0 or distance > _SENSIBLE:
        return 4 * distance
    bounds = enclose_tightly(lambda x: 4 * normal_two_sided_quantile_ball((-x / 2).exp()) ** 2, distance, bits=_BITS)
    return dyadic_up(bounds.upper, _BITS)


def laplace_loss(distance: Fraction, kind: str) -> Loss:
    """Return the loss of Laplace noise in pure, gdp or zcdp, for an L1 sensitivity in scales of the noise.

    Raises:
        InvalidParameter: For another kind.
    """
    if kind == GaussianDP.kind:
        return GaussianDP.from_mu_squared(gdp_from_laplace_up(distance))
    if kind == ZeroConcentratedDP.kind:
        return ZeroConcentratedDP(zcdp_from_laplace_up(distance))
    return PureDP(distance).to_kind(kind)
