"""One quantile, by the exponential mechanism on all points of a public grid.

Theory of operation. Data are integers, steps of a public grid from `lower` to `upper`; what lies outside is moved to
the nearest end. For a grid point v let below(v) = #{x < v}, at_most(v) = #{x ≤ v}, n the number of rows and q = a/b in
lowest terms. The rank q·n is wrong for v by

    d(v)/b rows,   d(v) = max(0, b·below(v) − a·n, a·n − b·at_most(v)),

the distance from q·n to the ranks that v has: all from below(v) to at_most(v), as equal rows may stand in any order.
Always some v has d(v) = 0: the first with b·at_most(v) ≥ a·n, before which b·at_most = b·below(v) is less than a·n.

Claim: if a row x is added, d moves by at most m = max(a, b − a) everywhere. n grows by 1, below(v) grows by 1 for
v > x and at_most(v) for v ≥ x. So b·below(v) − a·n grows by b − a or falls by a, a·n − b·at_most(v) falls by b − a or
grows by a, and 0 stays: each of the three moves by at most m, and so does their maximum.

Claim: the log-ratios of P(v) ∝ e^(−d(v)/(b·scale)) between neighbours differ by at most w/scale from each other, where
w = 2m/b = 2·max(q, 1 − q), and w = 1 for the least (q = 0) and the greatest (q = 1). The logarithm of a weight moves by
at most m/(b·scale) up or down, and the sum of the weights is common to all v. For q = 0, d = below(v), for q = 1,
d = n − at_most(v): both only grow as a row is added, by 0 or 1. Attained: for q = ½, m = 1, a row x that is added below
two others raises d at the greater of them from 0 to 1, and lowers it between x and the lesser from 2 to 1.

Sampling. d is constant on each distinct value of the data and on each gap between them. A piece is chosen with its
length as multiplicity, and a point uniformly within it: together P(v) ∝ e^(−d(v)/(b·scale)), exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import (
    SMALLEST_SCALE,
    Rational,
    integers,
    rational,
    scale_of_noise,
    whole_number,
)
from lapwing.mechanisms.scores import bounded_range_loss, range_within
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss

FARTHEST: Final = 1 << 61
"""Grid points lie between −FARTHEST and FARTHEST, so that differences of two fit 63 bits."""

_FINEST = 1 << 20
_INT64_ROOM = 1 << 62


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """Return a grid point v with P(v) ∝ e^(−(rank error of v)/scale); any point from `lower` to `upper` can occur.

    Guarantee:
        Bounded range rows·w/scale under add_remove of a unit with up to `rows` rows. Here w = 2·max(q, 1 − q), or 1 for
        q = 0 and q = 1. One row is proven at the top of the file; of several rows, added one by one, the ranges add up.

    Args:
        quantile: From 0 (least) to 1 (greatest), with a denominator of at most 2²⁰.
        lower: The public grid, from −2⁶¹ to 2⁶¹.
        upper: The public grid, from −2⁶¹ to 2⁶¹.
        scale: In rows, from 2⁻³⁰ to 2⁸⁰.

    Source:
        Smith 2011 (Privacy-Preserving Statistical Estimation with Optimal Convergence Rates), with a rank error that is
        0 where equal rows allow it.
    """

    name: ClassVar[str] = "quantile"
    quantile: Fraction
    lower: int
    upper: int
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantile", share(self.quantile, "quantile"))
        lower, upper = grid(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "scale", scale_of_noise(self.scale))

    @classmethod
    def for_loss(cls, loss: Loss, *, quantile: Rational, lower: int, upper: int, rows: int = 1) -> Self:
        """Return the sharpest whose loss, for units of up to `rows` rows, is at most `loss`."""
        width = whole_number(rows, "rows", least=1) * width_at_one(share(quantile, "quantile"))
        scale = max(SMALLEST_SCALE, width / range_within(loss))
        return cls(quantile=rational(quantile, "quantile"), lower=lower, upper=upper, scale=scale)

    def loss(self, kind: str, *, rows: int = 1) -> Loss:
        """Return the loss in a measure, for units of up to `rows` rows."""
        width = whole_number(rows, "rows", least=1) * width_at_one(self.quantile) / self.scale
        return bounded_range_loss(kind, width)

    def release(self, values: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return a grid point near the quantile; there may be no values at all, and then every point is alike.

        Raises:
            InvalidParameter: If the values are not whole numbers; nothing is drawn then.
        """
        ordered = np.sort(clamped(values, self.lower, self.upper))
        return choose(ordered, self.quantile, self.lower, self.upper, self.scale, entropy)

    def rank_error(self, confidence: Number) -> Fraction:
        """Return an e with #{x < v} − e ≤ q·n ≤ #{x ≤ v} + e, in rows, with this confidence at least, for all data.

        So v is a quantile of the data for some rank within e of q·n. Where many rows are equal, v may be their value
        although none of its neighbours' ranks is near.
        """
        fine = largest_distance(
            self.upper - self.lower + 1,
            self.scale * self.quantile.denominator,
            1 - probability(confidence, "confidence"),
        )
        return Fraction(fine, self.quantile.denominator)


def share(value: Rational, name: str) -> Fraction:
    """Return a number from 0 to 1 whose denominator is at most 2²⁰."""
    number = rational(value, name)
    if not 0 <= number <= 1 or number.denominator > _FINEST:
        raise InvalidParameter(
            f"{name} is {value}; it must be from 0 to 1, in a fraction with a denominator of at most 2^20."
        )
    return number


def grid(lower: int, upper: int) -> tuple[int, int]:
    """Return the ends of a public grid as Python integers."""
    low = whole_number(lower, "lower", least=-FARTHEST, most=FARTHEST)
    high = whole_number(upper, "upper", least=-FARTHEST, most=FARTHEST)
    if high < low:
        raise InvalidParameter(f"lower is {low} and upper is {high}; lower must not be above upper.")
    return low, high


def width_at_one(quantile: Fraction) -> Fraction:
    """Return the bounded range that one row has at scale 1."""
    return 2 * max(quantile, 1 - quantile) if 0 < quantile < 1 else Fraction(1)


def clamped(values: IntArray | Sequence[int], lower: int, upper: int) -> NDArray[np.int64]:
    """Return whole numbers, each moved to the nearest point from `lower` to `upper`."""
    return np.minimum(np.maximum(integers(values, "The values"), lower), upper).astype(np.int64)


def choose(
    ordered: NDArray[np.int64], quantile: Fraction, lower: int, upper: int, scale: Fraction, entropy: Entropy
) -> int:
    """Draw v from `lower` to `upper` with P(v) ∝ e^(−d(v)/(b·scale)), for ascending data within these ends."""
    starts, lengths, distances = pieces(ordered, quantile, lower, upper)
    piece = samplers.exponential_choice(distances, scale * quantile.denominator, entropy, multiplicities=lengths)
    return int(starts[piece]) + int(samplers.uniform_integers(int(lengths[piece]), 1, entropy)[0])


def pieces(
    ordered: NDArray[np.int64], quantile: Fraction, lower: int, upper: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], IntArray]:
    """Cut the grid where d may change: return the start, the length (0 if empty) and the d of every piece.

    A gap, the value after it, the next gap, and so on, to the gap after the greatest value.
    """
    below = np.flatnonzero(np.diff(ordered, prepend=lower - 1))
    at_most = np.append(below[1:], ordered.size) if below.size else below
    starts = np.empty(2 * below.size + 1, dtype=np.int64)
    starts[0], starts[1::2], starts[2::2] = lower, ordered[below], ordered[below] + 1
    lengths = np.diff(starts, append=upper + 1)
    gaps = np.append(below, ordered.size)
    first, last = np.empty_like(starts), np.empty_like(starts)
    first[0::2], last[0::2], first[1::2], last[1::2] = gaps, gaps, below, at_most
    return starts, lengths, distances(first, last, ordered.size, quantile)


def distances(below: NDArray[np.int64], at_most: NDArray[np.int64], rows: int, quantile: Fraction) -> IntArray:
    """Return d for each pair of counts, as Python integers where int64 might not hold them."""
    a, b = quantile.numerator, quantile.denominator
    low: IntArray = below
    high: IntArray = at_most
    if b * (rows + 1) > _INT64_ROOM:
        low, high = below.astype(np.object_), at_most.astype(np.object_)
    found: IntArray = np.maximum(np.maximum(b * low - a * rows, a * rows - b * high), 0)
    return found


def largest_distance(points: int, scale: Fraction, beta: Fraction) -> int:
    """Return an E with P(d > E) ≤ beta where P(v) ∝ e^(−d(v)/scale) on so many points, one of which has d = 0.

    d is a whole number, so the points with d > E, of which there are at most points − 1, weigh at most
    w = (points − 1)·e^(−(E + 1)/scale) together, against 1 or more: P(d > E) ≤ w/(1 + w), which is at most beta if
    w ≤ beta/(1 − beta). Attained where all the others have d = E + 1.
    """
    odds = (points - 1) * (1 - beta) / beta
    if odds <= 1:
        return 0

    def least(s: Ball, x: Ball) -> Ball:
        return s * x.log()

    return max(0, ceil(enclose_tightly(least, scale, odds).upper) - 1)
