"""What all local mechanisms have in common: a report supports some values, the true one more often than others.

A report *supports* a value v with probability p if v is true, and q if another is; from that alone shares are
estimated, whatever the mechanism (Wang, Blocki, Li and Jha 2017, "pure" protocols).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, dyadic_up, enclose_tightly
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms.parameters import integers
from lapwing.privacy.measures import PureDP

MOST_IN_A_MATRIX = 8
"""Values of a mechanism whose transition matrix is written out."""
_BITS = 64

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


class Randomizer(Protocol):
    """A mechanism that a respondent runs. `randomize` is for simulations; devices run `client.report`."""

    name: ClassVar[str]

    @property
    def categories(self) -> int:
        """How many values there are; they are the codes 0, 1, …."""
        ...

    @property
    def parameters(self) -> Mapping[str, int]:
        """The integers that a task states."""
        ...

    @property
    def ratio(self) -> Fraction:
        """The most by which a report can be likelier for one value than for another, e^ε exactly."""
        ...

    def loss(self) -> PureDP:
        """Return ε of one report, rounded up: neighbours differ in one respondent's value (`replace_one`)."""
        ...

    def rates(self, value: int) -> Rates:
        """Return how often a report supports a value."""
        ...

    def transition_matrix(self) -> Transitions:
        """Return the exact law of a report for each value, of at most eight values."""
        ...

    def randomize(self, values: IntArray, entropy: Entropy = ...) -> Reports:
        """Return a report for each value."""
        ...

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how many reports support each value."""
        ...

    def likelihoods(self, reports: Reports) -> NDArray[np.float64]:
        """Return the probability of each report for each value, up to a factor that is the report's own."""
        ...

    def read(self, said: object) -> Hashable:
        """Return what a report says, as `gather` takes it.

        Raises: ValueError, with the reason, if no device says such a thing.
        """
        ...

    def gather(self, said: Sequence[Any]) -> Reports:
        """Return what many reports say as one array."""
        ...

    @property
    def report_bytes(self) -> int:
        """How many bytes hold what a report says, packed."""
        ...

    def operations(self, reports: int) -> int:
        """Return how many steps the estimate takes, in orders of magnitude."""
        ...


def loss_of(ratio: Fraction) -> PureDP:
    """Return ε = ln(ratio), rounded up."""
    if ratio == 1:
        return PureDP(0)
    return PureDP(dyadic_up(enclose_tightly(Ball.log, ratio, bits=_BITS).upper, _BITS))


def either(ratio: Fraction) -> Fraction:
    """Return a ratio or its inverse, whichever is larger."""
    return max(ratio, 1 / ratio)


def codes(values: IntArray, categories: int) -> NDArray[np.int64]:
    """Return codes as int64.

    Raises: InvalidParameter if one is none of 0 … categories − 1; which, is not said.
    """
    given = integers(values, "The values")
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < categories:
        raise InvalidParameter(f"The values must be codes from 0 to {categories - 1}.")
    return given.astype(np.int64)


def informative(rates: Rates) -> None:
    """Refuse a mechanism whose reports say nothing, or the contrary.

    Raises: InvalidParameter unless p > q.
    """
    if rates.p <= rates.q:
        raise InvalidParameter("A report must support the true value more often than another; raise the threshold.")


def few(categories: int) -> range:
    """Return the codes of a mechanism whose transition matrix is asked for.

    Raises: InvalidParameter if they are too many.
    """
    if categories > MOST_IN_A_MATRIX:
        raise InvalidParameter(f"A transition matrix is written out for {MOST_IN_A_MATRIX} values at most.")
    return range(categories)


def supported(supports: NDArray[np.bool_], ratio: Fraction) -> NDArray[np.float64]:
    """Return likelihoods where a report is `ratio` times as likely for each value that it supports."""
    return np.where(supports, float(ratio), 1.0)


def whole(said: object, bound: int, name: str) -> int:
    """Return an integer from 0 to below a bound.

    Raises: ValueError for anything else, a bool included.
    """
    if isinstance(said, bool) or not isinstance(said, int) or not 0 <= said < bound:
        raise ValueError(f"{name} must be a whole number from 0 to {bound - 1}")
    return said


def index_bytes(count: int) -> int:
    """Return how many bytes hold a number below a count."""
    return max(1, ((count - 1).bit_length() + 7) // 8)
