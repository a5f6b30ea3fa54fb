"""k-ary randomized response: the true value, or another one by chance."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import MOST_VALUES
from lapwing.local.client.rules import response_ratio
from lapwing.local.frequencies.randomizer import Rates, Reports, codes, informative
from lapwing.local.frequencies.report_kinds import ValueReports
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.randomized_response import RandomizedResponse
from lapwing.privacy.amounts import Number

# So many stay in the processor's cache.
_AT_ONCE = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KaryResponse(ValueReports):
    """Report the true value with probability p, else one of the others, each as likely.

    Guarantee:
        PureDP(ln ratio) for one respondent's value, ratio = p·(k − 1)/(1 − p).

    Args:
        categories: k, from 2.
        threshold: 2^64·p.

    Source:
        Kairouz, Bonawitz and Ramage 2016.
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

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a value for each value."""
        reports = codes(values, self.categories)
        coin = RandomizedResponse(keep=chance(self.threshold), categories=self.categories)
        for start in range(0, reports.size, _AT_ONCE):
            reports[start : start + _AT_ONCE] = coin.release(reports[start : start + _AT_ONCE], entropy)
        return reports
