"""Memoised responses: the same question is asked again and again, of people whose answer does not change."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import ClassVar, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import WHOLE
from lapwing.local.client.longitudinal import changing_bits_ratio, changing_ratio, unchanged_bits_ratio, unchanged_ratio
from lapwing.local.frequencies.kary import KaryResponse
from lapwing.local.frequencies.randomizer import Rates, Reports, codes
from lapwing.local.frequencies.report_kinds import BitReports, ValueReports
from lapwing.local.frequencies.unary import UnaryEncoding
from lapwing.local.mechanism import loss_of
from lapwing.local.report_formats import honest_weights
from lapwing.local.thresholds import epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number

_BITS = 128
_MOST_PATTERNS = 100_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Memoised(ValueReports):
    """Draw a noisy answer once and keep it; report it with fresh noise every time.

    Guarantee:
        PureDP(ln ratio) for the value behind one report. For T reports of a value that never changes, PureDP(ln
        unchanged_ratio(T)), which is always below the loss of `first`. For values that may change, only PureDP(ln
        changing_ratio(T)), which grows with every report: the number of different values does not bound it.

    Args:
        first: The noise of the kept answer.
        second: That of each report, for the same values.

    Source:
        Erlingsson, Pihur and Korolova 2014; Arcolezi et al. 2022 (L-GRR), whose second round has more noise than need
        be for more than two values: `for_epsilons`.
    """

    name: ClassVar[str] = "memoised"
    first: KaryResponse
    second: KaryResponse

    def __post_init__(self) -> None:
        _check_alike(self.first, self.second)

    @classmethod
    def from_thresholds(cls, categories: int, threshold_first: int, threshold_second: int) -> Self:
        """Return the one whose thresholds a task states: 2^64 times the chances to name the true value."""
        thresholds = (threshold_first, threshold_second)
        first, second = (KaryResponse(categories=categories, threshold=each) for each in thresholds)
        return cls(first=first, second=second)

    @classmethod
    def for_epsilons(cls, one: Number, forever: Number, categories: int) -> Self:
        """Return the one that loses ε₁ by one report, and less than ε∞ by all reports of a value that never changes.

        Solve (a·b + k − 1)/(b + a + k − 2) = c = e^ε₁. This gives b = (c(a + k − 2) − (k − 1))/(a − c) in the second
        round. The published (ac − 1)/(a − c) is that for k = 2 only, and less else. Rounded towards more privacy.

        Raises:
            InvalidParameter: Unless ε₁ < ε∞.
        """
        first = KaryResponse.for_epsilon(forever, categories)

        def keep(c: Ball, a: Ball, m: Ball) -> Ball:
            b = (c * (a + m - 1) - m) / (a - c)
            return b / (b + m)

        truth = _second_threshold(one, forever, keep, first.ratio, Fraction(categories - 1))
        return cls(first=first, second=KaryResponse(categories=categories, threshold=truth))

    def unchanged_ratio(self, reports: int) -> Fraction:
        """Return e^ε of this many reports together, for a value that never changes, exactly."""
        return unchanged_ratio(self.first.ratio, self.second.ratio, self.categories, whole_number(reports, "reports"))

    def changing_ratio(self, reports: int) -> Fraction:
        """Return a bound on e^ε of this many reports together, for values that may change."""
        return changing_ratio(self.first.ratio, self.second.ratio, self.categories, whole_number(reports, "reports"))

    def ratio_between(self, values: Sequence[int], others: Sequence[int]) -> Fraction:
        """Return the most by which any reports can be likelier for the first history than for the second, exactly.

        By enumeration: periods with the same values in both histories are interchangeable, so that it only matters how
        many of their reports name each value.

        Args:
            values: The value in every period.
            others: The value in every period.

        Raises:
            InvalidParameter: For histories of different lengths, or if they have too many patterns.
        """
        if len(values) != len(others):
            raise InvalidParameter(f"The histories have {len(values)} and {len(others)} periods.")
        classes = Counter(zip(values, others, strict=True))
        splits = [list(_splits(size, self.categories)) for size in classes.values()]
        if prod(map(len, splits)) > _MOST_PATTERNS:
            raise InvalidParameter(f"The reports have more than {_MOST_PATTERNS:,} patterns; take shorter histories.")
        pairs = list(classes)
        return max(
            self._weight([pair[0] for pair in pairs], named) / self._weight([pair[1] for pair in pairs], named)
            for named in product(*splits)
        )

    def _weight(self, values: Sequence[int], named: Sequence[tuple[int, ...]]) -> Fraction:
        """Return the probability of reports up to a factor: a sum over the kept answer of each value."""
        a, b, every = self.first.ratio, self.second.ratio, range(self.categories)
        whole = Fraction(1)
        for value in set(values):
            counts = [sum(n[z] for v, n in zip(values, named, strict=True) if v == value) for z in every]
            whole *= sum(((a if z == value else 1) * b ** counts[z] for z in every), Fraction(0)) / (a + len(every) - 1)
        return whole

    @property
    def categories(self) -> int:
        """How many values there are."""
        return self.first.categories

    @property
    def parameters(self) -> Mapping[str, int]:
        """The two thresholds."""
        return {"threshold_first": self.first.threshold, "threshold_second": self.second.threshold}

    @property
    def ratio(self) -> Fraction:
        """That of one report."""
        return self.unchanged_ratio(1)

    def rates(self, value: int) -> Rates:
        """Return how often one report names the true value, through both rounds, and each other one."""
        truth = _through(self.first.rates(value).p, self.second.rates(value))
        return Rates(truth, (1 - truth) / (self.categories - 1))

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return the first report of each respondent."""
        return self.second.randomize(self.first.randomize(values, entropy), entropy)

    def simulate(self, histories: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return the reports of respondents over time: a row each, a column a period, like the values given.

        A kept answer is drawn for every value of every respondent, whether it occurs or not.
        """
        people, k = histories.shape[0], self.categories
        values = codes(histories.reshape(-1), k).reshape(histories.shape)
        kept = self.first.randomize(np.tile(np.arange(k), people), entropy).reshape(people, k)
        permanent = np.take_along_axis(kept, values, axis=1)
        return self.second.randomize(permanent.reshape(-1), entropy).reshape(values.shape)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoisedUnary(BitReports):
    """Draw a noisy bit for each value once and keep them; report them with fresh noise every time: for many values.

    Guarantee:
        As of `Memoised`: PureDP(ln ratio) for one report, PureDP(ln unchanged_ratio(T)) for T reports of a value that
        never changes. For values that may change it is PureDP(ln changing_ratio(T)). With a bit for each value the last
        is so large that this mechanism is **only for values that never change**.

    Args:
        first: The noise of the kept bits.
        second: Of a reported bit: `threshold_own` if the kept one is set, else `threshold_other`.

    Source:
        Arcolezi et al. 2022 (L-OSUE).
    """

    name: ClassVar[str] = "memoised-unary"
    first: UnaryEncoding
    second: UnaryEncoding
    weights: range = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_alike(self.first, self.second)
        object.__setattr__(self, "weights", honest_weights(self.rates(0), self.categories))

    @classmethod
    def from_thresholds(
        cls, categories: int, threshold_own: int, threshold_other: int, threshold_one: int, threshold_zero: int
    ) -> Self:
        """Return the one whose thresholds a task states."""
        pairs = ((threshold_own, threshold_other), (threshold_one, threshold_zero))
        first, second = (UnaryEncoding(categories=categories, threshold_own=p, threshold_other=q) for p, q in pairs)
        return cls(first=first, second=second)

    @classmethod
    def for_epsilons(cls, one: Number, forever: Number, categories: int) -> Self:
        """Return L-OSUE, which loses ε₁ by one report, and less than ε∞ by all of a value that never changes.

        The first round is OUE: p₁ = ½, q₁ = 1/(a + 1). With q₂ = 1 − p₂, one report has the ratio (1 − p₂ + a·p₂)/(p₂ +
        a·(1 − p₂)). For p₂ = (ac − 1)/((a − 1)(c + 1)) it is c = e^ε₁. Rounded towards more privacy.

        Raises:
            InvalidParameter: Unless ε₁ < ε∞.
        """
        first = UnaryEncoding.optimised(forever, categories)
        truth = _second_threshold(one, forever, lambda c, a: (a * c - 1) / ((a - 1) * (c + 1)), first.ratio)
        second = UnaryEncoding(categories=categories, threshold_own=truth, threshold_other=WHOLE - truth)
        return cls(first=first, second=second)

    def unchanged_ratio(self, reports: int) -> Fraction:
        """Return e^ε of this many reports together, for a value that never changes, exactly."""
        return unchanged_bits_ratio(self.first.rates(0), self.second.rates(0), whole_number(reports, "reports"))

    def changing_ratio(self, reports: int) -> Fraction | None:
        """Return a bound on e^ε of this many reports together, for values that may change; None if it is useless."""
        rounds = self.first.rates(0), self.second.rates(0)
        return changing_bits_ratio(*rounds, self.categories, whole_number(reports, "reports"))

    @property
    def categories(self) -> int:
        """How many values there are."""
        return self.first.categories

    @property
    def parameters(self) -> Mapping[str, int]:
        """The four thresholds."""
        second = {"threshold_one": self.second.threshold_own, "threshold_zero": self.second.threshold_other}
        return {**self.first.parameters, **second}

    @property
    def ratio(self) -> Fraction:
        """That of one report."""
        return self.unchanged_ratio(1)

    def rates(self, value: int) -> Rates:
        """Return how often one report has the bit of the true value set, through both rounds, and each other one."""
        own, other = (_through(chance, self.second.rates(value)) for chance in self.first.rates(value))
        return Rates(own, other)

    def simulate(self, histories: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return the reports of respondents over time: respondent, period, bit.

        Args:
            histories: A row each, a column a period.

        Raises:
            InvalidParameter: Unless the values of a row are the same: the mechanism is only for such rows.
        """
        if histories.ndim != 2 or not histories.shape[1] or (histories != histories[:, :1]).any():
            raise InvalidParameter("Histories must be rows of values that never change, a column a period.")
        kept = self.first.randomize(histories[:, 0], entropy)
        return np.stack([self._again(kept, entropy) for _ in range(histories.shape[1])], axis=1)

    def _again(self, kept: Reports, entropy: Entropy) -> Reports:
        one, zero = (samplers.bernoulli(chance, kept.size, entropy) for chance in self.second.rates(0))
        return np.where(kept, one.reshape(kept.shape), zero.reshape(kept.shape))


def _check_alike(first: KaryResponse | UnaryEncoding, second: KaryResponse | UnaryEncoding) -> None:
    if first.categories != second.categories:
        raise InvalidParameter("Both rounds of a memoised response must be for the same number of values.")


def _second_threshold(
    one: Number, forever: Number, truth: Callable[..., Ball], ratio: Fraction, *more: Fraction
) -> int:
    """Return the second round's threshold, rounded down.

    Args:
        truth: Its chance, given e^ε₁, the first round's ratio, and more.

    Raises:
        InvalidParameter: Unless ε₁ < ε∞, the loss of the first round.
    """
    epsilon = epsilon_of(one)
    if epsilon >= loss_of(ratio).epsilon:
        raise InvalidParameter(f"One report cannot lose {one} if all may lose {forever}; it must be less.")
    enclosed = enclose_tightly(lambda e, *others: truth(e.exp(), *others), epsilon, ratio, *more, bits=_BITS)
    return int(enclosed.lower * WHOLE)


def _through(first: Fraction, second: Rates) -> Fraction:
    """Return how often a report says what is kept with one chance, if the second round has these rates."""
    return first * second.p + (1 - first) * second.q


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to write a number as a sum of so many, in order."""
    if parts == 1:
        yield (total,)
        return
    for head in range(total + 1):
        for tail in _splits(total - head, parts - 1):
            yield (head, *tail)
