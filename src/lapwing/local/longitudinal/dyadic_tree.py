"""The dyadic tree: how many say yes in each of many periods, from people whose answer changes a few times at most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import WHOLE
from lapwing.local.client.longitudinal import MOST_CHANGES, MOST_DAYS, MOST_LEVELS
from lapwing.local.client.rules import response_ratio
from lapwing.local.frequencies.randomizer import Reports, codes
from lapwing.local.mechanism import Mechanism
from lapwing.local.report_formats import list_of, number_below, rows
from lapwing.local.thresholds import chance, epsilon_of, odds_down, threshold
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number

_MOST_IN_A_LAW: Final = 8
_HALF: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DyadicTree(Mechanism):
    """Report, at the end of every block of a level drawn at random, one bit about one change drawn at random.

    Guarantee:
        PureDP(ln ratio) for all reports that one device sends in all periods, ratio = p/(1 − p). Neighbours are any two
        histories of one respondent, with any number of changes. `client.longitudinal` has the proof. Where a history
        changes more often than `changes`, the estimate counts the first ones only: that costs truth, not privacy.

    Args:
        levels: L, so that there are 2^L periods.
        changes: How many changes of a history count; the answer before the first period is no, so that a first yes is
            one.
        threshold: 2^64·p.
        days: Of a period.

    Source:
        Erlingsson, Feldman, Mironov, Raghunathan, Talwar and Thakurta 2019.
    """

    name: ClassVar[str] = "tree"
    levels: int
    changes: int
    threshold: int
    days: int = 1

    def __post_init__(self) -> None:
        whole_number(self.levels, "levels", least=1, most=MOST_LEVELS)
        whole_number(self.changes, "changes", least=1, most=MOST_CHANGES)
        whole_number(self.days, "days", least=1, most=MOST_DAYS)
        if threshold(self.threshold, "threshold") <= WHOLE // 2:
            raise InvalidParameter("A report must favour the direction of the change; raise the threshold.")

    @classmethod
    def for_epsilon(cls, epsilon: Number, periods: int, changes: int, *, days: int = 1) -> Self:
        """Return the mechanism for this many periods, a power of two, with p = e^ε/(e^ε + 1), rounded down."""
        levels = whole_number(periods, "periods", least=2, most=1 << MOST_LEVELS).bit_length() - 1
        if periods != 1 << levels:
            raise InvalidParameter(f"There are {periods} periods; their number must be a power of two.")
        truth = odds_down(epsilon_of(epsilon), Fraction(1))
        return cls(levels=levels, changes=changes, threshold=truth, days=days)

    @property
    def periods(self) -> int:
        """2^L."""
        return 1 << self.levels

    @property
    def categories(self) -> int:
        """Two: no and yes."""
        return 2

    @property
    def parameters(self) -> Mapping[str, int]:
        """The integers that a task states."""
        return {"threshold": self.threshold, "levels": self.levels, "changes": self.changes, "days": self.days}

    @property
    def ratio(self) -> Fraction:
        """p/(1 − p), of all reports of one device together."""
        return response_ratio(self.threshold, 2)

    @property
    def scale(self) -> Fraction:
        """The factor of the mean bit of a block, as −1 or 1: c·(e^ε + 1)/(e^ε − 1)."""
        return self.changes * (self.ratio + 1) / (self.ratio - 1)

    def error(self, period: int, respondents: int) -> float:
        """Return a bound of the standard error of the raw estimate after a period, for equally many at every level.

        The periods up to t are as many blocks as t has bits set, each of scale²·(L + 1)/n.
        """
        blocks = whole_number(period, "period", least=1, most=self.periods).bit_count()
        return float(self.scale) * sqrt(blocks * (self.levels + 1) / whole_number(respondents, "respondents", least=1))

    def law(self, history: Sequence[int]) -> dict[tuple[int, tuple[int, ...]], Fraction]:
        """Return the exact law of a device's level and bits for a history of 0 and 1, of at most eight periods.

        Raises:
            InvalidParameter: For more periods, or a history of another length.
        """
        if self.periods > _MOST_IN_A_LAW or len(history) != self.periods:
            raise InvalidParameter(
                f"The distribution is written out for histories of at most {_MOST_IN_A_LAW} periods."
            )
        steps = np.diff(np.array(history), prepend=0)
        moments = [*np.flatnonzero(steps), *[None] * self.changes][: self.changes]
        law: dict[tuple[int, tuple[int, ...]], Fraction] = {}
        for level in range(self.levels + 1):
            for bits in product((0, 1), repeat=self.periods >> level):
                each = (self._chance(bits, None if t is None else (int(t) >> level, int(steps[t]))) for t in moments)
                law[level, bits] = sum(each, Fraction(0)) / self.changes / (self.levels + 1)
        return law

    def _chance(self, bits: tuple[int, ...], kept: tuple[int, int] | None) -> Fraction:
        """Return the probability of bits if a block is kept with a direction, or none."""
        if kept is None:
            return _HALF ** len(bits)
        block, direction = kept
        truth = chance(self.threshold)
        return _HALF ** (len(bits) - 1) * (truth if bits[block] == (direction > 0) else 1 - truth)

    def simulate(self, histories: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return the reports of respondents: rows of a level, a block and a bit.

        Args:
            histories: 0 or 1, a row each, a column a period.
        """
        people = histories.shape[0]
        if histories.ndim != 2 or histories.shape[1] != self.periods:
            raise InvalidParameter(f"Histories must be rows of {self.periods} periods.")
        answers = codes(histories.reshape(-1), 2).reshape(histories.shape).astype(np.int8)
        level = samplers.uniform_integers(self.levels + 1, people, entropy).astype(np.int64)
        slot = samplers.uniform_integers(self.changes, people, entropy).astype(np.int64)
        steps = np.diff(answers, axis=1, prepend=np.int8(0))
        kept = steps * (np.cumsum(steps != 0, axis=1) == slot[:, None] + 1)
        parts = [self._at_level(h, kept[level == h], entropy) for h in range(self.levels + 1)]
        return np.concatenate(parts)

    def _at_level(self, level: int, kept: NDArray[np.int8], entropy: Entropy) -> Reports:
        blocks = self.periods >> level
        sums = kept.reshape(len(kept), blocks, 1 << level).sum(axis=2, dtype=np.int64).reshape(-1)
        true = samplers.bernoulli(chance(self.threshold), sums.size, entropy)
        fair = samplers.bernoulli(_HALF, sums.size, entropy)
        bits = np.where(sums == 0, fair, true == (sums > 0))
        numbers = np.tile(np.arange(blocks), len(kept))
        return np.stack([np.full(sums.size, level), numbers, bits], axis=1).astype(np.int64)

    def read(self, said: object) -> tuple[int, int, int]:
        """Return level, block and bit."""
        first, second, third = list_of(said, 3, "a level, a block and a bit")
        level = number_below(first, self.levels + 1, "the level of r")
        block = number_below(second, self.periods >> level, "the block of r")
        return level, block, number_below(third, 2, "the bit of r")

    def gather(self, said: Sequence[tuple[int, int, int]]) -> Reports:
        """Return the reports as rows."""
        return rows(said, 3)
