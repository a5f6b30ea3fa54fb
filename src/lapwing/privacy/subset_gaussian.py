"""The loss of Gaussian noise on a subset of fixed size: its moments by quadrature, certified, without cutting anything.

With w = 1 − q + q·e^u and u = μx − μ²/2 as for a Poisson sample (`sampled_gaussian`), the pair of `SubsetPair` has for
x > μ/2, where w > 1, the loss log w with the density w·φ under P, its negative with the density φ, and the rest at 0:
(1 − q)·(1 − 2·Φ(−μ/2)). So M(z) = ∫ w^(z+1)·φ + ∫ w^(−z)·φ over x > μ/2, and the rest.

**Quadrature.** From μ/2 on the line is cut into panels of half-length ℓ ≤ ¼, with μℓ ≤ ¼, each with 20 points of Gauss
and Legendre, whose error is bounded by that of the integrand on an ellipse around the panel, as in `sampled_laplace`:
there |Im x| ≤ 3.94ℓ and Re x is within 4.07ℓ of the middle, |w| lies between cos(½)·w(Re x) > 0.877·w(Re x) and
w(Re x), arg w is at most 3.94ℓμ, times σ = q·e^u/w where that is at most ½ (the proof there has β for 3.94ℓμ), and |φ|
is φ(Re x)·e^((3.94ℓ)²/2). Beyond the last panel, at X, the first integrand falls by at least X − (θ + 1)μ per x, and
the second by X.

**Decay.** The densities over the loss are those of a Poisson sample in both directions, cut off at μ/2. That adds no
maximum, so that their variations, with the jump there, are bounded as those are (`sampled_gaussian`, V).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, NamedTuple, final

import numpy as np

from lapwing.exact.bounds import Ball, enclose, enclose_tightly, normal_cdf_ball
from lapwing.exact.elementary import EXP_ERROR, exp, expm1, log1p
from lapwing.exact.floats import float_down, float_up
from lapwing.privacy.discs import UNIT, up
from lapwing.privacy.loss_laws import FloatArray, Nodes, Transform, decay_of, guessed_scale, least_moment
from lapwing.privacy.quadrature import MOST_POINTS, MOST_WORK, Points, transform_of
from lapwing.privacy.sampled_gaussian import SampledGaussianLaw, losses_at, variation
from lapwing.privacy.sampled_laplace import ELLIPSE, NODES, gauss_rule

MOST_SUBSET_MU_SQUARED: Final = Fraction(64)

_FAR = 9.7
_WIDEST = 0.25
_PHASE = 8.0
_SMALLEST = 2.0**-100
_GRID = 1 << 11


@final
@dataclass(frozen=True, slots=True)
class SubsetGaussianLaw:
    """The loss of N(μ, 1) against N(0, 1) on a subset, the same in both directions.

    Args:
        mu_squared: > 0, at most MOST_SUBSET_MU_SQUARED.
        rate: > 0, at most `sampled_gaussian.MOST_RATE`.
    """

    mu_squared: Fraction
    rate: Fraction
    infinite: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction | None:
        """There is no largest loss."""
        return None

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        mu, q = math.sqrt(self.mu_squared), float(self.rate)
        powers = np.asarray(tilts, dtype=np.float64)[:, None] + 1
        ends = powers * mu + _FAR
        x = mu / 2 + (ends - mu / 2) * (np.arange(_GRID) + 0.5) / _GRID
        u = mu * x - mu**2 / 2
        logs = np.where(u < 30, np.log1p(q * np.expm1(np.minimum(u, 30.0))), u + math.log(q))
        exponents = powers * logs - x**2 / 2
        most = exponents.max(axis=1, keepdims=True).clip(min=0.0)
        sums = np.exp(exponents - most) + np.exp((1 - powers) * logs - x**2 / 2 - most)
        integral = sums.sum(axis=1) * ((ends - mu / 2) / _GRID)[:, 0] / math.sqrt(2 * math.pi)
        return np.asarray(most[:, 0] + np.log(integral + float(_rest(self).upper) * np.exp(-most[:, 0])))

    def transform(self, nodes: Nodes) -> Transform:
        """Return the quadrature's sum."""
        if not self.is_feasible(nodes):
            raise ArithmeticError("too many points")
        return transform_of(partial(self._points, nodes.tilt), nodes, guessed_scale(self, nodes.tilt))

    def is_feasible(self, nodes: Nodes) -> bool:
        """Tell whether a transform on the nodes takes less than about a second."""
        points = 2 * NODES * self._panels(nodes.tilt, nodes.step * nodes.size).number
        return points * nodes.size <= MOST_WORK and points <= MOST_POINTS

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return an upper bound on log |M(tilt + is)/M(tilt)| for all |s| ≥ reach > 0."""
        return decay_of(*_decay(self, tilt), reach)

    def _panels(self, tilt: float, span: float) -> "_Panels":
        """Return panels from μ/2 on, so short that the error of the quadrature is small; `_points` adds the error."""
        mu = math.sqrt(self.mu_squared)
        half = min(_WIDEST, _WIDEST / mu, _PHASE / (mu * (span + tilt + 2)))
        return _Panels(mu / 2, half, math.ceil(((tilt + 1) * mu + _FAR - mu / 2) / (2 * half)))

    def _points(self, tilt: float, span: float, scale: Fraction) -> Points:
        """Return the terms of a sum for |Im z| ≤ span, over e^scale, and what it misses.

        Errors, in units of u = 2⁻⁵³: the first end is within 4 of μ/2, as are all places then, of their size: a shift
        of all panels, which the sum takes for an interval that begins so much later or earlier; with a place's own
        rounding, 8 of x. That moves log w by as much times μσ, and x²/2 by as much times x. A weight's factor has 12.
        """
        mu, power = math.sqrt(self.mu_squared), tilt + 1
        first, half, count = self._panels(tilt, span)
        middles = np.asarray(first + half * (2.0 * np.arange(count) + 1), dtype=np.float64)
        places, shares = gauss_rule()
        x = (middles[:, None] + half * places[None, :]).reshape(-1)
        factors = np.tile(shares * half, count)
        at = losses_at(self.mu_squared, self.rate, x)
        errors = at.errors + 1.01 * 8 * UNIT * np.abs(x) * mu
        shift = float(enclose(lambda s: s + (2 * Ball.pi()).log() / 2, scale, bits=96).upper)
        sides = [(power, 1.0), (-tilt, -1.0)]
        losses, weights, missing = [np.zeros(1)], [], 0.0
        rest = float_up(enclose(lambda r, s: r * (-s).exp(), _rest(self).upper, scale, bits=96).upper)
        weights.append(np.array([rest]))
        missing += 8 * UNIT * rest
        kept_errors = [np.zeros(1)]
        for k, sign in sides:
            exponents = k * at.losses - x * x / 2 - shift
            rounding = 4 * UNIT * (np.abs(k * at.losses) + x * x / 2 + abs(shift)) + 8 * UNIT * x * x
            relative = 1.01 * (abs(k) * errors + rounding) + 2 * EXP_ERROR + 12 * UNIT
            terms = factors * exp(exponents)
            is_kept = terms > _SMALLEST
            missing += 1.01 * float((terms * relative).sum()) + 1.01 * float(terms[~is_kept].sum())
            missing += len(x) * 2.0**-1000 + self._quadrature_error(k, span, half, middles, shift)
            losses.append(sign * at.losses[is_kept])
            weights.append(terms[is_kept])
            kept_errors.append(errors[is_kept])
        last = float_down(Fraction(first) + Fraction(2 * half) * count)
        missing += self._beyond(last, power, shift) + 16 * UNIT * mu * self._at_start(shift)
        return Points(np.concatenate(losses), np.concatenate(kept_errors), np.concatenate(weights), up(1.01 * missing))

    def _beyond(self, last: float, power: float, shift: float) -> float:
        """Return an upper bound on both integrals beyond the last panel."""

        def rest(m: Ball, q: Ball, x: Ball, k: Ball, s: Ball) -> Ball:
            mu = m.sqrt()
            log = (q * (mu * x - m / 2).expm1()).log1p()
            return (k * log - x * x / 2 - s).exp() / (x - k * mu) + (-x * x / 2 - s).exp() / x

        values = (self.mu_squared, self.rate, Fraction(last) * (1 - Fraction(1, 1 << 48)), Fraction(power))
        return float_up(enclose(rest, *values, Fraction(shift), bits=96).upper)

    def _at_start(self, shift: float) -> float:
        """Return an upper bound on what both integrands are around μ/2, where w is 1, where the sum may begin askew."""
        return 2.1 * math.exp(-shift - float(self.mu_squared) / 8)

    def _quadrature_error(self, power: float, span: float, half: float, middles: FloatArray, shift: float) -> float:
        """Return an upper bound on the sum of all panels' errors; floats err by far less than the last factor."""
        mu, q, depth = math.sqrt(self.mu_squared), float(self.rate), 3.94 * half
        low, high = middles - 4.08 * half, middles + 4.08 * half
        y = q * expm1(np.minimum(mu * high - mu * mu / 2, 700.0))
        share = (y + q) / (1 + y) * (1 + 1e-9)
        angles = mu * depth * np.where(share < 0.5, share, 1.0)
        if power >= 0:
            logs = log1p(y) + np.maximum(mu * high - mu * mu / 2 - 700.0, 0.0)
        else:
            logs = log1p(q * expm1(np.minimum(mu * low - mu * mu / 2, 700.0))) + math.log(0.877)
        exponents = power * logs + span * angles - np.maximum(low, 0.0) ** 2 / 2 + depth**2 / 2 - shift
        exponents += (1 - 2 * NODES) * math.log(ELLIPSE) * 0.9999
        sizes = exp(np.minimum(exponents + 1e-6 * (1 + np.abs(exponents)), 700.0))
        return 1.01 * float(sizes.sum()) * 8 * half / (ELLIPSE - 1)


class _Panels(NamedTuple):
    """Where the first begins, half the length of each, and how many."""

    first: float
    half: float
    number: int


@lru_cache(maxsize=1 << 8)
def _rest(law: SubsetGaussianLaw) -> "_Bounds":
    """Return bounds on the mass at the loss 0, (1 − q)·(1 − 2Φ(−μ/2))."""
    found = enclose_tightly(lambda m, q: (1 - q) * (1 - 2 * normal_cdf_ball(-m.sqrt() / 2)), law.mu_squared, law.rate)
    return _Bounds(found.lower, found.upper)


class _Bounds(NamedTuple):
    lower: Fraction
    upper: Fraction


@lru_cache(maxsize=1 << 12)
def _decay(law: SubsetGaussianLaw, tilt: float) -> tuple[float, float]:
    """Return upper bounds on the share of M(θ) that is at 0, and on V/M(θ); infinite where none is at hand."""
    least, scale = least_moment(law, tilt)
    sides = [
        SampledGaussianLaw(law.mu_squared, law.rate, "remove"),
        SampledGaussianLaw(law.mu_squared, law.rate, "add"),
    ]
    variations = [variation(side, tilt) for side in sides]
    if least <= 0 or not all(map(math.isfinite, variations)):
        return math.inf, math.inf
    lowest = Fraction(float_down(Fraction(least)))
    total = 0.0
    for side, share in zip(sides, variations, strict=True):
        discs, own = side.transform(Nodes(tilt, 0.0, 1))
        total += float_up(
            enclose(
                lambda v, b, s, m: v * b * s.exp() / m, Fraction(share), Fraction(discs.bound), own - scale, lowest
            ).upper
        )
    rest = float_up(enclose(lambda r, s, m: r * (-s).exp() / m, _rest(law).upper, scale, lowest).upper)
    return rest, up(total)
