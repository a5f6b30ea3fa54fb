"""Two kinds of reports that several mechanisms for frequencies share: the number of a value, and a bit for each value.

A mechanism that keeps a noisy answer has the same kind of reports as one that does not: only their rates differ.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import report_formats as formats
from lapwing.local.frequencies.randomizer import Randomizer, Reports, Transitions, codes, few, supported


class ValueReports(Randomizer, Protocol):
    """A mechanism whose report is the number of the value that it supports; all other values are as likely."""

    __slots__ = ()

    def transition_matrix(self) -> Transitions:
        """Return the law of one report for every value."""
        every, (p, q) = few(self.categories), self.rates(0)
        return Transitions(reports=tuple(every), rows=tuple(tuple(p if r == v else q for r in every) for v in every))

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports name each value."""
        return np.bincount(codes(reports, self.categories), minlength=self.categories).astype(np.int64)

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each value: more so by the ratio for the one that it names."""
        return supported(codes(reports, self.categories)[:, None] == np.arange(self.categories), self.ratio)

    def read(self, said: object) -> int:
        """Return the value's number."""
        return formats.number_below(said, self.categories, "r")

    def gather(self, said: Sequence[int]) -> Reports:
        """Return the reports as integers."""
        return np.array(said, dtype=np.int64)

    @property
    def report_bytes(self) -> int:
        """Those of a value's number."""
        return formats.index_bytes(self.categories)

    def operations(self, reports: int) -> int:
        """Return one step a report and a value."""
        return reports + self.categories


class BitReports(Randomizer, Protocol):
    """A mechanism whose report has a bit for each value, and supports the values whose bit is 1."""

    __slots__ = ()
    called: ClassVar[tuple[str, str]] = ("the bits of r", "one")
    """The word for the digits of a report in messages, and its last bit."""

    @property
    @abstractmethod
    def weights(self) -> range:
        """The numbers of ones that an honest report has, but for a probability of 1e-9."""

    def transition_matrix(self) -> Transitions:
        """Return the law of all bits of one report for every value."""
        return formats.bit_transitions(self.categories, self.rates(0))

    def randomize(self, values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return one report of each respondent, a row of bits; kept noise and fresh noise are drawn as one."""
        return formats.random_bits(values, self.categories, self.rates(0), entropy)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports have each bit set."""
        return formats.ones_by_column(formats.checked_bits(reports, self.categories))

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return how likely each report is for each value: more so by the ratio where the bit is set, or is not."""
        p, q = self.rates(0)
        return supported(formats.checked_bits(reports, self.categories), self.ratio if p > q else 1 / self.ratio)

    def read(self, said: object) -> bytes:
        """Return the bits, of a number that honest devices set."""
        name, last = self.called
        return formats.read_bits(said, self.categories, self.weights, name, last)

    def gather(self, said: Sequence[bytes]) -> Reports:
        """Return the bits as rows."""
        return formats.unpacked_bits(said, self.categories)

    @property
    def report_bytes(self) -> int:
        """A bit for each value."""
        return -(-self.categories // 8)

    def operations(self, reports: int) -> int:
        """Return one step a bit."""
        return reports * self.categories
