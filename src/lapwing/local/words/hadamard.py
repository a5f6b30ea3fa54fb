"""Apple's Hadamard count-mean sketch: one sign of the word's bucket, instead of a bit for every bucket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import WHOLE
from lapwing.local.client.sketch import MOST_ORDER
from lapwing.local.lists.randomizer import (
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
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.local.words.places import Numbered, known, meeting, own_places, places, points_of, random_seeds
from lapwing.local.words.sketch import BUCKETS, FUNCTIONS, fitting, looked_up, shared_variance
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP

ORDER: Final = BUCKETS.bit_length() - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardSketch:
    """Report which function and which row of the Hadamard matrix were drawn, and its sign at the word's bucket.

    The matrix has m = 2^order rows and H[l, h] = (−1)^|l & h|. A report supports the words at whose bucket the row has
    the sign shown.

    Guarantee: PureDP(ln ratio) for one respondent's word, ratio = p/(1 − p): function and row are drawn without looking
        at the word, and under each the sign is binary randomized response.
    Args: functions: how many there are, up to 2^20. order: up to 20.
        threshold: 2^64·p, p the probability that the sign is right. seeds: of the functions, public
        (`Numbered`). words: the candidates whose shares are estimated, if any (`among`); no report depends on them.
    Source: Apple's Differential Privacy Team 2017, Learning with Privacy at Scale.
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
        fitting(self._numbered, self.buckets)
        informative(self.rates(0))

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        *,
        functions: int = FUNCTIONS,
        order: int = ORDER,
        entropy: Entropy = SYSTEM,
    ) -> Self:
        """Return the one with p = e^ε/(1 + e^ε), rounded down, and functions drawn for it."""
        right = odds_down(epsilon_of(epsilon), Fraction(1))
        x, y, shift = random_seeds(entropy)
        return cls(functions=functions, order=order, threshold=right, seed_x=x, seed_y=y, seed_shift=shift)

    def among(self, words: Sequence[str]) -> Self:
        """Return the same for these candidates."""
        made = replace(self)
        object.__setattr__(made, "words", known(words))
        return made

    @property
    def _numbered(self) -> Numbered:
        return Numbered(count=self.functions, seed_x=self.seed_x, seed_y=self.seed_y, seed_shift=self.seed_shift)

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
        return {name: getattr(self, name) for name in ("threshold", "functions", "order", *Numbered.names)}

    @property
    def ratio(self) -> Fraction:
        """p/(1 − p)."""
        return Fraction(self.threshold, WHOLE - self.threshold)

    def loss(self) -> PureDP:
        """Return ε of one report, rounded up."""
        return loss_of(self.ratio)

    def rates(self, value: int) -> Rates:
        """Return p, and that another word is supported: c·p + (1 − c)/2, words meeting with probability c.

        In different buckets signs agree in exactly half of the rows.
        """
        p, c = chance(self.threshold), meeting(self.buckets)
        return Rates(p, c * p + (1 - c) / 2)

    @property
    def shared(self) -> Fraction:
        """What the draw of the functions adds to a share's variance: see `shared_variance`."""
        return shared_variance(self.functions, self.buckets)

    def transition_matrix(self) -> Transitions:
        """Return the law of every function with every row and sign, for each word."""
        every, p = few(self.categories), chance(self.threshold)
        where = places(self._numbered.at(np.arange(self.functions)), points_of(self.words), self.buckets)
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
        given = codes(values, self.categories)
        drawn = [samplers.uniform_integers(bound, given.size, entropy) for bound in (self.functions, self.buckets)]
        numbers, rows = (numbers.astype(np.int64) for numbers in drawn)
        own = own_places(self._numbered.at(numbers), points_of(self.words)[given], self.buckets)
        wrong = samplers.bernoulli(1 - chance(self.threshold), given.size, entropy)
        return np.stack([numbers, rows, _parity(own & rows) ^ wrong], axis=1)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports support each word: half of all, and half of the signs at its buckets, added up.

        The signs of a function at all buckets are the Walsh-Hadamard transform of its table of signs by row.
        """
        number, row, sign = self._checked(reports).T
        table = np.zeros((self.functions, self.buckets), dtype=np.int32)
        np.add.at(table.reshape(-1), number * self.buckets + row, (1 - 2 * sign).astype(np.int32))
        agreeing = looked_up(
            self._numbered, self.words, self.buckets, lambda start, stop: walsh_hadamard(table[start:stop])
        )
        return (len(reports) + agreeing) // 2

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each word: more so by the ratio for those that it supports."""
        number, row, sign = self._checked(reports).T
        where = places(self._numbered.at(number), points_of(self.words), self.buckets)
        return supported(_parity(where & row[:, None]) == sign[:, None], self.ratio)

    def _checked(self, reports: Reports) -> NDArray[np.int64]:
        if reports.ndim != 2 or reports.shape[1] != 3:
            raise InvalidParameter("The reports must be rows of a function, a row and a sign.")
        for column, bound in enumerate((self.functions, self.buckets, 2)):
            codes(reports[:, column], bound)
        return reports.astype(np.int64)

    def read(self, said: object) -> tuple[int, int, int]:
        """Return the function's number, the row and the sign."""
        if not isinstance(said, list) or len(said) != 3:
            raise ValueError("r must be a list of 3 numbers")
        number, row, sign = said
        return (
            whole(number, self.functions, "the first of r"),
            whole(row, self.buckets, "the second of r"),
            whole(sign, 2, "the third of r"),
        )

    def gather(self, said: Sequence[tuple[int, int, int]]) -> Reports:
        """Return the reports as rows."""
        return np.array(said, dtype=np.int64).reshape(len(said), 3)

    @property
    def report_bytes(self) -> int:
        """The function's number, and the row with the sign."""
        return index_bytes(self.functions) + index_bytes(2 * self.buckets)

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
