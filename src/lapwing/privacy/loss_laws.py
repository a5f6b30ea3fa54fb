"""Laws of the privacy loss, each with its moment generating function along a vertical line.

For a pair (P, Q) the loss is L = log(dP/dQ), and its law ω is that under P: a measure on the real line, and a mass at
+∞ where Q is zero. Its hockey-stick curve is δ(ε) = ω(∞) + ∫ max(0, 1 − e^(ε−l)) ω(dl), and the law of a composition is
the convolution, so that the moments M(z) = ∫ e^(zl) ω(dl) over the finite part multiply.

A law states M on nodes z = tilt + i·n·step as discs, divided by e^scale for an exact number `scale` near log M(tilt),
so that all stay near 1 or below: |M(tilt + is)| ≤ M(tilt).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.bounds import Ball, enclose, fixed_points
from lapwing.exact.floats import float_up
from lapwing.privacy.discs import UNIT, ComplexArray, Discs, reciprocals, rotations, up

FloatArray = NDArray[np.float64]

MASS_ERROR = 2.0**-150
"""The relative error of a stated mass that every law charges."""

_KEPT = 1 << 12

WEIGHT_BITS = 96
FINE = 2.0**-WEIGHT_BITS
"""The precision of weights relative to e^scale."""


class Nodes(NamedTuple):
    """The points z = tilt + i·n·step, n from 0 to size − 1; tilt > 0."""

    tilt: float
    step: float
    size: int

    def points(self) -> ComplexArray:
        """Return z within a relative u."""
        points = np.empty(self.size, dtype=np.complex128)
        points.real, points.imag = self.tilt, np.arange(self.size) * self.step
        return points

    def reciprocals(self) -> Discs:
        """Return 1/(2z + 1)."""
        values, relative = reciprocals(2 * self.points() + 1, 3 * UNIT)
        bound = up(1 / (2 * self.tilt + 1))
        return Discs(values, up(relative * bound), bound)


class Transform(NamedTuple):
    """M(z) = e^scale · disc on each node."""

    discs: Discs
    scale: Fraction


class LossLaw(Protocol):
    """The law of a privacy loss."""

    @property
    def infinite(self) -> Fraction:
        """The mass at +∞."""

    @property
    def most(self) -> Fraction | None:
        """The largest finite loss, None if there is none."""

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""

    def transform(self, nodes: Nodes) -> Transform:
        """Return M on the nodes."""

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return an upper bound, at most 0, on log |M(tilt + is)/M(tilt)| for all |s| ≥ reach > 0."""

    def __hash__(self) -> int:
        """Laws are values, or themselves."""


Laws = tuple[tuple[LossLaw, int], ...]
"""A composition: laws, each taken a number of times."""


@final
@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """The loss of N(μ, 1) against N(0, 1), which is N(μ²/2, μ²): M(z) = e^(z(z+1)μ²/2)."""

    mu_squared: Fraction
    infinite: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction | None:
        """There is no largest loss."""
        return None

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        return np.asarray(tilts * (tilts + 1) * (float(self.mu_squared) / 2))

    def transform(self, nodes: Nodes) -> Transform:
        """Return e^(−s²μ²/2)·e^(is(tilt + ½)μ²); beyond an exponent of 60 it is 0 within 2⁻⁸⁶."""
        tilt, step = Fraction(nodes.tilt), Fraction(nodes.step)
        rate = self.mu_squared * step**2 / 2
        inside = min(nodes.size, math.isqrt(math.ceil(60 / rate)) + 2) if rate else nodes.size
        centres = np.zeros(nodes.size, dtype=np.complex128)
        rows = [(-rate * n * n,) for n in range(inside)]
        centres[:inside] = [b.lower * 2.0**-80 for b in fixed_points(Ball.exp, rows, bits=80)]
        decay = Discs(centres, 2.0**-52, 1.0)
        phases = rotations(step * (tilt + Fraction(1, 2)) * self.mu_squared, nodes.size)
        scale = guessed_scale(self, nodes.tilt)
        (weight,) = _weights(Ball.exp, [(tilt * (tilt + 1) * self.mu_squared / 2 - scale,)])
        return Transform((decay * phases).scaled(weight, _error(weight)), scale)

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return −s²μ²/2."""
        return float_up(-(Fraction(reach) ** 2) * self.mu_squared / 2)


@final
@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """The loss of Laplace noise at ratio ε of sensitivity to scale.

    Below both centres the loss is ε, with probability ½; beyond both it is −ε, with probability e^(−ε)/2; at distance
    u·scale from the first towards the second it is ε − 2u, with density e^(−u)/2. Hence
    M(z) = ½·e^(zε)·(1 + g) + ½·e^(−(1+z)ε)·(1 − g) with g = 1/(2z + 1).
    """

    epsilon: Fraction
    infinite: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction | None:
        """ε."""
        return self.epsilon

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        epsilon, g = float(self.epsilon), 1 / (2 * tilts + 1)
        return np.asarray(tilts * epsilon + np.log((1 + g + np.exp(-(1 + 2 * tilts) * epsilon) * (1 - g)) / 2))

    def transform(self, nodes: Nodes) -> Transform:
        """Return the closed form."""
        scale, tilt = guessed_scale(self, nodes.tilt), Fraction(nodes.tilt)
        total = tilt * self.epsilon - scale
        high, low = _weights(lambda x: x.exp() / 2, [(total,), (total - (1 + 2 * tilt) * self.epsilon,)])
        phases = rotations(Fraction(nodes.step) * self.epsilon, nodes.size)
        above, below = phases.scaled(high, _error(high)), phases.conjugate().scaled(low, _error(low))
        discs = above + below + (above - below) * nodes.reciprocals()
        g = 1 / (2 * nodes.tilt + 1)
        return Transform(discs.within(up((high * (1 + g) + low * (1 - g)) * (1 + 16 * UNIT))), scale)

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return the bound that both atoms and 1/|2z + 1| ≤ 1/2|s| give."""
        atoms = up(_both_ends(self, self.epsilon, tilt) / 2)
        return decay_of(atoms, atoms / 2, reach)


@final
@dataclass(frozen=True, slots=True)
class BoundedRangeLaw:
    """The least law that dominates every pair whose log-ratio varies by at most η over all outputs.

    Such a pair is a post-processing of two coins with P(heads)/Q(heads) = e^t and P(tails)/Q(tails) = e^(t−η) for some
    t in [0, η] (as for bounded range in GDP: every ratio is a mixture of the two ends). At ε in [−η, η] the coins'
    P(heads) − e^ε·Q(heads) is largest at t = (ε + η)/2, where it is δ(ε) = (1 − e^((ε−η)/2))²/(1 − e^(−η)); below −η,
    δ = 1 − e^ε. As a function of x = e^ε this is convex, and continuous with its slope, so it is the curve of a law:
    that with the density x²·δ''(x) = e^((l−η)/2)/(2(1 − e^(−η))) of l = log x on [−η, η]. So
    M(z) = (e^(zη) − e^(−(z+1)η))·g/(1 − e^(−η)), g = 1/(2z + 1).

    Source:
        Dong, Durfee and Rogers 2020 (Optimal Differential Privacy Composition for Exponential Mechanisms), on the
        coins; the closed form of their envelope is ours.
    """

    eta: Fraction
    infinite: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction | None:
        """η."""
        return self.eta

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        eta, w = float(self.eta), 2 * tilts + 1
        return np.asarray(tilts * eta + np.log(-np.expm1(-w * eta) / w / -np.expm1(-eta)))

    def transform(self, nodes: Nodes) -> Transform:
        """Return the closed form."""
        scale, tilt = guessed_scale(self, nodes.tilt), Fraction(nodes.tilt)
        total = tilt * self.eta - scale
        low_total = total - (1 + 2 * tilt) * self.eta
        eta = self.eta
        high, low = _weights(lambda x, e: x.exp() / (1 - (-e).exp()), [(total, eta), (low_total, eta)])
        (most,) = _weights(
            lambda x, y, e, w: (x.exp() - y.exp()) / (1 - (-e).exp()) / w, [(total, low_total, eta, 2 * tilt + 1)]
        )
        phases = rotations(Fraction(nodes.step) * self.eta, nodes.size)
        above, below = phases.scaled(high, _error(high)), phases.conjugate().scaled(low, _error(low))
        return Transform(((above - below) * nodes.reciprocals()).within(up(most * (1 + 4 * UNIT))), scale)

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return the bound that 1/|2z + 1| ≤ 1/2|s| gives."""
        ends = _both_ends(self, self.eta, tilt)
        factor = float_up(enclose(lambda e: -1 / (2 * (-e).expm1()), self.eta).upper)
        return decay_of(0.0, up(ends * factor), reach)


@final
@dataclass(frozen=True, slots=True)
class MixtureLaw:
    """One of several laws, by a public chance: the outcome says which."""

    parts: tuple[tuple[Fraction, LossLaw], ...]

    @property
    def infinite(self) -> Fraction:
        """The mass at +∞."""
        return sum((weight * law.infinite for weight, law in self.parts), Fraction(0))

    @property
    def most(self) -> Fraction | None:
        """The largest finite loss of all parts."""
        most = [law.most for _, law in self.parts]
        return None if None in most else max(m for m in most if m is not None)

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        logs = np.array([law.log_moments(tilts) + math.log(weight) for weight, law in self.parts])
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    def transform(self, nodes: Nodes) -> Transform:
        """Return the weighted sum."""
        scale = guessed_scale(self, nodes.tilt)
        total: Discs | None = None
        for weight, law in self.parts:
            discs, own = transform(law, nodes)
            (factor,) = _weights(lambda x, w: w * x.exp(), [(own - scale, weight)])
            part = discs.scaled(factor, _error(factor))
            total = part if total is None else total + part
        if total is None:
            raise ValueError("a mixture has at least one part")
        return Transform(total, scale)

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return 0, which is what a mixture with an atom has."""
        return 0.0


def decay_of(atoms: float, variation: float, reach: float) -> float:
    """Return an upper bound, at most 0, on log r(s) for all s ≥ reach, given r(s) ≤ atoms + variation/s for all s > 0.

    r is the modulus of a characteristic function. For a whole m ≥ 1, 1 − r(ms)² is the mean of 1 − cos(msY) for some
    Y, and 1 − cos(my) ≤ m²(1 − cos y), so r(s)² ≤ 1 − (1 − r(ms)²)/m²: with the bound on r(ms) this shows how r falls
    where s is still small. For each m it falls with s. And log √(1 − x) ≤ −x/2.
    """
    if not (math.isfinite(variation) and atoms < 1):
        return 0.0
    rest = (math.sqrt(atoms * atoms + 8) - 3 * atoms) / 4  # the best of variation/(m·s), were m not whole
    m = max(1, math.ceil(variation / reach / max(rest, 1e-300)))
    single, multiple = up(atoms + variation / reach), up(atoms + variation / reach / m)
    gain = (1 - up(multiple * multiple)) / m**2 * (1 - 8 * UNIT) / 2
    direct = float_up(enclose(Ball.log, Fraction(single)).upper) if single < 1 else 0.0
    return min(0.0, -gain, direct)


def transform(law: LossLaw, nodes: Nodes) -> Transform:
    """Return the law's transform on the nodes; a short one is kept, as many compositions share it."""
    return kept_transform(law, nodes) if nodes.size <= _KEPT else law.transform(nodes)


@lru_cache(maxsize=1 << 10)
def kept_transform(law: LossLaw, nodes: Nodes) -> Transform:
    """Return the law's transform, made once."""
    return law.transform(nodes)


def product(laws: Laws, nodes: Nodes) -> Transform:
    """Return the transform of a composition of laws, each taken a number of times."""
    discs, scale = None, Fraction(0)
    for law, count in laws:
        one = transform(law, nodes)
        factor = one.discs if count == 1 else one.discs.power(count)
        discs = factor if discs is None else discs * factor
        scale += count * one.scale
    return Transform(discs or Discs(np.ones(nodes.size, dtype=np.complex128), 0.0, 1.0), scale)


def log_moment_up(laws: Laws, tilt: float) -> Fraction:
    """Return an upper bound on log M(tilt) of a composition."""
    return sum((count * _log_moment_up(law, tilt) for law, count in laws), Fraction(0))


@lru_cache(maxsize=1 << 12)
def _log_moment_up(law: LossLaw, tilt: float) -> Fraction:
    """Return scale + bound − 1, as log b ≤ b − 1."""
    discs, scale = law.transform(Nodes(tilt, 0.0, 1))
    return scale + Fraction(discs.bound) - 1


@lru_cache(maxsize=1 << 12)
def least_moment(law: LossLaw, tilt: float) -> tuple[float, Fraction]:
    """Return a lower bound on M(tilt)/e^scale, and the scale."""
    discs, scale = law.transform(Nodes(tilt, 0.0, 1))
    return float(discs.centres[0].real) - discs.radius, scale


@lru_cache(maxsize=1 << 12)
def _both_ends(law: LossLaw, size: Fraction, tilt: float) -> float:
    """Return an upper bound on (e^(tε) + e^(−(t + 1)ε))/M(t) for the size ε and the tilt t."""
    least, scale = least_moment(law, tilt)
    if least <= 0:
        return math.inf

    def ends(e: Ball, t: Ball, s: Ball, m: Ball) -> Ball:
        return ((t * e - s).exp() + (-(t + 1) * e - s).exp()) / m

    return float_up(enclose(ends, size, Fraction(tilt), scale, Fraction(least)).upper)


def guessed_scale(law: LossLaw, tilt: float) -> Fraction:
    """Return a scale near log M(tilt)."""
    return Fraction(float(law.log_moments(np.array([tilt]))[0]))


def _weights(formula: Callable[..., Ball], rows: list[tuple[Fraction, ...]]) -> list[float]:
    """Return upper bounds in floats on a formula's values, within `_error` of them."""
    return [float_up(Fraction(b.upper, 1 << WEIGHT_BITS)) for b in fixed_points(formula, rows, bits=WEIGHT_BITS)]


def _error(weight: float) -> float:
    """Return how far an upper bound of `_weights` may be from the value."""
    return 4 * UNIT * weight + 4 * FINE
