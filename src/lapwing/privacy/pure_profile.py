"""What ε-differential privacy means at another ε: its privacy profile, rounded up."""

from fractions import Fraction
from functools import lru_cache

from lapwing.exact.bounds import enclose_tightly

_BITS = 64


@lru_cache(maxsize=1 << 12)
def pure_delta_up(loss: Fraction, epsilon: Fraction) -> Fraction:
    """Return the δ for which `loss`-DP is (ε, δ)-DP.

    δ = (e^loss − e^ε)/(1 + e^loss), attained by randomized response, of which every loss-DP pair is a
    post-processing; 0 from ε = loss upwards.

    Source:
        Kairouz, Oh and Viswanath 2015 (The Composition Theorem for Differential Privacy), on one mechanism.
    """
    if epsilon >= loss:
        return Fraction(0)
    bounds = enclose_tightly(lambda gap, x: (1 - (-gap).exp()) / (1 + (-x).exp()), loss - epsilon, loss, bits=_BITS)
    return min(Fraction(1), bounds.upper)
