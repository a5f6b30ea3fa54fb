"""The probability that a unit shows a private key that only it holds, from the law of the noise, beside the delta.

A δ like 10⁻¹² shows in no sample. So it is computed from the threshold that a mechanism uses.
"""

import math
from typing import Any, Final

from lapwing.audit.exact_laws import distribution_of, normal
from lapwing.mechanisms.thresholding import CountThresholding
from lapwing.mechanisms.weighted_gaussian import WeightedGaussian

_ROUNDING: Final = 1 + 1e-6
"""More than double precision errs by here."""


def shows_own_keys(mechanism: Any) -> str | None:
    """Say that a threshold is too low for the delta of a selection; None if it is not.

    Let p be the probability that noise lifts a key of one unit to the threshold. Of t such keys one is released with
    1 − (1 − p)^t. With a minimum of m units the other m − 1 holders add at most 1 each.
    """
    if isinstance(mechanism, WeightedGaussian):
        shown = max(_any_of(t, _weighted(mechanism, t)) for t in range(1, mechanism.max_keys + 1))
    elif isinstance(mechanism, CountThresholding) and (law := distribution_of(mechanism.law)) is not None:
        shown = _any_of(mechanism.max_keys, law(mechanism.minimum - mechanism.threshold))
    else:
        return None
    if shown <= float(mechanism.delta) * _ROUNDING:
        return None
    return f"a unit shows keys of its own with a probability of {shown:.3g}, and δ is {float(mechanism.delta):.3g}"


def _weighted(mechanism: WeightedGaussian, keys: int) -> float:
    """Return P(round(noise) ≥ what lacks to the threshold), for one of so many keys; noise is symmetric."""
    one = 1 << mechanism.fraction_bits
    lacking = mechanism.threshold - (mechanism.minimum - 1) * one - math.isqrt(one * one // keys)
    return normal((0.5 - lacking) / (float(mechanism.sigma) * one))


def _any_of(keys: int, chance: float) -> float:
    return -math.expm1(keys * math.log1p(-chance)) if chance < 1 else 1.0
