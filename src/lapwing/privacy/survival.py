"""The law of the privacy loss itself, P(L > t) for L ~ P, between certified bounds on its hockey-stick curve.

Let H(x) = ∫ max(0, dP − x·dQ) be the curve at x = e^ε, δ(ε) = H(e^ε), of a pair with the loss L = log(dP/dQ), infinite
where Q is zero. As dQ = e^(−L)·dP wherever P lives, H(x) = E max(0, 1 − x·e^(−L)) under P.

**Ramps.** For 0 < u < v let g(L) = (v·max(0, 1 − u·e^(−L)) − u·max(0, 1 − v·e^(−L)))/(v − u). It is 0 for
L ≤ log u; v·(1 − u·e^(−L))/(v − u) for log u ≤ L ≤ log v, which rises from 0 to 1; and 1 for L ≥ log v, also for
L = ∞. So 1{L ≥ log v} ≤ g(L) ≤ 1{L > log u}, and taking means under P,

  P(L ≥ log v) ≤ (v·H(u) − u·H(v))/(v − u) ≤ P(L > log u).

The middle is where the secant of the convex function H through u and v meets the axis x = 0. As v falls to u it becomes
the right tangent, which says P(L > ε) = δ(ε) − δ'(ε), with δ' the slope to the right.

**Bounds.** With v = u·e^h and q = e^(−h) the middle is R(q) = (δ(a) − q·δ(a + h))/(1 − q), a = log u. Lower bounds on
δ(a) and upper ones on δ(a + h) bound it from below, the other ends from above. For numbers A and B in the place of
both δ, the slope of (A − q·B)/(1 − q) in q is (A − B)/(1 − q)², of one sign, so for q known between two ends it is
between its values there. Hence for any h > 0

  P(L > t) ≥ R from a = t, with lower δ(a) and upper δ(a + h);  P(L ≥ t) ≤ R from a = t − h, with upper and lower.

A ramp wider than all, h → ∞, leaves δ(t) ≤ P(L > t) ≤ 1. A narrow one is nearer to the law, by about h times its
density, and divides the width of the bounds on δ by h; so both ends take the best of several. Where a step of the law
is between t − h and t + h the ends stay apart, and an atom at t itself counts in the upper end only.
"""

from fractions import Fraction

from lapwing.exact.bounds import Enclosure, enclose
from lapwing.exact.floats import float_down, float_up
from lapwing.privacy.certified_curve import Curve, Parts, bound_delta, largest_loss
from lapwing.privacy.pairs import Direction
from lapwing.privacy.windows import CurveCache

_WIDEST = 1.0
_NARROWER = 8
_NARROWEST = 2.0**-40
_LEAST_WIDTH = 1e-6


def bound_survival(parts: Parts, direction: Direction, loss: Fraction, width: float, kept: CurveCache) -> Enclosure:
    """Bound P(L > loss) from below, and P(L ≥ loss) from above, about as closely as moving the loss by `width` does.

    Ramps as wide as `width` need bounds on δ that are narrower by as much again.

    Args:
        loss: Any number.
        kept: The curves of other losses, to be asked first and added to.
    """
    if not parts:
        return Enclosure(Fraction(loss < 0), Fraction(loss <= 0))
    most, infinite = largest_loss(parts, direction, kept.cells)
    if most is not None and loss > most:
        # Nothing finite is above the largest loss. If that is of a law above the pair's, a ramp up from it says so.
        if all(pair.closed for pair, _ in parts):
            return infinite
        return Enclosure(infinite.lower, min(Fraction(1), _ramp(*infinite[::-1], loss - most).upper))
    near = loss if most is None else min(loss, most - Fraction(width))
    bound_delta(parts, direction, near, max(_LEAST_WIDTH, width * width), Fraction(0), kept)
    if not kept.curves:  # no window is fine enough
        return Enclosure(infinite.lower, Fraction(1))
    return _between_ramps(kept.curves[-1], loss)


def _between_ramps(curve: Curve, loss: Fraction) -> Enclosure:
    """Take the best of ever narrower ramps, until what the curve leaves open is too much for a narrower one."""
    start, stop = float_up(loss), float_down(loss)
    above, below = curve.below(start), curve.below(stop)
    open_at_start = curve.above(start) - above
    lower, upper, h = max(Fraction(0), above), Fraction(1), _WIDEST
    while h >= _NARROWEST:
        end, begin = start + h, stop - h
        if end > start:
            lower = max(lower, _ramp(above, curve.above(end), Fraction(end) - Fraction(start)).lower)
        if begin < stop:
            upper = min(upper, _ramp(curve.above(begin), below, Fraction(stop) - Fraction(begin)).upper)
        if open_at_start > (upper - lower) * Fraction(h):
            break
        h /= _NARROWER
    return Enclosure(lower, upper)


def _ramp(first: Fraction, second: Fraction, h: Fraction) -> Enclosure:
    """Bound (first − q·second)/(1 − q) for q = e^(−h)."""
    ends = [(first - q * second) / (1 - q) for q in enclose(lambda h: (-h).exp(), h)]
    return Enclosure(min(ends), max(ends))
