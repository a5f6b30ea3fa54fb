"""k-ary randomized response: the true value, or another one by chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import MOST_VALUES
from lapwing.local.client.rules import response_ratio
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, codes, few, informative, supported
from lapwing.local.mechanism import Mechanism
from lapwing.local.report_formats import index_bytes, number_below
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.randomized_response import RandomizedResponse
from lapwing.privacy.amounts import Number

# So many stay in the processor's cache.
_AT_ONCE = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KaryResponse(Mechanism):
    """Report the true value with probability p, else one of the others, each as likely.

    Guarantee: PureDP(ln ratio) for one respondent's value, ratio = p·(k − 1)/(1 − p).
    Args: categories: k, from 2. threshold: 2^64·p.
    Source: Kairouz, Bonawitz and Ramage 2016.
    """

    name: ClassVar[str] = "k-ary"
    categories: int
    threshold: int

    def __post_init__(self) -> None:
        whole_number(self.categories, "categories", least=2, most=MOST_VALUES)
        threshold(self.threshold, "threshold")
        informative(self.rates(0))

    @classmethod
    def for_epsilon(cls, epsilon: Number, categories: int) -> Self:
        """Return the one with p = e^ε/(e^ε + k − 1), rounded down."""
        count = whole_number(categories, "categories", least=2, most=MOST_VALUES)
        return cls(categories=count, threshold=odds_down(epsilon_of(epsilon), Fraction(count - 1)))

    @property
    def parameters(self) -> Mapping[str, int]:
        """The threshold."""
        return {"threshold": self.threshold}

    @property
    def ratio(self) -> Fraction:
        """p/q."""
        return response_ratio(self.threshold, self.categories)

    def rates(self, value: int) -> Rates:
        """Return p and (1 − p)/(k − 1): a report supports the value that it names."""
        p = chance(self.threshold)
        return Rates(p, (1 - p) / (self.categories - 1))

    def transition_matrix(self) -> Transitions:
        """Return the law of every report for every value."""
        every, (p, q) = few(self.categories), self.rates(0)
        return Transitions(reports=tuple(every), rows=tuple(tuple(p if r == v else q for r in every) for v in every))

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a value for each value."""
        reports = codes(values, self.categories)
        coin = RandomizedResponse(keep=chance(self.threshold), categories=self.categories)
        for start in range(0, reports.size, _AT_ONCE):
            reports[start : start + _AT_ONCE] = coin.release(reports[start : start + _AT_ONCE], entropy)
        return reports

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports name each value."""
        return np.bincount(codes(reports, self.categories), minlength=self.categories).astype(np.int64)

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each value: more so by the ratio for the one that it names."""
        return supported(codes(reports, self.categories)[:, None] == np.arange(self.categories), self.ratio)

    def read(self, said: object) -> int:
        """Return the value's number."""
        return number_below(said, self.categories, "r")

    def gather(self, said: Sequence[int]) -> Reports:
        """Return the reports as integers."""
        return np.array(said, dtype=np.int64)

    @property
    def report_bytes(self) -> int:
        """Those of a value's number."""
        return index_bytes(self.categories)

    def operations(self, reports: int) -> int:
        """Return one step a report and a value."""
        return reports + self.categories
