"""Memoised unary encoding: as `memoised`, for many values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import WHOLE
from lapwing.local.client.memory_unary import changing_unary_ratio, unchanged_unary_ratio
from lapwing.local.lists.randomizer import Rates, Reports, Transitions, few, loss_of, supported
from lapwing.local.lists.unary import UnaryEncoding, honest_weights
from lapwing.local.rappor.noise import law_of_bits, read_bits
from lapwing.local.thresholds import epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP

_BITS = 128


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoisedUnary:
    """Draw a noisy bit for each value once and keep them; report them with fresh noise every time.

    Guarantee: as of `Memoised`: PureDP(ln ratio) for one report, PureDP(ln unchanged_ratio(T)) for T reports of a value
        that never changes, PureDP(ln changing_ratio(T)) for values that may: with a bit for each value that is so much
        that this is **for values that never change only**.
    Args: first: the noise of the kept bits. second: of a reported bit: `threshold_own` if the kept one is set, else
        `threshold_other`.
    Source: Arcolezi et al. 2022 (L-OSUE).
    """

    name: ClassVar[str] = "memoised-unary"
    first: UnaryEncoding
    second: UnaryEncoding

    def __post_init__(self) -> None:
        if self.first.categories != self.second.categories:
            raise InvalidParameter("Both rounds of a memoised response must be for the same number of values.")

    @classmethod
    def from_thresholds(
        cls, categories: int, threshold_own: int, threshold_other: int, threshold_one: int, threshold_zero: int
    ) -> Self:
        """Return the one of which a task states the thresholds."""
        pairs = ((threshold_own, threshold_other), (threshold_one, threshold_zero))
        first, second = (UnaryEncoding(categories=categories, threshold_own=p, threshold_other=q) for p, q in pairs)
        return cls(first=first, second=second)

    @classmethod
    def for_epsilons(cls, one: Number, forever: Number, categories: int) -> Self:
        """Return L-OSUE, which loses ε₁ by one report, and less than ε∞ by all of a value that never changes.

        The first round is OUE: p₁ = ½, q₁ = 1/(a + 1). With q₂ = 1 − p₂, one report has the ratio (1 − p₂ + a·p₂)/(p₂ +
        a·(1 − p₂)), which is c = e^ε₁ for p₂ = (ac − 1)/((a − 1)(c + 1)). Rounded towards more privacy.

        Raises: InvalidParameter unless ε₁ < ε∞.
        """
        first = UnaryEncoding.optimised(forever, categories)
        exact = epsilon_of(one)
        if exact >= loss_of(first.ratio).epsilon:
            raise InvalidParameter(f"One report cannot lose {one} if all may lose {forever}; it must be less.")

        def keep(epsilon: Ball, a: Ball) -> Ball:
            c = epsilon.exp()
            return (a * c - 1) / ((a - 1) * (c + 1))

        truth = int(enclose_tightly(keep, exact, first.ratio, bits=_BITS).lower * WHOLE)
        second = UnaryEncoding(categories=categories, threshold_own=truth, threshold_other=WHOLE - truth)
        return cls(first=first, second=second)

    def unchanged_ratio(self, reports: int) -> Fraction:
        """Return e^ε of so many reports together, for a value that never changes, exactly."""
        return unchanged_unary_ratio(self.first.rates(0), self.second.rates(0), whole_number(reports, "reports"))

    def changing_ratio(self, reports: int) -> Fraction | None:
        """Return a bound on e^ε of so many reports together, for values that may change; None if it says nothing."""
        rounds = self.first.rates(0), self.second.rates(0)
        return changing_unary_ratio(*rounds, self.categories, whole_number(reports, "reports"))

    @property
    def categories(self) -> int:
        """How many values there are."""
        return self.first.categories

    @property
    def parameters(self) -> Mapping[str, int]:
        """The four thresholds."""
        return {
            **self.first.parameters,
            "threshold_one": self.second.threshold_own,
            "threshold_zero": self.second.threshold_other,
        }

    @property
    def ratio(self) -> Fraction:
        """That of one report."""
        return self.unchanged_ratio(1)

    def loss(self) -> PureDP:
        """Return ε of one report, rounded up."""
        return loss_of(self.ratio)

    def rates(self, value: int) -> Rates:
        """Return how often one report has the bit of the true value set, through both rounds, and each other one."""
        one, zero = self.second.rates(value)
        own, other = (chance * one + (1 - chance) * zero for chance in self.first.rates(value))
        return Rates(own, other)

    def transition_matrix(self) -> Transitions:
        """Return the law of all bits of one report for every value."""
        laws = [law_of_bits(1 << value, self.categories, self.rates(0)) for value in few(self.categories)]
        return Transitions(reports=tuple(laws[0]), rows=tuple(tuple(law.values()) for law in laws))

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return the first report of each respondent, a row of bits."""
        return self._again(self.first.randomize(values, entropy), entropy)

    def simulate(self, values: IntArray, reports: int, entropy: Entropy = SYSTEM) -> Reports:
        """Return so many reports of each respondent, whose value never changes: respondent, period, bit."""
        kept = self.first.randomize(values, entropy)
        periods = [self._again(kept, entropy) for _ in range(whole_number(reports, "reports", least=1))]
        return np.stack(periods, axis=1)

    def _again(self, kept: Reports, entropy: Entropy) -> Reports:
        one, zero = (samplers.bernoulli(chance, kept.size, entropy) for chance in self.second.rates(0))
        return np.where(kept, one.reshape(kept.shape), zero.reshape(kept.shape))

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports have each bit set."""
        return self.second.support_counts(reports)

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each value: more so by the ratio for those whose bit is set."""
        return supported(self.second.likelihoods(reports) > 1, self.ratio)

    def read(self, said: object) -> bytes:
        """Return the bits, of a number that honest devices set."""
        return read_bits(said, self.categories, honest_weights(*self.rates(0), self.categories))

    def gather(self, said: Sequence[bytes]) -> Reports:
        """Return the bits as rows."""
        return self.second.gather(said)

    @property
    def report_bytes(self) -> int:
        """A bit for each value."""
        return self.second.report_bytes

    def operations(self, reports: int) -> int:
        """Return one step a bit."""
        return self.second.operations(reports)
