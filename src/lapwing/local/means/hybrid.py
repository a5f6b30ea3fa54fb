"""The hybrid mechanism for a mean: the piecewise one or Duchi's, drawn by a public coin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import client
from lapwing.local.client import WHOLE
from lapwing.local.frequencies.randomizer import Reports, Transitions
from lapwing.local.means.duchi import DuchiMean
from lapwing.local.means.mean_randomizer import Parabola, Positions, points_of
from lapwing.local.means.piecewise import PiecewiseMean
from lapwing.local.mechanism import Mechanism
from lapwing.local.report_formats import list_of, number_below
from lapwing.local.thresholds import chance, least, threshold
from lapwing.privacy.amounts import Number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HybridMean(Mechanism):
    """Report by the piecewise mechanism with probability β, else by Duchi's, and say which.

    Guarantee:
        PureDP(ln ratio) for one respondent's number. The choice between the two does not depend on the number. So the
        probability of a report is β or 1 − β times the one of its own mechanism, and ratio is the larger of theirs.
        Unbiased: both are. The variance is the mean of theirs, with the weights β and 1 − β.

    Args:
        branch: 2^64·β.
        window: The piecewise mechanism.
        ends: Duchi's, on the same grid.

    Source:
        Wang et al. 2019 (Hybrid Mechanism), with the β that makes the variance the same for all numbers.
    """

    name: ClassVar[str] = "hybrid"
    branch: int
    window: PiecewiseMean
    ends: DuchiMean

    def __post_init__(self) -> None:
        threshold(self.branch, "piecewise")
        if self.window.number != self.ends.number:
            raise InvalidParameter("Both mechanisms must be for the same grid.")

    @classmethod
    def for_epsilon(cls, epsilon: Number, number: client.Number) -> Self:
        """Return the one of the same variance for all numbers: β = 1/(1 + c), with c·u² in the piecewise variance.

        Duchi's variance has −u², so that β·c = 1 − β. With the published window, β is 1 − e^(−ε/2); here the window is
        that whose mixture has the least variance.
        """
        alone, ends = PiecewiseMean.for_epsilon(epsilon, number), DuchiMean.for_epsilon(epsilon, number)

        def made(width: int) -> Self:
            window = PiecewiseMean.for_epsilon(epsilon, number, width)
            share = 1 / (1 + max(window.variance.square, Fraction(0)))
            return cls(branch=min(int(share * WHOLE), WHOLE - 1), window=window, ends=ends)

        return made(least(lambda width: made(width).variance.most(), alone.width, range(1, 2 * alone.width)))

    @classmethod
    def from_parameters(
        cls, number: client.Number, *, piecewise: int, threshold: int, width: int, shift: int, threshold_ends: int
    ) -> Self:
        """Return the one of a task."""
        window = PiecewiseMean(number=number, threshold=threshold, width=width, shift=shift)
        return cls(branch=piecewise, window=window, ends=DuchiMean(number=number, threshold=threshold_ends))

    @property
    def number(self) -> client.Number:
        """The grid."""
        return self.window.number

    @property
    def parameters(self) -> Mapping[str, int]:
        """The branch's threshold, then the parameters of both mechanisms."""
        return {"piecewise": self.branch, **self.window.parameters, "threshold_ends": self.ends.threshold}

    @property
    def ratio(self) -> Fraction:
        """The larger of both."""
        return max(self.window.ratio, self.ends.ratio)

    @property
    def variance(self) -> Parabola:
        """The mean of both, weighted."""
        return self.window.variance.mixed(self.ends.variance, chance(self.branch))

    @property
    def extremes(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest of both."""
        (low, high), (lower, higher) = self.window.extremes, self.ends.extremes
        return min(low, lower), max(high, higher)

    def position(self, report: int) -> Fraction:
        """Return the unbiased position of a report as `gather` has it, exactly: places from 0 on, then 0 and 1."""
        places = self.window.places
        return self.window.position(report) if report < places else self.ends.position(report - places)

    def positions(self, reports: Reports) -> Positions:
        """Return the unbiased position of each report."""
        places = self.window.places
        windows, ends = np.minimum(reports, places - 1), np.maximum(reports - places, 0)
        return np.where(reports < places, self.window.positions(windows), self.ends.positions(ends))

    def transition_matrix(self) -> Transitions:
        """Return the law of every report for every point."""
        share, window, ends = chance(self.branch), self.window.transition_matrix(), self.ends.transition_matrix()
        rows = tuple(
            (*(share * p for p in one), *((1 - share) * p for p in two))
            for one, two in zip(window.rows, ends.rows, strict=True)
        )
        return Transitions(reports=tuple(range(self.window.places + 2)), rows=rows)

    def randomize(self, points: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a report for each point: a place, or the number of places and 0 or 1 more."""
        own = points_of(points, self.number)
        windows, ends = self.window.randomize(own, entropy), self.ends.randomize(own, entropy)
        drawn = samplers.bernoulli(chance(self.branch), own.size, entropy)
        return np.where(drawn, windows, self.window.places + ends).astype(np.int64)

    def read(self, said: object) -> int:
        """Return the place, or the number of places and 0 or 1 more."""
        branch, report = list_of(said, 2, "a list of 2 numbers")
        if number_below(branch, 2, "the first number of r"):
            return number_below(report, self.window.places, "the last number of r")
        return self.window.places + number_below(report, 2, "the last number of r")

    def gather(self, said: Sequence[int]) -> Reports:
        """Return the reports as integers."""
        return np.array(said, dtype=np.int64)

    @property
    def report_bytes(self) -> int:
        """Those of a place's number, and of which mechanism it is."""
        return self.window.report_bytes + 1
