"""Rényi divergences of mechanisms on a Poisson sample, rounded up, at all orders at once.

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

from lapwing.exact.bounds import dyadic_up
from lapwing.exact.elementary import EXP_ERROR, EXPM1_ERROR, LOG1P_ERROR, exp, expm1, log1p
from lapwing.exact.floats import float_up
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discs import UNIT
from lapwing.privacy.loss_laws import FloatArray, LossLaw, log_moment_up
from lapwing.privacy.pairs import Direction, GaussianPair
from lapwing.privacy.sampled_gaussian import MOST_RATE, ends, losses_on, quadrature_error, steepness, step_for

_DIRECTIONS: Final[tuple[Direction, ...]] = ("remove", "add")
_BITS = 64
_CELLS = 1024
_DIGITS = 60.0
_LARGEST: Final = 1000.0
"""Beyond this α·μ a sample is counted as the whole."""

_LARGEST_EXPONENT = 600.0
_STEEPEST = 4096.0
_GROUPS = (4.0, 32.0, 256.0, math.inf)


def divergences_up(pair: SubsampledPair, orders: Sequence[Fraction], whole: Sequence[Fraction]) -> list[Fraction]:
    """Return the divergence at orders α > 1 of a mechanism on a Poisson sample, by its pair.

    It is at most the mechanism's own: E w^α is convex in the sample's rate, and 1 at the rate 0.

    Guarantee: for neighbours that differ by one unit added or removed, in both directions.
    Args: whole: the divergences without the sample.
    Source: for Gaussian noise, Mironov, Talwar and Zhang 2019 (Rényi Differential Privacy of the Sampled Gaussian
        Mechanism), Section 3, at whole orders.
    """
    tilts = [float_up(order - 1) for order in orders]
    if isinstance(pair.pair, GaussianPair):
        logs: Sequence[float | Fraction] = _gaussian(pair.pair.mu_squared, pair.rate, np.array(tilts))
    else:
        laws = [pair.law(direction, "upper", _CELLS) for direction in _DIRECTIONS]
        logs = [max(_log_moment(law, tilt) for law in laws) for tilt in tilts]
    return [_divergence(log, tilt, most) for log, tilt, most in zip(logs, tilts, whole, strict=True)]


def _divergence(log_moment: float | Fraction, tilt: float, most: Fraction) -> Fraction:
    """Return log M over the tilt, which was rounded up, as a divergence does not fall with its order."""
    if isinstance(log_moment, float) and not math.isfinite(log_moment):
        return most
    return min(most, dyadic_up(max(Fraction(0), Fraction(log_moment) / Fraction(tilt)), _BITS))


def _log_moment(law: LossLaw, tilt: float) -> float | Fraction:
    """Return an upper bound on log M, which is at most the tilt times the largest loss."""
    most = math.inf if law.most is None else law.most * Fraction(tilt)
    if tilt > _STEEPEST:
        return most
    try:
        return min(most, log_moment_up(((law, 1),), tilt))
    except ArithmeticError:
        return most


def _gaussian(mu_squared: Fraction, rate: Fraction, tilts: FloatArray) -> list[float]:
    """Return upper bounds on log M in either direction, infinite where there are none; group by group of tilts."""
    logs = np.full(len(tilts), math.inf)
    lowest, limit = 0.0, _LARGEST / math.sqrt(mu_squared)
    for most in _GROUPS if rate <= MOST_RATE else ():
        chosen = np.flatnonzero((tilts > lowest) & (tilts <= most) & (tilts < limit))
        if len(chosen):
            both = (_log_moments(mu_squared, rate, powers) for powers in (tilts[chosen] + 1, -tilts[chosen]))
            logs[chosen] = np.maximum(*both)
        lowest = most
    return [float(log) for log in logs]


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
        _by_excess(k, raised, raising, y, logs, slopes, share, 0.98 * step.h * (last - mu)),
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
    k: FloatArray,
    raised: FloatArray,
    raising: FloatArray,
    y: FloatArray,
    logs: FloatArray,
    slopes: tuple[float, float],
    share: float,
    shifted_slope: float,
) -> FloatArray:
    """Bound log E w^κ by the sum of w^κ − 1 − κ(w − 1) over points, where the powers can be written out.

    Beyond the ends this is at most w^κ + |κ|(1 + w), where w ≤ 1 on the left, and φ and φw fall on the right by at
    least `last` and `last` − μ per x. On the shifted lines of the quadrature 1 and w have no more than w^κ has there
    over M: 2B of each.
    """
    inside = np.minimum(raised, _LARGEST_EXPONENT)
    grown = expm1(inside)
    linear = k * y
    excess = grown - linear
    errors = (grown + 1) * 1.02 * raising + (EXPM1_ERROR + UNIT) * np.abs(grown) + 16 * UNIT * np.abs(linear)
    weights = exp(logs) * (1 + 1e-12)  # beyond an exponent of −700 they are nothing beside the last summand
    sizes = weights * (np.maximum(excess, 0.0) + errors)
    k = np.abs(k[:, 0])
    total = sizes.sum(axis=1) * (1 + (sizes.shape[1] + 8) * UNIT)
    total += weights[0] * (grown[:, 0] + 1 + 2 * k) / slopes[0]
    total += weights[-1] * ((grown[:, -1] + 1 + k) / slopes[1] + k * (1 + y[-1]) / shifted_slope)
    total += 1.02 * share * (2 + total + 2 * k) + 1e-40
    return np.where((raised <= _LARGEST_EXPONENT).all(axis=1), log1p(total) * (1 + 2 * LOG1P_ERROR), math.inf)
