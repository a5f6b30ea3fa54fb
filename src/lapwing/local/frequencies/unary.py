"""Unary encoding: one noisy bit for each value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from lapwing.local import report_formats as formats
from lapwing.local.client import MOST_VALUES, WHOLE
from lapwing.local.frequencies.randomizer import Rates, Reports, informative
from lapwing.local.frequencies.report_kinds import BitReports
from lapwing.local.public_draws import OnesDraw, PublicDraw
from lapwing.local.thresholds import chance, epsilon_of, odds_down, odds_up, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoding(BitReports):
    """Report a bit for each value: the true value's bit is set with probability p, each other bit with q.

    Guarantee:
        PureDP(ln ratio) for one respondent's value. Two values differ in two bits, and both reveal something, so ratio
        = (p/q)·((1 − q)/(1 − p)). A loss computed from one bit would be half of it.

    Args:
        categories: From 2.
        threshold_own: 2^64·p and 2^64·q.
        threshold_other: 2^64·p and 2^64·q.

    Source:
        Erlingsson, Pihur and Korolova 2014 (symmetric); Wang, Blocki, Li and Jha 2017 (optimised).
    """

    name: ClassVar[str] = "unary"
    called: ClassVar[tuple[str, str]] = ("r", "value")
    categories: int
    threshold_own: int
    threshold_other: int
    weights: range = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole_number(self.categories, "categories", least=2, most=MOST_VALUES)
        threshold(self.threshold_own, "threshold_own")
        threshold(self.threshold_other, "threshold_other")
        informative(self.rates(0))
        object.__setattr__(self, "weights", formats.honest_weights(self.rates(0), self.categories))

    @classmethod
    def optimised(cls, epsilon: Number, categories: int) -> Self:
        """Return OUE: p = ½, q = 1/(e^ε + 1), rounded up."""
        other = odds_up(epsilon_of(epsilon))
        return cls(categories=categories, threshold_own=WHOLE // 2, threshold_other=other)

    @classmethod
    def symmetric(cls, epsilon: Number, categories: int) -> Self:
        """Return SUE, basic RAPPOR without memory: p = e^(ε/2)/(1 + e^(ε/2)), rounded down, q = 1 − p."""
        own = odds_down(epsilon_of(epsilon) / 2, Fraction(1))
        return cls(categories=categories, threshold_own=own, threshold_other=WHOLE - own)

    @property
    def parameters(self) -> Mapping[str, int]:
        """The two thresholds."""
        return {"threshold_own": self.threshold_own, "threshold_other": self.threshold_other}

    @property
    def ratio(self) -> Fraction:
        """p·(1 − q)/(q·(1 − p))."""
        p, q = self.rates(0)
        return p * (1 - q) / (q * (1 - p))

    def public_draws(self, reports: Reports) -> list[PublicDraw]:
        """Return how many bits are set."""
        p, q = self.rates(0)
        ones = int(np.count_nonzero(reports))
        return [OnesDraw(name="ones", reports=len(reports), bits=self.categories, ones=ones, p=p, q=q)]

    def rates(self, value: int) -> Rates:
        """Return p and q: a report supports the values whose bit is set."""
        return Rates(chance(self.threshold_own), chance(self.threshold_other))
