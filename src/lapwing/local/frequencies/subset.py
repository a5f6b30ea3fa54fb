"""Subset selection: a set of values, more likely than not with the true one among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import comb, floor, sqrt
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import MOST_VALUES
from lapwing.local.frequencies.randomizer import Rates, Reports, Transitions, codes, few, informative, supported
from lapwing.local.frequencies.variance import mean_variance
from lapwing.local.mechanism import Mechanism
from lapwing.local.report_formats import index_bytes, list_of, number_below, rows
from lapwing.local.thresholds import chance, epsilon_of, least, odds_down, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number

_CELLS_AT_ONCE = 1 << 20
_MEMBERS_AT_ONCE = 1 << 16
_PARTS = 256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(Mechanism):
    """Report w values: with probability p the true one and w − 1 others, else w others, all sets as likely.

    Guarantee:
        PureDP(ln ratio) for one respondent's value. A set S has probability p/C(k−1, w−1) for a value inside and (1 −
        p)/C(k−1, w) for one outside. So ratio = p·(k − w)/((1 − p)·w).

    Args:
        categories: k, from 2.
        size: w, below k.
        threshold: 2^64·p.

    Source:
        Ye and Barg 2018; Wang et al. 2016.
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
        own = codes(values, self.categories)
        reports = np.empty((own.size, self.size), dtype=np.int64)
        step = max(1, _CELLS_AT_ONCE // self.categories)
        for start in range(0, own.size, step):
            self._draw(reports[start : start + step], own[start : start + step], entropy)
        return reports

    def _draw(self, sets: NDArray[np.int64], own: NDArray[np.int64], entropy: Entropy) -> None:
        """Draw a uniform set of w or w − 1 others for each true value, and put that among them if it is kept.

        Others are marked by independent coins, and then by draws of `_complete` until their number is right.
        Relabelling the others turns every run of this into an equally likely run, with the labels exchanged. So all
        sets of one size are equally likely, whatever the chance of the coins.
        """
        kept = samplers.bernoulli(chance(self.threshold), own.size, entropy)
        marks = samplers.bernoulli(_share(self.size, self.categories), own.size * self.categories, entropy)
        starts = np.arange(0, marks.size, self.categories)
        marks[starts + own] = False
        _complete(marks, starts, own, self.categories, self.size - kept, entropy)
        marks[starts + own] = kept
        np.subtract(np.flatnonzero(marks).reshape(sets.shape), starts[:, None], out=sets)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many sets have each value."""
        counts = np.zeros(self.categories, dtype=np.int64)
        step = max(1, _MEMBERS_AT_ONCE // self.size)
        for start in range(0, max(len(reports), 1), step):
            counts += np.bincount(self._checked(reports[start : start + step]).ravel(), minlength=self.categories)
        return counts

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
        numbers = list_of(said, self.size, f"a list of {self.size} numbers")
        members = tuple(number_below(value, self.categories, "a number of r") for value in numbers)
        if any(one >= next for one, next in pairwise(members)):
            raise ValueError("the numbers of r must ascend")
        return members

    def gather(self, said: Sequence[tuple[int, ...]]) -> Reports:
        """Return the sets as rows."""
        return rows(said, self.size)

    @property
    def report_bytes(self) -> int:
        """The shorter of a number for each member and a bit for each value."""
        return min(self.size * index_bytes(self.categories), -(-self.categories // 8))

    def operations(self, reports: int) -> int:
        """Return one step a member, and one a value."""
        return reports * self.size + self.categories


def _share(size: int, categories: int) -> Fraction:
    """Return a chance in 256ths, which one byte decides, at which nearly the wanted number is marked.

    Unmarking has to look for the few that are marked, so half a standard deviation too few is best; or too many, if
    most are to be marked.
    """
    spread = sqrt(size * (categories - size) / categories) / 2
    target = size - spread if 2 * size <= categories else size + spread
    return Fraction(min(max(floor(target * _PARTS / categories), 0), _PARTS), _PARTS)


def _complete(
    marks: NDArray[np.bool_],
    starts: NDArray[np.int64],
    own: NDArray[np.int64],
    categories: int,
    target: NDArray[np.int64],
    entropy: Entropy,
) -> None:
    """Mark more others of each row, or unmark some, drawn with repetition, until the wanted number is marked.

    In each turn as many are drawn as are missing or too many, so that no turn goes too far.
    """
    missing = target - marks.reshape(own.size, categories).sum(axis=1, dtype=np.int64)
    last = np.empty(marks.size, dtype=np.int32)
    while (rows := np.flatnonzero(missing)).size:
        starts, own, missing = starts[rows], own[rows], missing[rows]
        tries = np.repeat(np.arange(rows.size), np.abs(missing))
        adding = missing[tries] > 0
        others = samplers.uniform_integers(categories - 1, tries.size, entropy).astype(np.int64, copy=False)
        cells = starts[tries] + others + (others >= own[tries])
        turns = np.arange(tries.size, dtype=np.int32)
        last[cells] = turns
        changed = (marks[cells] != adding) & (last[cells] == turns)  # what is drawn twice changes once
        marks[cells] = adding
        missing -= np.sign(missing) * np.bincount(tries[changed], minlength=rows.size)
