"""The piecewise mechanism on a grid: it reports a place, most often one in a window that moves with the number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp
from typing import ClassVar, Self, final

import numpy as np

from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import client
from lapwing.local.client.rules import either
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, codes, informative
from lapwing.local.means.mean_randomizer import Parabola, Positions, few_points, points_of
from lapwing.local.mechanism import Mechanism
from lapwing.local.report_formats import index_bytes, number_below
from lapwing.local.thresholds import chance, epsilon_of, least, odds_down, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number

_RESOLUTION = 1024
"""Places of a window that the choice of `shift` aims at."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseMean(Mechanism):
    """Report one of m = w + s·c places.

    With probability p it is one of the w places from i·c on, else one of the s·c others.

    All places of the window are as likely, and all others; i is the number's point on a grid of s steps.

    Guarantee:
        PureDP(ln ratio) for one respondent's number, ratio = (p/w)/((1 − p)/(s·c)): a place has one of these two
        probabilities for any number. Only integers are drawn: no floating point is involved. Unbiased: let l = i·c, and
        κ = p − (1 − p)w/(s·c). The places of the window add up to w·l + w(w − 1)/2, and all places to
        S = m(m − 1)/2. So a report is on average

            p(l + (w − 1)/2) + (1 − p)(S − w·l − w(w − 1)/2)/(s·c) = κ·l + κ(w − 1)/2 + (1 − p)S/(s·c).

        This is linear in i. The position (report − κ(w − 1)/2 − (1 − p)S/(s·c))/(κ·s·c) is on average i/s. The squares
        of the window's places add up to w·l² + w(w − 1)l + (w − 1)w(2w − 1)/6. So a report's square is on average

            κ(l² + (w − 1)l + (w − 1)(2w − 1)/6) + (1 − p)Q/(s·c),  Q = (m − 1)m(2m − 1)/6.

        `variance` follows.

    Args:
        number: The grid.
        threshold: 2^64·p.
        width: w.
        shift: c.

    Source:
        Wang et al. 2019 (Piecewise Mechanism; w = s·c·e^(−ε/2) is its form on a grid). Zhao et al. 2020 (the window may
        have another width).
    """

    name: ClassVar[str] = "piecewise"
    number: client.Number
    threshold: int
    width: int
    shift: int

    def __post_init__(self) -> None:
        threshold(self.threshold, "threshold")
        whole_number(self.width, "width", least=1, most=client.MOST_WIDTH)
        whole_number(self.shift, "shift", least=1, most=client.MOST_SHIFT)
        informative(Rates(*self._chances))

    @classmethod
    def for_epsilon(cls, epsilon: Number, number: client.Number, width: int | None = None) -> Self:
        """Return the one with p = e^ε/(e^ε + s·c/w), rounded down.

        Without a width, the one whose worst variance is least is searched for, from s·c·e^(−ε/3) on, the best for large
        ε. There are enough places that this is as good as real numbers.
        """
        amount = epsilon_of(epsilon)
        third = exp(float(amount) / 3)
        shift = min(max(1, ceil(third * _RESOLUTION / number.steps)), client.MOST_SHIFT)

        def made(wide: int) -> Self:
            truth = odds_down(amount, Fraction(number.steps * shift, wide))
            return cls(number=number, threshold=truth, width=wide, shift=shift)

        if width is not None:
            return made(whole_number(width, "width", least=1, most=client.MOST_WIDTH))
        guess = ceil(number.steps * shift / third)
        return made(least(lambda wide: made(wide).variance.most(), guess, range(1, 8 * guess)))

    @property
    def outside(self) -> int:
        """How many places are outside the window: s·c."""
        return self.number.steps * self.shift

    @property
    def places(self) -> int:
        """How many places there are: w + s·c."""
        return self.width + self.outside

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        """Return the probability of a place in the window, and of another."""
        p = chance(self.threshold)
        return p / self.width, (1 - p) / self.outside

    @property
    def parameters(self) -> Mapping[str, int]:
        """The threshold, the width and the shift."""
        return {"threshold": self.threshold, "width": self.width, "shift": self.shift}

    @property
    def ratio(self) -> Fraction:
        """Of a place in the window and another."""
        inside, outside = self._chances
        return either(inside / outside)

    @property
    def _line(self) -> tuple[Fraction, Fraction]:
        """Return κ·s·c and what a report is on average at u = 0: the line of averages."""
        p, w, m = chance(self.threshold), self.width, self.places
        slope = p - (1 - p) * w / self.outside
        return slope * self.outside, slope * (w - 1) / 2 + (1 - p) * m * (m - 1) / (2 * self.outside)

    @property
    def variance(self) -> Parabola:
        """That of a report, (mean square − squared mean), in units of κ·s·c."""
        p, w, m, far = chance(self.threshold), self.width, self.places, self.outside
        slope, start = self._line
        kappa = slope / far
        constant = kappa * (w - 1) * (2 * w - 1) / 6 + (1 - p) * (m - 1) * m * (2 * m - 1) / (6 * far) - start**2
        linear = kappa * (w - 1) * far - 2 * slope * start
        square = kappa * far**2 - slope**2
        return Parabola(constant / slope**2, linear / slope**2, square / slope**2)

    @property
    def extremes(self) -> tuple[Fraction, Fraction]:
        """Those of the first and of the last place."""
        return self.position(0), self.position(self.places - 1)

    def position(self, report: int) -> Fraction:
        """Return the unbiased position of a report, exactly."""
        slope, start = self._line
        return (report - start) / slope

    def positions(self, reports: Reports) -> Positions:
        """Return the unbiased position of each report."""
        slope, start = self._line
        return np.asarray((codes(reports, self.places) - float(start)) / float(slope), dtype=np.float64)

    def transition_matrix(self) -> Transitions:
        """Return the law of every place for every point."""
        inside, outside = self._chances
        rows = tuple(
            tuple(inside if 0 <= place - i * self.shift < self.width else outside for place in range(self.places))
            for i in few_points(self.number)
        )
        return Transitions(reports=tuple(range(self.places)), rows=rows)

    def randomize(self, points: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a place for each point."""
        own = points_of(points, self.number)
        kept = samplers.bernoulli(chance(self.threshold), own.size, entropy)
        within = samplers.uniform_integers(self.width, own.size, entropy).astype(np.int64)
        beyond = samplers.uniform_integers(self.outside, own.size, entropy).astype(np.int64)
        start = own * self.shift
        return np.where(kept, start + within, beyond + self.width * (beyond >= start)).astype(np.int64)

    def read(self, said: object) -> int:
        """Return the place."""
        return number_below(said, self.places, "r")

    def gather(self, said: Sequence[int]) -> Reports:
        """Return the reports as integers."""
        return np.array(said, dtype=np.int64)

    @property
    def report_bytes(self) -> int:
        """Those of a place's number."""
        return index_bytes(self.places)
