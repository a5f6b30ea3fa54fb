"""How much of a pure loss, or of a bounded range, a mechanism may spend within a given loss."""

import math
from fractions import Fraction

from lapwing.exact.bounds import dyadic_unit
from lapwing.mechanisms.noisy import SCALE_BITS, check_positive
from lapwing.privacy.bounded_range import bounded_range_amount, bounded_range_down
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.measures import Loss, PureDP
from lapwing.privacy.search import largest


def pure_within(loss: Loss) -> Fraction:
    """Return the largest ε whose every ε-DP mechanism keeps a loss: exactly if it is pure, else of 45 binary digits.

    Raises: InvalidParameter if the loss is 0.
    """
    check_positive(loss)
    if isinstance(loss, PureDP):
        return loss.epsilon
    near = pure_epsilon_down(loss.kind, loss.amount)
    unit = dyadic_unit(near, SCALE_BITS)
    return unit * largest(lambda n: PureDP(n * unit).to_kind(loss.kind) <= loss, guess=math.floor(near / unit))


def range_within(loss: Loss) -> Fraction:
    """Return the largest η whose every η-bounded-range mechanism keeps a loss: exactly if pure, else of 45 digits.

    Raises: InvalidParameter if the loss is 0.
    """
    check_positive(loss)
    if isinstance(loss, PureDP):
        return loss.epsilon
    near = bounded_range_down(loss.kind, loss.amount)
    unit = dyadic_unit(near, SCALE_BITS)
    return unit * largest(
        lambda n: bounded_range_amount(loss.kind, n * unit) <= loss.amount, guess=math.floor(near / unit)
    )
