"""Rényi divergences of mechanisms on a secret sample, by their pairs, rounded up, at all orders at once.

Of the pair ((1 − q)Q + qP, Q) with the ratio w, the divergence of order α is log E w^α/(α − 1), and of the reverse pair
log E w^(1−α)/(α − 1), E under Q: that is log M(α − 1)/(α − 1) for the law of either direction (`sampled_gaussian`). The
larger of both is returned. No neighbours are worse than the pair (`SubsampledPair`), as E w^α and E w^(1−α) are means
of hockey-stick curves with weights ≥ 0, so that they rise with the curves.

Where M is near 1 what counts is M − 1 = E (w^κ − 1 − κ(w − 1)), as E w = 1. All of it is ≥ 0 for κ ≥ 1 or κ ≤ 0, by
Bernoulli's inequality, so that nothing cancels between points. Both sums are taken, and the smaller bound counts.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from lapwing.exact.elementary import EXP_ERROR, EXPM1_ERROR, LOG1P_ERROR, exp, expm1, log1p
from lapwing.exact.floats import float_up
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair
from lapwing.privacy.discs import UNIT
from lapwing.privacy.loss_laws import FloatArray, LossLaw, log_moment_up
from lapwing.privacy.pairs import Direction, GaussianPair
from lapwing.privacy.sampled_curves import chord
from lapwing.privacy.sampled_gaussian import MOST_RATE, ends, losses_on, quadrature_error, steepness, step_for
from lapwing.privacy.subset_divergence import subset_log_moments_up
from lapwing.privacy.subset_pair import SubsetPair

_DIRECTIONS: Final[tuple[Direction, ...]] = ("remove", "add")
_CELLS = 1024
_DIGITS = 60.0
_LARGEST: Final = 1000.0
"""Beyond this α·μ a sample is counted as the whole."""

_LARGEST_EXPONENT = 600.0
_STEEPEST = 4096.0
_GROUPS = (4.0, 32.0, 256.0, math.inf)
_SHORT: Final = 1 / 16
"""Below this |y| and |κy| the excess is a series: its powers would cancel to first order where the sample is rare."""

_SUMMANDS = 14


def sampled_log_moments_up(pair: SubsampledPair | SubsetPair, orders: Sequence[Fraction]) -> list[Fraction | None]:
    """Return upper bounds on (α − 1) times the divergence, at orders α > 1, of a mechanism on a sample, by its pair.

    There is none where it is beyond what is computed, and at no order if the pair's law is only known up to a chance of
    an infinite loss, which no divergence forgives.

    Guarantee:
        For neighbours that differ by one unit added or removed, or for a subset replaced, in both directions.

    Source:
        For Gaussian noise on a Poisson sample, Mironov, Talwar and Zhang 2019 (Rényi Differential Privacy of the
        Sampled Gaussian Mechanism), Section 3, at whole orders.
    """
    tilts = [float_up(order - 1) for order in orders]
    if isinstance(pair.pair, GaussianPair):
        both = _gaussian(pair.pair.mu_squared, pair.rate, np.array(tilts))
        if isinstance(pair, SubsetPair):
            return subset_log_moments_up(pair.pair.mu_squared, pair.rate, tilts, both)
        return [Fraction(log) if math.isfinite(log := max(logs)) else None for logs in both]
    if isinstance(pair, SubsampledPair) and isinstance(pair.pair, DiscreteGaussianPair):
        return _discrete_gaussian(pair.pair.sensitivity**2 / pair.pair.variance, pair.rate, orders)
    laws = [pair.law(direction, "upper", _CELLS) for direction in _DIRECTIONS]
    if any(law.infinite for law in laws):
        return [None] * len(tilts)
    return [max(_log_moment(law, tilt) for law in laws) for tilt in tilts]


def _log_moment(law: LossLaw, tilt: float) -> Fraction:
    """Return an upper bound on log M of a law with a largest loss, which is at most the tilt times that."""
    if law.most is None:
        raise ArithmeticError("a law without a largest loss")
    most = law.most * Fraction(tilt)
    if tilt > _STEEPEST:
        return most
    try:
        return min(most, log_moment_up(((law, 1),), tilt))
    except ArithmeticError:
        return most


def _gaussian(mu_squared: Fraction, rate: Fraction, tilts: FloatArray) -> list[tuple[float, float]]:
    """Return upper bounds on log M in each direction, infinite where there are none; group by group of tilts."""
    logs = np.full((2, len(tilts)), math.inf)
    lowest, limit = 0.0, _LARGEST / math.sqrt(mu_squared)
    for most in _GROUPS if rate <= MOST_RATE else ():
        chosen = np.flatnonzero((tilts > lowest) & (tilts <= most) & (tilts < limit))
        if len(chosen):
            for way, powers in zip(logs, (tilts[chosen] + 1, -tilts[chosen]), strict=True):
                way[chosen] = _log_moments(mu_squared, rate, powers)
        lowest = most
    return [(float(leaves), float(joins)) for leaves, joins in logs.T]


def _discrete_gaussian(mu_squared: Fraction, rate: Fraction, orders: Sequence[Fraction]) -> list[Fraction | None]:
    """Return what holds for discrete Gaussian noise: as for the continuous at whole orders, and chords between.

    E r^l is the same under both laws Q for a whole l: a sum over the integers does not change as it is shifted by l
    times the sensitivity. So E w^α is. And E w^(1−α) ≤ E w^α for a pair that is the same in both directions, where the
    mean of f(r) is half that of f(r) + r·f(1/r): let v = 1 − q + q/r be the w of 1/r, and r ≥ 1. With b = α − ½ what is
    claimed, w^α − w^(1−α) ≥ r(v^(1−α) − v^α), is √w·sinh(b·log w) ≥ r·√v·sinh(b·log 1/v). At α = 1 both sides are
    q(r − 1). As w·v = 1 + q(1 − q)(r + 1/r − 2) ≥ 1, log w ≥ log 1/v, so the quotient of both sinh rises with b.
    """
    ends = sorted({whole for order in orders for whole in (math.floor(order), math.ceil(order)) if whole >= 2})
    logs = _gaussian(mu_squared, rate, np.array(ends, dtype=np.float64) - 1)
    known = [
        (Fraction(end), Fraction(leaves)) for end, (leaves, _) in zip(ends, logs, strict=True) if leaves < math.inf
    ]
    return [chord(known, order) if known and order <= known[-1][0] else None for order in orders]


def _log_moments(mu_squared: Fraction, rate: Fraction, powers: FloatArray) -> FloatArray:
    """Return upper bounds on log E w^κ, for powers κ > 1 or for κ < 0, of like size."""
    mu, q = math.sqrt(mu_squared), float(rate)
    largest = float(powers[np.argmax(np.abs(powers))])
    left, right = ends(mu, q, largest)
    step = step_for(mu, largest, 0.0, _DIGITS)
    # What holds for the largest power of the quadrature's error, and of the slopes at both ends, holds for all.
    share = quadrature_error(mu, largest, 0.0, step)
    x, y, losses, errors = losses_on(mu_squared, rate, left, right + mu, step.h)
    first, last = float(x[0]), float(x[-1])
    before, after = steepness(mu, q, largest, first, last)
    slopes = 0.98 * step.h * before, 0.98 * step.h * min(after, last)
    constant = math.log(step.h) - math.log(2 * math.pi) / 2
    k = powers[:, None]
    raised = k * losses
    raising = 1.01 * np.abs(k) * errors + 2 * UNIT * np.abs(raised)
    logs = constant - x * x / 2
    return np.minimum(
        _by_sizes(raised, raising, logs, slopes, share),
        _by_excess(q, k, raised, raising, y, errors, logs, slopes, share, 0.98 * step.h * (last - mu)),
    )


def _by_sizes(
    raised: FloatArray, raising: FloatArray, logs: FloatArray, slopes: tuple[float, float], share: float
) -> FloatArray:
    """Bound log E w^κ by its sum over points: the largest term, and the others over it."""
    exponents = raised + logs
    most = exponents.max(axis=1)
    rounding = 8 * UNIT * (np.abs(raised) + np.abs(logs) + 8)
    sizes = exp(exponents - most[:, None]) * (1 + 1.01 * (raising + rounding) + 2 * EXP_ERROR)
    total = sizes.sum(axis=1) * (1 + (sizes.shape[1] + 8) * UNIT) + sizes[:, 0] / slopes[0] + sizes[:, -1] / slopes[1]
    rest = np.maximum(total - 1, 0.0) * (1 + 4 * UNIT) + 4 * UNIT
    return np.asarray(most + 4 * UNIT * np.abs(most) + log1p(rest) * (1 + 2 * LOG1P_ERROR) + 1.01 * share + 2 * UNIT)


def _by_excess(
    q: float,
    k: FloatArray,
    raised: FloatArray,
    raising: FloatArray,
    y: FloatArray,
    loss_errors: FloatArray,
    logs: FloatArray,
    slopes: tuple[float, float],
    share: float,
    shifted_slope: float,
) -> FloatArray:
    """Bound log E w^κ by the sum of w^κ − 1 − κ(w − 1) over points, where the powers can be written out.

    Beyond the ends this is at most w^κ + |κ|(1 + w), where w ≤ 1 on the left, and φ and φw fall on the right by at
    least `last` and `last` − μ per x. As −q < w − 1 ≤ 0 on the left, it is also at most κ(κ − 1)q²/2 times
    max(1, (1 − q)^(κ − 2)) there, by its second derivative. On the shifted lines of the quadrature 1 and w have no more
    than w^κ has there over M: 2B of each.
    """
    inside = np.minimum(raised, _LARGEST_EXPONENT)
    grown = expm1(inside)
    linear = k * y
    excess = np.maximum(grown - linear, 0.0)
    errors = (grown + 1) * 1.02 * raising + (EXPM1_ERROR + UNIT) * np.abs(grown) + 16 * UNIT * np.abs(linear)
    most = _SHORT / np.maximum(np.abs(k), 1.0)
    short, short_errors = _short_excess(k, np.clip(y, -most, most), loss_errors)
    weights = exp(logs) * (1 + 1e-12)  # beyond an exponent of −700 they are nothing beside the last summand
    sizes = weights * np.where(np.abs(y) <= most, short + short_errors, excess + errors)
    k = k[:, 0]
    steepening = np.maximum((k - 2) * math.log1p(-q), 0.0)
    leftmost = 0.51 * k * (k - 1) * q * q * np.exp(np.minimum(steepening, 1.0))
    leftmost = np.where(steepening < 1, leftmost, math.inf)
    k = np.abs(k)
    total = sizes.sum(axis=1) * (1 + (sizes.shape[1] + 8) * UNIT)
    total += weights[0] * np.minimum(grown[:, 0] + 1 + 2 * k, leftmost) / slopes[0]
    total += weights[-1] * ((grown[:, -1] + 1 + k) / slopes[1] + k * (1 + y[-1]) / shifted_slope)
    total += 1.02 * share * (2 + total + 2 * k) + 1e-40
    return np.where((raised <= _LARGEST_EXPONENT).all(axis=1), log1p(total) * (1 + 2 * LOG1P_ERROR), math.inf)


def _short_excess(k: FloatArray, y: FloatArray, loss_errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (1 + y)^κ − 1 − κy by its series and bounds on the errors, where |y| and |κy| are at most 1/16.

    Each summand is at most 1/16 of the one before, as |κ − j| ≤ (j + 1)·max(|κ|, 1). So the whole is above 14/15 of its
    first summand, what is left out after fourteen is below 2u of it, and the roundings of Horner's rule and of the
    first summand are below 30u of it. The rounding of κ itself, by at most u|κ|, moves it by at most 1.7u·κ²y². That of
    y, by at most 1.1 times that of log(1 + y), moves it by |κ((1 + ξ)^(κ − 1) − 1)| per unit, which is at most
    1.3·|κ(κ − 1)ξ| for a ξ between.
    """
    bracket = np.ones_like(k * y)
    for j in range(_SUMMANDS, 1, -1):
        bracket = 1 + (k - j) / (j + 1) * y * bracket
    product = np.abs(k * (k - 1))
    excess = product / 2 * y * y * bracket
    moved = 1.1 * loss_errors
    errors = 40 * UNIT * np.abs(excess) + 2 * UNIT * (k * y) ** 2 + 1.35 * product * (np.abs(y) + moved) * moved
    return excess, errors
