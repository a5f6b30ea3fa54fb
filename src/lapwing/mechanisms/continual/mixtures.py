"""Sums of geometric sequences, m_k = Σ_i a_i·(1 − d_i)^k for k = 0, 1, 2, …, and their inner products in closed form.

They are kept by how fast they decay, d_i, and not by their ratios 1 − d_i: those of long horizons are so close to 1
that a difference of two would lose its digits. All weights of the sequences here are positive, so nothing cancels: what
floating point does to a sum of products is a relative error below 1e-10 for up to 2³⁰ terms, of which the exponent of
a power is the most, and `UPWARDS` is added where a bound is wanted.
"""

from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UPWARDS: Final = 1 + 1e-9
"""A factor that is above 1 by more than what rounding takes from a sum of positive terms."""


@final
class Mixture(NamedTuple):
    """Weights a_i > 0 and decays 0 ≤ d_i < 1."""

    weights: Floats
    decays: Floats

    def values(self, places: Floats) -> Floats:
        """Return m_k for each k."""
        powers: Floats = np.exp(np.multiply.outer(np.asarray(places, float), np.log1p(-self.decays)))
        return powers @ self.weights

    def products(self, lags: Floats, terms: Floats) -> Floats:
        """Return Σ_{k < terms} m_k·m_{k + lag} for each pair of a lag ≥ 0 and a number of terms ≥ 0."""
        lags, terms = np.broadcast_arrays(np.asarray(lags, float), np.asarray(terms, float))
        logs, total = np.log1p(-self.decays), np.zeros(lags.shape)
        for a, decay, log in zip(self.weights, self.decays, logs, strict=True):
            for b, other, other_log in zip(self.weights, self.decays, logs, strict=True):
                away = decay + other * (1 - decay)  # 1 − (1 − d)(1 − d')
                summed = -np.expm1(terms * (log + other_log)) / away if away else terms
                total += a * b * np.exp(lags * other_log) * summed
        return total
