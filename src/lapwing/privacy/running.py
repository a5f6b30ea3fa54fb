"""What a list of mechanisms loses so far, after every charge: the interval in ε of a list that grows, kept up to date.

Theory of operation. Bounding a composition anew costs a choice of window and a product over the whole list. But the
bounds of `inversion` hold on any window, and each of their parts is a product over the laws (`Inversion.times`). So a
`RunningLoss` keeps the curve that showed its interval, multiplies in what is charged, and looks on it for the new ends.
Only when these are further apart than wanted does it bound the whole list anew, which brings a window that suits it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, exact, non_negative
from lapwing.privacy.certified_curve import Curve, Interval, Parts, bound_epsilon
from lapwing.privacy.loss_distribution import WIDTH, LossDistribution, compose
from lapwing.privacy.pairs import Direction, Pair

IF_FIXED: Final = "only if the list was fixed before the first result"

_MARGIN = 8  # ends are tried this share of the width away from where they seem to be
_STEPS = 8
_PATIENCE = 1.25
_FINER = 2

_Curves = tuple[tuple[Direction, Curve], ...]


@final
@dataclass(frozen=True, slots=True)
class RunningLoss:
    """A list of charges so far, and the ε that they lose together at a δ; made by `nothing_yet`, grown by `charge`.

    Guarantee:
        The true ε of the pairs' composition at `delta` lies in `epsilon`, as for `LossDistribution.to_epsilon`, if the
        list was fixed in advance (`holds` says so). A list chosen along the way needs a filter.

    Proof. `epsilon` is either an interval of `bound_epsilon`, or has both ends from `_between`. There the upper end is
    shown to have δ(ε) ≤ delta in each direction. The lower end has δ(ε) > delta in one, or is 0. The curves asked are
    certified for the whole list by induction: the first came from `bound_epsilon`, and `Curve.times` keeps that. ∎

    Args:
        charged: In order.
        reach: How wide an interval may become before the whole list is bounded anew.
        curves: Per direction, what bounds this very list, if anything does.
    """

    delta: Fraction
    width: Fraction
    charged: Parts
    epsilon: Interval
    reach: float
    curves: _Curves

    @property
    def holds(self) -> str:
        """When the interval is true of what was charged."""
        return IF_FIXED

    def loss(self) -> LossDistribution:
        """Return the loss of all charges together."""
        return compose(self.charged, width=self.width)

    def charge(self, pair: Pair, count: int = 1) -> "RunningLoss":
        """Return the list with a pair more, taken a number of times.

        Raises:
            InvalidParameter: For a count below 1, or beyond what `compose` takes.
        """
        compose([(pair, count)])
        charged = (*self.charged, (pair, count))
        curves = self._grown(pair, count)
        found = _between(curves, self.delta, self.epsilon.upper, float(self.width)) if curves else None
        if found is None or found.upper - found.lower > self.reach:
            return _anew(self.delta, self.width, charged)
        return RunningLoss(self.delta, self.width, charged, found, self.reach, curves)

    def _grown(self, pair: Pair, count: int) -> _Curves:
        """Return the curves with a pair more, none where one is missing."""
        if not pair.symmetric and len(self.curves) == 1:
            return ()
        grown = [(direction, curve.times(((pair, count),), direction)) for direction, curve in self.curves]
        kept = tuple((direction, curve) for direction, curve in grown if curve is not None)
        return kept if len(kept) == len(grown) else ()


def nothing_yet(delta: Number, *, width: Number = WIDTH) -> RunningLoss:
    """Return the empty list.

    Args:
        delta: At least 0 and below 1.
        width: The wanted width of intervals in ε, from 10⁻⁹ to 1.

    Raises:
        InvalidParameter: For other values.
    """
    target = non_negative(delta, "delta")
    if target >= 1:
        raise InvalidParameter(f"delta is {short(target)}; it must be at least 0 and below 1.")
    compose([], width=width)
    return RunningLoss(target, exact(width, "width"), (), Interval(0.0, 0.0), 0.0, ())


def _anew(delta: Fraction, width: Fraction, charged: Parts) -> RunningLoss:
    """Bound the whole list on windows made for it."""
    loss = compose(charged, width=width)
    lower = upper = 0.0
    curves: list[tuple[Direction, Curve]] = []
    for direction in loss.directions():
        (least, most), curve = bound_epsilon(loss.parts, direction, delta, float(width) / _FINER, lasting=True)
        lower, upper = max(lower, least), max(upper, most)
        if curve is not None:
            curves.append((direction, curve))
    complete = tuple(curves) if len(curves) == len(loss.directions()) else ()
    # Where even windows made for the list cannot show what is wanted, it is not asked of older ones.
    reach = max(float(width), _PATIENCE * (upper - lower)) if math.isfinite(upper) else float(width)
    return RunningLoss(delta, width, charged, Interval(lower, upper), reach, complete)


def _between(curves: _Curves, delta: Fraction, start: float, width: float) -> Interval | None:
    """Return certified ends near where the curves seem to meet delta, or None if one fails to be shown."""
    lower = upper = 0.0
    for _, curve in curves:
        most = _root(curve, 1, delta, start, width / 64)
        least = _root(curve, 0, delta, start if most is None else most, width / 64)
        if most is None or least is None:
            return None
        upper, least = max(upper, most + width / _MARGIN), least - width / _MARGIN
        if curve.above(upper) > delta or (least > lower and curve.below(least) <= delta):
            return None
        lower = max(lower, least)
    return Interval(lower, upper)


def _root(curve: Curve, end: int, delta: Fraction, start: float, precision: float) -> float | None:
    """Return about where a bound on δ is delta, by secants of its logarithm; a guess, or None."""
    rest = delta - curve.infinite[end]
    if rest <= 0:
        return None
    goal = math.log(rest.numerator) - math.log(rest.denominator)
    point, slope, step = start, -curve.tilt, 0.0
    before = math.nan
    for _ in range(_STEPS):
        value = curve.guess(point)[end] - goal
        if not math.isfinite(value):
            return None
        if step:
            slope = min((value - before) / step, -precision)
        step, before = -value / slope, value
        point += step
        if abs(step) <= precision:
            return point
    return None
