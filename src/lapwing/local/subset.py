"""Subset selection: a set of values, more likely than not with the true one among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import comb
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import MOST_VALUES
from lapwing.local.randomizer import (
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
from lapwing.local.search import least
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.local.variance import mean_variance
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP

_CELLS_AT_ONCE = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection:
    """Report w values: with probability p the true one and w − 1 others, else w others, all sets as likely.

    Guarantee: PureDP(ln ratio) for one respondent's value. A set S has probability p/C(k−1, w−1) for a value inside
        and (1 − p)/C(k−1, w) for one outside, so ratio = p·(k − w)/((1 − p)·w).
    Args: categories: k, from 2. size: w, below k. threshold: 2^64·p.
    Source: Ye and Barg 2018; Wang et al. 2016.
    """

    name: ClassVar[str] = "subset"
    categories: int
    size: int
    threshold: int

    def __post_init__(self) -> None:
        whole_number(self.categories, "categories", least=2, most=MOST_VALUES)
        whole_number(self.size, "size", least=1, most=self.categories - 1)
        threshold(self.threshold, "threshold")
        informative(self.rates(0))

    @classmethod
    def for_epsilon(cls, epsilon: Number, categories: int, size: int | None = None) -> Self:
        """Return the one with p = w·e^ε/(w·e^ε + k − w), rounded down; of the size with the least error, unless given.

        That size is near k/(e^ε + 1).
        """
        amount, count = epsilon_of(epsilon), whole_number(categories, "categories", least=2, most=MOST_VALUES)

        def of(size: int) -> Self:
            against = Fraction(count - size, size)
            return cls(categories=count, size=size, threshold=odds_down(amount, against))

        if size is not None:
            return of(whole_number(size, "size", least=1, most=count - 1))
        guess = round(count / (1 + 2.718281828 ** float(amount)))
        return of(least(lambda size: mean_variance(of(size)), guess, range(1, count // 2 + 1)))

    @property
    def parameters(self) -> Mapping[str, int]:
        """Threshold and size."""
        return {"threshold": self.threshold, "size": self.size}

    @property
    def ratio(self) -> Fraction:
        """p·(k − w)/((1 − p)·w)."""
        p = chance(self.threshold)
        return p * (self.categories - self.size) / ((1 - p) * self.size)

    def loss(self) -> PureDP:
        """Return ε of one report, rounded up."""
        return loss_of(self.ratio)

    def rates(self, value: int) -> Rates:
        """Return p, and that another value is in the set: p·(w − 1)/(k − 1) + (1 − p)·w/(k − 1)."""
        p = chance(self.threshold)
        return Rates(p, (p * (self.size - 1) + (1 - p) * self.size) / (self.categories - 1))

    def transition_matrix(self) -> Transitions:
        """Return the law of every set for every value."""
        every, p, others = few(self.categories), chance(self.threshold), self.categories - 1
        inside, outside = p / comb(others, self.size - 1), (1 - p) / comb(others, self.size)
        sets = tuple(combinations(every, self.size))
        return Transitions(reports=sets, rows=tuple(tuple(inside if v in s else outside for s in sets) for v in every))

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return w ascending values for each value."""
        given = codes(values, self.categories)
        step = max(1, _CELLS_AT_ONCE // self.categories)
        pieces = [self._sets(given[start : start + step], entropy) for start in range(0, given.size, step)]
        return np.concatenate([np.zeros((0, self.size), dtype=np.int64), *pieces])

    def _sets(self, given: NDArray[np.int64], entropy: Entropy) -> NDArray[np.int64]:
        """Draw the others of each set by Floyd's sampling; a set with the true value leaves out the last draw.

        After the j-th draw the members are a uniform set of j of the first k − 1 − w + j others; so w − 1 draws from
        k − 1 others begin one place later.
        """
        kept = samplers.bernoulli(chance(self.threshold), given.size, entropy)
        marks = np.zeros((given.size, self.categories), dtype=np.bool_)
        for true in (False, True):
            rows = np.flatnonzero(kept == true)
            for last in range(self.categories - 1 - self.size + true, self.categories - 1):
                pick = samplers.uniform_integers(last + 1, rows.size, entropy).astype(np.int64)
                marks[rows, np.where(marks[rows, pick], last, pick)] = True
        spread = np.zeros_like(marks)
        place = np.arange(self.categories - 1) >= given[:, None]
        rows, others = np.nonzero(marks[:, :-1])
        spread[rows, others + place[rows, others]] = True
        spread[np.arange(given.size), given] = kept
        return np.nonzero(spread)[1].reshape(given.size, self.size)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many sets have each value."""
        return np.bincount(self._checked(reports).ravel(), minlength=self.categories).astype(np.int64)

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each set is for each value: more so by the ratio for those in it."""
        sets = self._checked(reports)
        marks = np.zeros((len(sets), self.categories), dtype=np.bool_)
        np.put_along_axis(marks, sets, True, axis=1)
        return supported(marks, self.ratio)

    def _checked(self, reports: Reports) -> NDArray[np.int64]:
        if reports.ndim != 2 or reports.shape[1] != self.size:
            raise InvalidParameter(f"The reports must be sets of {self.size}.")
        return codes(reports.ravel(), self.categories).reshape(reports.shape)

    def read(self, said: object) -> tuple[int, ...]:
        """Return the set; it must have exactly w values, ascending."""
        if not isinstance(said, list) or len(said) != self.size:
            raise ValueError(f"r must be a list of {self.size} numbers")
        members = tuple(whole(value, self.categories, "a number of r") for value in said)
        if any(one >= next for one, next in pairwise(members)):
            raise ValueError("the numbers of r must ascend")
        return members

    def gather(self, said: Sequence[tuple[int, ...]]) -> Reports:
        """Return the sets as rows."""
        return np.array(said, dtype=np.int64).reshape(len(said), self.size)

    @property
    def report_bytes(self) -> int:
        """A number for each member, or a bit for each value, whichever is shorter."""
        return min(self.size * index_bytes(self.categories), -(-self.categories // 8))

    def operations(self, reports: int) -> int:
        """Return one step a member, and one a value."""
        return reports * self.size + self.categories
