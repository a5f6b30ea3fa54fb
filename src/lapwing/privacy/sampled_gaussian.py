"""The loss of Gaussian noise on a Poisson sample: its moments by quadrature, certified, without cutting anything.

With w(x) = 1 − q + q·e^u, u = μx − μ²/2 and φ the standard normal density, the pair of a unit that leaves is
((1 − q)·N(0, 1) + q·N(μ, 1), N(0, 1)), with the loss log w(x); that of a unit that joins is the reverse, with the loss
−log w(x). Hence M(z) = ∫ φ·w^k with k = z + 1 for "remove" and k = −z for "add": one integral for both.

**Quadrature.** It is summed over the points x = jh. The integrand is analytic for |Im x| < π/μ, where w is never ≤ 0.
At x + ib with |b| ≤ d and t = μd < π, |φ| is φ·e^(b²/2), |arg w| ≤ t, and |w| lies between cos(t/2)·w(x) and w(x), as
|1 + c·e^(it)|² = (1 + c)² − 2c·(1 − cos t). So with Re k = κ and s = |Im k| the integral of its modulus is at most
B = e^(d²/2 + st)·cos(t/2)^min(0, κ)·M(θ), and the sum over all j is within 2B/(e^(2πd/h) − 1) of the integral
(Trefethen and Weideman 2014, The Exponentially Convergent Trapezoidal Rule, Theorem 5.1). With σ = q·e^u/w, from 0 to 1
and rising in x, the logarithm of φ·w^κ has the slope κμσ − x. What is left out on a side, beyond an end where the slope
is at least γ in size and of the right sign from there on, is at most the end's own term over γh.

**Decay.** Let V be the total variation of g = φ·w^κ/(dlog w/dx) = φ·w^(κ+1)·e^(−u)/(μq). By parts,
|M(θ + is)| ≤ V/|s|. The logarithm of g has the slope (κ + 1)μσ − x − μ and the second derivative
(κ + 1)μ²σ(1 − σ) − 1. As σ is convex and then concave, the slope has at most three zeros, so g has at most two maxima
and V ≤ 4·max g; where (κ + 1)μ² ≤ 4, g has one and V ≤ 2·max g. All zeros lie where x = (κ + 1)μσ − μ, so a grid there
of step η misses log max g by at most Cη²/8, −C being the least that the second derivative can be.
`quadrature.decay_of` makes of this a bound for small s.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, Literal, NamedTuple, final

import numpy as np

from lapwing.exact.bounds import Ball, enclose, enclose_tightly
from lapwing.exact.elementary import EXP_ERROR, LOG1P_ERROR, exp, expm1, log1p
from lapwing.exact.floats import float_up
from lapwing.privacy.discs import UNIT, up
from lapwing.privacy.loss_laws import FloatArray, Nodes, Transform, decay_of, guessed_scale, least_moment
from lapwing.privacy.quadrature import DIGITS, MOST_POINTS, MOST_WORK, Points, transform_of

MOST_RATE: Final = 1 - Fraction(1, 1 << 16)

_FAR = 9.7  # φ is below e^(−47) beyond
_STEEPEST = 700.0
_WIDEST_GRID = 1 << 12
_SMALLEST = 2.0**-100
_STEEP = 60.0


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianLaw:
    """The loss, in one direction, of N(μ, 1) against N(0, 1) on a Poisson sample.

    Args:
        mu_squared: > 0.
        rate: > 0, at most MOST_RATE.
        direction: Of two neighbours, the one that is P.
    """

    mu_squared: Fraction
    rate: Fraction
    direction: Literal["remove", "add"]
    infinite: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction | None:
        """None for remove; for add log(1/(1 − q)), which no loss reaches, rounded up by at most a relative 2⁻¹²⁰."""
        return None if self.direction == "remove" else _largest_loss(self.rate)

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        mu, q = math.sqrt(self.mu_squared), float(self.rate)
        powers = self._powers(np.asarray(tilts, dtype=np.float64))
        sides = np.array([ends(mu, q, float(power)) for power in powers])
        # Where both ends are far apart, what matters is near one of them.
        spans = np.minimum(sides[:, 1] - sides[:, 0], _STEEP)[:, None]
        shares = np.linspace(0.0, 1.0, 192)[None, :]
        points = np.concatenate([sides[:, :1] + spans * shares, sides[:, 1:] - spans * shares], axis=1)
        u = mu * points - mu**2 / 2
        logs = np.log1p(q * np.expm1(np.minimum(u, 30.0)))
        logs = np.where(u < 30, logs, np.logaddexp(u + math.log(q), math.log1p(-q)))
        exponents = powers[:, None] * logs - points**2 / 2 + np.log(spans / 191)
        most = exponents.max(axis=1)
        sums = np.exp(exponents - most[:, None]).sum(axis=1) / np.where(spans[:, 0] < _STEEP, 2.0, 1.0)
        return np.asarray(most + np.log(sums) - math.log(2 * math.pi) / 2)

    def _powers(self, tilts: FloatArray) -> FloatArray:
        return tilts + 1 if self.direction == "remove" else -tilts

    def transform(self, nodes: Nodes) -> Transform:
        """Return the quadrature's sum."""
        if not self.is_feasible(nodes):
            raise ArithmeticError("too many points")
        return transform_of(partial(self._points, nodes.tilt), nodes, guessed_scale(self, nodes.tilt))

    def is_feasible(self, nodes: Nodes) -> bool:
        """Tell whether a transform on the nodes takes less than about a second."""
        power = float(self._powers(np.array([nodes.tilt]))[0])
        mu = math.sqrt(self.mu_squared)
        left, right = ends(mu, float(self.rate), power)
        points = (right - left) / step_for(mu, power, nodes.step * nodes.size).h
        return points * nodes.size <= MOST_WORK and points <= MOST_POINTS

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return an upper bound on log |M(tilt + is)/M(tilt)| for all |s| ≥ reach > 0."""
        return decay_of(0.0, variation(self, tilt), reach)

    def _points(self, tilt: float, span: float, scale: Fraction) -> Points:
        """Return the terms of a sum for |Im z| ≤ span, over e^scale, and what it misses.

        The exponent κ·log w − x²/2 + c has an error of |κ| times that of log w, and at most 4u of each of its terms.
        """
        mu, q = math.sqrt(self.mu_squared), float(self.rate)
        power = float(self._powers(np.array([tilt]))[0])
        left, right = ends(mu, q, power)
        step = step_for(mu, power, span)
        x, _, losses, errors = losses_on(self.mu_squared, self.rate, left, right, step.h)
        constant = float(
            enclose(lambda h, s: (h / (2 * Ball.pi()).sqrt()).log() - s, Fraction(step.h), scale, bits=192).upper
        )
        exponents = power * losses - x * x / 2 + constant
        rounding = 4 * UNIT * (np.abs(power * losses) + x * x / 2 + abs(constant))
        relative = 1.01 * (abs(power) * errors + rounding) + 2 * EXP_ERROR
        weights = exp(exponents)
        upper = weights * (1 + relative)
        before, after = steepness(mu, q, power, float(x[0]), float(x[-1]))
        tails = 1.02 * (upper[0] / (step.h * before) + upper[-1] / (step.h * after))
        is_kept = weights > _SMALLEST
        total = float(upper.sum()) * (1 + len(x) * UNIT)
        dropped = float(upper[~is_kept].sum()) + len(x) * 2.0**-1000
        missing = 1.01 * (float(tails) + dropped + float((weights * relative).sum()))
        missing += 1.01 * quadrature_error(mu, power, span, step) * (total + missing)
        sign = 1 if self.direction == "remove" else -1
        return Points(sign * losses[is_kept], errors[is_kept], weights[is_kept], up(missing))


class Losses(NamedTuple):
    """Points x, and there y = w − 1, log w, and the error of log w."""

    x: FloatArray
    y: FloatArray
    losses: FloatArray
    errors: FloatArray


def losses_on(mu_squared: Fraction, rate: Fraction, left: float, right: float, h: float) -> Losses:
    """Return log w on all multiples of h from about left to right."""
    x = np.asarray(h * np.arange(math.floor(left / h), math.ceil(right / h) + 1), dtype=np.float64)
    return losses_at(mu_squared, rate, x)


def losses_at(mu_squared: Fraction, rate: Fraction, x: FloatArray) -> Losses:
    """Return log w at points.

    Errors, in units of u = 2⁻⁵³: μ is within 2, so that μx − μ²/2 is within 5 of |μx| + μ²/2, and log w as much times
    σ; of q·expm1, 11 are a relative error, so 11·|q·expm1|/w; log1p adds 10 of its value. Beyond 700 it is
    μx − μ²/2 + log q, the rest being below e^(−700)/q.
    """
    mu = float(enclose_tightly(Ball.sqrt, mu_squared).upper)
    q = float(rate)
    u = mu * x - mu * mu / 2
    y = q * expm1(np.minimum(u, _STEEPEST))
    whole = (1 + y) - 16 * UNIT * (1 + np.abs(y))
    slopes = np.minimum(1.0, (q + np.maximum(y, -q)) * 1.001 / whole)
    is_steep = u > _STEEPEST
    log_rate = float(enclose_tightly(Ball.log, rate).upper)
    losses = np.where(is_steep, u + log_rate, log1p(y))
    errors = 5 * UNIT * (np.abs(mu * x) + mu * mu / 2) * slopes + LOG1P_ERROR * np.abs(losses)
    errors = 1.01 * (errors + np.where(is_steep, 4 * UNIT * abs(log_rate), 11 * UNIT * np.abs(y) / whole))
    return Losses(x, y, losses, errors)


@lru_cache(maxsize=1 << 8)
def _largest_loss(rate: Fraction) -> Fraction:
    return enclose_tightly(lambda q: -(-q).log1p(), rate, bits=120).upper


def ends(mu: float, q: float, power: float) -> tuple[float, float]:
    """Return about where φ·w^κ falls below e^(−47) of M: a guess, of which what is left out is bounded elsewhere.

    For κ ≥ 0 both φ and φ(x − κμ) are small beyond. For κ < 0 the logarithm's second derivative is at most −1, so it is
    beyond _FAR on either side of its one maximum, where x = κμσ.
    """
    if power >= 0:
        return -_FAR, _FAR + power * mu
    low, high = power * mu, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _slope(mu, q, power, middle) < 0 else (middle, high)
    return low - _FAR, high + _FAR


def _slope(mu: float, q: float, power: float, x: float) -> float:
    """Return the slope of log(φ·w^κ), within a hundredth of its terms."""
    u = mu * x - mu * mu / 2
    odds = q / (1 - q) * math.exp(min(u, _STEEPEST))
    return power * mu * odds / (1 + odds) - x


def steepness(mu: float, q: float, power: float, first: float, last: float) -> tuple[float, float]:
    """Return about the least by which log(φ·w^κ) falls per x to the left of `first`, and to the right of `last`.

    For κ ≥ 0 the slope is from −x to κμ − x; for κ < 0 it falls with x, so that each end has the least beyond it.

    Raises:
        ArithmeticError: If it is not above 1.
    """
    before = -first if power >= 0 else _slope(mu, q, power, first)
    after = last - power * mu if power >= 0 else -_slope(mu, q, power, last)
    if not min(before, after) > 1:
        raise ArithmeticError("the ends are too near")
    return before, after


class Step(NamedTuple):
    """A step h of few binary digits, so that its multiples are exact, and the d for which it is small enough."""

    h: float
    depth: float


def step_for(mu: float, power: float, span: float, digits: float = DIGITS) -> Step:
    """Return about the largest step for an error of e^(−digits) of M, for |Im z| ≤ span."""
    turns = np.linspace(0.02, 0.98, 49) * math.pi
    depths = turns / mu
    needs = digits + 1 + depths**2 / 2 + span * turns + max(0.0, -power) * -np.log(np.cos(turns / 2))
    steps = 2 * math.pi * depths / needs
    best = int(np.argmax(steps))
    mantissa, exponent = math.frexp(min(float(steps[best]), 0.5))
    return Step(math.ldexp(math.floor(mantissa * 256), exponent - 8), float(depths[best]))


def quadrature_error(mu: float, power: float, span: float, step: Step) -> float:
    """Return 2B/(e^(2πd/h) − 1) over M(θ), rounded up, as is the angle for an error in μ.

    Raises:
        ArithmeticError: If it is not small.
    """

    def error(mu: Ball, power: Ball, span: Ball, h: Ball, d: Ball) -> Ball:
        angle = mu * d * (1 + Ball(2) ** -40)
        shrink = (angle / 2).cos() ** power if power < 0 else Ball(1)
        return 2 * (d * d / 2 + span * angle).exp() * shrink / (2 * Ball.pi() * d / h).expm1()

    share = float_up(enclose(error, *(Fraction(value) for value in (mu, power, span, *step))).upper)
    if not share < 0.001:
        raise ArithmeticError("the step is too large")
    return share


@lru_cache(maxsize=1 << 12)
def variation(law: SampledGaussianLaw, tilt: float) -> float:
    """Return an upper bound on V/M(θ), infinite where none is at hand.

    The grid's values err by at most 10⁻⁹ of their terms' sizes, which are added.
    """
    mu, q = math.sqrt(law.mu_squared), float(law.rate)
    power = float(law._powers(np.array([tilt]))[0]) + 1
    low, high = min(0.0, power * mu) - mu, max(0.0, power * mu) - mu
    curved = 1 + max(0.0, -power) * mu**2 / 4
    cells = min(_WIDEST_GRID, math.ceil((high - low) * math.sqrt(curved) / 0.4) + 1)
    x = np.linspace(low, high, cells + 1)
    u = mu * x - mu**2 / 2
    if not u.max() < _STEEPEST:
        return math.inf
    logs = log1p(q * expm1(u))
    values = power * logs - x**2 / 2 - u
    sizes = np.abs(power * logs) + x**2 / 2 + np.abs(u)
    between = curved * (1.001 * (high - low) / cells) ** 2 / 8
    most = float((values + 1e-9 * (1 + sizes)).max()) + between
    maxima = 1 if power * mu**2 <= 3.99 else 2
    least, scale = least_moment(law, tilt)
    if least <= 0:
        return math.inf
    size = enclose(
        lambda f, s, m, q, t: (f - s).exp() / ((2 * Ball.pi() * m).sqrt() * q * t),
        Fraction(most),
        scale,
        law.mu_squared,
        law.rate,
        Fraction(least),
    ).upper
    return up(2 * maxima * float_up(size))
