"""How much noise each step needs, so that all steps together cost a price."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import square_root_up
from lapwing.learn.deep.sampling import CyclicSample, PoissonBatches, SubsetSample
from lapwing.privacy.dominating_gaussian import gaussian_above
from lapwing.privacy.measures import Loss, ZeroConcentratedDP
from lapwing.privacy.statements import composed, uses_of

_DIGITS: Final = 3
_LEAST, _MOST = 0.3, 1e4
_NEAR: Final = 0.99


def sigma_for(
    price: Loss, delta: Fraction, steps: int, sample: PoissonBatches | SubsetSample | CyclicSample
) -> Fraction:
    """Return a σ, in clips, with which steps cost at most a price. For one mechanism it is clips/μ, rounded up."""
    mu_squared = 2 * price.amount if isinstance(price, ZeroConcentratedDP) else price.amount
    if isinstance(sample, CyclicSample):
        return square_root_up(sample.clips**2 / mu_squared)
    return noise_for(mu_squared, delta, steps, sample)


@lru_cache(maxsize=32)
def noise_for(mu_squared: Fraction, delta: Fraction, steps: int, sample: PoissonBatches | SubsetSample) -> Fraction:
    """Return a σ, in clips, with which steps cost at most (μ, δ), and 1 % below μ at most if three digits can say it.

    The loss falls about as a power of σ, so that two figures say where to look for a third; the one that is returned
    was certified by `gaussian_above`, as the ledger certifies it again when it is charged.

    Raises:
        InvalidParameter: If none from 0.3 to 10,000 does.
    """
    known: dict[Fraction, float] = {}

    def loss(sigma: Fraction) -> float:
        if sigma not in known:
            try:
                uses = uses_of((sample.listed(sigma, steps),), sample.neighbouring)
                above = gaussian_above(composed(uses, None), delta)
                known[sigma] = float(above.exact_part.mu_squared / mu_squared)
            except InvalidParameter:  # more than can be said: more noise is needed
                known[sigma] = math.inf
        return known[sigma]

    # As small rates make it: μ² ≈ uses·rate²·(e^(c²/σ²) − 1) at the least, where neighbours move a sum by c clips.
    small = sample.listed(Fraction(1), steps).times * float(sample.rate) ** 2
    guess = sample.clips * math.sqrt(1 / math.log1p(float(mu_squared) / small))
    low, high = _LEAST, _MOST
    sigma = min(max(guess, low), high)
    for _ in range(40):
        at = _rounded_up(sigma)
        found = loss(at)
        if found <= 1:
            high = min(high, float(at))
        else:
            low = max(low, float(at))
        if _NEAR <= found <= 1 or high <= low * (1 + 1.01 * 10 ** (1 - _DIGITS)):
            break
        sigma = sigma * found ** (1 / 2) if 0 < found < 1e3 else 2 * sigma
        if not low < sigma < high:
            sigma = math.sqrt(low * high)
    kept = [at for at, found in known.items() if found <= 1]
    if not kept:
        raise InvalidParameter(
            f"No noise up to {_MOST:g} clips brings {steps} steps down to this cost; pay more, or use fewer steps or "
            f"a smaller batch. Nothing was charged."
        )
    return min(kept)


def _rounded_up(sigma: float) -> Fraction:
    """Return the least number of three digits that is not below σ."""
    unit = Fraction(10) ** (math.floor(math.log10(sigma)) + 1 - _DIGITS)
    return math.ceil(Fraction(sigma) / unit) * unit
