"""Both ends of δ at an ε, and of ε at a δ, for a composition in one direction: work harder until they are close.

An end counts only where a bound of `inversion` or `atoms` has shown it; guesses choose where to look and when to stop.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from lapwing.exact.bounds import Enclosure, enclose
from lapwing.exact.floats import float_down, float_up
from lapwing.privacy.atoms import AtomCurve, AtomLaw, BinomialCurve
from lapwing.privacy.infinite_mass import NOTHING_LOST, Lost
from lapwing.privacy.inversion import Inversion
from lapwing.privacy.loss_laws import Laws
from lapwing.privacy.pairs import CutPair, Direction, Pair, Side, law_of
from lapwing.privacy.subset_pair import SubsetPair
from lapwing.privacy.windows import Aim, Cumulants, CurveCache, Effort

Parts = tuple[tuple[Pair, int], ...]

_SHARPEST = 0.01
"""An interval in δ this narrow, in proportion, is narrow enough, however narrow one in ε is wanted."""

_JUST_BELOW = 1 - Fraction(1, 1 << 100)
"""A largest loss that is not rational is rounded up, by less than this."""

_MANY = 1 << 18  # nodes that take longer than a search on binomial sums


class Interval(NamedTuple):
    """The true value lies between both, ends included."""

    lower: float
    upper: float


class _Composition(NamedTuple):
    """A law above and one below, the guesses for them, and bounds on the mass at +∞."""

    upper: Laws
    lower: Laws
    cumulants: Cumulants
    cells: int
    infinite: Enclosure
    lost: Lost

    def most(self, laws: Laws) -> Fraction | None:
        """Return the largest finite loss of all together."""
        ends = [(law.most, count) for law, count in laws]
        return None if any(m is None for m, _ in ends) else sum((m * c for m, c in ends if m is not None), Fraction(0))

    def is_beyond(self, epsilon: Fraction) -> bool:
        """Tell whether no finite loss is above ε."""
        most = self.most(self.upper)
        return most is not None and epsilon >= most


@lru_cache(maxsize=1 << 7)
def _composition(parts: Parts, direction: Direction, cells: int) -> _Composition:
    upper, lower = _laws(parts, direction, cells)
    lost = NOTHING_LOST.and_of(upper, lower)
    return _Composition(upper, lower, Cumulants(upper), cells, lost.infinite(), lost)


def _laws(parts: Parts, direction: Direction, cells: int) -> tuple[Laws, Laws]:
    """Return a composition's laws from above and from below."""

    def laws(side: Side) -> Laws:
        return tuple((law_of(pair, direction, "upper" if pair.closed else side, cells), count) for pair, count in parts)

    upper = laws("upper")
    return upper, upper if all(pair.closed for pair, _ in parts) else laws("lower")


def _cut(parts: Parts) -> Parts | None:
    """Return the parts with those cut that have a closed law but have pieces as well; None if there is none."""
    cut = tuple((_cut_pair(pair), count) for pair, count in parts)
    return None if cut == parts else cut


def _cut_pair(pair: Pair) -> Pair:
    if isinstance(pair, SubsetPair):
        return replace(pair, is_cut=True)
    return CutPair(pair) if pair.closed and not pair.symmetric else pair


def _is_single(parts: Parts) -> bool:
    """Tell whether there is one use in all, of which atoms give the curve as a sum."""
    return sum(count for _, count in parts) == 1


class Curve(NamedTuple):
    """Both bounds on δ of one composition, from one window.

    Args:
        cells: How finely laws that are not closed were cut.
        lost: What bounds the mass at +∞, infinite: these bounds.
    """

    upper: Inversion | AtomCurve | BinomialCurve
    lower: Inversion | AtomCurve | BinomialCurve
    cells: int
    lost: Lost
    infinite: Enclosure

    @property
    def tilt(self) -> float:
        """About how fast the logarithm of δ falls."""
        return self.upper.window.nodes.tilt if isinstance(self.upper, Inversion) else 1.0

    def above(self, epsilon: float) -> Fraction:
        """Return an upper bound on δ."""
        return self.upper.above(epsilon) + self.infinite.upper

    def below(self, epsilon: float) -> Fraction:
        """Return a lower bound on δ."""
        return self.lower.below(epsilon) + self.infinite.lower

    def guess(self, epsilon: float) -> tuple[float, float]:
        """Return about the logarithms of both bounds, without the mass at +∞."""
        upper = self.upper.guess(epsilon)
        return (upper if self.lower is self.upper else self.lower.guess(epsilon))[0], upper[1]

    def guess_beneath(self, epsilon: float) -> float:
        """Return about the logarithm of the upper bound for the law below: what cutting laws raised it by is not in."""
        return self.lower.guess(epsilon)[1]

    def times(self, parts: Parts, direction: Direction) -> "Curve | None":
        """Return the bounds with more pairs on the same window, or None if they are beyond all bounds.

        A sum over atoms takes none.
        """
        if not isinstance(self.upper, Inversion) or not isinstance(self.lower, Inversion):
            return None
        upper_laws, lower_laws = _laws(parts, direction, self.cells)
        lost = self.lost.and_of(upper_laws, lower_laws)
        try:
            upper = self.upper.times(upper_laws)
            same = self.lower is self.upper and upper_laws is lower_laws
            lower = upper if same else self.lower.times(lower_laws)
        except ArithmeticError:
            return None
        return Curve(upper, lower, self.cells, lost, lost.infinite())


def _curve(composition: _Composition, aim: Aim, tilt: float, fineness: float) -> Curve | None:
    """Return the bounds on a window for the aim, or None if there is none, or its numbers are beyond all bounds."""
    rest = composition.cells, composition.lost, composition.infinite
    (one, count), (other, _) = composition.upper[0], composition.lower[0]
    atoms = (one, other) if isinstance(one, AtomLaw) and isinstance(other, AtomLaw) else None
    if len(composition.upper) > 1:
        atoms = None
    if atoms and count == 1:
        return Curve(AtomCurve.of(atoms[0]), AtomCurve.of(atoms[1]), *rest)
    try:
        window = composition.cumulants.window(aim, tilt, fineness)
        if atoms and all(len(law.positions) == 2 for law in atoms) and (window is None or window.nodes.size > _MANY):
            return Curve(BinomialCurve(atoms[0], count), BinomialCurve(atoms[1], count), *rest)
        if window is None:
            return None
        upper = Inversion.of(composition.upper, window)
        same = composition.upper is composition.lower
        return Curve(upper, upper if same else Inversion.of(composition.lower, window), *rest)
    except ArithmeticError:
        return None


def bound_delta(
    parts: Parts, direction: Direction, epsilon: Fraction, width: float, floor: Fraction, kept: CurveCache | None = None
) -> Enclosure:
    """Bound δ at ε, until the interval is as narrow as an ε of that width would be, or below `floor`.

    Args:
        epsilon: Any number, also below 0.
        kept: The curves of other ε, to be asked first and added to.
    """
    if not parts:  # the curve of nothing is max(0, 1 − e^ε)
        return enclose(lambda y: -y.expm1(), epsilon) if epsilon < 0 else Enclosure(Fraction(0), Fraction(0))
    if _is_single(parts):
        parts = _cut(parts) or parts
    effort = Effort(closed=all(pair.closed for pair, _ in parts), kept=kept)
    best, log_delta = Enclosure(Fraction(0), Fraction(1)), None
    composition = _composition(parts, direction, effort.cells)
    y, beyond = float_down(epsilon), float_up(epsilon)
    if composition.is_beyond(epsilon):
        return composition.infinite
    tilt, size = composition.cumulants.tilt(y)

    def ratio() -> float:
        """Return how many times too wide the interval is."""
        finite = max(float(best.upper - composition.infinite.lower), 0.0)
        narrow = finite * max(1e-12, min(tilt * width, _SHARPEST))
        return float(best.upper - best.lower) / narrow if narrow and best.upper > floor else 0.0

    for curve in reversed(kept.curves if kept else []):
        best = Enclosure(max(best.lower, curve.below(beyond)), min(best.upper, curve.above(y)))
        if kept and ratio() <= 1:
            kept.prefer(curve)
            return best
    while True:
        near = min(width, _SHARPEST / tilt)
        aim = Aim(y, size - 3 if log_delta is None else log_delta, near, kept is not None)
        made = _curve(composition, aim, tilt, effort.fineness)
        if made is None and effort.closed and (with_cut := _cut(parts)):
            return bound_delta(with_cut, direction, epsilon, width, floor, kept)
        if made is None:
            return best
        if kept:
            kept.add(made, effort.fineness)
        best = Enclosure(max(best.lower, made.below(beyond)), min(best.upper, made.above(y)))
        log_delta = math.log(max(float(best.upper - composition.infinite.lower), 1e-300))
        too_wide, cut = ratio(), 0.0
        if too_wide > 1 and not effort.closed:
            share = -math.expm1(min(0.0, made.guess_beneath(y) - made.guess(y)[1]))
            cut = min(too_wide, share / max(1e-12, min(tilt * width, _SHARPEST)))
        if not effort.more(too_wide, cut):
            return best
        composition = _composition(parts, direction, effort.cells)
        if composition.is_beyond(epsilon):
            return composition.infinite
        tilt, size = composition.cumulants.tilt(y)


def largest_loss(parts: Parts, direction: Direction, cells: int) -> tuple[Fraction | None, Enclosure]:
    """Return a finite loss that none is above, if there is one, and bounds on δ from there on: the mass at +∞."""
    composition = _composition(parts, direction, cells)
    return composition.most(composition.upper), composition.infinite


def epsilon_above(parts: Parts, direction: Direction, delta: Fraction) -> float:
    """Return about an upper bound on ε at δ, Chernoff's; a guess, 0 where it has none."""
    composition = _composition(parts, direction, Effort(closed=True).cells)
    room = delta - composition.infinite.upper
    return max(0.0, composition.cumulants.epsilon_above(_log(room))) if parts and room > 0 else 0.0


class CertifiedInterval(NamedTuple):
    """Bounds on ε, and the last curve that showed them, if one did."""

    interval: Interval
    curve: Curve | None = None


def bound_epsilon(
    parts: Parts, direction: Direction, delta: Fraction, width: float, floor: float = 0.0, lasting: bool = False
) -> CertifiedInterval:
    """Bound ε at δ: windows aimed at the last estimate, finer until the interval is narrow enough or below `floor`.

    Args:
        lasting: Whether the curve is to be of use for longer lists too.
    """
    if not parts:
        return CertifiedInterval(Interval(0.0, 0.0))
    if _is_single(parts):
        parts = _cut(parts) or parts
    best, effort = Interval(0.0, math.inf), Effort(closed=all(pair.closed for pair, _ in parts))
    guess: float | None = None
    last: Curve | None = None
    while True:
        composition = _composition(parts, direction, effort.cells)
        most, least = composition.most(composition.upper), composition.most(composition.lower)
        if delta < composition.infinite.lower:
            return CertifiedInterval(Interval(math.inf, math.inf))
        if most is not None and delta >= composition.infinite.upper:
            best = Interval(best.lower, min(best.upper, float_up(most)))
        if delta == 0:
            return CertifiedInterval(
                Interval(max(0.0, float_down(least * _JUST_BELOW)) if least is not None else math.inf, best.upper)
            )
        if delta <= composition.infinite.upper:
            return CertifiedInterval(best, last)
        log_delta = _log(delta - composition.infinite.upper)
        if guess is None:
            guess = max(0.0, composition.cumulants.epsilon_above(log_delta))
        # Near the largest loss a window shrinks with the distance to it; there is no need to be nearer than this.
        tilt = min(composition.cumulants.tilt(guess)[0], 2 / width)
        curve = _curve(composition, Aim(guess, log_delta, width, lasting), tilt, effort.fineness)
        if curve is None and (with_cut := _cut(parts)):
            return bound_epsilon(with_cut, direction, delta, width, floor, lasting)
        if curve is None:
            return CertifiedInterval(best, last)
        last = curve
        ends = _solve(curve, guess, delta, tilt, width)
        best = Interval(max(best.lower, ends.lower), min(best.upper, ends.upper))
        if best.upper <= floor:
            break
        ratio = (best.upper - best.lower) / width
        start = ends.upper if math.isfinite(ends.upper) else guess
        cut = _cutting(curve, start, delta, tilt, width) / width if ratio > 1 and not effort.closed else 0.0
        if not effort.more(ratio, min(cut, ratio)):
            break
        guess = best.upper if math.isfinite(best.upper) else guess
    if (
        best.lower == 0
        and best.upper > width
        and bound_delta(parts, direction, Fraction(0), width, delta).upper <= delta
    ):
        return CertifiedInterval(Interval(0.0, 0.0))  # losses far smaller than the width, too small for those windows
    return CertifiedInterval(best, last)


def _solve(curve: Curve, guess: float, delta: Fraction, tilt: float, width: float) -> Interval:
    """Return certified ends from one curve: points where its upper bound is at most δ, and its lower bound above.

    The search is in floats; what it finds is tried, a little further out each time, and if that fails searched again
    on the certified bounds themselves.
    """
    precision = width / 16
    rooms = [_log(delta - infinite) for infinite in curve.infinite]

    def excess(epsilon: float, end: int) -> float:
        total = curve.above(epsilon) if end else curve.below(epsilon)
        value = total - curve.infinite[end]
        distance = _log(value) - rooms[end] if value > 0 else -math.inf
        return max(distance, math.ulp(0.0)) if total > delta else min(distance, 0.0)  # the sign is exact

    def near(epsilon: float, end: int) -> float:
        return curve.guess(epsilon)[end] - rooms[end]

    upper = _bracket(lambda y: near(y, 1), guess, tilt, precision)[1]
    if upper < math.inf and not any(curve.above(upper := upper + jump * precision) <= delta for jump in (0, 1, 4)):
        upper = _bracket(lambda y: excess(y, 1), guess, tilt, precision)[1]
    lower = _bracket(lambda y: near(y, 0), min(guess, upper), tilt, precision)[0]
    if not any(curve.below(lower := max(0.0, lower - jump * precision)) > delta for jump in (0, 1, 4)):
        lower = _bracket(lambda y: excess(y, 0), min(guess, upper), tilt, precision)[0]
    return Interval(lower, upper)


def _cutting(curve: Curve, start: float, delta: Fraction, tilt: float, width: float) -> float:
    """Return about how far apart in ε the upper bounds for the law above and for that below are: due to its cutting."""
    room, precision = _log(delta - curve.infinite.upper), width / 16
    above = _bracket(lambda y: curve.guess(y)[1] - room, start, tilt, precision)
    beneath = _bracket(lambda y: curve.guess_beneath(y) - room, above[0], tilt, precision)
    return max(0.0, above[1] - beneath[1]) if above[1] < math.inf else math.inf


def _bracket(falling: Callable[[float], float], start: float, slope: float, precision: float) -> tuple[float, float]:
    """Return points ≥ 0 about as near as `precision`, at the first of which a function is above 0, at the second not.

    Where there is no first point it is 0; where no second was found it is infinite.
    """
    low, high = (0.0, math.nan), (math.inf, math.nan)
    has_low = False
    point, jump = start, precision
    for attempt in range(80):
        value = falling(point)
        if value > 0:
            low, has_low = (point, value), True
        else:
            high = (point, value)
        gap = high[0] - low[0]
        if gap <= precision or (not has_low and point == 0):
            break
        step = abs(value) / slope + precision / 2 if math.isfinite(value) else 0.0
        jump *= 2
        if not has_low:
            point = max(0.0, point - max(step, jump))
        elif gap == math.inf:
            point += max(step, jump / 64)
        else:
            share = low[1] / (low[1] - high[1]) if attempt % 3 and math.isfinite(high[1]) else 0.5
            point = low[0] + min(max(share * gap, 0.4 * precision), gap - 0.4 * precision)
    return low[0], high[0]


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)
