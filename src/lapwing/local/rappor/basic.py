"""Basic RAPPOR: a list of values with a bit for each, no hashes and no cohorts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import MOST_VALUES
from lapwing.local.client import rappor as device
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, supported
from lapwing.local.mechanism import Mechanism, loss_of
from lapwing.local.rappor.bit_noise import Noise
from lapwing.local.report_formats import (
    bit_transitions,
    checked_bits,
    honest_weights,
    ones_by_column,
    random_bits,
    read_bits,
    unpacked_bits,
)
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BasicRappor(Mechanism):
    """Keep noisy bits of the value, and report them with more noise each time. The one-time form is `UnaryEncoding`.

    Guarantee: as of `Rappor` with one hash: PureDP(ln ratio) for the value behind one report, PureDP(ln ratio_for_ever)
        for all reports of **one value that never changes**, PureDP(ln ratio_if_changing(T)) for T reports of any.
    Args: categories: from 2. noise: of a bit.
    Source: Erlingsson, Pihur and Korolova 2014.
    """

    name: ClassVar[str] = "basic-rappor"
    categories: int
    noise: Noise

    def __post_init__(self) -> None:
        whole_number(self.categories, "categories", least=2, most=MOST_VALUES)

    @classmethod
    def from_thresholds(cls, categories: int, threshold_flip: int, threshold_zero: int, threshold_one: int) -> Self:
        """Return the one of which a task states the integers."""
        return cls(categories=categories, noise=Noise(flip=threshold_flip, zero=threshold_zero, one=threshold_one))

    @classmethod
    def memoised(cls, epsilon: Number, categories: int) -> Self:
        """Return the one whose devices always send their permanent response: ε₁ = ε∞, and it is known again."""
        return cls(categories=categories, noise=Noise.once(epsilon, 2))

    @classmethod
    def full(cls, one: Number, forever: Number, categories: int) -> Self:
        """Return the one with ε₁ = `one` and ε∞ = `forever`, both rounded down."""
        return cls(categories=categories, noise=Noise.twice(one, forever, 2))

    @classmethod
    def published(cls, f: Number, p: Number, q: Number, categories: int) -> Self:
        """Return the one with the parameters of the paper."""
        return cls(categories=categories, noise=Noise.published(f, p, q))

    @property
    def parameters(self) -> Mapping[str, int]:
        """The three thresholds."""
        flip, zero, one = self.noise.thresholds
        return {"threshold_flip": flip, "threshold_zero": zero, "threshold_one": one}

    @property
    def ratio(self) -> Fraction:
        """e^ε₁ of one report."""
        return device.ratio(1, *self.noise.thresholds)

    @property
    def ratio_for_ever(self) -> Fraction:
        """e^ε∞ of all reports of one value that never changes."""
        return device.ratio_for_ever(1, self.noise.flip)

    def ratio_after(self, reports: int) -> Fraction:
        """Return e^ε of so many reports of one value that never changes."""
        return device.ratio_after(whole_number(reports, "reports", least=1), 1, *self.noise.thresholds)

    def ratio_if_changing(self, reports: int) -> Fraction | None:
        """Return a bound on e^ε of so many reports of values that may change; None if there is none."""
        count = whole_number(reports, "reports", least=1)
        return device.ratio_if_changing(count, self.categories, 1, *self.noise.thresholds)

    def loss_for_ever(self) -> PureDP:
        """Return ε∞, rounded up: of one value that never changes."""
        return loss_of(self.ratio_for_ever)

    def rates(self, value: int) -> Rates:
        """Return q* and p*: one report supports the values whose bit is set."""
        return self.noise.rates

    def transition_matrix(self) -> Transitions:
        """Return the law of all bits of one report for every value."""
        return bit_transitions(self.categories, self.noise.rates)

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return one report, a row of bits, of each respondent, with the law of both layers at once."""
        return random_bits(values, self.categories, self.noise.rates, entropy)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports have each bit set."""
        return ones_by_column(checked_bits(reports, self.categories))

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each value: more so by the ratio for those whose bit is set."""
        return supported(checked_bits(reports, self.categories), self.ratio)

    def read(self, said: object) -> bytes:
        """Return the bits, of a number that honest devices set."""
        return read_bits(said, self.categories, honest_weights(self.noise.rates, self.categories))

    def gather(self, said: Sequence[bytes]) -> Reports:
        """Return the bits as rows."""
        return unpacked_bits(said, self.categories)

    @property
    def report_bytes(self) -> int:
        """A bit for each value."""
        return -(-self.categories // 8)

    def operations(self, reports: int) -> int:
        """Return one step a bit."""
        return reports * self.categories
