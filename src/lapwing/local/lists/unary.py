"""Unary encoding: one noisy bit for each value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import ceil, floor, log, prod, sqrt
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import MOST_VALUES, WHOLE
from lapwing.local.lists.randomizer import Rates, Reports, Transitions, codes, few, informative, loss_of, supported
from lapwing.local.thresholds import chance, epsilon_of, odds_down, odds_up, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP

_MOST_OF_A_BYTE = 255
_SIDE_BY_SIDE = 1 << 12
_RARE = 1e-9
"""An honest report is taken for a forged one with a smaller probability than this."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoding:
    """Report a bit for each value: that of the true one is set with probability p, each other with q.

    Guarantee: PureDP(ln ratio) for one respondent's value. Two values differ in two bits, and both tell, so ratio =
        (p/q)·((1 − q)/(1 − p)): a bit of q alone would state half of it.
    Args: categories: from 2. threshold_own, threshold_other: 2^64·p and 2^64·q.
    Source: Erlingsson, Pihur and Korolova 2014 (symmetric); Wang, Blocki, Li and Jha 2017 (optimised).
    """

    name: ClassVar[str] = "unary"
    categories: int
    threshold_own: int
    threshold_other: int
    weights: range = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole_number(self.categories, "categories", least=2, most=MOST_VALUES)
        threshold(self.threshold_own, "threshold_own")
        threshold(self.threshold_other, "threshold_other")
        informative(self.rates(0))
        object.__setattr__(self, "weights", honest_weights(*self.rates(0), self.categories))

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

    def loss(self) -> PureDP:
        """Return ε of one report, rounded up."""
        return loss_of(self.ratio)

    def rates(self, value: int) -> Rates:
        """Return p and q: a report supports the values whose bit is set."""
        return Rates(chance(self.threshold_own), chance(self.threshold_other))

    def transition_matrix(self) -> Transitions:
        """Return the law of all bits for every value."""
        every, (p, q) = few(self.categories), self.rates(0)

        def law(true: int, bits: tuple[int, ...]) -> Fraction:
            ones = [p if value == true else q for value in every]
            return prod((one if bit else 1 - one for one, bit in zip(ones, bits, strict=True)), start=Fraction(1))

        reports = tuple(product((0, 1), repeat=self.categories))
        return Transitions(reports=reports, rows=tuple(tuple(law(v, bits) for bits in reports) for v in every))

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a row of bits for each value."""
        given = codes(values, self.categories)
        p, q = self.rates(0)
        bits = samplers.bernoulli(q, given.size * self.categories, entropy).reshape(given.size, self.categories)
        bits[np.arange(given.size), given] = samplers.bernoulli(p, given.size, entropy)
        return bits

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports have each bit set."""
        return _columns(self._checked(reports))

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each value: more so by the ratio for those whose bit is set."""
        return supported(self._checked(reports), self.ratio)

    def _checked(self, reports: Reports) -> NDArray[np.bool_]:
        if reports.ndim != 2 or reports.shape[1] != self.categories or reports.dtype != np.bool_:
            raise InvalidParameter(f"The reports must be rows of {self.categories} bits (bool).")
        return reports

    def read(self, said: object) -> bytes:
        """Return the bits, of a number that honest devices set."""
        size = -(-self.categories // 8)
        if not isinstance(said, str) or len(said) != 2 * size or not set(said) <= set("0123456789abcdef"):
            raise ValueError(f"r must be {2 * size} digits 0-9, a-f")
        bits = bytes.fromhex(said)
        number = int.from_bytes(bits, "little")
        if number >> self.categories:
            raise ValueError("r has bits beyond the last value")
        if number.bit_count() not in self.weights:
            raise ValueError(f"r has {number.bit_count()} bits set; honest ones have {between(self.weights)}")
        return bits

    def gather(self, said: Sequence[bytes]) -> Reports:
        """Return the bits as rows."""
        packed = np.frombuffer(b"".join(said), dtype=np.uint8).reshape(len(said), -(-self.categories // 8))
        return np.unpackbits(packed, axis=1, count=self.categories, bitorder="little").astype(np.bool_)

    @property
    def report_bytes(self) -> int:
        """A bit for each value."""
        return -(-self.categories // 8)

    def operations(self, reports: int) -> int:
        """Return one step a bit."""
        return reports * self.categories


def honest_weights(p: Fraction, q: Fraction, categories: int) -> range:
    """Return the numbers of set bits that an honest report has, but for a probability of 1e-9.

    Bernstein's inequality for independent bits of variance V in all: the number is t or more from its mean with
    probability at most 2e^(−L), for t = L/3 + √(L²/9 + 2VL).
    """
    mean, variance = float(p + (categories - 1) * q), float(p * (1 - p) + (categories - 1) * q * (1 - q))
    level = log(2 / _RARE)
    reach = level / 3 + sqrt(level**2 / 9 + 2 * variance * level)
    return range(max(0, floor(mean - reach)), min(categories, ceil(mean + reach)) + 1)


def _columns(bits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many bits of each column are set; short rows are put side by side, as long ones are summed faster."""
    width = bits.shape[1]
    beside = max(1, _SIDE_BY_SIDE // width)
    whole = len(bits) - len(bits) % beside
    sums: NDArray[np.int64] = _bytewise(bits[:whole].reshape(whole // beside, beside * width))
    sums = sums.reshape(beside, width).sum(axis=0)
    return sums + _bytewise(bits[whole:])


def _bytewise(bits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the sums of the columns; those of so many rows fit in a byte."""
    sums = np.zeros(bits.shape[1], dtype=np.int64)
    for start in range(0, len(bits), _MOST_OF_A_BYTE):
        sums += np.add.reduce(bits[start : start + _MOST_OF_A_BYTE].view(np.uint8), axis=0, dtype=np.uint8)
    return sums


def between(weights: range) -> str:
    """Return a range in words."""
    return f"{weights.start} to {weights.stop - 1}"
