"""How far estimated shares are from the truth, from p and q alone.

With C supports of a value among n reports, of respondents of whom a share f has it, the estimate (C/n − q)/(p − q) is
right on average. C is a sum of independent coins: fn of chance p and (1 − f)n of chance q.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Protocol, final

from lapwing.local.frequencies.randomizer import Rates


class Rated(Protocol):
    """What the error of a mechanism follows from."""

    @property
    def categories(self) -> int:
        """How many values there are."""

    def rates(self, value: int) -> Rates:
        """Return how often a report supports a value."""


@final
@dataclass(frozen=True, slots=True)
class Alike:
    """So many values, all with the same rates."""

    categories: int
    pair: Rates

    def rates(self, value: int) -> Rates:
        """Return the rates of any value."""
        return self.pair


def for_respondents(rates: Rates, share: Fraction) -> Fraction:
    """Return n times the variance of the estimate, given who responded: (f·p(1−p) + (1−f)·q(1−q))/(p − q)²."""
    p, q = rates
    return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2


def for_population(rates: Rates, share: Fraction) -> Fraction:
    """Return the same if the respondents are a random sample: λ(1 − λ)/(p − q)², λ = q + f(p − q).

    It is more by f(1 − f), the variance of the sample itself.
    """
    p, q = rates
    supported = q + share * (p - q)
    return supported * (1 - supported) / (p - q) ** 2


def mean_variance(mechanism: Rated) -> Fraction:
    """Return n times the mean squared error of an average value's share, given who responded.

    Shares add up to 1, and the variance is linear in them, so their average 1/k stands for all.
    """
    count = mechanism.categories
    rates = [mechanism.rates(value) for value in ((0, 1) if count == 2 else (0,))]
    return sum((for_respondents(each, Fraction(1, count)) for each in rates), start=Fraction(0)) / len(rates)


def worst_deviation(mechanism: Rated) -> float:
    """Return √n times the standard deviation of a share of the population at worst: λ as near to ½ as it can be."""
    p, q = mechanism.rates(1)
    supported = min(max(Fraction(1, 2), min(p, q)), max(p, q))
    return sqrt(supported * (1 - supported)) / abs(float(p - q))
