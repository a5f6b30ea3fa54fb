"""Sums over many reports of RAPPOR, by cohort: how many there are, and how often bits are set, alone and in pairs."""

from dataclasses import dataclass, field
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.local.frequencies.randomizer import Reports
from lapwing.local.rappor.full import Rappor

_AT_ONCE: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Sums over the reports of each cohort.

    Args: reports: how many, by cohort. ones: how many have a bit set, by cohort and bit. pairs: how many have both of
        two bits set; whole numbers.
    """

    reports: NDArray[np.int64]
    ones: NDArray[np.int64] = field(repr=False)
    pairs: NDArray[np.float64] = field(repr=False)

    @classmethod
    def of(cls, mechanism: Rappor, reports: Reports) -> Self:
        """Add up reports."""
        bits, cohorts = mechanism.bits, mechanism.cohorts
        ones, pairs = np.zeros((cohorts, bits), dtype=np.int64), np.zeros((cohorts, bits, bits))
        order = np.argsort(reports["cohort"], kind="stable")
        sizes = np.bincount(reports["cohort"], minlength=cohorts)
        for cohort, of_cohort in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            for start in range(0, of_cohort.size, _AT_ONCE):
                rows = mechanism.unpacked(reports[of_cohort[start : start + _AT_ONCE]])
                ones[cohort] += rows.sum(axis=0, dtype=np.int64)
                floats = rows.astype(np.float32)  # sums of 65,536 ones are exact
                pairs[cohort] += floats.T @ floats
        return cls(reports=sizes.astype(np.int64), ones=ones, pairs=pairs)

    def scatter(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each cohort the sum over reports of (r − μ)(r − μ)ᵀ, for the mean of each bit."""
        cross = self.ones[:, :, None] * means[:, None, :]
        spread: NDArray[np.float64] = (
            self.pairs
            - cross
            - cross.transpose(0, 2, 1)
            + self.reports[:, None, None] * means[:, :, None] * means[:, None, :]
        )
        return spread
