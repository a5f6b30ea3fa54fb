"""Binary randomized response: yes or no, answered by a coin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import WHOLE
from lapwing.local.client.rules import either
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, codes, informative
from lapwing.local.mechanism import Mechanism
from lapwing.local.report_formats import number_below
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.mechanisms.parameters import Rational, rational
from lapwing.privacy.amounts import Number, probability


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryResponse(Mechanism):
    """Report 1 with one probability if the value is 1, and with a smaller one if it is 0.

    Guarantee:
        PureDP(ln ratio) for one respondent's value. The ratio is the larger one of both reports: yes/no for a 1, (1 −
        no)/(1 − yes) for a 0. Two coins that rarely say yes tell more by one report than by the other.

    Args:
        threshold_yes: 2^64 times the probability of a 1 if the value is 1, and if it is 0.
        threshold_no: As `threshold_yes`.

    Source:
        Warner 1965; Greenberg et al. 1969 (the unrelated question, whose answer is the second coin).
    """

    name: ClassVar[str] = "binary"
    threshold_yes: int
    threshold_no: int

    def __post_init__(self) -> None:
        for name in ("threshold_yes", "threshold_no"):
            object.__setattr__(self, name, threshold(getattr(self, name), name))
        informative(self.rates(1))

    @classmethod
    def for_epsilon(cls, epsilon: Number) -> Self:
        """Return the coin that tells the truth with probability e^ε/(1 + e^ε), rounded down."""
        truth = odds_down(epsilon_of(epsilon), Fraction(1))
        return cls(threshold_yes=truth, threshold_no=WHOLE - truth)

    @classmethod
    def from_truth(cls, truth: Number) -> Self:
        """Return the coin that tells the truth with a probability above ½, rounded down to 64 bits."""
        yes = int(probability(truth, "truth") * WHOLE)
        return cls(threshold_yes=yes, threshold_no=WHOLE - yes)

    @classmethod
    def from_coins(cls, truth: Rational, yes: Rational) -> Self:
        """Return the two coins: tell the truth with one probability, else say yes with another.

        Of fair coins, ε is ln 3. Probabilities are rounded to 64 bits; the loss is computed from the rounded ones.
        """
        first, second = rational(truth, "truth"), rational(yes, "yes")
        by_chance = (1 - first) * second
        return cls(threshold_yes=round((first + by_chance) * WHOLE), threshold_no=round(by_chance * WHOLE))

    @property
    def categories(self) -> int:
        """Two: 0 and 1."""
        return 2

    @property
    def parameters(self) -> Mapping[str, int]:
        """The two thresholds."""
        return {"threshold_yes": self.threshold_yes, "threshold_no": self.threshold_no}

    @property
    def ratio(self) -> Fraction:
        """The worse of both reports."""
        (p, q), (one, other) = self.rates(1), self.rates(0)
        return max(either(p / q), either(one / other))

    def rates(self, value: int) -> Rates:
        """Return how often a 1 is reported for 1; of 0, how often a 0 is."""
        p, q = chance(self.threshold_yes), chance(self.threshold_no)
        return Rates(p, q) if value else Rates(1 - q, 1 - p)

    def transition_matrix(self) -> Transitions:
        """Return the law of both reports."""
        laws = [chance(limit) for limit in (self.threshold_no, self.threshold_yes)]
        return Transitions(reports=(0, 1), rows=tuple((1 - p, p) for p in laws))

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return 0 or 1 for each value."""
        own = codes(values, 2)
        yes, no = (samplers.bernoulli(self.rates(1)[i], own.size, entropy) for i in (0, 1))
        return np.where(own == 1, yes, no).astype(np.int64)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports are 0, and how many 1."""
        return np.bincount(codes(reports, 2), minlength=2).astype(np.int64)

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return the probability of each report for 0 and for 1."""
        matrix = np.array(self.transition_matrix().rows, dtype=np.float64)
        return matrix.T[codes(reports, 2)]

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

    def operations(self, reports: int) -> int:
        """Return one step a report."""
        return reports
