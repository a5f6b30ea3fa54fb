"""From a promise in (ε, δ) to the loss that keeps it."""

from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import exact, probability
from lapwing.privacy.concentrated_profile import zcdp_rho_down
from lapwing.privacy.gaussian_profile import gdp_mu_squared_down
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP, privacy_measure_of


def loss_for(kind: str, epsilon: Fraction, delta: Fraction) -> Loss:
    """Return the largest loss of a measure that is certified to imply (epsilon, delta)-DP, for budgets and queries.

    A pure loss is ε itself and δ is not used. The others are rounded down to GRID.

    Args:
        kind: Pure, gdp or zcdp.
        epsilon: Above 0.
        delta: Above 0 and below 1, for pure from 0.

    Raises:
        InvalidParameter: If no such loss is above zero.
    """
    privacy_measure_of(kind)
    epsilon, delta = exact(epsilon, "epsilon"), exact(delta, "delta")
    if epsilon <= 0:
        raise InvalidParameter(f"epsilon is {short(epsilon)}; it must be above 0: smaller is more private, 1 is usual.")
    if not 0 <= delta < 1:
        raise InvalidParameter(f"delta is {short(delta)}; it must be at least 0 and below 1: 1e-6 is usual.")
    if kind == PureDP.kind:
        return PureDP(epsilon)
    if delta == 0:
        raise InvalidParameter(
            f"delta is 0, at which a {kind} ledger promises nothing; give a delta above 0 such as 1e-6, "
            "or use the pure measure."
        )
    probability(delta, "delta")
    loss: Loss = (
        GaussianDP.from_amount(gdp_mu_squared_down(epsilon, delta))
        if kind == GaussianDP.kind
        else ZeroConcentratedDP(zcdp_rho_down(epsilon, delta))
    )
    if loss.amount == 0:
        raise InvalidParameter(
            f"(ε = {short(epsilon)}, δ = {short(delta)}) is finer than a {kind} loss can be; give more."
        )
    return loss
