"""The loss of Laplace noise, or of bounded range, on a Poisson sample: its moments by quadrature, certified.

Both have a loss l in [−ε, ε] whose law under Q has the density c·e^(−(l + ε)/2), and Laplace noise two atoms, of
e^(−ε)/2 at ε and ½ at −ε (`LaplaceLaw`, with l = ε − 2u; `BoundedRangeLaw`). On a sample, w(l) = 1 − q + q·e^l is the
ratio of the pair of a unit that leaves, its loss is log w, and that of a unit that joins −log w. Hence M(z) is the mean
of w^k under Q with k = z + 1 for "remove" and k = −z for "add".

**Quadrature.** The interval is cut into panels of half-length ℓ, each with n = 20 points of Gauss and Legendre. If f is
analytic in the ellipse with foci at a panel's ends and a sum of half-axes of ρℓ, and |f| ≤ B there, there is a
polynomial of degree 2n − 1 within 2B·ρ^(1−2n)/(ρ − 1) of f on the panel (Trefethen 2013, Approximation Theory and
Approximation Practice, Theorem 8.2). The rule is exact for it, so its error is at most 2·2ℓ times that. Here ρ = 8 and
ℓ ≤ ¼, so that in the ellipse |Im l| ≤ β = 3.94ℓ < 1 and Re l is within 4.07ℓ of the middle. There |w| lies between
cos(β/2)·w(Re l) and w(Re l), and cos(½) > 0.877. And arg w is at most βσ if σ = q·e^l/w ≤ ½, else β: its derivative in
β is Re(q·e^(l+iβ)/w(l + iβ)), which for b = q·e^l ≤ a = 1 − q is at most b/(a + b), as
(b + a·cos β)·(a + b) ≤ a² + b² + 2ab·cos β comes to ab·(1 − cos β) ≤ a²·(1 − cos β).

**Decay.** The density over log w is g = c·e^(−ε/2)·e^(−3l/2)·w^(κ+1)/q, the logarithm of which has the slope
(κ + 1)σ − 3/2: rising, or below 0. So g has a variation of at most the sum of its values at the ends; by parts the
continuous part of M(θ + is) is at most V/|s| with V = 2·(g(−ε) + g(ε)), and the atoms' at most what they are at θ.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, Literal, NamedTuple, final

import numpy as np

from lapwing.exact.bounds import Ball, enclose, enclose_tightly, fixed_points
from lapwing.exact.elementary import EXP_ERROR, LOG1P_ERROR, exp, expm1, log1p
from lapwing.exact.floats import float_down, float_up
from lapwing.privacy.discs import UNIT, up
from lapwing.privacy.loss_laws import FloatArray, Nodes, Transform, decay_of, guessed_scale, least_moment
from lapwing.privacy.quadrature import MOST_POINTS, MOST_WORK, Points, transform_of

MOST_EPSILON: Final = Fraction(300)

NODES = 20
_WIDEST = 0.25
_PHASE = 8.0
ELLIPSE = 8.0


@final
@dataclass(frozen=True, slots=True)
class SampledLaplaceLaw:
    """The loss, in one direction, of Laplace noise or of bounded range on a Poisson sample.

    Args:
        epsilon: > 0, at most MOST_EPSILON.
        rate: > 0, at most `sampled_gaussian.MOST_RATE`.
        direction: Of two neighbours, the one that is P.
        has_atoms: Whether it is of Laplace noise, else of bounded range.
    """

    epsilon: Fraction
    rate: Fraction
    direction: Literal["remove", "add"]
    has_atoms: bool
    infinite: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction | None:
        """The loss at an end, log(1 + q·(e^(±ε) − 1)), rounded up by at most a relative 2⁻¹²⁰."""
        return _end_loss(self.epsilon if self.direction == "remove" else -self.epsilon, self.rate)

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        epsilon, q = float(self.epsilon), float(self.rate)
        places, shares = _rule_of_64()
        at = epsilon * places
        with np.errstate(divide="ignore"):
            logs = np.log(shares * epsilon * self._coefficient()) - (at + epsilon) / 2
        if self.has_atoms:
            at = np.append(at, [epsilon, -epsilon])
            logs = np.append(logs, [-epsilon - math.log(2), -math.log(2)])
        losses = np.where(at < 30, np.log1p(q * np.expm1(np.minimum(at, 30.0))), at + math.log(q))
        exponents = np.multiply.outer(self._powers(np.asarray(tilts, dtype=np.float64)), losses) + logs
        most = exponents.max(axis=1)
        return np.asarray(most + np.log(np.exp(exponents - most[:, None]).sum(axis=1)))

    def _coefficient(self) -> float:
        """Return c, within 8u."""
        if self.has_atoms:
            return 0.25
        return float(enclose_tightly(lambda e: -1 / (2 * (-e).expm1()), self.epsilon).upper)

    def _powers(self, tilts: FloatArray) -> FloatArray:
        return tilts + 1 if self.direction == "remove" else -tilts

    def transform(self, nodes: Nodes) -> Transform:
        """Return the quadrature's sum."""
        if not self.is_feasible(nodes):
            raise ArithmeticError("too many points")
        return transform_of(partial(self._points, nodes.tilt), nodes, guessed_scale(self, nodes.tilt))

    def is_feasible(self, nodes: Nodes) -> bool:
        """Tell whether a transform on the nodes takes less than about a second."""
        points = NODES * self._panels(nodes.tilt, nodes.step * nodes.size)
        return points * nodes.size <= MOST_WORK and points <= MOST_POINTS

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return an upper bound on log |M(tilt + is)/M(tilt)| for all |s| ≥ reach > 0."""
        return decay_of(*_decay(self, tilt), reach)

    def _panels(self, tilt: float, span: float) -> int:
        """Return so many panels that the error of the quadrature is small: a guess; `_points` adds the error."""
        epsilon, q = float(self.epsilon), float(self.rate)
        turning = (span + tilt + 2) * min(1.0, 2 * q * math.exp(min(epsilon, 700.0)))
        return math.ceil(max(epsilon / _WIDEST, epsilon * turning / _PHASE))

    def _points(self, tilt: float, span: float, scale: Fraction) -> Points:
        """Return the terms of a sum for |Im z| ≤ span, over e^scale, and what it misses.

        Errors, in units of u = 2⁻⁵³: a place l is within 6ε, and so log w within as much times σ; of q·expm1(l), 11 are
        a relative error, so 11·|q·expm1(l)|/w; log1p adds 10 of its value. The exponent κ·log w − (l + ε)/2 − scale has
        an error of |κ| times that, and at most 4 of each of its terms; a weight's factor one of 12.
        """
        epsilon, q = float(self.epsilon), float(self.rate)
        power = float(self._powers(np.array([tilt]))[0])
        panels = self._panels(tilt, span)
        half = epsilon / panels
        middles = np.asarray(half * (2.0 * np.arange(panels) + 1 - panels), dtype=np.float64)
        places, shares = gauss_rule()
        at = (middles[:, None] + half * places[None, :]).reshape(-1)
        factors = np.tile(shares * (half * self._coefficient()), panels)
        if self.has_atoms:
            at = np.append(at, [epsilon, -epsilon])
            factors = np.append(factors, [0.5, 0.5])
        y = q * expm1(at)
        whole = (1 + y) - 16 * UNIT * (1 + np.abs(y))
        slopes = np.minimum(1.0, (q + np.maximum(y, -q)) * 1.001 / whole)
        losses = log1p(y)
        errors = 1.01 * (6 * UNIT * epsilon * slopes + 11 * UNIT * np.abs(y) / whole + LOG1P_ERROR * np.abs(losses))
        shift = float(scale)
        tilted = (at + epsilon) / 2
        if self.has_atoms:
            tilted[-2:] = epsilon, 0.0
        exponents = power * losses - tilted - shift
        rounding = 4 * UNIT * (np.abs(power * losses) + 2 * epsilon + abs(shift))
        relative = 1.01 * (abs(power) * errors + rounding) + 2 * EXP_ERROR + 12 * UNIT
        weights = factors * exp(exponents)
        high, low = middles + 4.08 * half, middles - 4.08 * half
        missing = 1.01 * float((weights * relative).sum())
        missing += self._quadrature_error(power, span, half, high, low, shift)
        sign = 1 if self.direction == "remove" else -1
        return Points(sign * losses, errors, weights, up(missing))

    def _quadrature_error(
        self, power: float, span: float, half: float, highs: FloatArray, lows: FloatArray, shift: float
    ) -> float:
        """Return an upper bound on the sum of all panels' errors; floats err by far less than the last factor."""
        epsilon, q = float(self.epsilon), float(self.rate)
        depth = 3.94 * half
        y = q * expm1(highs)
        share = (y + q) / (1 + y) * (1 + 1e-9)
        angles = depth * np.where(share < 0.5, share, 1.0)
        logs = log1p(y) if power >= 0 else log1p(q * expm1(lows)) + math.log(0.877)
        exponents = power * logs + span * angles - (lows + epsilon) / 2 - shift
        exponents += (1 - 2 * NODES) * math.log(ELLIPSE) * 0.9999
        sizes = exp(exponents + 1e-6 * (1 + np.abs(exponents)))
        return 1.01 * float(sizes.sum()) * self._coefficient() * 8 * half / (ELLIPSE - 1)


class _Rule(NamedTuple):
    places: FloatArray
    shares: FloatArray


@lru_cache(maxsize=1)
def gauss_rule() -> _Rule:
    """Return the points and weights of Gauss and Legendre on [−1, 1], each within u of itself."""
    bits = 160
    rows = [(Fraction(n),) for n in range(NODES)]
    places = fixed_points(lambda n: Ball.legendre_p_root(NODES, int(n.unique_fmpz() or 0)), rows, bits=bits)
    shares = fixed_points(
        lambda n: Ball.legendre_p_root(NODES, int(n.unique_fmpz() or 0), weight=True)[1], rows, bits=bits
    )
    unit = Fraction(1, 1 << bits)
    return _Rule(*(np.array([float(b.lower * unit) for b in column]) for column in (places, shares)))


@lru_cache(maxsize=1)
def _rule_of_64() -> _Rule:
    """Return a rule for guesses."""
    return _Rule(*np.polynomial.legendre.leggauss(64))


@lru_cache(maxsize=1 << 8)
def _end_loss(at: Fraction, rate: Fraction) -> Fraction:
    loss = enclose_tightly(lambda e, q: (q * e.expm1()).log1p(), at, rate, bits=120)
    return loss.upper if at > 0 else -loss.lower


@lru_cache(maxsize=1 << 12)
def _decay(law: SampledLaplaceLaw, tilt: float) -> tuple[float, float]:
    """Return upper bounds on the atoms' share of M(θ), and on V/M(θ); infinite where none is at hand."""
    least, scale = least_moment(law, tilt)
    if least <= 0:
        return math.inf, math.inf
    power = Fraction(tilt) + 1 if law.direction == "remove" else -Fraction(tilt)

    def atoms(e: Ball, q: Ball, k: Ball, s: Ball, m: Ball) -> Ball:
        high, low = (q * e.expm1()).log1p(), (q * (-e).expm1()).log1p()
        return ((k * high - e - s).exp() + (k * low - s).exp()) / (2 * m)

    def variation(e: Ball, q: Ball, k: Ball, s: Ball, m: Ball) -> Ball:
        high, low = (q * e.expm1()).log1p(), (q * (-e).expm1()).log1p()
        c = Ball(1) / 4 if law.has_atoms else -1 / (2 * (-e).expm1())
        return 2 * c * (((k + 1) * high - 2 * e - s).exp() + ((k + 1) * low + e - s).exp()) / (q * m)

    values = law.epsilon, law.rate, power, scale, Fraction(float_down(Fraction(least)))
    held = float_up(enclose(atoms, *values).upper) if law.has_atoms else 0.0
    return held, float_up(enclose(variation, *values).upper)
