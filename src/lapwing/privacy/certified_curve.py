"""Both ends of δ at an ε, and of ε at a δ, for a composition in one direction: work harder until they are close.

An end counts only where a bound of `inversion` or `atoms` has shown it; guesses choose where to look and when to stop.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from lapwing.exact.bounds import Bounds, enclose, float_down, float_up
from lapwing.privacy.atoms import AtomCurve, AtomLaw
from lapwing.privacy.inversion import Inversion
from lapwing.privacy.loss_laws import Laws
from lapwing.privacy.pairs import Direction, Pair, Side, law_of
from lapwing.privacy.windows import Aim, Cumulants

Parts = tuple[tuple[Pair, int], ...]

_CELLS = 512
_MOST_CELLS = 1 << 13
_ROUNDS = 6


class Interval(NamedTuple):
    """The true value lies between both, ends included."""

    lower: float
    upper: float


class _Composition(NamedTuple):
    """A law above and one below, the guesses for them, and bounds on the mass at +∞."""

    upper: Laws
    lower: Laws
    cumulants: Cumulants
    infinite: Bounds

    def most(self, laws: Laws) -> Fraction | None:
        """Return the largest finite loss of all together."""
        ends = [(law.most, count) for law, count in laws]
        return None if any(m is None for m, _ in ends) else sum((m * c for m, c in ends if m is not None), Fraction(0))


@lru_cache(maxsize=1 << 7)
def _composition(parts: Parts, direction: Direction, cells: int) -> _Composition:
    def laws(side: Side) -> Laws:
        return tuple((law_of(pair, direction, "upper" if pair.closed else side, cells), count) for pair, count in parts)

    upper, lower = laws("upper"), laws("lower")
    return _Composition(
        upper, lower, Cumulants(upper), Bounds(_infinite(lower).lower, min(Fraction(1), _infinite(upper).upper))
    )


def _infinite(laws: Laws) -> Bounds:
    """Bound the mass at +∞ of a composition: that of all outcomes, less that of the finite ones.

    It is T·(1 − Π(1 − I/t)^count) for laws of total mass t, of which I is at +∞, and T = Π t^count. The t are 1, or
    differ from 1 by less than 2⁻⁹⁰ from directed rounding: upwards above, where I/t ≤ I, and downwards below, where
    I/t ≥ I.
    """
    lost = [(law.infinite, count) for law, count in laws if law.infinite]
    if not lost:
        return Bounds(Fraction(0), Fraction(0))
    if any(mass >= 1 for mass, _ in lost):
        return Bounds(Fraction(1), Fraction(1))
    logs = [enclose(lambda i, n: n * (-i).log1p(), mass, Fraction(count), bits=160) for mass, count in lost]
    kept = Bounds(sum((b.lower for b in logs), Fraction(0)), sum((b.upper for b in logs), Fraction(0)))
    drift = sum((count for _, count in laws), 0) * Fraction(1, 1 << 89)
    least = enclose(lambda x: -x.expm1(), kept.upper, bits=160).lower * max(Fraction(0), 1 - drift)
    most = enclose(lambda x: -x.expm1(), kept.lower, bits=160).upper * (1 + 2 * drift)
    return Bounds(max(Fraction(0), least), most)


class _Curve(NamedTuple):
    """Both bounds on δ of one composition, from one window."""

    upper: Inversion | AtomCurve
    lower: Inversion | AtomCurve
    infinite: Bounds

    def at(self, epsilon: float) -> Bounds:
        """Return bounds on δ."""
        upper = self.upper.bounds(epsilon)
        lower = upper if self.lower is self.upper else self.lower.bounds(epsilon)
        return Bounds(lower.lower + self.infinite.lower, upper.upper + self.infinite.upper)

    def guess(self, epsilon: float) -> tuple[float, float]:
        """Return about the logarithms of both bounds, without the mass at +∞."""
        return self.lower.guess(epsilon)[0], self.upper.guess(epsilon)[1]


def _curve(composition: _Composition, aim: Aim, tilt: float, fineness: float) -> _Curve | None:
    """Return the bounds on a window for the aim, or None if there is none, or its numbers are beyond all bounds."""
    infinite = composition.infinite
    (one, count), (other, _) = composition.upper[0], composition.lower[0]
    if len(composition.upper) == count == 1 and isinstance(one, AtomLaw) and isinstance(other, AtomLaw):
        return _Curve(AtomCurve.of(one), AtomCurve.of(other), infinite)
    try:
        window = composition.cumulants.window(aim, tilt, fineness)
        if window is None:
            return None
        upper = Inversion.of(composition.upper, window)
        same = composition.upper == composition.lower
        return _Curve(upper, upper if same else Inversion.of(composition.lower, window), infinite)
    except ArithmeticError:
        return None


class _Effort:
    """How fine the next window and cells are, after looking at how wide the last interval was."""

    def __init__(self, parts: Parts) -> None:
        self.closed = all(pair.closed for pair, _ in parts)
        self.cells, self.fineness, self.rounds, self.ratio = _CELLS, 1.0, 0, math.inf

    def more(self, ratio: float) -> bool:
        """Prepare another round for an interval that is `ratio` times too wide; tell whether it is worth one."""
        self.rounds += 1
        stuck = self.rounds > 2 and ratio > 0.9 * self.ratio
        if ratio <= 1 or stuck or self.rounds == _ROUNDS or (not self.closed and self.cells == _MOST_CELLS):
            return False
        self.ratio = ratio
        if self.rounds > 1 or ratio < 8:
            self.fineness *= min(16.0, max(2.0, math.sqrt(ratio)))
        if not self.closed:
            # Discretisation errs by the square of a cell's width.
            self.cells = min(_MOST_CELLS, math.ceil(self.cells * min(8.0, max(1.5, math.sqrt(2 * ratio)))))
        return True


def bound_delta(parts: Parts, direction: Direction, epsilon: Fraction, width: float, floor: Fraction) -> Bounds:
    """Bound δ at ε, until the interval is as narrow as an ε of that width would be, or below `floor`."""
    if not parts:
        return Bounds(Fraction(0), Fraction(0))
    best, effort = Bounds(Fraction(0), Fraction(1)), _Effort(parts)
    log_delta: float | None = None
    while True:
        composition = _composition(parts, direction, effort.cells)
        most = composition.most(composition.upper)
        if most is not None and epsilon >= most:
            return composition.infinite
        y = float_down(epsilon)
        tilt, size = composition.cumulants.tilt(y)
        curve = _curve(composition, Aim(y, size - 3 if log_delta is None else log_delta, width), tilt, effort.fineness)
        if curve is None:
            return best
        best = Bounds(max(best.lower, curve.at(float_up(epsilon)).lower), min(best.upper, curve.at(y).upper))
        finite = float(best.upper - composition.infinite.lower)
        log_delta = math.log(max(finite, 1e-300))
        wanted = max(finite, 0.0) * max(1e-12, min(tilt * width, 0.01))
        if best.upper <= floor or not effort.more(float(best.upper - best.lower) / wanted if wanted else 0.0):
            return best


def bound_epsilon(parts: Parts, direction: Direction, delta: Fraction, width: float, floor: float) -> Interval:
    """Bound ε at δ: windows aimed at the last estimate, finer until the interval is narrow enough or below `floor`."""
    if not parts:
        return Interval(0.0, 0.0)
    best, effort = Interval(0.0, math.inf), _Effort(parts)
    guess: float | None = None
    while True:
        composition = _composition(parts, direction, effort.cells)
        most, least = composition.most(composition.upper), composition.most(composition.lower)
        if delta < composition.infinite.lower:
            return Interval(math.inf, math.inf)
        if most is not None and delta >= composition.infinite.upper:
            best = Interval(best.lower, min(best.upper, float_up(most)))
        if delta == 0:
            return Interval(max(0.0, float_down(least)) if least is not None else math.inf, best.upper)
        if delta <= composition.infinite.upper:
            return best
        log_delta = _log(delta - composition.infinite.upper)
        if guess is None:
            guess = max(0.0, composition.cumulants.epsilon_above(log_delta))
        # Near the largest loss a window shrinks with the distance to it; there is no need to be nearer than this.
        tilt = min(composition.cumulants.tilt(guess)[0], 2 / width)
        curve = _curve(composition, Aim(guess, log_delta, width), tilt, effort.fineness)
        if curve is None:
            return best
        found = _solve(curve, guess, delta, tilt, width)
        best = Interval(max(best.lower, found.lower), min(best.upper, found.upper))
        if best.upper <= floor or not effort.more((best.upper - best.lower) / width):
            break
        guess = best.upper if math.isfinite(best.upper) else guess
    if (
        best.lower == 0
        and best.upper > width
        and bound_delta(parts, direction, Fraction(0), width, delta).upper <= delta
    ):
        return Interval(0.0, 0.0)  # losses far smaller than the width, which the windows above were too coarse for
    return best


def _solve(curve: _Curve, guess: float, delta: Fraction, tilt: float, width: float) -> Interval:
    """Return certified ends from one curve: points where its upper bound is at most δ, and its lower bound above.

    The search is in floats; what it finds is tried, a little further out each time, and if that fails searched again
    on the certified bounds themselves.
    """
    precision = width / 16
    rooms = [_log(delta - infinite) for infinite in curve.infinite]

    def excess(epsilon: float, end: int) -> float:
        total = curve.at(epsilon)[end]
        value = total - curve.infinite[end]
        distance = _log(value) - rooms[end] if value > 0 else -math.inf
        return max(distance, math.ulp(0.0)) if total > delta else min(distance, 0.0)  # the sign is exact

    def near(epsilon: float, end: int) -> float:
        return curve.guess(epsilon)[end] - rooms[end]

    upper = _bracket(lambda y: near(y, 1), guess, tilt, precision)[1]
    if not any(curve.at(upper := upper + jump * precision).upper <= delta for jump in (0, 1, 4)):
        upper = _bracket(lambda y: excess(y, 1), guess, tilt, precision)[1]
    lower = _bracket(lambda y: near(y, 0), min(guess, upper), tilt, precision)[0]
    if not any(curve.at(lower := max(0.0, lower - jump * precision)).lower > delta for jump in (0, 1, 4)):
        lower = _bracket(lambda y: excess(y, 0), min(guess, upper), tilt, precision)[0]
    return Interval(lower, upper)


def _bracket(falling: Callable[[float], float], start: float, slope: float, precision: float) -> tuple[float, float]:
    """Return points ≥ 0 about as near as `precision`, at the first of which a function is above 0, at the second not.

    Where there is no first point it is 0; where no second was found it is infinite.
    """
    low, high = (0.0, math.nan), (math.inf, math.nan)
    found = False
    point, jump = start, precision
    for attempt in range(80):
        value = falling(point)
        if value > 0:
            low, found = (point, value), True
        else:
            high = (point, value)
        gap = high[0] - low[0]
        if gap <= precision or (not found and point == 0):
            break
        step = abs(value) / slope + precision / 2 if math.isfinite(value) else 0.0
        jump *= 2
        if not found:
            point = max(0.0, point - max(step, jump))
        elif gap == math.inf:
            point += max(step, jump / 64)
        else:
            share = low[1] / (low[1] - high[1]) if attempt % 3 and math.isfinite(high[1]) else 0.5
            point = low[0] + min(max(share * gap, 0.4 * precision), gap - 0.4 * precision)
    return low[0], high[0]


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)
