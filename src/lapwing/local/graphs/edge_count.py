"""How many edges there are, from the number of friends that each person reports with noise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import Literal, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.thresholds import epsilon_of
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy_sums import sum_half_width
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import PureDP

Lists = Literal["lower", "all"]
MOST_PEOPLE = 100_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCount:
    """Each person reports how many friends she has, with discrete Laplace noise of scale 1/report_epsilon.

    Guarantee:
        `loss()` for one edge, present or absent. An edge moves the number of one list by 1, so that one report loses
        report_epsilon. With lists="lower" each person counts the friends with a lower number than hers: an edge is in
        the report of one of its ends. With lists="all" she counts all, and the edge is in the reports of both ends,
        whose noise is independent: twice as much.

    Args:
        people: How many there are, numbered from 0; who takes part is public.
        report_epsilon: Of one report.
    """

    people: int
    report_epsilon: Fraction
    lists: Lists = "lower"

    def __post_init__(self) -> None:
        whole_number(self.people, "people", least=1, most=MOST_PEOPLE)
        if self.lists not in ("lower", "all"):
            raise InvalidParameter(f"lists is {self.lists!r:.40}; it must be 'lower' or 'all'.")
        object.__setattr__(self, "report_epsilon", epsilon_of(self.report_epsilon))

    @classmethod
    def for_epsilon(cls, epsilon: Number, people: int, *, lists: Lists = "lower") -> Self:
        """Return the reports by which an edge loses this ε in all."""
        return cls(people=people, report_epsilon=epsilon_of(epsilon) / _reports_of_an_edge(lists), lists=lists)

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of one report."""
        return DiscreteLaplace(scale=1 / self.report_epsilon)

    def loss(self) -> PureDP:
        """Return what one edge loses: the reports that it is in, together."""
        return PureDP(epsilon=_reports_of_an_edge(self.lists) * self.report_epsilon)

    def report(self, person: int, friends: Iterable[int], entropy: Entropy = SYSTEM) -> int:
        """Return what one person sends. Runs where the list is; it is sent nowhere else.

        Args:
            person: Her number.
            friends: The numbers of her friends.
        """
        counted = len(friends_counted(person, friends, self.people, self.lists))
        return int(self.noise.release(np.array([counted]), entropy)[0])

    def estimate(self, reports: Sequence[int]) -> "EdgeCountEstimate":
        """Return the number of edges, from one report of each person."""
        if len(reports) != self.people:
            raise InvalidParameter(
                f"There are {len(reports):,} reports of {self.people:,} people; there must be one each."
            )
        return EdgeCountEstimate(protocol=self, total=sum(map(int, reports)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCountEstimate:
    """The number of edges, estimated from reports.

    Args:
        total: Their sum.
    """

    protocol: EdgeCount
    total: int

    @property
    def edges(self) -> float:
        """The number of edges, without bias: every edge is counted once, or with all lists twice."""
        return self.total / _reports_of_an_edge(self.protocol.lists)

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in it."""
        protocol = self.protocol
        return sqrt(protocol.people) * protocol.noise.standard_deviation / _reports_of_an_edge(protocol.lists)

    def interval(self, confidence: Number = 0.95) -> tuple[float, float]:
        """Return the ends of an interval for the number of edges, at least 0, by a bound with a proof."""
        tail = 1 - probability(confidence, "confidence")
        half = sum_half_width(self.protocol.noise, Fraction(self.protocol.people), tail)
        width = half / _reports_of_an_edge(self.protocol.lists)
        return max(0.0, self.edges - width), self.edges + width


def _reports_of_an_edge(lists: Lists) -> int:
    return 1 if lists == "lower" else 2


def friends_counted(person: int, friends: Iterable[int], people: int, lists: Lists) -> tuple[int, ...]:
    """Return the friends of whom a person reports, in the order of their numbers, each once.

    Raises:
        InvalidParameter: For a number that nobody has, and for her own.
    """
    whole_number(person, "person", least=0, most=people - 1)
    listed = sorted(set(friends))
    if (listed and not (listed[0] >= 0 and listed[-1] < people)) or person in listed:
        raise InvalidParameter(f"A friend is someone else, with a number from 0 to {people - 1:,}.")
    return tuple(friend for friend in listed if lists == "all" or friend < person)


def margin_of(noise: DiscreteLaplace, confidence: Fraction) -> int:
    """Return how far a report may lie below the number it is of, up to a chance."""
    return ceil(noise.half_width(confidence))
