"""What all mechanisms for frequencies have in common: a report supports some values, the true one more often.

A report *supports* a value v with probability p if v is true, and q if another is; from that alone shares are
estimated, whatever the mechanism (Wang, Blocki, Li and Jha 2017, "pure" protocols).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.local.mechanism import Mechanism
from lapwing.mechanisms.parameters import integers

MOST_IN_A_MATRIX = 8
"""Values of a mechanism whose transition matrix is written out."""

Reports = NDArray[Any]
"""Reports as an array: its first axis is the respondents."""


class Rates(NamedTuple):
    """How often a report supports a value: p if it is true, q if another is."""

    p: Fraction
    q: Fraction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """The exact law of a report for each value: `rows[v][i]` is the probability of `reports[i]` if v is true."""

    reports: tuple[Hashable, ...]
    rows: tuple[tuple[Fraction, ...], ...]

    def worst_ratio(self) -> Fraction:
        """Return the most by which a report can be likelier for one value than for another."""
        columns: list[tuple[Fraction, ...]] = list(zip(*self.rows, strict=True))
        return max((max(column) / min(column) for column in columns), default=Fraction(1))


class Randomizer(Mechanism, Protocol):
    """A mechanism for one of a list of values, which are the codes 0, 1, ….

    `randomize` is for simulations; devices run `client.report`.
    """

    @property
    def categories(self) -> int:
        """How many values there are."""

    def rates(self, value: int) -> Rates:
        """Return how often a report supports a value."""

    def transition_matrix(self) -> Transitions:
        """Return the exact law of a report for each value, of at most eight values."""

    def randomize(self, values: IntArray, entropy: Entropy = ...) -> Reports:
        """Return a report for each value."""

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports support each value."""

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return the probability of each report for each value, up to a factor that is the report's own."""

    @property
    def report_bytes(self) -> int:
        """How many bytes hold what a report says, packed."""

    def operations(self, reports: int) -> int:
        """Return how many steps the estimate takes, in orders of magnitude."""


def codes(values: IntArray, categories: int) -> NDArray[np.int64]:
    """Return codes as int64.

    Raises:
        InvalidParameter: If one is not among 0 … categories − 1; the message does not say which.
    """
    checked = integers(values, "The values")
    if checked.size and not 0 <= int(checked.min()) <= int(checked.max()) < categories:
        raise InvalidParameter(f"The values must be codes from 0 to {categories - 1}.")
    return checked.astype(np.int64)


def informative(rates: Rates) -> None:
    """Refuse a mechanism whose reports say nothing, or mislead.

    Raises:
        InvalidParameter: Unless p > q.
    """
    if rates.p <= rates.q:
        raise InvalidParameter("A report must support the true value more often than another; raise the threshold.")


def few(categories: int) -> range:
    """Return the codes of a mechanism whose transition matrix is asked for.

    Raises:
        InvalidParameter: If they are too many.
    """
    if categories > MOST_IN_A_MATRIX:
        raise InvalidParameter(f"A transition matrix is written out for {MOST_IN_A_MATRIX} values at most.")
    return range(categories)


def supported(supports: NDArray[np.bool_], ratio: Fraction) -> NDArray[np.float64]:
    """Return likelihoods where a report is `ratio` times as likely for each value that it supports."""
    return np.where(supports, float(ratio), 1.0)
