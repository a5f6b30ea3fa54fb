"""The transfer theorem as it was published: private and accurate on the sample is accurate for the population."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.exact.bounds import enclose
from lapwing.exact.floats import float_up
from lapwing.privacy.amounts import Number, non_negative, positive, share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """With probability 1 − failure, all answers are within `half_width` of the population's."""

    half_width: float
    failure: float


def transfer(
    half_width: Number, failure: Number, *, epsilon: Number, delta: Number, beyond: Number, slack: Number
) -> Transferred:
    """Return what (ε, δ)-DP for `replace_one` makes of accuracy on the sample: (α + e^ε − 1 + c + 2d, β/c + δ/d).

    This is Theorem 3.5 of Jung et al. 2020, for answers and questions in [0, 1]. Use it for comparison:
    `GaussianAnswers` and the holdout use the sharper bounds of `posterior_gap` and of `answers`.

    Args:
        half_width: α and β: with probability 1 − β all answers are within α of the sample's means.
        failure: As `half_width`.
        beyond: c, d > 0, as one likes.
        slack: As `beyond`.
    """
    alpha, beta = non_negative(half_width, "half_width"), share(failure, "failure")
    c, d = positive(beyond, "beyond"), positive(slack, "slack")
    moved = enclose(lambda e: e.expm1(), non_negative(epsilon, "epsilon")).upper
    lost = beta / c + share(delta, "delta") / d
    return Transferred(half_width=float_up(alpha + moved + c + 2 * d), failure=float_up(min(Fraction(1), lost)))
