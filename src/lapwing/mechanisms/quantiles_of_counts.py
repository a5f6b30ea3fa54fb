"""Several quantiles of numbers of rows, or one with a noisy number of rows: the exponential mechanism, again and again.

Theory of operation. As in `quantile_of_counts` the points of a grid are numbered, and it is known how many rows stand
on each. There are two ways to choose. *Apart*: each quantile by itself among all rows, one level for each. *Halves*:
one of the quantiles first; it cuts rows and grid in two, and the others are chosen in the two parts, which is the next
level. A quantile q between the released q_left < q < q_right is, among the rows between their cuts, the quantile
(q − q_left)/(q_right − q_left). Of those between two cuts the one goes first for which that is nearest to ½, as its
range is the least.

Equal rows. Many rows may stand on the point that is chosen, and a cut must divide them. So the rows of a point are
thought of on the interval [0, 1): of p of them, with p = 2^k + m and m < 2^k, the interval has 2^k pieces of one
length, and each of the first m is halved; row r is on the r-th piece. What is chosen is a place (point, u) with u
uniform in [0, 1): on the piece of row r, r rows of the point are below the place, and r + 1 are at most there. A cut
gives the left part the rows up to that piece, and the right part the others. From 2²⁰ rows on the pieces are not halved
further, and each holds as many rows as the others, or one more.

Claim: if a row is added at a point, then at every place the number of rows below it grows by 0 or 1, and so does the
number at most there. At places of other points this is so by their order. At the point itself the row halves a piece:
on its right half and on all pieces after it both numbers grow by 1, before it none. The first row of a point is on all
of it, so that only the second number grows. From 2²⁰ rows on it makes a piece hold one row more: there the second
number grows, and on all pieces after it both do.

Claim: on each level all choices of all cells and parts together have bounded range l1·w/scale, given those before them,
where l1 is the L1 distance of the numbers of rows, and w the largest width of the level's choices: 2·max(q, 1 − q) for
the relative quantile q. What the levels before released are places, and they determine without the data where rows are
cut. By the claim above, for fixed cuts one row more is one row more in exactly one part, at one point of it, and no
other part changes. With it the proof in `quantile` bounds the move of d(v) by max(a, b − a) at every place v; so the
range of that part's choice is w/scale. Choices of different parts and cells are independent given the cuts, so that the
ranges of all rows that are added or removed add up, whichever parts they are in: also if one unit's rows are in several
parts, and also if one unit takes another's place. The levels compose adaptively: ε, μ² and ρ add up.

An end of the data, for MIN and MAX beside a quantile, is aimed at by a fixed number of rows: of MIN the place v with
about t rows below, by d(v) = max(0, below(v) − t, t − at_most(v)), which a row moves by at most 1 up or down: range
2/scale. It is always the last choice in its part.

For cuts d is taken as 64·scale where it is more, rounded up: the least of d and a constant moves by no more than d.
So all places that are far from the rank need not be told apart.

Claim: the noisy numbers of rows add the loss of their noise, as one more level.

Source:
    Kaplan, Schnapp and Stemmer 2022 (Differentially Private Approximate Quantiles) for the halves. The division of
    equal rows without randomness, parts for units of several rows, and the bounds on ranks are worked out here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, sqrt
from typing import ClassVar, Final, Literal, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import dyadic_unit
from lapwing.exact.choice import exponential_choice
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.integers import uniform_integers
from lapwing.mechanisms.additive import QUANTILES, NoiseLaw
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import SCALE_BITS, Sensitivity, check_positive
from lapwing.mechanisms.parameters import SMALLEST_SCALE, rational, scale_of_noise, whole_number
from lapwing.mechanisms.quantile import distances, largest_distance, share, width_at_one
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.bounded_range import bounded_range_amount, bounded_range_down
from lapwing.privacy.measures import Loss, PureDP, privacy_measure_of
from lapwing.privacy.search import smallest

Way = Literal["halves", "apart"]
CountNoise = Literal["", "laplace", "gaussian"]

LARGEST_SCALE: Final = 1 << 10
"""Of cuts: what is looked at around a rank grows with the scale."""
FAR: Final = 64
_FINEST_BITS: Final = 20
PIECES: Final = 1 << _FINEST_BITS
WHOLE: Final = 2 * PIECES
"""What all of a point weighs, so that the least piece weighs 2 or more."""
_END_WIDTH: Final = Fraction(2)
_END_TAIL: Final = Fraction(1, 20)
_CONFIDENCE: Final = Fraction(95, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesOfCounts:
    """Choose a point in each cell for every quantile, and give the cell's noisy number of rows if wanted.

    Guarantee:
        A bounded range of l1·w/scale on each level, w the level's largest width, and the loss of the noise of the
        numbers of rows; their losses add up. Here l1 and l2_squared are the distances of the counts between neighbours.
        Proof at the top of the file.

    Args:
        quantiles: From 0 to 1, ascending; 0 and 1 stand for the ends of the data, and are beside others.
        points: Of the grid in each cell, at least 1.
        way: "halves" or "apart".
        count_noise: Of the numbers of rows: "laplace" or "gaussian", or "" where they are not released.
        count_ratio: How many times the scale that noise's scale or standard deviation is; 0 without.
        scale: In rows; of halves at most 2¹⁰.
    """

    name: ClassVar[str] = QUANTILES
    quantiles: tuple[Fraction, ...]
    points: int
    way: Way = "halves"
    count_noise: CountNoise = ""
    count_ratio: Fraction = Fraction(0)
    scale: Fraction

    def __post_init__(self) -> None:
        wanted = tuple(share(quantile, "Each quantile") for quantile in self.quantiles)
        object.__setattr__(self, "quantiles", wanted)
        if not any(0 < quantile < 1 for quantile in wanted) or not all(low < high for low, high in pairwise(wanted)):
            raise InvalidParameter("The quantiles must ascend, each once, and one of them must be between 0 and 1.")
        object.__setattr__(self, "points", whole_number(self.points, "points", least=1))
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        object.__setattr__(self, "count_ratio", rational(self.count_ratio, "count_ratio"))
        if self.way not in ("halves", "apart") or self.count_noise not in ("", "laplace", "gaussian"):
            raise InvalidParameter(
                f"The way is {self.way!r} and the noise {self.count_noise!r}; this combination is not known."
            )
        if (self.count_ratio > 0) != bool(self.count_noise):
            raise InvalidParameter(f"count_ratio is {self.count_ratio}; it must be above 0 if numbers are released.")
        if self.way == "halves" and len(wanted) > 1 and self.scale > LARGEST_SCALE:
            raise InvalidParameter(f"The scale is {self.scale}; of halves it must be at most {LARGEST_SCALE}.")

    @classmethod
    def for_loss(
        cls,
        loss: Loss,
        sensitivity: Sensitivity,
        *,
        quantiles: tuple[Fraction, ...],
        points: int,
        way: Way = "halves",
        counted: bool = False,
    ) -> Self:
        """Return the sharpest whose loss is at most `loss`; numbers of rows take about a fifth of ε, or a tenth of μ².

        Raises:
            InvalidParameter: If the loss is 0, or so small that the scale of halves is above 2¹⁰.
        """
        noise, ratio = _count_noise(loss, quantiles, way) if counted else ("", Fraction(0))
        scale = scale_for(loss, sensitivity, quantiles=quantiles, way=way, counted=counted)
        return cls(quantiles=quantiles, points=points, way=way, count_noise=noise, count_ratio=ratio, scale=scale)

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return what a release in every cell loses in a measure."""
        widths = _widths(self.quantiles, self.way)
        amount = _amount(kind, sensitivity, widths, self.scale, self.count_noise, self.count_ratio)
        return privacy_measure_of(kind).from_amount(amount)

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how many rows one unit moves."""
        return float(sensitivity.l1)

    @property
    def counting(self) -> DiscreteLaplace | RoundedGaussian | None:
        """The noise of the numbers of rows, if they are released."""
        return _counting(self.count_noise, self.count_ratio * self.scale) if self.count_noise else None

    # ---- release -----------------------------------------------------------------------------------------------------

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Return for each cell the number of a point for every quantile, ascending, then the noisy number of rows.

        Args:
            values: A row of the array a cell, of which the last `points` entries are the counts of its points.
        """
        counts = values[:, -self.points :].astype(np.int64)
        chosen = np.zeros((len(values), len(self.quantiles)), dtype=np.int64)
        for cell, rows in enumerate(counts):
            chosen[cell] = self._apart(rows, entropy) if self.way == "apart" else self._halves(rows, entropy)
        noise = self.counting
        if noise is None:
            return chosen
        totals = noise.release(counts.sum(axis=-1), entropy)
        return np.concatenate([chosen.astype(totals.dtype), totals[:, None]], axis=-1)

    def _apart(self, rows: NDArray[np.int64], entropy: Entropy) -> NDArray[np.int64]:
        """Choose each among all rows, and sort them; an end of the data is at most at the quantile beside it.

        If each is within e of its rank, so is each that is sorted: the ends of what is within e ascend with the ranks.
        """
        chosen = np.array([self._choose(rows, q, q, entropy) for q in self.quantiles], dtype=np.int64)
        inside = [place for place, quantile in enumerate(self.quantiles) if 0 < quantile < 1]
        chosen[inside] = np.sort(chosen[inside])
        chosen[: inside[0]] = np.minimum(chosen[: inside[0]], chosen[inside[0]])
        chosen[inside[-1] :] = np.maximum(chosen[inside[-1] :], chosen[inside[-1]])
        return chosen

    def _halves(self, rows: NDArray[np.int64], entropy: Entropy) -> NDArray[np.int64]:
        last = len(self.quantiles)
        chosen = np.zeros(last, dtype=np.int64)
        cuts = {-1: _Cut(0, 0), last: _Cut(self.points - 1, int(rows[-1]))}
        for split in _splits(self.quantiles):
            left, right = cuts[split.left], cuts[split.right]
            part = rows[left.point : right.point + 1].copy()
            part[-1] = right.rows
            part[0] -= left.rows
            if split.is_last:
                point = self._choose(part, self.quantiles[split.place], split.quantile, entropy)
            else:
                point, taken = cut(part, split.quantile, self.scale, entropy)
                cuts[split.place] = _Cut(left.point + point, taken + (left.rows if point == 0 else 0))
            chosen[split.place] = left.point + point
        return chosen

    def _choose(self, rows: NDArray[np.int64], quantile: Fraction, relative: Fraction, entropy: Entropy) -> int:
        """Choose a point among rows, whose equal ones need not be divided."""
        at_most = np.cumsum(rows)
        below, total = at_most - rows, int(at_most[-1])
        if 0 < quantile < 1:
            found = distances(below, at_most, total, relative)
            return int(exponential_choice(found, self.scale * relative.denominator, entropy))
        aim = self.beyond
        least, most = (below, at_most) if quantile == 0 else (total - at_most, total - below)
        return int(exponential_choice(np.maximum(np.maximum(least - aim, aim - most), 0), self.scale, entropy))

    # ---- how far ranks are off ---------------------------------------------------------------------------------------

    @property
    def beyond(self) -> int:
        """How many rows are aimed at below the least value that is shown, and above the greatest.

        With 95 % probability there is at least one, if the part has so many.
        """
        return largest_distance(self.points, self.scale, _END_TAIL) + 1

    @property
    def standard_deviation(self) -> float:
        """The largest `typical` one."""
        return max(self.typical(quantile) for quantile in self.quantiles)

    def typical(self, quantile: Fraction) -> float:
        """Return about the standard deviation of a rank where values are spread out, or `beyond` of an end.

        There a chosen rank strays by about two-sided exponential noise of this scale; what its part's ends stray by
        comes in weighted, as if both strayed to one side. To compare plans by: no bound for all data tells them apart.
        """
        if not 0 < quantile < 1:
            return float(self.beyond)
        own = 2 * float(self.scale) ** 2
        if self.way == "apart":
            return sqrt(own)
        strays = {-1: 0.0, len(self.quantiles): 0.0}
        for split in _splits(self.quantiles):
            share_ = float(split.quantile)
            ends = (1 - share_) * strays[split.left] + share_ * strays[split.right]
            strays[split.place] = sqrt(own + ends**2)
        return strays[self.quantiles.index(quantile)]

    def rank_error(self, quantile: Fraction, confidence: Number) -> int:
        """Return an e such that the rank of a quantile's point is within e rows of q·n, with this confidence at least.

        For all data in which at most 2²⁰ rows are equal; beyond, one row more for every further 2²⁰ and every level.
        Of an end, how many rows are aimed at beyond it.

        A cut's place is off by no more than E, except with a chance of at most β, if largest_distance says so of 2²⁰
        times as many points: some piece has d = 0 and weighs 2 of a point's 2²¹ or more. The rows that are cut off are
        those up to its piece, which are off by one more at most. In a part whose cuts are off by r and r', the rank of
        a relative quantile is off by their weighted mean, and the chosen point by what `quantile` says of it on top.
        Rows to the left of a part are at its points or before, and those to the right at its points or after them, so
        that no point is further off among all rows than among those of its part. β is divided among a choice and those
        that it rests on.

        Raises:
            InvalidParameter: If a cut may be off by more than is told apart; the confidence is nearly 1 then.
        """
        if not 0 < quantile < 1:
            return self.beyond
        beta = 1 - probability(confidence, "confidence")
        if self.way == "apart":  # sorted: for each of them
            bounds = [self._bound(q, self.points, beta / len(self.quantiles)) for q in self.quantiles if 0 < q < 1]
            return ceil(max(bounds))
        splits = {split.place: split for split in _splits(self.quantiles)}
        wanted = splits[self.quantiles.index(quantile)]
        rests_on = set(_above(wanted, splits))
        tail = beta / len(rests_on)

        def stray(place: int) -> Fraction:
            """Return how far the rows that a cut leaves may be off."""
            if place not in splits:
                return Fraction(0)
            split = splits[place]
            ends = (1 - split.quantile) * stray(split.left) + split.quantile * stray(split.right)
            own = self._bound(split.quantile, self.points * (1 if split.is_last else PIECES), tail)
            if not split.is_last and own >= FAR * self.scale:
                raise InvalidParameter(f"The confidence is {confidence}; give one that is further from 1.")
            return ends + own + 1

        return ceil(stray(wanted.place) - 1)

    def _bound(self, relative: Fraction, points: int, beta: Fraction) -> Fraction:
        fine = relative.denominator
        return Fraction(largest_distance(points, self.scale * fine, beta), fine)

    def half_width(self, confidence: Number) -> int:
        """Return the largest of the rank errors of all quantiles, each with this confidence."""
        return max(self.rank_error(quantile, confidence) for quantile in self.quantiles)

    # ---- as stored ---------------------------------------------------------------------------------------------------

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        wanted = " ".join(map(str, self.quantiles))
        return [wanted, str(self.points), self.way, self.count_noise, str(self.count_ratio), str(self.scale)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        wanted, points, way, noise, ratio, scale = parameters
        return cls(
            quantiles=tuple(map(Fraction, wanted.split())),
            points=int(points),
            way="apart" if way == "apart" else "halves",
            count_noise=noise if noise in ("laplace", "gaussian") else "",  # type: ignore[arg-type]
            count_ratio=Fraction(ratio),
            scale=Fraction(scale),
        )


# ---- the order of choices --------------------------------------------------------------------------------------------


class _CountSplit(NamedTuple):
    """A choice of the quantile at `place`, which is `quantile` among the rows between the cuts at `left` and `right`.

    Args:
        is_last: Whether nothing is chosen in the parts that it would cut.
    """

    place: int
    left: int
    right: int
    level: int
    quantile: Fraction
    is_last: bool

    @property
    def width(self) -> Fraction:
        """The bounded range that one row has at scale 1; an end of the data is not split at."""
        return width_at_one(self.quantile) if 0 < self.quantile < 1 else _END_WIDTH


def as_good(bought: NoiseLaw, asked: NoiseLaw) -> bool:
    """Tell whether quantiles that were chosen before are those that are asked for, and stray by no more.

    They may be some of several. Numbers of rows that are asked for must have been released, but with one quantile:
    earlier versions released none, and what they sold stays sold.
    """
    if not isinstance(bought, QuantileOfCounts | QuantilesOfCounts):
        return False
    if not isinstance(asked, QuantileOfCounts | QuantilesOfCounts):
        return False
    before, now = _as_several(bought), _as_several(asked)
    if before.points != now.points or not set(now.quantiles) <= set(before.quantiles):
        return False
    if now.counting is not None and isinstance(bought, QuantilesOfCounts):
        counting = before.counting
        if counting is None or counting.half_width(_CONFIDENCE) > now.counting.half_width(_CONFIDENCE):
            return False
    return all(
        before.typical(q) <= now.typical(q) and before.rank_error(q, _CONFIDENCE) <= now.rank_error(q, _CONFIDENCE)
        for q in now.quantiles
    )


def _as_several(law: QuantileOfCounts | QuantilesOfCounts) -> QuantilesOfCounts:
    if isinstance(law, QuantilesOfCounts):
        return law
    return QuantilesOfCounts(quantiles=(law.quantile,), points=law.points, scale=law.scale)


@lru_cache(maxsize=256)
def _splits(quantiles: tuple[Fraction, ...]) -> tuple[_CountSplit, ...]:
    """Return the choices, each after those that it is made between."""
    ends = {-1: Fraction(0), **dict(enumerate(quantiles)), len(quantiles): Fraction(1)}
    splits, waiting = [], [(-1, len(quantiles), 0)]
    while waiting:
        left, right, level = waiting.pop()
        inside = range(left + 1, right)
        if not inside:
            continue
        low, length = ends[left], ends[right] - ends[left]
        relative = {place: (ends[place] - low) / length for place in inside}
        # An end of the data comes last in its part: nothing else is nearer to the middle, or it would be chosen before.
        place = min(inside, key=lambda one: (abs(relative[one] - Fraction(1, 2)), one))
        splits.append(_CountSplit(place, left, right, level, relative[place], len(inside) == 1))
        waiting += [(left, place, level + 1), (place, right, level + 1)]
    return tuple(splits)


def _above(split: _CountSplit, splits: dict[int, _CountSplit]) -> Iterator[int]:
    """Yield the places of a choice and of those that it rests on."""
    yield split.place
    for place in (split.left, split.right):
        if place in splits:
            yield from _above(splits[place], splits)


def _widths(quantiles: tuple[Fraction, ...], way: Way) -> list[Fraction]:
    """Return the bounded range of each level at scale 1."""
    if way == "apart":
        return [width_at_one(quantile) if 0 < quantile < 1 else _END_WIDTH for quantile in quantiles]
    widths: dict[int, Fraction] = {}
    for split in _splits(quantiles):
        widths[split.level] = max(widths.get(split.level, Fraction(0)), split.width)
    return list(widths.values())


@lru_cache(maxsize=256)  # a plan asks which ways there are, and then for the mechanism of each
def scale_for(
    loss: Loss, sensitivity: Sensitivity, *, quantiles: tuple[Fraction, ...], way: Way, counted: bool
) -> Fraction:
    """Return the least scale whose loss is at most `loss`, of some 45 binary digits if it is not pure."""
    check_positive(loss)
    noise, ratio = _count_noise(loss, quantiles, way) if counted else ("", Fraction(0))
    widths = _widths(quantiles, way)
    if isinstance(loss, PureDP):
        whole = sum(widths, 1 / ratio if counted else Fraction(0))
        return max(SMALLEST_SCALE, sensitivity.l1 * whole / loss.amount)
    guess = sensitivity.l1 * _root_of_squares(widths) / bounded_range_down(loss.kind, loss.amount)
    unit = dyadic_unit(guess, SCALE_BITS)
    return max(
        SMALLEST_SCALE,
        unit
        * smallest(
            lambda n: _amount(loss.kind, sensitivity, widths, n * unit, noise, ratio) <= loss.amount,
            guess=floor(guess / unit),
            least=1,
        ),
    )


def _count_noise(loss: Loss, quantiles: tuple[Fraction, ...], way: Way) -> tuple[CountNoise, Fraction]:
    """Return the noise of numbers of rows, and how many times the scale of the choices its own is."""
    widths = _widths(quantiles, way)
    if isinstance(loss, PureDP):
        return "laplace", Fraction(ceil(16 * 4 / sum(widths)), 16)
    return "gaussian", Fraction(ceil(16 * 5 / _root_of_squares(widths)), 16)


def _root_of_squares(widths: Sequence[Fraction]) -> Fraction:
    return Fraction(sqrt(sum(width**2 for width in widths)))


def _amount(
    kind: str, sensitivity: Sensitivity, widths: list[Fraction], scale: Fraction, noise: CountNoise, ratio: Fraction
) -> Fraction:
    levels = [bounded_range_amount(kind, sensitivity.l1 * width / scale) for width in widths]
    counting = _counting(noise, ratio * scale).loss(sensitivity, kind).amount if noise else Fraction(0)
    return sum(levels, counting)


def _counting(noise: CountNoise, scale: Fraction) -> DiscreteLaplace | RoundedGaussian:
    scale = max(SMALLEST_SCALE, scale)
    return DiscreteLaplace(scale=scale) if noise == "laplace" else RoundedGaussian(sigma=scale)


# ---- cuts ------------------------------------------------------------------------------------------------------------


class _Cut(NamedTuple):
    """Rows are left of a cut if they are at points before this one, or among the first so many at it."""

    point: int
    rows: int


def cut(rows: NDArray[np.int64], quantile: Fraction, scale: Fraction, entropy: Entropy) -> tuple[int, int]:
    """Choose a place near a quantile: return its point, and how many of the rows there are up to its piece."""
    at_most = np.cumsum(rows)
    below, total = at_most - rows, int(at_most[-1])
    rank, reach = quantile * total, ceil(FAR * scale)
    pieces = np.minimum(rows, PIECES)
    # Pieces from `first` to before `end` may be near; all of a point that holds one row or none is told apart.
    first = np.minimum(_piece_of(np.clip(floor(rank) - reach - below, 0, rows), rows), pieces)
    end = _piece_of(np.clip(ceil(rank) + reach - below, 0, rows) - 1, rows) + 1
    first, end = np.where(pieces > 1, first, 0), np.where(pieces > 1, np.maximum(first, end), 1)
    many = end - first
    point = np.repeat(np.arange(rows.size), many)
    piece = np.arange(point.size) - np.repeat(np.cumsum(many) - many, many) + first[point]
    starts, ends = (_rows_before(piece + more, rows[point]) for more in (0, 1))
    ends = np.minimum(ends, rows[point])  # nothing is on the one piece of a point without rows
    near = distances(below[point] + starts, below[point] + ends, total, quantile)
    far = reach * quantile.denominator
    weights = np.where(pieces[point] > 1, _weight(piece + 1, pieces[point]) - _weight(piece, pieces[point]), WHOLE)
    before = np.where(pieces > 1, _weight(first, pieces), 0)
    after = np.where(pieces > 1, WHOLE - _weight(end, pieces), 0)
    far_away = np.full(2 * rows.size, far, dtype=near.dtype)
    found = np.concatenate([np.minimum(near, far), far_away])
    drawn = exponential_choice(
        found, scale * quantile.denominator, entropy, multiplicities=np.concatenate([weights, before, after])
    )
    if drawn < point.size:
        return int(point[drawn]), int(ends[drawn])
    side, place = divmod(drawn - point.size, rows.size)
    lot = int(uniform_integers(int((before, after)[side][place]), 1, entropy)[0])
    lot += int(_weight(end, pieces)[place]) if side else 0
    return place, _rows_up_to(lot, int(rows[place]))


def _rows_before(piece: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of a point's rows are on the pieces before one."""
    each, more = np.maximum(rows // PIECES, 1), np.where(rows >= PIECES, rows % PIECES, 0)
    found: NDArray[np.int64] = piece * each + np.minimum(piece, more)
    return found


def _piece_of(row: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the piece of a row of a point; −1 of row −1."""
    each, more = np.maximum(rows // PIECES, 1), np.where(rows >= PIECES, rows % PIECES, 0)
    longer = more * (each + 1)
    found: NDArray[np.int64] = np.where(row < longer, row // (each + 1), more + (row - longer) // each)
    return found


def _weight(piece: NDArray[np.int64], pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what the pieces before one weigh, of 2²¹."""
    _, exponent = np.frexp(np.maximum(pieces, 1).astype(np.float64))  # exact, as there are at most 2²⁰
    bits = exponent.astype(np.int64) - 1
    halved = 2 * (pieces - (1 << bits))
    narrow, wide = np.minimum(piece, halved), np.maximum(piece - halved, 0)
    weight: NDArray[np.int64] = narrow * (PIECES >> bits) + wide * (WHOLE >> bits)
    return weight


def _rows_up_to(lot: int, rows: int) -> int:
    """Return how many of a point's rows are up to the piece at so much of its 2²¹."""
    pieces = min(rows, PIECES)
    bits = pieces.bit_length() - 1
    halved, half = 2 * (pieces - (1 << bits)), PIECES >> bits
    piece = lot // half if lot < halved * half else halved + (lot - halved * half) // (2 * half)
    return int(_rows_before(np.array([piece + 1]), np.array([rows]))[0])
