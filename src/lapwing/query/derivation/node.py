"""What every node of a derived value states, and what an answer shows of it.

The nodes that read released numbers and keys are in `derived`; each other kind has a file of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, final

from lapwing.query.derivation.columns import Column, Shape
from lapwing.query.derivation.intervals import Interval
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.measures.measures import Measure

if TYPE_CHECKING:
    from lapwing.query.derivation.derived import NoisyCells


class Derived(Protocol):
    """A derived value: a node of the tree, final and frozen."""

    @property
    def shape(self) -> Shape:
        """The type of the value as the analyst sees it."""

    @property
    def children(self) -> tuple["Derived", ...]:
        """The derived values that it is computed from, in order."""

    @property
    def parts(self) -> tuple["Part", ...]:
        """The released numbers that it reads itself."""

    @property
    def has_interval(self) -> bool:
        """Whether an interval follows for it: a fact of the question."""

    @property
    def never_null(self) -> bool:
        """Whether it is a number that has a value in every cell."""

    def column(self, cells: "NoisyCells") -> Column:
        """Return its value in every cell."""

    def interval(self, cells: "NoisyCells", margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return where the true value is in every cell if every measure is within its margin; None: none follows."""


Part = Measure | OrderStatistic
"""What an interval rests on: released numbers, and order statistics, each of which may miss the truth by itself."""
Margins = Callable[[Derived], Mapping[Measure, Fraction]]
"""Given a value, the margins within which all that it rests on is at once with `INTERVAL_CONFIDENCE`.

Of a distribution it is the probability with which the interval of each order statistic may miss.
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A column of the answer."""

    name: str
    value: Derived


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOrder:
    """One ORDER BY term."""

    value: Derived
    descending: bool
    nulls_first: bool
