"""Measures of privacy loss: what a mechanism's output can reveal about one privacy unit. All names in one place.

`additive` has those of one number that adds up, which a ledger holds; `approximate` those that allow for a failure with
probability δ; `renyi` curves of Rényi divergences.
"""

from lapwing.privacy.additive import (
    MEASURES,
    GaussianDP,
    Loss,
    PureDP,
    ZeroConcentratedDP,
    from_record,
    measure_of,
)
from lapwing.privacy.amounts import GRID, Number, exact
from lapwing.privacy.approximate import (
    ApproxDP,
    ApproximateGaussianDP,
    ApproximateLoss,
    ApproximateZeroConcentratedDP,
)

__all__ = [
    "GRID",
    "MEASURES",
    "ApproxDP",
    "ApproximateGaussianDP",
    "ApproximateLoss",
    "ApproximateZeroConcentratedDP",
    "GaussianDP",
    "Loss",
    "Number",
    "PureDP",
    "ZeroConcentratedDP",
    "exact",
    "from_record",
    "measure_of",
]
