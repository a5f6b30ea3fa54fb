"""Shares that are shares: at least 0, and 1 in all. By projection, or by maximum likelihood."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local.frequencies.randomizer import Randomizer, Reports

MOST_CELLS: Final = 50_000_000
"""Different reports times values of which the maximum likelihood is sought."""
_MOST_STEPS: Final = 20_000
_GAP: Final = 1e-3

Shares = NDArray[np.float64]


def on_simplex(raw: Shares) -> Shares:
    """Return the nearest point of the simplex: all shares less the same amount, and none below 0.

    Source:
        Held, Wolfe and Crowder 1974; in local privacy "Norm-Sub" (Wang et al. 2020).
    """
    falling = np.sort(raw)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, raw.size + 1)
    last = np.flatnonzero(falling > excess)[-1]
    shares: Shares = np.maximum(raw - excess[last], 0)
    return shares


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Likeliest:
    """Shares whose log-likelihood is within `gap` of the greatest that any have."""

    shares: Shares
    gap: float


def likeliest(mechanism: Randomizer, reports: Reports) -> Likeliest:
    """Return the shares under which the reports are most likely, by expectation maximisation.

    With the likelihoods L of n reports and shares f, a step multiplies f_v by g_v = mean of L_v/(L·f). The
    log-likelihood ℓ is concave, with gradient n·g, so no shares have more than ℓ(f) + n·(max g − 1). The search ends
    where the second term is small, and returns it.

    Raises:
        InvalidParameter: For no reports, or for too many different ones.
    """
    if not len(reports):
        raise InvalidParameter("There are no reports, so there are no most likely shares.")
    if reports.ndim == 1:
        reports, counts = np.unique(reports, return_counts=True)
    else:
        counts = np.ones(len(reports), dtype=np.int64)
    if len(reports) * mechanism.categories > MOST_CELLS:
        raise InvalidParameter(f"Reports times values are more than {MOST_CELLS:,}; take the projection.")
    likelihoods, weights = mechanism.likelihoods(reports), counts / counts.sum()
    shares = np.full(mechanism.categories, 1 / mechanism.categories)
    gap = np.inf
    for _ in range(_MOST_STEPS):
        growth = (weights / (likelihoods @ shares)) @ likelihoods
        gap = float(counts.sum() * max(0.0, growth.max() - 1))
        if gap <= _GAP:
            break
        shares = shares * growth
    return Likeliest(shares=shares / shares.sum(), gap=gap)
