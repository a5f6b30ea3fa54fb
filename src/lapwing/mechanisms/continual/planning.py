"""The mechanism with the least error for sums over time, by the measure of the loss that they may have."""

from fractions import Fraction
from typing import Final

from lapwing.mechanisms.continual.banded import best_banded
from lapwing.mechanisms.continual.fitting import MOST_BUFFERS, fitted
from lapwing.mechanisms.continual.gaussian import ContinualGaussian, Matrix
from lapwing.mechanisms.continual.participation import Participation
from lapwing.mechanisms.continual.tree import ContinualLaplace, best_tree
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss, PureDP

_WORTH: Final = 0.999
"""A band is taken whose error is so much of that of buffers, as it keeps more."""
ContinualMechanism = ContinualGaussian | ContinualLaplace


def continual_mechanism(
    loss: Loss,
    ticks: int,
    participation: Participation,
    *,
    window: int | None = None,
    norm: Number | Fraction = 1,
    buffers: int = MOST_BUFFERS,
) -> ContinualMechanism:
    """Return what releases sums at each tick at a loss: of all ticks so far, or of the last `window`.

    Guarantee:
        All ticks together lose at most `loss`, between streams that differ by one unit of `participation`. Each of its
        events changes the cells by at most `norm` in each tick.

    Args:
        ticks: From 1.
        norm: In steps, L1 for a pure loss and L2 for others.
        buffers: Numbers kept of each cell, up to 5, which is within 0.6 % of the best for a million ticks.
    """
    if isinstance(loss, PureDP):
        return ContinualLaplace.for_loss(loss, best_tree(ticks, window), participation, norm)
    matrix: Matrix = fitted(ticks, window, participation, buffers)
    band = best_banded(ticks, window, participation)
    if band is not None and band.error(participation) < _WORTH * matrix.error(participation):
        matrix = band
    return ContinualGaussian.for_loss(loss, matrix, participation, norm)
