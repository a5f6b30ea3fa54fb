"""Measures of privacy loss: what a mechanism's output can reveal about one privacy unit. All names in one place.

`additive` has those of one number that adds up, which a ledger holds (`additive_loss` what these have in common);
`approximate` those that allow for a failure with probability δ; `renyi` curves of Rényi divergences.
"""

from lapwing.privacy.additive import GaussianDP as GaussianDP
from lapwing.privacy.additive import Loss as Loss
from lapwing.privacy.additive import PureDP as PureDP
from lapwing.privacy.additive import ZeroConcentratedDP as ZeroConcentratedDP
from lapwing.privacy.additive_loss import PRIVACY_MEASURES as PRIVACY_MEASURES
from lapwing.privacy.additive_loss import from_record as from_record
from lapwing.privacy.additive_loss import privacy_measure_of as privacy_measure_of
from lapwing.privacy.amounts import GRID as GRID
from lapwing.privacy.amounts import Number as Number
from lapwing.privacy.amounts import exact as exact
from lapwing.privacy.approximate import ApproxDP as ApproxDP
from lapwing.privacy.approximate import ApproximateGaussianDP as ApproximateGaussianDP
from lapwing.privacy.approximate import ApproximateLoss as ApproximateLoss
from lapwing.privacy.approximate import ApproximateZeroConcentratedDP as ApproximateZeroConcentratedDP
