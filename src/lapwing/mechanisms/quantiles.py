"""Many quantiles at once, by halving: the middle one first, then those on either side of it from the rows there.

Theory of operation. The wanted quantiles are split at the middle one, which `quantile` releases. Its value v splits the
rows and the grid: rows up to v and grid points up to v go left, rows above v and grid points from v on go right. Both
sides are split further, each at the middle of what is wanted there. A quantile q between two released neighbours
q_left < q < q_right (0 and 1 at the ends) is, among the rows between their values, the quantile
(q − q_left)/(q_right − q_left). This is public: it depends on no data. ⌊log₂ m⌋ + 1 levels do for m quantiles.

Claim: each level is a mechanism of bounded range w, the widest range of its quantiles (`quantile`, at the relative q),
given what the levels before it released. That determines the public grids of the level, which rows each of its
parts gets is a function of a row's own value, and each row gets to one part at most. So a row that is added is in one
part; that part's log-ratios differ by at most its range, the choices of all other parts have the same law as before,
and the parts choose independently. Levels compose adaptively: ε, μ² and ρ add up. K rows of one unit may get to several
parts, k_1, k_2, … of them; the log-ratio of the level is a sum over parts, each of range k_j·w at most: K·w in all.

Claim: released values ascend with their quantiles, as each is chosen between its neighbours' values.

Ties. The rows that equal v all go left, so that where c rows do, the left part holds up to c rows too many. With
`spread` = s > 1 each grid point stands for s finer ones and each row is put on one of its s at random, which splits
equal rows about evenly; the finer point that is chosen tells its grid point. Let a place be drawn for each row of
either neighbour, used or not. Given the places, which have the same law on both sides, neighbours differ by the rows of
one unit on the finer grid, so all of the above holds for places and output together, hence for the output alone. It
costs scale·ln(s) rows of rank error a level.

Source:
    Kaplan, Schnapp and Stemmer 2022 (Differentially Private Approximate Quantiles); the relative ranks, the treatment
    of ties and the error bound are worked out here. Slice quantiles (Imola et al. 2025) have a smaller error for many
    quantiles that lie far enough apart; they are not implemented.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import dyadic_unit
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.noisy import SCALE_BITS, check_positive
from lapwing.mechanisms.parameters import SMALLEST_SCALE, Rational, scale_of_noise, whole_number
from lapwing.mechanisms.quantile import choose, clamped, grid, largest_distance, share, width_at_one
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.bounded_range import bounded_range_amount, bounded_range_down
from lapwing.privacy.measures import Loss, PureDP, privacy_measure_of
from lapwing.privacy.search import smallest

_MOST_POINTS = 1 << 62


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Return one grid point for each of several quantiles, ascending.

    Guarantee:
        On each level a bounded range of rows·w/scale, and losses of levels add up. Here w is the largest that
        `Quantile` states for the level's relative quantiles (less than 2, about 1 for evenly spaced ones). Under
        add_remove of a unit with up to `rows` rows. The proof is at the top of the file.

    Args:
        quantiles: From 0 to 1, ascending, each with a denominator of at most 2²⁰.
        lower: The public grid, from −2⁶¹ to 2⁶¹.
        upper: The public grid, from −2⁶¹ to 2⁶¹.
        scale: In rows, from 2⁻³⁰ to 2⁸⁰.
        spread: How many finer points a grid point stands for: 1 if few rows are equal, else for example 1024. The finer
            grid has at most 2⁶² points.

    Source:
        Kaplan, Schnapp and Stemmer 2022.
    """

    name: ClassVar[str] = "quantiles"
    quantiles: tuple[Fraction, ...]
    lower: int
    upper: int
    scale: Fraction
    spread: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantiles", _read(self.quantiles))
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        lower, upper = grid(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "spread", whole_number(self.spread, "spread", least=1))
        if self._points > _MOST_POINTS:
            raise InvalidParameter("The finer grid has more than 2^62 points; use a coarser step or a smaller spread.")

    @classmethod
    def for_loss(
        cls, loss: Loss, *, quantiles: Iterable[Rational], lower: int, upper: int, spread: int = 1, rows: int = 1
    ) -> Self:
        """Return the sharpest whose loss, for units of up to `rows` rows, is at most `loss`."""
        check_positive(loss)
        wanted = _read(tuple(quantiles))
        widths = [whole_number(rows, "rows", least=1) * width for width in _widths(wanted)]
        if isinstance(loss, PureDP):
            scale = sum(widths, start=Fraction(0)) / loss.epsilon
        else:
            # Amounts grow like the square of the range, so the quadratic mean of the widths is about right.
            mean = sum((width**2 for width in widths), start=Fraction(0)) / len(widths)
            guess = Fraction(float(mean) ** 0.5) / bounded_range_down(loss.kind, loss.amount / len(widths))
            unit = dyadic_unit(guess, SCALE_BITS)
            scale = unit * smallest(
                lambda n: _amount(loss.kind, widths, n * unit) <= loss.amount, guess=floor(guess / unit), least=1
            )
        return cls(quantiles=wanted, lower=lower, upper=upper, scale=max(SMALLEST_SCALE, scale), spread=spread)

    @property
    def levels(self) -> int:
        """How many times each row is looked at."""
        return len(self.quantiles).bit_length()

    def loss(self, kind: str, *, rows: int = 1) -> Loss:
        """Return the loss in a measure, for units of up to `rows` rows: the sum over the levels."""
        measure = privacy_measure_of(kind)
        widths = [whole_number(rows, "rows", least=1) * width for width in _widths(self.quantiles)]
        return measure.from_amount(_amount(kind, widths, self.scale))

    def release(self, values: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """Return grid points near the quantiles, in their order; there may be no values at all.

        Raises:
            InvalidParameter: If the values are not whole numbers; nothing is drawn then.
        """
        ordered = self._spread(clamped(values, self.lower, self.upper), entropy)
        ordered.sort()
        last = len(self.quantiles)
        # What lies below the first quantile and beyond the last: the ends of the grid, no rows and all rows.
        points = {-1: 0, last: self._points - 1}
        rows = {-1: 0, last: ordered.size}
        for split in _splits(self.quantiles):
            part = ordered[rows[split.left] : rows[split.right]]
            point = choose(part, split.quantile, points[split.left], points[split.right], self.scale, entropy)
            points[split.place] = point
            rows[split.place] = rows[split.left] + int(np.searchsorted(part, point, side="right"))
        return tuple(self.lower + points[index] // self.spread for index in range(last))

    def rank_error(self, confidence: Number, *, ties: int) -> Fraction:
        """Return an e with #{x < v} − e ≤ q·n ≤ #{x ≤ v} + e for all quantiles q and their v at once.

        With this confidence at least, for all data in which at most `ties` rows stand on one point of the (finer) grid.
        If all rows differ, `ties` is 1. With a spread s, c equal rows are on each of s points about c/s.

        Let a part hold the rows of ranks from R to R'. Let R be off q_left·n by r, and R' off q_right·n by r'. The rank
        that q has in the part is off q·n by a mean of r and r', weighted by the relative q. `quantile` is off that by
        at most e_level, except with a chance that is divided among all the quantiles. Rows left of the part are at most
        v, and rows right of it at least v. So #{x < v} and #{x ≤ v} over all rows lie on the same sides. The part is
        then split at the rank at_most(v), off by at most e_level + ties. So the errors of the levels add up, and ties
        count on every level but the last.
        """
        whole_number(ties, "ties", least=1)
        beta = (1 - probability(confidence, "confidence")) / len(self.quantiles)
        worst = [Fraction(0)] * self.levels
        for split in _splits(self.quantiles):
            fine = split.quantile.denominator
            error = Fraction(largest_distance(self._points, self.scale * fine, beta), fine)
            worst[split.level] = max(worst[split.level], error)
        return sum(worst, start=Fraction((self.levels - 1) * int(ties)))

    @property
    def _points(self) -> int:
        """The number of points of the finer grid."""
        return (self.upper - self.lower + 1) * self.spread

    def _spread(self, values: NDArray[np.int64], entropy: Entropy) -> NDArray[np.int64]:
        """Return the values counted from `lower` on the finer grid, each at a uniformly random one of its points."""
        places = values - self.lower
        if self.spread == 1:
            return places
        return places * self.spread + samplers.uniform_integers(self.spread, values.size, entropy).astype(np.int64)


class _RowSplit(NamedTuple):
    """A choice: of the quantile at `place`, which is `quantile` among the rows between those at `left` and `right`."""

    place: int
    left: int
    right: int
    level: int
    quantile: Fraction


def _splits(quantiles: tuple[Fraction, ...]) -> list[_RowSplit]:
    """Return the choices, each after the neighbours that it is made between."""
    ends = (Fraction(0), *quantiles, Fraction(1))
    splits, waiting = [], [(-1, len(quantiles), 0)]
    while waiting:
        left, right, level = waiting.pop()
        if right - left < 2:
            continue
        index = (left + right) // 2
        low, here, high = ends[left + 1], ends[index + 1], ends[right + 1]
        splits.append(_RowSplit(index, left, right, level, (here - low) / (high - low)))
        waiting += [(left, index, level + 1), (index, right, level + 1)]
    return splits


def _widths(quantiles: tuple[Fraction, ...]) -> list[Fraction]:
    """Return the bounded range of each level at scale 1."""
    widths = [Fraction(0)] * len(quantiles).bit_length()
    for split in _splits(quantiles):
        widths[split.level] = max(widths[split.level], width_at_one(split.quantile))
    return widths


def _amount(kind: str, widths: list[Fraction], scale: Fraction) -> Fraction:
    return sum((bounded_range_amount(kind, width / scale) for width in widths), start=Fraction(0))


def _read(quantiles: tuple[Rational, ...]) -> tuple[Fraction, ...]:
    if not isinstance(quantiles, tuple) or not quantiles:
        raise InvalidParameter("quantiles must be a tuple of one number or more, such as (Fraction(1, 4), ...).")
    read = tuple(share(quantile, "Each quantile") for quantile in quantiles)
    if not all(low < high for low, high in pairwise(read)):
        raise InvalidParameter("The quantiles must ascend, each once.")
    return read
