"""A (μ, δ) that is worse than a list fixed in advance: so that a ledger in which answers decide may hold the list.

A list's curve H(x), x = e^ε, is that of its loss distribution, in each direction. The pair
((1 − δ)·N(μ, 1) + δ·A, (1 − δ)·N(0, 1) + δ·B), A and B apart from all else, has the curve G = δ + (1 − δ)·H_μ, in both
directions. If H ≤ G for all x ≥ 0 in both, the list is a post-processing of that pair (Blackwell 1951; Dong, Roth and
Su 2022, Section 2): it is (μ, δ) in the sense of `approximate`. It adds up as such with what is asked before, between
and after its uses: the list is also an interactive post-processing of one draw from the pair, however its uses depend
on answers (Vadhan and Zhang 2023, Concurrent Composition Theorems for Differential Privacy).

**From 1 on.** A curve and that of the reverse pair have H(x) = 1 − x + x·H'(1/x), and G is its own reverse. So H ≤ G
below 1 in one direction is H' ≤ G above 1 in the other: it suffices to compare both for x ≥ 1.

**Between points.** H is convex, so between two points it is at most the chord of upper bounds there; the larger of two
convex functions is convex, so one chord serves both directions. G is convex, so it is at least its tangents at the two
points. If the chord is at most the left tangent at the left point and in the middle, and at most the right one in the
middle and at the right point, it is so everywhere between, as all are straight. From where H ≤ δ on, G is at least δ.

**Which δ.** This certifies (μ, δ) for each δ. `best_gaussian_above` chooses a δ from the list. The list is public, so
the choice costs nothing. It compares all shares in floating point. If that is wrong, the chosen share is a worse one;
its bound is certified all the same.

**Other shares.** Two shares f < F of a total D have the least μ(f) and μ(F). G grows with δ, so that μ(F) ≤ μ(f). So
at F the least ε is at most ε of μ(f)-GDP, read at (D − F)/(1 − F). At f it is read at (D − f)/(1 − f). That is at most
c = (D − f)/(D − F) times as much.

Let t = ε/μ − μ/2, and let R(t) = Φ(−t)/φ(t) be Mills' ratio. The δ of μ-GDP at ε is φ(t)·(R(t) − R(t + μ)). So
dε/d(−ln δ) = R(t)/R(t + μ) − 1. The derivative of 1/R is at most 1 (Sampford 1953). So this is at most μ·R(t), which
falls with t. Hence ε at F is at most ln c · μ·R(t) above ε at f.

For shares f below D/64, take F = D/64, so that c ≤ 64/63. They spare at most 1.6 % of μ·R(t), where ε = μ·(t + μ/2).
From t = 3 on that is less than 0.2 % of ε. Between neighbours among the compared shares c is at most 2, and at most
33/32 up to one half.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, fixed_point, normal_cdf_ball
from lapwing.privacy.additive import GaussianDP
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.approximate import ApproximateGaussianDP
from lapwing.privacy.certified_curve import epsilon_above
from lapwing.privacy.loss_distribution import LossDistribution
from lapwing.privacy.search import smallest

CELLS = 256
"""Points at which the curve of a list is looked at: more give a tighter bound, any number a sound one."""
_SHARP = 4
_BITS = 120
_FINEST, _DOUBLINGS = Fraction(1, 1 << 60), 80
_DIGITS = 12
_SHARES = 64
_LARGE = [1 - Fraction(1, 1 << n) for n in range(12, 4, -1)]
_ROUGH = 64


class _Point(NamedTuple):
    """An ε, and an upper bound on the list's δ there in both directions."""

    epsilon: Fraction
    delta: Fraction


def gaussian_above(loss: LossDistribution, delta: Number) -> ApproximateGaussianDP:
    """Return about the least (μ, δ) that is worse than a list, for a δ above 0.

    Guarantee:
        For the neighbours of the list's pairs. It is valid for the list as one mechanism, if the list was fixed before
        its first use. You may mix its uses with others in any way.

    Args:
        loss: Of the list.
        delta: The total chance of failure, above 0 and below 1: the larger, the smaller μ. If the list itself gives
            everything away with some probability, this counts towards it.

    Raises:
        InvalidParameter: For a delta outside this range, or not above the list's chance of giving away all. For a list
            that loses more than a μ of about a thousand.
    """
    return _least_above(loss, probability(delta, "delta"))


def best_gaussian_above(loss: LossDistribution, delta: Number) -> ApproximateGaussianDP:
    """Return a (μ, δ′) that is worse than a list, with the share δ′ of `delta` that gives about the least ε.

    A small share makes μ large; a large one leaves μ little of `delta` to be read at. The shares are n/64, and some
    from there up to 4095/4096. The module `lapwing.privacy.dominating_gaussian` bounds how much other shares spare.

    Guarantee:
        The same guarantee that `gaussian_above` gives for that share.

    Args:
        loss: Of the list.
        delta: The total δ, above 0 and below 1. `to_epsilon(delta=delta)` of the result is that least ε.

    Raises:
        InvalidParameter: If `gaussian_above` refuses every one of these shares.
    """
    return best_above(loss, probability(delta, "delta"))


@lru_cache(maxsize=64)
def best_above(loss: LossDistribution, total: Fraction) -> ApproximateGaussianDP:
    """Return what `best_gaussian_above` does, which remembers it."""
    points = _rough_points(loss, total)
    epsilons = {
        share: rough_epsilon(_rough_mu(points, float(share)), float((total - share) / (1 - share)))
        for share in (total * part for part in (*(Fraction(n, _SHARES) for n in range(1, _SHARES)), *_LARGE))
        if share >= points[-1].delta
    }
    return _least_above(loss, min(epsilons, key=epsilons.__getitem__))


def _rough_points(loss: LossDistribution, total: Fraction) -> list[_Point]:
    """Return where the list's curve is, roughly, from large δ to small; up to the least δ that has a finite ε."""
    above = (Fraction(4) ** n for n in range(1, 40))
    among = (Fraction(n, _SHARES) for n in (1, 2, *range(4, _SHARES, 6), _SHARES))
    deltas = sorted((total * factor for factor in (*above, *among)), reverse=True)
    found = _up_to_infinity(loss, [delta for delta in deltas if delta < 1])
    if found and found[-1].delta == total:  # the list gives away nearly all of it
        found += _up_to_infinity(loss, [total * part for part in _LARGE])
    if not found or found[-1].delta >= total:
        raise InvalidParameter(
            f"delta is {short(total)}, and at no share of that the list has a finite epsilon; give a larger delta."
        )
    return found


def _up_to_infinity(loss: LossDistribution, deltas: Sequence[Fraction]) -> list[_Point]:
    """Return the points at these δ, up to the first that has no finite ε."""
    found: list[_Point] = []
    for delta in deltas:
        about = max(epsilon_above(loss.parts, direction, delta) for direction in loss.directions())
        width = loss.width or max(Fraction(about) / _ROUGH, _FINEST)
        end = replace(loss, width=width).to_epsilon(delta).upper
        if math.isinf(end):
            break
        found.append(_Point(Fraction(end), delta))
    return found


def _rough_mu(points: Sequence[_Point], failure: float) -> float:
    """Return about the least μ with which (μ, failure) is above these points."""
    room = [(float(at), (float(delta) - failure) / (1 - failure)) for at, delta in points if delta > failure]
    return _halved(lambda mu: all(_rough_delta(mu, at) >= wanted for at, wanted in room), 1e-9, 1e4) if room else 0.0


def rough_epsilon(mu: float, delta: float) -> float:
    """Return about the ε of μ-GDP at a δ."""
    return _halved(lambda epsilon: _rough_delta(mu, epsilon) <= delta, 1e-12, 1e9) if mu else 0.0


def _halved(test: Callable[[float], bool], low: float, high: float) -> float:
    """Return about the least number that passes a test which is false below some number and true above."""
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if test(middle) else (middle, high)
    return high


def _rough_delta(mu: float, epsilon: float) -> float:
    """Return about Φ(b) − e^ε·Φ(−a) for b = μ/2 − ε/μ and a = μ/2 + ε/μ, where e^ε = φ(b)/φ(a)."""
    a, b = mu / 2 + epsilon / mu, mu / 2 - epsilon / mu
    root = math.sqrt(2)
    tail = math.exp(a * a / 2) * math.erfc(a / root) / 2 if a < 20 else 1 / (math.sqrt(math.tau) * (a + 1 / a))
    return math.erfc(-b / root) / 2 - math.exp(-b * b / 2) * tail


# A list is looked at when noise is chosen for it, when its price is shown and when it is charged.
@lru_cache(maxsize=64)
def _least_above(loss: LossDistribution, failure: Fraction) -> ApproximateGaussianDP:
    end = loss.to_epsilon(failure).upper
    if end == float("inf"):
        raise InvalidParameter(
            f"delta is {short(failure)}, and at that the list has no finite epsilon; give a larger delta."
        )
    if end == 0:
        return ApproximateGaussianDP.of(GaussianDP(0), failure)
    epsilons = [Fraction(end) * n / CELLS for n in range(CELLS)]
    # Finer bounds than a fraction of the distance between points would change nothing, and can take minutes.
    near = loss if loss.width else replace(loss, width=Fraction(end) / (_SHARP * CELLS))
    points = [_Point(at, Fraction(found.upper)) for at, found in zip(epsilons, near.to_deltas(epsilons), strict=True)]
    points.append(_Point(Fraction(end), failure))
    if not is_above(points, failure, _FINEST * (1 << _DOUBLINGS)):
        raise InvalidParameter("The list loses too much for a Gaussian loss of use; list less, or take more noise.")
    exponent = smallest(lambda n: is_above(points, failure, _FINEST * (1 << n)), guess=_DOUBLINGS // 2 + 20)
    unit = _FINEST * (1 << exponent) / (1 << _DIGITS)
    mu_squared = unit * smallest(lambda n: is_above(points, failure, n * unit), guess=1 << (_DIGITS - 1), least=1)
    return ApproximateGaussianDP.of(GaussianDP.from_mu_squared(mu_squared), failure)


def is_above(points: Sequence[_Point], delta: Fraction, mu_squared: Fraction) -> bool:
    """Tell whether (μ, δ) is certainly above all curves that are convex in e^ε and at most these at these points."""
    rows = [(*left, *right, mu_squared, delta) for left, right in pairwise(points)]
    try:
        return all(fixed_point(_room, *row, bits=_BITS).lower >= 0 for row in rows)  # up to the first that is not
    except ArithmeticError:  # numbers too large to say
        return False


def _room(e0: Ball, u0: Ball, e1: Ball, u1: Ball, mu_squared: Ball, delta: Ball) -> Ball:
    """Return the least by which the chord is below the tangents, at both points and in the middle."""
    mu = mu_squared.sqrt()

    def curve(epsilon: Ball) -> tuple[Ball, Ball]:
        below = (1 - delta) * normal_cdf_ball(-mu / 2 - epsilon / mu)
        return delta + (1 - delta) * normal_cdf_ball(mu / 2 - epsilon / mu) - epsilon.exp() * below, -below

    (g0, s0), (g1, s1) = curve(e0), curve(e1)
    half, middle = (e1.exp() - e0.exp()) / 2, (u0 + u1) / 2
    return (g0 - u0).min(g1 - u1).min(g0 + s0 * half - middle).min(g1 - s1 * half - middle)
