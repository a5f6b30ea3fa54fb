"""Apple's count-mean sketch: the word's bucket under one of many functions, as noisy bits, added up in one table.

It is here for those who have such reports. At the same ε optimised unary encoding, hashing and subset selection are
more accurate: two flipped bits a report cost as in symmetric unary encoding, and words that meet in a bucket cost more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import ClassVar, Final, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import WHOLE
from lapwing.local.client.sketch import MOST_BUCKETS
from lapwing.local.lists.estimates import FrequencyEstimate, estimate
from lapwing.local.lists.randomizer import (
    Randomizer,
    Rates,
    Reports,
    Transitions,
    codes,
    few,
    index_bytes,
    informative,
    loss_of,
    supported,
    whole,
)
from lapwing.local.lists.unary import between, honest_weights
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.local.words.places import Numbered, known, meeting, own_places, places, points_of, random_seeds
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP

MOST_CELLS: Final = 1 << 26
"""Of a table: functions times buckets."""
FUNCTIONS: Final = 1 << 14
BUCKETS: Final = 1 << 10
_CELLS_AT_ONCE: Final = 1 << 22


class Sketch(Randomizer, Protocol):
    """A randomizer whose functions all reports share."""

    @property
    def words(self) -> tuple[str, ...]:
        """The candidates."""
        ...

    def among(self, words: Sequence[str]) -> Self:
        """Return the same for these candidates."""
        ...

    @property
    def shared(self) -> Fraction:
        """What the draw of the functions adds to the variance of a share f, at most, divided by (1 − f)²."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeanSketch:
    """Report which function was drawn, and for each bucket a bit: 1 at the word's own, each flipped by chance.

    Guarantee: PureDP(ln ratio) for one respondent's word, ratio = (p/(1 − p))²: the function is drawn without looking
        at the word, and under each two words differ in two bits at most, which both tell.
    Args: functions: how many there are, up to 2^20. buckets: m, up to
        2^16. threshold: 2^64·p, p the probability that a bit is right. seeds: of the functions, public
        (`Numbered`). words: the candidates whose shares are estimated, if any (`among`); no report depends on them.
    Source: Apple's Differential Privacy Team 2017, Learning with Privacy at Scale. There functions are 3-wise
        independent; here two values of one function are, and two functions, which is all that the proofs need.
    """

    name: ClassVar[str] = "sketch"
    functions: int
    buckets: int
    threshold: int
    seed_x: int
    seed_y: int
    seed_shift: int
    words: tuple[str, ...] = field(default=(), init=False, compare=False)

    def __post_init__(self) -> None:
        whole_number(self.buckets, "buckets", least=2, most=MOST_BUCKETS)
        threshold(self.threshold, "threshold")
        fitting(self._numbered, self.buckets)
        informative(self.rates(0))

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        *,
        functions: int = FUNCTIONS,
        buckets: int = BUCKETS,
        entropy: Entropy = SYSTEM,
    ) -> Self:
        """Return the one with p = e^(ε/2)/(1 + e^(ε/2)), rounded down, and functions drawn for it."""
        right = odds_down(epsilon_of(epsilon) / 2, Fraction(1))
        x, y, shift = random_seeds(entropy)
        return cls(functions=functions, buckets=buckets, threshold=right, seed_x=x, seed_y=y, seed_shift=shift)

    def among(self, words: Sequence[str]) -> Self:
        """Return the same for these candidates."""
        made = replace(self)
        object.__setattr__(made, "words", known(words))
        return made

    @property
    def _numbered(self) -> Numbered:
        return Numbered(count=self.functions, seed_x=self.seed_x, seed_y=self.seed_y, seed_shift=self.seed_shift)

    @property
    def categories(self) -> int:
        """How many candidates there are."""
        return len(self.words)

    @property
    def parameters(self) -> Mapping[str, int]:
        """Threshold, functions, buckets and seeds."""
        names = ("threshold", "functions", "buckets", *Numbered.names)
        return {name: getattr(self, name) for name in names}

    @property
    def ratio(self) -> Fraction:
        """(p/(1 − p))²."""
        return Fraction(self.threshold, WHOLE - self.threshold) ** 2

    def loss(self) -> PureDP:
        """Return ε of one report, rounded up."""
        return loss_of(self.ratio)

    def rates(self, value: int) -> Rates:
        """Return p, and that another word sets the bit: c·p + (1 − c)·(1 − p), words meeting with probability c."""
        p, c = chance(self.threshold), meeting(self.buckets)
        return Rates(p, c * p + (1 - c) * (1 - p))

    @property
    def shared(self) -> Fraction:
        """What the draw of the functions adds to a share's variance: see `shared_variance`."""
        return shared_variance(self.functions, self.buckets)

    def transition_matrix(self) -> Transitions:
        """Return the law of every function with every row of bits, for each word."""
        every, p = few(self.categories), chance(self.threshold)
        where = places(self._numbered.at(np.arange(self.functions)), points_of(self.words), self.buckets)
        reports = tuple(product(range(self.functions), product((0, 1), repeat=self.buckets)))

        def law(word: int, number: int, bits: tuple[int, ...]) -> Fraction:
            right = sum(bit == (index == where[number, word]) for index, bit in enumerate(bits))
            return prod([p] * right + [1 - p] * (self.buckets - right), start=Fraction(1, self.functions))

        return Transitions(
            reports=reports, rows=tuple(tuple(law(word, *report) for report in reports) for word in every)
        )

    @property
    def _form(self) -> np.dtype[np.void]:
        return np.dtype([("function", np.int64), ("bits", np.uint8, (-(-self.buckets // 8),))])

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a function's number and packed bits for the word of each code."""
        given = codes(values, self.categories)
        reports = np.zeros(given.size, dtype=self._form)
        reports["function"] = samplers.uniform_integers(self.functions, given.size, entropy)
        p, step = chance(self.threshold), max(1, _CELLS_AT_ONCE // self.buckets)
        at = points_of(self.words)
        for start in range(0, given.size, step):
            piece = reports[start : start + step]
            own = own_places(self._numbered.at(piece["function"]), at[given[start : start + step]], self.buckets)
            bits = samplers.bernoulli(1 - p, piece.size * self.buckets, entropy).reshape(piece.size, self.buckets)
            bits[np.arange(piece.size), own] ^= True
            piece["bits"] = np.packbits(bits, axis=1, bitorder="little")
        return reports

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports have the bit of each word set: its cells of the table of all bits."""
        given = self._checked(reports)
        table = np.zeros((self.functions, self.buckets), dtype=np.int32)
        given = given[np.argsort(given["function"], kind="stable")]
        step = max(1, _CELLS_AT_ONCE // self.buckets)
        for start in range(0, given.size, step):
            piece = given[start : start + step]
            bits = np.unpackbits(piece["bits"], axis=1, count=self.buckets, bitorder="little")
            numbers, first = np.unique(piece["function"], return_index=True)
            for number, rows in zip(numbers, np.split(bits, first[1:]), strict=True):
                table[number] += rows.sum(axis=0, dtype=np.int32)
        return looked_up(self._numbered, self.words, self.buckets, lambda start, stop: table[start:stop])

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each word: more so by the ratio for those whose bit is set."""
        given = self._checked(reports)
        where = places(self._numbered.at(given["function"]), points_of(self.words), self.buckets)
        bits = np.unpackbits(given["bits"], axis=1, count=self.buckets, bitorder="little")
        return supported(np.take_along_axis(bits, where, axis=1) == 1, self.ratio)

    def _checked(self, reports: Reports) -> Reports:
        if reports.ndim != 1 or reports.dtype != self._form:
            raise InvalidParameter(f"The reports must have a function and the packed bits of {self.buckets} buckets.")
        codes(reports["function"], self.functions)
        return reports

    def read(self, said: object) -> tuple[int, bytes]:
        """Return the function's number and the bits, of a number that honest devices set."""
        if not isinstance(said, list) or len(said) != 2:
            raise ValueError("r must be a list of a number and hexadecimal digits")
        size, (number, digits) = -(-self.buckets // 8), said
        whole(number, self.functions, "the first of r")
        if not isinstance(digits, str) or len(digits) != 2 * size or not set(digits) <= set("0123456789abcdef"):
            raise ValueError(f"the second of r must be {2 * size} digits 0-9, a-f")
        bits = bytes.fromhex(digits)
        ones = int.from_bytes(bits, "little")
        if ones >> self.buckets:
            raise ValueError("r has bits beyond the last bucket")
        p = chance(self.threshold)
        honest = honest_weights(p, 1 - p, self.buckets)
        if ones.bit_count() not in honest:
            raise ValueError(f"r has {ones.bit_count()} bits set; honest ones have {between(honest)}")
        return number, bits

    def gather(self, said: Sequence[tuple[int, bytes]]) -> Reports:
        """Return the reports as records."""
        reports = np.zeros(len(said), dtype=self._form)
        reports["function"] = [number for number, _ in said]
        packed = np.frombuffer(b"".join(bits for _, bits in said), dtype=np.uint8)
        reports["bits"] = packed.reshape(reports["bits"].shape)
        return reports

    @property
    def report_bytes(self) -> int:
        """A bit for each bucket, and the function's number."""
        return -(-self.buckets // 8) + index_bytes(self.functions)

    def operations(self, reports: int) -> int:
        """Return one step a bit, and one a word and a function."""
        return reports * self.buckets + self.functions * self.categories


def fitting(functions: Numbered, buckets: int) -> None:
    """Refuse a table that does not fit into the memory."""
    if functions.count * buckets > MOST_CELLS:
        raise InvalidParameter(f"Functions times buckets are more than {MOST_CELLS:,}; take fewer.")


def looked_up(
    functions: Numbered, words: tuple[str, ...], buckets: int, rows: Callable[[int, int], NDArray[np.int32]]
) -> NDArray[np.int64]:
    """Return the sum of each word's cells, one a function, of a table that is read some functions at a time."""
    at, total = points_of(words), np.zeros(len(words), dtype=np.int64)
    step = max(1, _CELLS_AT_ONCE // max(buckets, len(words)))
    for start in range(0, functions.count, step):
        stop = min(start + step, functions.count)
        where = places(functions.at(np.arange(start, stop)), at, buckets)
        total += np.take_along_axis(rows(start, stop), where, axis=1).sum(axis=0, dtype=np.int64)
    return total


def shared_variance(functions: int, buckets: int) -> Fraction:
    """Return what the draw of k functions adds to the variance of a share f at most, divided by (1 − f)²: c/((1 − c)k).

    Given the functions, a word gets too much from those that it often meets, and too little from others: on average
    over the seeds nothing. Of the N = (1 − f)·n respondents with other words, let S count those that meet it. A meeting
    raises the chance of a support by (p − q)/(1 − c), so that S adds S/((1 − c)·n) to the share. Two respondents with
    different functions have no covariance in S, as functions are independent in pairs. Two with the same one, which
    happens with probability 1/k, have c(1 − c) at most (Cauchy and Schwarz; attained if they have the same word). So
    pairs add N²·c(1 − c)/k to Var S at most, and N²·c/((1 − c)·k·n²) to that of the share. What one respondent adds
    alone is a coin of chance q, and counted there.
    """
    c = meeting(buckets)
    return c / ((1 - c) * functions)


def estimate_sketch(mechanism: Sketch, reports: Reports, words: Sequence[str]) -> FrequencyEstimate:
    """Return what reports say about the share of each candidate, with intervals that cover the draw of the functions.

    Raises: InvalidParameter for reports or candidates that cannot be meant.
    """
    among = mechanism.among(words)
    return replace(estimate(among, reports, among.words), shared=float(among.shared))
