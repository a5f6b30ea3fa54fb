"""Duchi's mechanism: a number is rounded to a bound at random, and randomized response tells which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import client
from lapwing.local.client.rules import response_ratio
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, codes, informative
from lapwing.local.means.mean_randomizer import Parabola, Positions, few_points, points_of
from lapwing.local.mechanism import Mechanism
from lapwing.local.report_formats import number_below
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.privacy.amounts import Number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DuchiMean(Mechanism):
    """Report one bit: 1 more often the nearer a number is to its upper bound.

    The point i of s steps becomes the upper bound with probability u = i/s, exactly, else the lower one. The coin
    reports this bound with probability p, else the other. So a 1 has the probability λ = 1 − p + u(2p − 1), linear in
    u.

    Guarantee:
        PureDP(ln ratio) for one respondent's number, ratio = p/(1 − p). Both λ and 1 − λ are from 1 − p to p, and reach
        these at the bounds. Unbiased: a report b has the position (b − (1 − p))/(2p − 1), on average (λ − (1 − p))/(2p
        − 1) = u. Its variance is

        λ(1 − λ)/(2p − 1)² = p(1 − p)/(2p − 1)² + u − u².

    Args:
        number: The grid.
        threshold: 2^64·p.

    Source:
        Duchi, Jordan and Wainwright 2018; the one-bit mean of Ding, Kulkarni and Yekhanin 2017 is the same.
    """

    name: ClassVar[str] = "duchi"
    number: client.Number
    threshold: int

    def __post_init__(self) -> None:
        threshold(self.threshold, "threshold")
        informative(Rates(self._truth, 1 - self._truth))

    @classmethod
    def for_epsilon(cls, epsilon: Number, number: client.Number) -> Self:
        """Return the one with p = e^ε/(e^ε + 1), rounded down."""
        return cls(number=number, threshold=odds_down(epsilon_of(epsilon), Fraction(1)))

    @property
    def _truth(self) -> Fraction:
        return chance(self.threshold)

    @property
    def parameters(self) -> Mapping[str, int]:
        """The threshold."""
        return {"threshold": self.threshold}

    @property
    def ratio(self) -> Fraction:
        """p/(1 − p)."""
        return response_ratio(self.threshold, 2)

    @property
    def variance(self) -> Parabola:
        """p(1 − p)/(2p − 1)² + u − u²."""
        p = self._truth
        return Parabola(p * (1 - p) / (2 * p - 1) ** 2, Fraction(1), Fraction(-1))

    @property
    def extremes(self) -> tuple[Fraction, Fraction]:
        """Those of a 0 and of a 1."""
        return self.position(0), self.position(1)

    def position(self, report: int) -> Fraction:
        """Return the unbiased position of a report, exactly."""
        p = self._truth
        return (report - (1 - p)) / (2 * p - 1)

    def positions(self, reports: Reports) -> Positions:
        """Return the unbiased position of each report."""
        return np.array([float(end) for end in self.extremes])[codes(reports, 2)]

    def transition_matrix(self) -> Transitions:
        """Return the law of both reports for every point."""
        p, steps = self._truth, self.number.steps
        ones = [1 - p + Fraction(i, steps) * (2 * p - 1) for i in few_points(self.number)]
        return Transitions(reports=(0, 1), rows=tuple((1 - one, one) for one in ones))

    def randomize(self, points: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return 0 or 1 for each point."""
        own = points_of(points, self.number)
        ends = samplers.uniform_integers(self.number.steps, own.size, entropy).astype(np.int64) < own
        bits: Reports = (ends == samplers.bernoulli(self._truth, own.size, entropy)).astype(np.int64)
        return bits

    def read(self, said: object) -> int:
        """Return 0 or 1."""
        return number_below(said, 2, "r")

    def gather(self, said: Sequence[int]) -> Reports:
        """Return the reports as integers."""
        return np.array(said, dtype=np.int64)

    @property
    def report_bytes(self) -> int:
        """One."""
        return 1
