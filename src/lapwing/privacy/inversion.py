"""Bounds on a hockey-stick curve from the moments of its privacy loss on one vertical line.

Let ω be the finite part of a law, D(y) = ∫ max(0, 1 − e^(y−l)) ω(dl) its curve at ε = y, and M(z) = ∫ e^(zl) ω(dl). For
θ = Re z > 0 the Fourier transform of the tilted curve is ∫ e^(zy)·D(y) dy = M(z)/(z(z + 1)).

**Sums for integrals.** With nodes z = θ + i·n·step and period T = 2π/step, Poisson's summation says that
e^(−θy)·step/2π·Σ over all n of M(z)·e^(−i·n·step·y)/(z(z + 1)) = Σ over all m of e^(θmT)·D(y + mT). All terms on the
right are ≥ 0, and m = 0 is D(y). So the sum is an upper bound. The others: D ≤ M(0) for m < 0; for m > 0,
D(y) ≤ e^(−αy)·M(α) for any α ≥ 0, as max(0, 1 − e^(−t)) ≤ e^(αt), here with α > θ.

**Smoothing.** D has kinks where ω has atoms, so the sum over n converges slowly. Let Y = c + a·V, V the mean of r = 16
independent uniforms on [−1, 1] and c such that E e^Y = 1, and D_a(y) = E D(y + Y). Its transform is that of D times
K_a(z) = E e^(−zY) = e^(−cz)·(sinh(zw)/(zw))^r, w = a/r, which falls as |z|^(−r).

  *D ≤ D_a*: D is convex as a function of x = e^y, and x·e^Y has mean x (Jensen).

  *D ≥ 2·D_a − D_b for b = 5a/2, a ≤ ¼*: it suffices to show it for D(x) = max(0, 1 − x), all others being mixtures of
  these scaled. Let W = e^Y, and e(x) = E max(0, 1 − xW) − max(0, 1 − x) its excess, e' that of W' = 2W − 1.
  For x ≤ 1, e(x) = E max(0, xW − 1) and e'(x) = 2·E max(0, xW − (1 + x)/2) ≥ 2·e(x), as (1 + x)/2 ≤ 1. For x ≥ 1,
  e(x) = E max(0, 1 − xW) and e'(x) = 2·E max(0, (1 + x)/2 − xW) ≥ 2·e(x). Now let W'' = e^(Y''), Y'' = c'' + bV with
  the same V. W' and W'' are increasing functions of V of mean 1, and if W'' − W' changes sign only once, from − to +,
  W'' is above W' in convex order (Karlin and Novikoff 1963), so that e'' ≥ e' ≥ 2e, which is D_b − D ≥ 2·(D_a − D).
  It does: it is k(V) with k(v) = e^(c''+bv) − 2e^(c+av) + 1, whose slope has the sign of e^((b−a)v) − (2a/b)·e^(c−c'')
  and so changes at most once, from − to +; and k(−1) < 0. For this last, −x²/(6r) ≤ c(x) ≤ 0, as
  0 ≤ log(sinh t/t) ≤ t²/6, and Taylor's series cut after even and odd powers gives k(−1) ≤
  (1 − b + b²/2 − b³/6 + b⁴/24) + 1 − 2·(1 − a²/96)·(1 − a + a²/2 − a³/6) ≤ a·(−½ + 2.15a − 2.27a² + 1.63a³). The
  bracket's slope 2.15 − 4.54a + 4.89a² is positive, and its value at ¼ is −0.079.

  The gap is of second order: D_b − D_a ≈ (b² − a²)/(6r)·x²·D''(x) in x = e^y.

**Truncation.** Beyond the nodes, |M(θ + is)| ≤ M(θ)·e^(−r(s)), r summed over the laws (`log_decay`), and
|K_a| ≤ e^(−cθ)·(cosh(θw)/(|s|·w))^r. Both fall with s, so with S the first node left out, the sum over |s| ≥ S of
|M·K|·step/(2π·s²) is at most the product at S times (step/S² + 1/S)/π.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np

from lapwing.exact.bounds import Ball, Enclosure, enclose, enclose_tightly
from lapwing.exact.floats import float_up
from lapwing.privacy.discs import UNIT, ComplexArray, Discs, reciprocals, rotations, up
from lapwing.privacy.loss_laws import Laws, Nodes, log_moment_up, product

ORDER = 16
WIDEST = 0.25
RATIO = 2.5
_FAR = 1000


class FourierWindow(NamedTuple):
    """How to invert: the nodes, the smoothing's half-width a (0 for none), and the α > tilt that bounds the copies."""

    nodes: Nodes
    smoothing: float
    beyond: float


class _Kernel(NamedTuple):
    discs: Discs
    tail: Fraction


@lru_cache(maxsize=1 << 3)
def _kernel(nodes: Nodes, half_width: float) -> _Kernel:
    """Return K on the nodes, and a bound on |K| from the first node left out on."""
    w, tilt, last = Fraction(half_width) / ORDER, Fraction(nodes.tilt), Fraction(nodes.step) * nodes.size

    def shift(w: Ball) -> Ball:
        return -ORDER * (w.sinh() / w).log()

    c = enclose_tightly(shift, w, bits=160).upper
    at_tilt = enclose(lambda w, t: (t * w).sinh() / (t * w), w, tilt).upper
    tail = enclose(lambda w, t, s, c: (-c * t).exp() * ((t * w).cosh() / (s * w)) ** ORDER, w, tilt, last, c).upper
    mean = _mean_rotation(nodes, w).within(up(float_up(at_tilt)))
    factor = float_up(enclose(lambda c, t: (-c * t).exp(), c, tilt).upper)
    tail = min(tail, Fraction(factor) * at_tilt**ORDER)  # |K| is nowhere larger than at the tilt
    turned = rotations(-Fraction(nodes.step) * c, nodes.size)
    return _Kernel(mean.power(ORDER).scaled(factor, 4 * UNIT * factor) * turned, tail)


def _mean_rotation(nodes: Nodes, w: Fraction) -> Discs:
    """Return sinh(v)/v for v = zw: by its power series for |v| < 1, and else by exponentials.

    The series up to v²⁸ leaves out less than 10⁻³⁰. Its 14 steps of Horner's rule each err by at most 10u of a partial
    sum below 1.2; v² is known within 12u. By exponentials, (e^v − e^(−v))/(2v) with |v| ≥ 1 has the radius of the
    difference, and 10u more.
    """
    v = nodes.points() * float(w)
    square = v * v
    near = np.abs(v) < 1
    series = np.zeros_like(v)
    for k in range(14, -1, -1):
        series = series * np.where(near, square, 0) + 1 / float(_FACTORIALS[2 * k + 1])
    growth = float_up(enclose(Ball.exp, Fraction(nodes.tilt) * w).upper)
    turns = rotations(Fraction(nodes.step) * w, nodes.size)
    sinh = turns.scaled(growth, 4 * UNIT * growth) - turns.conjugate().scaled(1 / growth, 4 * UNIT / growth)
    inverse, _ = reciprocals(np.where(near, 1, 2 * v), 6 * UNIT)
    values: ComplexArray = np.where(near, series, sinh.centres * inverse)
    radius = max(250 * UNIT, sinh.radius * 0.51 + 16 * UNIT * sinh.bound)
    return Discs(values, up(radius), up(growth))


_FACTORIALS = [1]
for _n in range(1, 30):
    _FACTORIALS.append(_FACTORIALS[-1] * _n)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Inversion:
    """A composition on one window, ready to bound D anywhere and to take further laws; built once, asked at many ε.

    Every part of a bound is a product over the laws, or a sum of logarithms: the moments M·K, with the radius of their
    accumulated rounding; what the nodes left out add, by |M| ≤ M(θ) ≤ e^scale·bound (the first node is θ itself) and
    the Gaussian part's decay; M(0) and M(α) for the copies. So `times` multiplies each by the new law's, rounded up,
    and the bounds hold for the longer list as they did for the shorter. The window was chosen for a shorter list;
    this can make them wider, not wrong, as the proof above is for any window.

    Args:
        upper: M·K on the nodes, for the bound in each direction, over e^scale; their tails; what the copies at m < 0
            and, as a logarithm and at ε = 0, those at m > 0 add.
        lower: As `upper`.
        most: The law's finite mass, of which D is a part.
    """

    window: FourierWindow
    scale: Fraction
    upper: Discs
    lower: Discs
    upper_tail: float
    lower_tail: float
    copies_below: float
    log_copies_above: float
    most: float

    @classmethod
    def of(cls, laws: Laws, window: FourierWindow) -> "Inversion":
        """Evaluate the moments of a composition on a window's nodes."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            return cls._empty(window).times(laws)

    @classmethod
    def _empty(cls, window: FourierWindow) -> "Inversion":
        """Return the composition of nothing: no loss, for sure."""
        nodes, a, beyond = window
        rest = _rest(nodes)
        below, above = copies(nodes, beyond)
        if not a:
            ones = Discs(np.ones(nodes.size, dtype=np.complex128), 0.0, 1.0)
            return cls(window, Fraction(0), ones, ones, up(rest), up(rest), below, above, 1.0)
        one, two = _kernel(nodes, a), _kernel(nodes, RATIO * a)
        lower = one.discs + one.discs - two.discs
        tail = float_up(2 * one.tail + two.tail)
        # A copy of D_a is a mean of D: at most M(0), and at most E e^(−αY)·e^(−αy)·M(α).
        above = math.nextafter(above + float_up(_log_kernel_up(a, beyond)), math.inf)
        upper_tail, lower_tail = up(rest * float_up(one.tail)), up(rest * tail)
        return cls(window, Fraction(0), one.discs, lower, upper_tail, lower_tail, below, above, 1.0)

    def times(self, laws: Laws) -> "Inversion":
        """Return the composition with more laws, on the same window.

        Raises:
            ArithmeticError: If a bound is beyond all floats.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
            discs, scale = product(laws, self.window.nodes)
            share = _share(laws, self.window)
            upper = self.upper * discs
            lower = upper if self.lower is self.upper else self.lower * discs
        shrink = up(share.decay * discs.bound)
        above = math.nextafter(self.log_copies_above + share.log_beyond, math.inf)
        sizes = upper.bound + upper.radius + lower.bound + lower.radius + share.finite + above
        if not (math.isfinite(sizes) and np.isfinite(upper.centres).all() and np.isfinite(lower.centres).all()):
            raise ArithmeticError("a bound is beyond all floats")
        return Inversion(
            self.window,
            self.scale + scale,
            upper,
            lower,
            up(self.upper_tail * shrink),
            up(self.lower_tail * shrink),
            up(self.copies_below * share.finite),
            above,
            up(self.most * share.finite),
        )

    def bounds(self, epsilon: float) -> Enclosure:
        """Return certified bounds on D(epsilon)."""
        return Enclosure(self.below(epsilon), self.above(epsilon))

    def above(self, epsilon: float) -> Fraction:
        """Return a certified upper bound on D(epsilon)."""
        exponent = self._exponent(epsilon)
        if exponent > _FAR:
            return Fraction(self.most)  # far below where the window was aimed
        total = _sum(self.upper, epsilon, self.window.nodes).upper * _width(self.window.nodes).upper
        sizes = max(Fraction(0), total + Fraction(self.upper_tail))
        return min(Fraction(self.most), sizes * enclose(Ball.exp, exponent).upper)

    def below(self, epsilon: float) -> Fraction:
        """Return a certified lower bound on D(epsilon)."""
        nodes, a, beyond = self.window
        exponent = self._exponent(epsilon)
        above = Fraction(self.log_copies_above) - Fraction(beyond) * Fraction(epsilon)
        if max(exponent, above) > _FAR:
            return Fraction(0)
        total = _sum(self.lower, epsilon, nodes).lower
        inner = total * _width(nodes).lower - Fraction(self.lower_tail)
        if inner <= 0:
            return Fraction(0)
        copies = (2 if a else 1) * (Fraction(self.copies_below) + enclose(Ball.exp, above).upper)
        return max(Fraction(0), inner * enclose(Ball.exp, exponent).lower - copies)

    def _exponent(self, epsilon: float) -> Fraction:
        return self.scale - Fraction(self.window.nodes.tilt) * Fraction(epsilon)

    def guess(self, epsilon: float) -> tuple[float, float]:
        """Return about the logarithms of both bounds, without their errors: for a search to look, never to decide."""
        nodes = self.window.nodes
        factor, _ = _pole_factor(nodes)
        terms = factor * np.exp(-1j * nodes.step * epsilon * np.arange(nodes.size))
        size = float(self.scale) - nodes.tilt * epsilon + math.log(nodes.step / math.pi)
        upper = float((self.upper.centres * terms).real.sum())
        lower = upper if self.lower is self.upper else float((self.lower.centres * terms).real.sum())
        return math.log(lower) + size if lower > 0 else -math.inf, math.log(upper) + size if upper > 0 else -math.inf


class _Share(NamedTuple):
    """What laws contribute to the errors on a window: M(0), log M(α), and |M/M(θ)| from the first node left out on."""

    finite: float
    log_beyond: float
    decay: float


@lru_cache(maxsize=1 << 10)
def _share(laws: Laws, window: FourierWindow) -> _Share:
    """Return upper bounds."""
    nodes = window.nodes
    last = nodes.step * nodes.size * (1 - 2 * UNIT)
    logs = [Fraction(law.log_decay(nodes.tilt, last)) * count for law, count in laws]
    decay = float_up(enclose(Ball.exp, sum(logs, Fraction(0))).upper)
    finite = float_up(enclose(Ball.exp, log_moment_up(laws, 0.0)).upper)
    return _Share(finite, float_up(log_moment_up(laws, window.beyond)), decay)


def _rest(nodes: Nodes) -> float:
    """Bound what the nodes left out add to the sum, over e^scale, but for the decay of moments and kernel."""
    step = Fraction(nodes.step)
    return float_up(enclose(lambda s, h: (h / (s * s) + 1 / s) / Ball.pi(), step * nodes.size, step).upper)


def copies(nodes: Nodes, beyond: float) -> tuple[float, float]:
    """Bound the copies of D, in units of M: at m < 0, and at m > 0 for ε = 0, of which it gives the log.

    The bounds are 1/(e^(θT) − 1) and 1/(e^((α−θ)T) − 1).
    """
    tilt, step = Fraction(nodes.tilt), Fraction(nodes.step)
    below = enclose(lambda t, h: 1 / (t * 2 * Ball.pi() / h).expm1(), tilt, step).upper
    gap = enclose(lambda g, h: (g * 2 * Ball.pi() / h).expm1().log(), Fraction(beyond) - tilt, step).lower
    return float_up(below), float_up(-gap)


@lru_cache(maxsize=1 << 6)
def _width(nodes: Nodes) -> Enclosure:
    """Bound step/2π."""
    return enclose(lambda h: h / (2 * Ball.pi()), Fraction(nodes.step))


@lru_cache(maxsize=1 << 2)
def _pole_factor(nodes: Nodes) -> tuple[ComplexArray, float]:
    """Return 1/(z(z + 1)) within a relative 16u, the first halved as it stands for n = 0, and the sum of sizes."""
    z = nodes.points()
    factor, _ = reciprocals(z * (z + 1), 8 * UNIT)
    factor[0] /= 2
    return factor, float(np.abs(factor).sum())


def _sum(discs: Discs, epsilon: float, nodes: Nodes) -> Enclosure:
    """Bound 2·Re Σ over n ≥ 0 of discs·e^(−i·n·step·ε)/(z(z + 1)): the sum over all n, as n and −n are conjugate.

    Of N terms, each is within 20u of its bound beyond the product's radius; a sum in any order errs by at most N·u of
    the sum of sizes.
    """
    product = discs * rotations(-Fraction(nodes.step) * Fraction(epsilon), nodes.size)
    factor, size = _pole_factor(nodes)
    value = 2 * float((product.centres * factor).real.sum())
    error = 2 * size * (product.radius + (nodes.size + 32) * UNIT * (product.bound + product.radius)) * (1 + 2.0**-20)
    return Enclosure(Fraction(value) - Fraction(error), Fraction(value) + Fraction(error))


def _log_kernel_up(a: float, tilt: float) -> Fraction:
    """Return an upper bound on log E e^(−tilt·Y)."""
    w = Fraction(a) / ORDER
    return enclose(
        lambda w, t: ORDER * (t * (w.sinh() / w).log() + ((t * w).sinh() / (t * w)).log()), w, Fraction(tilt)
    ).upper
