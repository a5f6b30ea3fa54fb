"""How far the ranks of a distribution stray: public facts of its tree and of the noise in its nodes.

The estimate of #{x ≤ v} − q·n errs by a weighted sum of the noise in the nodes (`mechanisms.trees`), of which
`noisy_sums` bounds how large it is. The bound is for one point v and one q: what follows from it for a quantile needs
it at two points alone, the quantile and the one before (`noisy_trees`), not at all points at once.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.mechanisms.trees import Floats, largest_weight, spreads
from lapwing.query.derivation.derived import INTERVAL_CONFIDENCE, OrderStatistic
from lapwing.query.measures import Distribution

_AN_OCTAVE: Final = 8
"""Weights are rounded up to so many values between one power of two and the next, to have few bounds to compute."""
_LEAST: Final = 2.0**-6
"""Smaller weights, down to 0 for what is estimated to be nothing, are rounded up to this."""


def rank_error(measure: Distribution, noise: NoiseLaw, confidence: Fraction, share: Fraction | None = None) -> int:
    """Return an e such that at each point v the estimate of #{x ≤ v} − q·n is within e rows, with this confidence.

    Args: share: the q; None for any q.
    """
    if share is None:
        return _bound(noise, largest_weight(measure.sizes, measure.branching), 1 - confidence)
    return int(rank_margins(measure, noise, share, 1 - confidence).max())


def rank_note(statistic: OrderStatistic, noise: NoiseLaw) -> str:
    """Say how far the rank of an order statistic is off, and from how wide a step its value is read."""
    measure = statistic.distribution
    width = f"{float(measure.width * measure.type.step):g} {statistic.unit}".rstrip()
    read_off = f"; read off steps of {width}" if measure.width > 1 else ""
    if statistic.kind == "extreme":
        beyond = rank_error(measure, noise, 2 * INTERVAL_CONFIDENCE - 1, statistic.share)
        side = "below" if statistic.share == 0 else "above"
        return f"about {beyond:,} rows are {side} it, as noise hides the outermost{read_off}"
    return f"its rank is within {rank_error(measure, noise, INTERVAL_CONFIDENCE, statistic.share):,} rows{read_off}"


def rank_margins(measure: Distribution, noise: NoiseLaw, share: Fraction, tail: Fraction) -> Floats:
    """Return at each leaf an e with P(|the estimate of #{x ≤ leaf} − share·n errs by| > e) ≤ tail."""
    weights = np.maximum(spreads(measure.sizes, measure.branching).weights(float(share)), _LEAST)
    steps = np.ceil(np.log2(weights) * _AN_OCTAVE).astype(np.int64)
    values, places = np.unique(steps, return_inverse=True)
    bounds = [_bound(noise, _weight(int(step)), tail) for step in values]
    found: Floats = np.array(bounds, dtype=np.float64)[places]
    return found


def _weight(step: int) -> Fraction:
    """Return 2^(step/8), rounded up far beyond what logarithms err by."""
    return Fraction(2.0 ** (step / _AN_OCTAVE)) * Fraction(1_000_001, 1_000_000)


@lru_cache(maxsize=4096)
def _bound(noise: NoiseLaw, weight: Fraction, tail: Fraction) -> int:
    return sum_half_width(noise, weight, tail)
