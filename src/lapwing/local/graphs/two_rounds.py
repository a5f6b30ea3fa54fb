"""Triangles in two rounds, where each person holds her own list, and reports of friends with a lower number alone.

Round one. Person i sends her number of such friends with discrete Laplace noise, and for each j < i a bit, whether j is
her friend, which is turned over with probability p. The collector makes these public: a noisy graph.

Round two. She looks at all pairs j < k of her friends with lower numbers and counts those whose edge is in the noisy
graph, t, and all of them, s. She sends t − p·s with noise. The expectation of the bit of an edge is (1 − p) if it is
there and p if not, so that of t − p·s is (1 − 2p) times the triangles of which she has the highest number: every
triangle is counted once, and the sum over 1 − 2p is the number of triangles, without bias.

How far an edge moves the second report. Let her list be cut at D friends, the D lowest numbers. With one friend more or
less it grows or shrinks by one, or if it is longer than D, one friend is put in the place of another. So D − 1 friends
at most stay, and each of them is in one pair that is gone and one that is new: each pair adds between −p and 1 − p, so
each of the D − 1 moves the sum by 1 at most. In all D − 1. (Who forgets that friends change places claims only
(1 − p)(D − 1): a planted error of the tests.) D is her noisy number of round one and a margin: a function of what is
public by then.

What an edge {i, j}, j < i, loses: it is in the list of i alone. Her noisy number moves by 1: degree_epsilon. One bit
moves: ln((1 − p)/p) ≤ bit_epsilon. Her second report, given all that is public, moves by D − 1: triangle_epsilon. All
other reports are functions of other edges and of what is public. The losses add up, as of any mechanisms of which one
is chosen by what others released.

p is a multiple of 1/GRID, rounded up, so that GRID·(t − p·s) is an integer, and gets integer noise.

Source:
    Imola, Murakami and Chaudhuri 2021 (Locally differentially private analysis of graph statistics), for the two
    rounds; the lists that are cut by rank, and the bound with friends in each other's place, are worked out here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import WHOLE
from lapwing.local.graphs.edge_count import EdgeCount, EdgeCountEstimate, friends_counted, margin_of
from lapwing.local.thresholds import epsilon_of, odds_up
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import PureDP

GRID: Final = 1 << 12
"""The chance that a bit is turned over is a multiple of 1/GRID."""
MOST_PEOPLE: Final = 20_000
"""The noisy graph has half of its square as many bits, and everybody reads them."""
MARGIN: Final = Fraction(95, 100)
"""How surely nobody's list is cut, for each of them."""
SHARES: Final = (Fraction(1, 10), Fraction(45, 100), Fraction(45, 100))
"""Of a price: for the number of friends, the bits, and the second report."""

Bits = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstReport:
    """The report of a person in round one: how many friends with lower numbers she has, a bit for each j < i; noisy."""

    person: int
    degree: int
    bits: Bits = field(repr=False, compare=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyGraph:
    """The public graph after round one.

    Args:
        degrees: Noisy numbers.
        rows: The noisy bits of each person, packed.
    """

    degrees: tuple[int, ...]
    rows: tuple[NDArray[np.uint8], ...] = field(repr=False)

    def bits(self, person: int) -> Bits:
        """Return a person's noisy bits, one for each lower number."""
        return np.unpackbits(self.rows[person], count=person).astype(np.bool_)

    def edges_among(self, people: Sequence[int]) -> int:
        """Return how many pairs of people, in the order of their numbers, have an edge in it."""
        listed = np.array(people, dtype=np.int64)
        return sum(int(self.bits(int(one))[listed[:place]].sum()) for place, one in enumerate(listed) if place)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLoss:
    """The loss of a part of the protocol for one edge, and the total loss until then with it."""

    part: str
    loss: PureDP
    total: PureDP


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRoundTriangles:
    """Count edges and triangles where each person holds her own list.

    Guarantee:
        `loss()` for one edge, present or absent, towards whoever sees all reports of both rounds. The friend at its
        other end knows of it anyway. See the module.

    Args:
        people: How many there are, numbered from 0; who takes part is public.
        degree_epsilon: Of the number of friends, of each bit, and of the second report.
        bit_epsilon: As `degree_epsilon`.
        triangle_epsilon: As `degree_epsilon`.
    """

    people: int
    degree_epsilon: Fraction
    bit_epsilon: Fraction
    triangle_epsilon: Fraction

    def __post_init__(self) -> None:
        whole_number(self.people, "people", least=3, most=MOST_PEOPLE)
        for name in ("degree_epsilon", "bit_epsilon", "triangle_epsilon"):
            object.__setattr__(self, name, epsilon_of(getattr(self, name)))
        if 2 * self.turned >= GRID:
            raise InvalidParameter(
                f"bit_epsilon is {float(self.bit_epsilon):g}; below 0.001 the bits carry no information."
            )

    @classmethod
    def for_epsilon(cls, epsilon: Number, people: int) -> Self:
        """Return the rounds by which an edge loses this ε: a tenth for numbers of friends, the rest in halves."""
        whole = epsilon_of(epsilon)
        degree, bit, triangle = (whole * share for share in SHARES)
        return cls(people=people, degree_epsilon=degree, bit_epsilon=bit, triangle_epsilon=triangle)

    @property
    def turned(self) -> int:
        """GRID times the probability that a bit is turned over."""
        return -(-odds_up(self.bit_epsilon) * GRID // WHOLE)

    @property
    def degrees(self) -> EdgeCount:
        """The reports of numbers of friends."""
        return EdgeCount(people=self.people, report_epsilon=self.degree_epsilon)

    def loss(self) -> PureDP:
        """Return what one edge loses in both rounds."""
        return self.ledger()[-1].total

    def ledger(self) -> tuple[RoundLoss, ...]:
        """Return what each part loses of one edge, in order. An edge is in one list, the list of its higher number."""
        parts = (
            ("round one, number of friends", self.degree_epsilon),
            ("round one, bits", self.bit_epsilon),
            ("round two", self.triangle_epsilon),
        )
        total, rows = Fraction(0), []
        for part, epsilon in parts:
            total += epsilon
            rows.append(RoundLoss(part=part, loss=PureDP(epsilon=epsilon), total=PureDP(epsilon=total)))
        return tuple(rows)

    # ---- what a person's device does ---------------------------------------------------------------------------------

    def first_report(self, person: int, friends: Iterable[int], entropy: Entropy = SYSTEM) -> FirstReport:
        """Return what one person sends in round one.

        Args:
            person: Her number.
            friends: Those of her friends.
        """
        lower = friends_counted(person, friends, self.people, "lower")
        own = np.zeros(person, dtype=np.bool_)
        own[list(lower)] = True
        turned = samplers.bernoulli(Fraction(self.turned, GRID), person, entropy)
        return FirstReport(
            person=person,
            degree=int(self.degrees.noise.release(np.array([len(lower)]), entropy)[0]),
            bits=np.logical_xor(own, np.asarray(turned, dtype=np.bool_)),
        )

    def most_friends(self, person: int, public: NoisyGraph) -> int:
        """Return how many of her friends a person counts at most: public after round one."""
        margin = margin_of(self.degrees.noise, MARGIN)
        return min(max(public.degrees[person] + margin, 1), max(person, 1))

    def second_sensitivity(self, most: int) -> int:
        """Return how far an edge moves the second report of a list cut at `most` friends, in steps of 1/GRID."""
        return GRID * (most - 1)

    def exact_second(self, person: int, friends: Iterable[int], public: NoisyGraph, most: int) -> int:
        """Return GRID·(t − p·s) of a list that is cut. Private: it is what gets noise, and is sent nowhere."""
        counted = friends_counted(person, friends, self.people, "lower")[:most]
        return GRID * public.edges_among(counted) - self.turned * comb(len(counted), 2)

    def second_report(self, person: int, friends: Iterable[int], public: NoisyGraph, entropy: Entropy = SYSTEM) -> int:
        """Return what one person sends in round two, in steps of 1/GRID.

        Args:
            public: The graph that the collector published.
        """
        most = self.most_friends(person, public)
        exact = self.exact_second(person, friends, public, most)
        if most < 2:  # no pairs: it is 0, whatever her list is
            return 0
        return int(self._second_noise(most).release(np.array([exact]), entropy)[0])

    def _second_noise(self, most: int) -> DiscreteLaplace:
        return DiscreteLaplace(scale=self.second_sensitivity(most) / self.triangle_epsilon)

    # ---- what the collector does -------------------------------------------------------------------------------------

    def published(self, reports: Sequence[FirstReport]) -> NoisyGraph:
        """Return what is public after round one, from one report of each person, in any order."""
        ordered = sorted(reports, key=lambda report: report.person)
        if [report.person for report in ordered] != list(range(self.people)):
            raise InvalidParameter(f"There must be one report from each of the {self.people:,} people.")
        if any(len(report.bits) != report.person for report in ordered):
            raise InvalidParameter("A report has a bit for each lower number, and no others.")
        return NoisyGraph(
            degrees=tuple(report.degree for report in ordered), rows=tuple(np.packbits(one.bits) for one in ordered)
        )

    def estimate(self, public: NoisyGraph, reports: Sequence[int]) -> "TrianglesEstimate":
        """Return edges and triangles.

        Args:
            reports: The second ones, in the order of the people's numbers.
        """
        if len(reports) != self.people:
            raise InvalidParameter(
                f"There are {len(reports):,} reports of {self.people:,} people; there must be one each."
            )
        return TrianglesEstimate(protocol=self, public=public, total=sum(map(int, reports)))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrianglesEstimate:
    """The number of triangles, estimated from both rounds.

    Args:
        total: The sum of the second reports, in steps of 1/GRID.
    """

    protocol: TwoRoundTriangles
    public: NoisyGraph = field(repr=False)
    total: int

    @property
    def edges(self) -> EdgeCountEstimate:
        """The number of edges, from the first round."""
        return self.protocol.degrees.estimate(self.public.degrees)

    @property
    def triangles(self) -> float:
        """The number of triangles, without bias but for lists that were cut."""
        return self.total / (GRID - 2 * self.protocol.turned)

    def standard_error(self, common_at_most: int) -> float:
        """Return a bound on the standard deviation of the triangles.

        The noise of the second round is known. The bits add p(1 − p)/(1 − 2p)²·Σ c². For two people, c is the number of
        their common friends with higher numbers. The collector knows that Σ c is at most the pairs of friends that
        people count. So Σ c² is at most this number times the largest c.

        Args:
            common_at_most: The most friends that any two people have in common: a public guess.
        """
        whole_number(common_at_most, "common_at_most", least=1, most=self.protocol.people)
        protocol, pairs, variance = self.protocol, 0, 0.0
        for person in range(protocol.people):
            most = protocol.most_friends(person, self.public)
            pairs += comb(most, 2)
            if most >= 2:
                variance += protocol._second_noise(most).standard_deviation ** 2
        turned, right = protocol.turned, GRID - protocol.turned
        return sqrt(variance + turned * right * common_at_most * pairs) / (right - turned)

    def interval(self, confidence: Number = 0.95, *, common_at_most: int) -> tuple[float, float]:
        """Return the ends of an interval for the triangles, at least 0: right for many people, not certified.

        Args:
            common_at_most: As of `standard_error`.
        """
        z = NormalDist().inv_cdf((1 + float(probability(confidence, "confidence"))) / 2)
        half = z * self.standard_error(common_at_most)
        return max(0.0, self.triangles - half), max(0.0, self.triangles + half)


def simulate_triangles(
    protocol: TwoRoundTriangles, lists: Sequence[Iterable[int]], entropy: Entropy = SYSTEM
) -> TrianglesEstimate:
    """Return what the two rounds come to with these lists of friends, for planning: it holds all lists at once."""
    kept = [tuple(friends) for friends in lists]
    public = protocol.published([protocol.first_report(i, friends, entropy) for i, friends in enumerate(kept)])
    second = [protocol.second_report(i, friends, public, entropy) for i, friends in enumerate(kept)]
    return protocol.estimate(public, second)
