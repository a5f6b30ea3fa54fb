"""Apple's count-mean sketches: the word's bucket under one of many functions, as noisy bits or as one noisy sign.

They are here for those who have such reports. At the same ε, optimised unary encoding, hashing and subset selection
are more accurate: flipping bits costs as much as in symmetric unary encoding, and words that share a bucket add error.

Source:
    Apple's Differential Privacy Team 2017, Learning with Privacy at Scale. There functions are 3-wise independent; here
    two values of one function are, and two functions, which is all that the proofs need.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import report_formats as formats
from lapwing.local.client.heavy_hitters import MOST_BUCKETS, MOST_ORDER, SEEDS
from lapwing.local.client.rules import response_ratio
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate, estimate
from lapwing.local.frequencies.randomizer import (
    Rates,
    Reports,
    Transitions,
    codes,
    few,
    informative,
    supported,
)
from lapwing.local.heavy_hitters.hash_functions import (
    Numbered,
    Places,
    Points,
    distinct_words,
    meeting,
    own_places,
    places,
    points_of,
    random_seeds,
)
from lapwing.local.mechanism import Mechanism
from lapwing.local.public_draws import EqualDraw, OnesDraw, PublicDraw
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number

MOST_CELLS: Final = 1 << 26
"""Of a table: functions times buckets."""
FUNCTIONS: Final = 1 << 14
BUCKETS: Final = 1 << 10
ORDER: Final = BUCKETS.bit_length() - 1
CELLS_AT_ONCE: Final = 1 << 22
"""Cells of a table, times reports, that are worked on together: memory, and never a result."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A sketch's table, a row for each function and a column for each bucket, and where the candidates fall in it.

    Raises:
        InvalidParameter: If it does not fit into the memory.
    """

    functions: Numbered
    buckets: int
    points: Points

    def __post_init__(self) -> None:
        if self.functions.count * self.buckets > MOST_CELLS:
            raise InvalidParameter(f"Functions times buckets are more than {MOST_CELLS:,}; take fewer.")

    @classmethod
    def of(cls, sketch: "CountMeanSketch | HadamardSketch") -> Self:
        seeds = {"seed_x": sketch.seed_x, "seed_y": sketch.seed_y, "seed_shift": sketch.seed_shift}
        return cls(
            functions=Numbered(count=sketch.functions, **seeds), buckets=sketch.buckets, points=points_of(sketch.words)
        )

    def places(self, numbers: IntArray) -> Places:
        """Return the bucket of each word (a column) under each function of these numbers (a row)."""
        return places(self.functions.at(numbers), self.points, self.buckets)

    def own_places(self, numbers: IntArray, values: IntArray) -> Places:
        """Return the bucket of each respondent's word under the respondent's function."""
        return own_places(self.functions.at(numbers), self.points[values], self.buckets)

    def cells(self, read: Callable[[int, int], NDArray[np.int32]]) -> NDArray[np.int64]:
        """Return the sum of each word's cells, one a function, of a table that is read some functions at a time."""
        total = np.zeros(len(self.points), dtype=np.int64)
        step = max(1, CELLS_AT_ONCE // max(self.buckets, len(self.points)))
        for start in range(0, self.functions.count, step):
            stop = min(start + step, self.functions.count)
            where = self.places(np.arange(start, stop))
            total += np.take_along_axis(read(start, stop), where, axis=1).sum(axis=0, dtype=np.int64)
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeanSketch(Mechanism):
    """Report which function was drawn, and for each bucket a bit: 1 at the word's own, each flipped by chance.

    Guarantee:
        PureDP(ln ratio) for one respondent's word, ratio = (p/(1 − p))². The function is drawn without looking at the
        word. Under each function two words differ in two bits at most, and both bits reveal something.

    Args:
        functions: How many there are, up to 2^20.
        buckets: m, up to 2^16.
        threshold: 2^64·p, p the probability that a bit is right.
        seed_x: Of the functions, public (`Numbered`).
        seed_y: Of the functions, public (`Numbered`).
        seed_shift: Of the functions, public (`Numbered`).
        words: The candidates whose shares are estimated, if any (`among`); no report depends on them.
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
        _Table.of(self)
        informative(self.rates(0))

    @classmethod
    def for_epsilon(
        cls, epsilon: Number, *, functions: int = FUNCTIONS, buckets: int = BUCKETS, entropy: Entropy = SYSTEM
    ) -> Self:
        """Return the one with p = e^(ε/2)/(1 + e^(ε/2)), rounded down, and functions drawn for it."""
        right = odds_down(epsilon_of(epsilon) / 2, Fraction(1))
        return cls(functions=functions, buckets=buckets, threshold=right, **random_seeds(entropy))

    def among(self, words: Sequence[str]) -> Self:
        """Return the same for these candidates."""
        made = replace(self)
        object.__setattr__(made, "words", distinct_words(words))
        return made

    @property
    def categories(self) -> int:
        """How many candidates there are."""
        return len(self.words)

    @property
    def parameters(self) -> Mapping[str, int]:
        """Threshold, functions, buckets and seeds."""
        return {name: getattr(self, name) for name in ("threshold", "functions", "buckets", *SEEDS)}

    @property
    def ratio(self) -> Fraction:
        """(p/(1 − p))²."""
        return response_ratio(self.threshold, 2) ** 2

    def rates(self, value: int) -> Rates:
        """Return p, and that another word sets the bit: c·p + (1 − c)·(1 − p), words meeting with probability c."""
        p, c = chance(self.threshold), meeting(self.buckets)
        return Rates(p, c * p + (1 - c) * (1 - p))

    @property
    def shared(self) -> Fraction:
        """The amount that the draw of the functions adds to the variance of a share f, at most, divided by (1 − f)²."""
        return shared_variance(self.functions, self.buckets)

    def transition_matrix(self) -> Transitions:
        """Return the law of every function with every row of bits, for each word."""
        every, p = few(self.categories), chance(self.threshold)
        where = _Table.of(self).places(np.arange(self.functions))
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
        own, table = codes(values, self.categories), _Table.of(self)
        reports = np.zeros(own.size, dtype=self._form)
        reports["function"] = samplers.uniform_integers(self.functions, own.size, entropy)
        p, step = chance(self.threshold), max(1, CELLS_AT_ONCE // self.buckets)
        for start in range(0, own.size, step):
            piece = reports[start : start + step]
            bits = samplers.bernoulli(1 - p, piece.size * self.buckets, entropy).reshape(piece.size, self.buckets)
            bits[np.arange(piece.size), table.own_places(piece["function"], own[start : start + step])] ^= True
            piece["bits"] = np.packbits(bits, axis=1, bitorder="little")
        return reports

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports have the bit of each word set: its cells of the table of all bits."""
        table = np.zeros((self.functions, self.buckets), dtype=np.int32)
        ordered = self._checked(reports)[np.argsort(reports["function"], kind="stable")]
        step = max(1, CELLS_AT_ONCE // self.buckets)
        for start in range(0, ordered.size, step):
            piece = ordered[start : start + step]
            numbers, first = np.unique(piece["function"], return_index=True)
            for number, bits in zip(numbers, np.split(self._bits(piece), first[1:]), strict=True):
                table[number] += bits.sum(axis=0, dtype=np.int32)
        return _Table.of(self).cells(lambda start, stop: table[start:stop])

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each word: more so by the ratio for those whose bit is set."""
        checked = self._checked(reports)
        where = _Table.of(self).places(checked["function"])
        return supported(np.take_along_axis(self._bits(checked), where, axis=1) == 1, self.ratio)

    def _bits(self, reports: Reports) -> NDArray[np.uint8]:
        return np.unpackbits(reports["bits"], axis=1, count=self.buckets, bitorder="little")

    def _checked(self, reports: Reports) -> Reports:
        if reports.ndim != 1 or reports.dtype != self._form:
            raise InvalidParameter(f"The reports must have a function and the packed bits of {self.buckets} buckets.")
        codes(reports["function"], self.functions)
        return reports

    def read(self, said: object) -> tuple[int, bytes]:
        """Return the function's number and the bits, of a number that honest devices set."""
        number, digits = formats.list_of(said, 2, "a list of a number and hexadecimal digits")
        p = chance(self.threshold)
        honest = formats.honest_weights(Rates(p, 1 - p), self.buckets)
        return (
            formats.number_below(number, self.functions, "the first of r"),
            formats.read_bits(digits, self.buckets, honest, name="the second of r", last="bucket"),
        )

    def gather(self, said: Sequence[tuple[int, bytes]]) -> Reports:
        """Return the reports as records."""
        reports = np.zeros(len(said), dtype=self._form)
        reports["function"] = [number for number, _ in said]
        packed = np.frombuffer(b"".join(bits for _, bits in said), dtype=np.uint8)
        reports["bits"] = packed.reshape(reports["bits"].shape)
        return reports

    def public_draws(self, reports: Reports) -> list[PublicDraw]:
        """Return the function, and how many bits are set: one is right by chance p, each other by 1 − p."""
        p, ones = chance(self.threshold), int(np.bitwise_count(reports["bits"]).sum())
        bits = OnesDraw(name="ones", reports=reports.size, bits=self.buckets, ones=ones, p=p, q=1 - p)
        return [EqualDraw(name="function", outcomes=self.functions, seen=reports["function"]), bits]

    @property
    def report_bytes(self) -> int:
        """A bit for each bucket, and the function's number."""
        return -(-self.buckets // 8) + formats.index_bytes(self.functions)

    def operations(self, reports: int) -> int:
        """Return one step a bit, and one a word and a function."""
        return reports * self.buckets + self.functions * self.categories


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardSketch(Mechanism):
    """Report which function and which row of the Hadamard matrix were drawn, and its sign at the word's bucket.

    The matrix has m = 2^order rows and H[l, h] = (−1)^|l & h|. A report supports the words at whose bucket the row has
    the sign shown.

    Guarantee:
        PureDP(ln ratio) for one respondent's word, ratio = p/(1 − p). Function and row are drawn without looking at the
        word, and under each the sign is binary randomized response.

    Args:
        functions: How many there are, up to 2^20.
        order: Up to 20.
        threshold: 2^64·p, p the probability that the sign is right.
        seed_x: As of `CountMeanSketch`.
        seed_y: As of `CountMeanSketch`.
        seed_shift: As of `CountMeanSketch`.
        words: As of `CountMeanSketch`.
    """

    name: ClassVar[str] = "hadamard"
    functions: int
    order: int
    threshold: int
    seed_x: int
    seed_y: int
    seed_shift: int
    words: tuple[str, ...] = field(default=(), init=False, compare=False)

    def __post_init__(self) -> None:
        whole_number(self.order, "order", least=1, most=MOST_ORDER)
        threshold(self.threshold, "threshold")
        _Table.of(self)
        informative(self.rates(0))

    @classmethod
    def for_epsilon(
        cls, epsilon: Number, *, functions: int = FUNCTIONS, order: int = ORDER, entropy: Entropy = SYSTEM
    ) -> Self:
        """Return the one with p = e^ε/(1 + e^ε), rounded down, and functions drawn for it."""
        right = odds_down(epsilon_of(epsilon), Fraction(1))
        return cls(functions=functions, order=order, threshold=right, **random_seeds(entropy))

    def among(self, words: Sequence[str]) -> Self:
        """Return the same for these candidates."""
        made = replace(self)
        object.__setattr__(made, "words", distinct_words(words))
        return made

    @property
    def buckets(self) -> int:
        """2^order."""
        return 1 << self.order

    @property
    def categories(self) -> int:
        """How many candidates there are."""
        return len(self.words)

    @property
    def parameters(self) -> Mapping[str, int]:
        """Threshold, functions, order and seeds."""
        return {name: getattr(self, name) for name in ("threshold", "functions", "order", *SEEDS)}

    @property
    def ratio(self) -> Fraction:
        """p/(1 − p)."""
        return response_ratio(self.threshold, 2)

    def rates(self, value: int) -> Rates:
        """Return p, and that another word is supported: c·p + (1 − c)/2, words meeting with probability c.

        In different buckets signs agree in exactly half of the rows.
        """
        p, c = chance(self.threshold), meeting(self.buckets)
        return Rates(p, c * p + (1 - c) / 2)

    @property
    def shared(self) -> Fraction:
        """The amount that the draw of the functions adds to the variance of a share f, at most, divided by (1 − f)²."""
        return shared_variance(self.functions, self.buckets)

    def transition_matrix(self) -> Transitions:
        """Return the law of every function with every row and sign, for each word."""
        every, p = few(self.categories), chance(self.threshold)
        where = _Table.of(self).places(np.arange(self.functions))
        reports = tuple(product(range(self.functions), range(self.buckets), (0, 1)))
        each = Fraction(1, self.functions * self.buckets)

        def law(word: int, number: int, row: int, sign: int) -> Fraction:
            right = (int(where[number, word]) & row).bit_count() % 2 == sign
            return each * (p if right else 1 - p)

        return Transitions(
            reports=reports, rows=tuple(tuple(law(word, *report) for report in reports) for word in every)
        )

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return a function's number, a row and a sign for the word of each code."""
        own = codes(values, self.categories)
        drawn = [samplers.uniform_integers(bound, own.size, entropy) for bound in (self.functions, self.buckets)]
        numbers, chosen = (integers.astype(np.int64) for integers in drawn)
        wrong = samplers.bernoulli(1 - chance(self.threshold), own.size, entropy)
        return np.stack([numbers, chosen, _parity(_Table.of(self).own_places(numbers, own) & chosen) ^ wrong], axis=1)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports support each word: half of all, and half of the signs at its buckets, added up.

        The signs of a function at all buckets are the Walsh-Hadamard transform of its table of signs by row.
        """
        number, row, sign = self._checked(reports).T
        table = np.zeros((self.functions, self.buckets), dtype=np.int32)
        np.add.at(table.reshape(-1), number * self.buckets + row, (1 - 2 * sign).astype(np.int32))
        agreeing = _Table.of(self).cells(lambda start, stop: walsh_hadamard(table[start:stop]))
        return (len(reports) + agreeing) // 2

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each word: more so by the ratio for those that it supports."""
        number, row, sign = self._checked(reports).T
        return supported(_parity(_Table.of(self).places(number) & row[:, None]) == sign[:, None], self.ratio)

    def _checked(self, reports: Reports) -> NDArray[np.int64]:
        return formats.checked_rows(reports, (self.functions, self.buckets, 2), "a function, a row and a sign")

    def read(self, said: object) -> tuple[int, int, int]:
        """Return the function's number, the row and the sign."""
        number, row, sign = formats.list_of(said, 3, "a list of 3 numbers")
        return (
            formats.number_below(number, self.functions, "the first of r"),
            formats.number_below(row, self.buckets, "the second of r"),
            formats.number_below(sign, 2, "the third of r"),
        )

    def gather(self, said: Sequence[tuple[int, int, int]]) -> Reports:
        """Return the reports as rows."""
        return formats.rows(said, 3)

    def public_draws(self, reports: Reports) -> list[PublicDraw]:
        """Return the function and the row."""
        drawn = (("function", self.functions), ("row", self.buckets))
        return [EqualDraw(name=name, outcomes=m, seen=reports[:, place]) for place, (name, m) in enumerate(drawn)]

    @property
    def report_bytes(self) -> int:
        """The function's number, and the row with the sign."""
        return formats.index_bytes(self.functions) + formats.index_bytes(2 * self.buckets)

    def operations(self, reports: int) -> int:
        """Return one step a report, the transform's, and one a word and a function."""
        return reports + self.functions * (self.buckets * self.order + self.categories)


def walsh_hadamard(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the Walsh-Hadamard transform of rows of 2^order numbers: at h it is Σ_l row[l]·(−1)^|l & h|.

    One bit of l after the other is summed over, so that m·log₂ m additions do. Numbers must stay below 2^31, which sums
    of so many signs do.
    """
    turned = np.ascontiguousarray(rows.T)  # a bit's two halves are then long runs
    half = 1
    while half < len(turned):
        pairs = turned.reshape(-1, 2, half * rows.shape[0])
        difference = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = difference
        half *= 2
    return turned.T


def _parity(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bitwise_count(numbers).astype(np.int64) & 1


def estimate_sketch(
    mechanism: CountMeanSketch | HadamardSketch, reports: Reports, words: Sequence[str]
) -> FrequencyEstimate:
    """Return what reports say about the share of each candidate, with intervals that cover the draw of the functions.

    Raises:
        InvalidParameter: For reports of another mechanism, or for candidates that nothing tells apart.
    """
    among = mechanism.among(words)
    return replace(estimate(among, reports, among.words), shared=float(among.shared))
