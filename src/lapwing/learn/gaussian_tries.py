"""The best of a random number of tries with Gaussian noise is Gaussian: by which factor its μ is larger than a try's.

N tries have the law Q on one data set and Q* on a neighbour, f(x) = E[x^N]. The best has the density f′(x) with respect
to Q, x the chance of a try to score below it, and f′(x*) with respect to Q* (`random_stopping`).

Theorem. Let h > 0 and κ with, for every c ≥ 0,
    L(c) = ∫ max_w f′(1 − Φ(z) − Φ(w))·(r(z, w) + h/2 − z − c)₊ φ(z) dz  ≤  κ·e^(−κ²h²/8)·Ψ(c/κ),
over w with Φ(z) + Φ(w) ≤ 1, where Ψ(t) = φ(t) − t·Φ(−t) = E(Z − t)₊, r(z, w) = max over 0 ≤ θ ≤ h of
ψ(1 − B_θ)·(φ(w + θ) − φ(z − θ)), B_θ = Φ(z − θ) + Φ(w + θ), and ψ = f″/f′. If a try is μ-GDP, the best is κμ-GDP,
whatever μ is and whoever is a candidate.

Proof. *Small steps suffice.* A μ-GDP pair is a post-processing of N(0, 1) and N(μ, 1) (Blackwell; Dong, Roth and Su
2022, Theorem 2.10). That of N(θ, 1) is a law of tries for every θ between. Cut μ into k equal steps of h′ ≤ h: laws of
neighbouring steps are h′-GDP, and if their best are κh′-GDP, the best at both ends are k·κh′ = κμ-GDP (group privacy,
there Section 2.5).

*One step.* Let Q, Q* be h′-GDP, g(a) = Φ(Φ⁻¹(a) − h′) ≤ Q*(E) ≤ G(a) = Φ(Φ⁻¹(a) + h′) for every event with Q(E) = a.
Let S be any event, and let the level s fall from above all scores to below: of what is at s or above, Q has a in S and
y outside of it, Q* has b and d. As s falls these grow from 0, and a + y to 1; ties have a coin, so they are continuous.
The best is in S with probability ∫ f′(1 − a − y) da under Q and ∫ f′(1 − b − d) db under Q*, along the fall, b ≥ g(a),
d ≤ G(y). f′ grows (let it be f′(0) below 0), so the latter is at least ∫ f′(1 − b − Y) db with Y = G(y). With V(b, Y) =
∫_0^b f′(1 − t − Y) dt it is V at the end less ∫ ∂V/∂Y dY, which is V + ∫ (f′(1 − Y) − f′(1 − b − Y)) dY, and both parts
grow with b: so it is at least ∫ f′(1 − g(a) − G(y)) dg(a). Hence, with ε = c·h′,
    P(best in S) − e^ε·P*(best in S) ≤ ∫_0^1 max_y [f′(1 − a − y) − e^ε·g′(a)·f′(1 − g(a) − G(y))]₊ da.
Put a = Φ(z), y = Φ(w), so that ln g′(a) = zh′ − h′²/2. As (1 − e^−t)₊ ≤ t₊, the bracket is at most f′(1 − a − y) times
(ln f′(1 − B_0) − ln f′(1 − B_h′) + h′²/2 − zh′ − ch′)₊, and the difference of logarithms is ∫_0^h′ ψ(1 − B_θ)·dB_θ,
at most h′·r. (ψ is 0 where B_θ > 1; there B has grown from at most 1, so r ≥ 0.) So all of it is at most h′·L(c).

*The Gaussian.* δ_m(tm), the curve of m-GDP, is at least m·e^(−m²/8)·Ψ(t) for t ≥ 0: its derivative in m is
φ(t − m/2)·(1 − t·R(t + m/2)), R(x) = Φ(−x)/φ(x), which falls; and φ(t − m/2) ≥ e^(−m²/8)·φ(t). At m = κh′, t = c/κ it
is at least h′·κ·e^(−κ²h²/8)·Ψ(c/κ) ≥ h′·L(c). So the curve is above for all ε ≥ 0, and with Q and Q* exchanged too, as
G is the inverse of g; a symmetric trade-off is given by its δ at all ε ≥ 0 (there Proposition 2.12). ∎

`factor_up` finds such a κ. L is convex in c, its chords are compared with tangents of the right side, and beyond the
last c it falls faster. Integrals are sums over cells of the largest value that the parts have in each; what doubles
round is less than the slack that is added. Composition of all M tries gives κ = √M, which is never exceeded.

Source:
    The pair of curves is ours; Papernot and Steinke 2022 bound Rényi divergences of the same best.
"""

from fractions import Fraction
from functools import lru_cache
from math import erfc, exp, isqrt, log, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEP: Final = 2.0**-10
"""h: the smaller, the less is given away; nothing is computed step by step."""
_ACROSS: Final = 1 / 128
_ALONG: Final = 1 / 64
"""Sizes of cells: of z, and of w."""
_AT_ONCE: Final = 128
_SLACK: Final = 1e-9
_RATIO: Final = 1.001
_SMALLEST: Final = 1e-9
_PARTS: Final = 1_000


@lru_cache(maxsize=32)
def factor_up(weights: tuple[int, ...]) -> Fraction:
    """Return a κ with which the best of N tries that are μ-GDP is κμ-GDP, in thousandths, rounded up.

    Args:
        weights: The chances of N = 1, 2, … M, as whole numbers of the same unit.
    """
    most = Fraction(isqrt(len(weights) * _PARTS**2 - 1) + 1, _PARTS)
    if len(weights) == 1:
        return Fraction(1)
    curve = _Curve(weights)
    low, high = _PARTS, int(most * _PARTS)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if curve.is_below(middle / _PARTS) else (middle + 1, high)
    return Fraction(high, _PARTS)


class _Curve:
    """Upper bounds of L at points c, and of what it is made of."""

    def __init__(self, weights: tuple[int, ...]) -> None:
        of_count = _OfCount(weights)
        reach = of_count.highest_loss()
        z = np.concatenate([np.arange(-ceil_to(reach + 8, _ACROSS), 3 + _ACROSS / 2, _ACROSS), [np.inf]])
        w = np.concatenate([[-np.inf], np.arange(-ceil_to(reach + 5, _ALONG), 8 + _ALONG / 2, _ALONG), [np.inf]])
        self.average, self.reach = of_count.average, reach
        self.points = np.arange(0.0, reach + 8, 1 / 8)
        first = -float(z[0])
        below = self.average * (_density(first) + (reach + STEP / 2) * _cdf_at(-first))  # of all z before the first
        self.values = np.full(self.points.size, below)
        mass = np.diff(_cdf(z))
        for start in range(0, mass.size, _AT_ONCE):
            factors, losses = _cells(of_count, z[start : start + _AT_ONCE + 1], w)
            highest, here = losses.max(axis=1), mass[start : start + _AT_ONCE]
            for place, c in enumerate(self.points.tolist()):
                rows = highest > c
                if not rows.any():
                    break
                largest = (factors[rows] * np.maximum(losses[rows] - c, 0.0)).max(axis=1)
                self.values[place] += float(largest @ here[rows])
        self.values *= 1 + _SLACK

    def is_below(self, kappa: float) -> bool:
        """Tell whether L is certainly at most what the theorem asks for."""
        lowered = kappa * exp(-((kappa * STEP) ** 2) / 8) * (1 - _SLACK)
        for place in range(self.points.size - 1):
            left, right = self.points[place], self.points[place + 1]
            middle = (left + right) / 2
            height, slope = lowered * _excess(middle / kappa), lowered / kappa * _cdf_at(-middle / kappa)
            half = slope * (right - left) / 2
            if self.values[place] > height + half or self.values[place + 1] > height - half:
                return False
        # From the last point on: L is at most average·Ψ(c − reach − h/2), which falls faster than the right side.
        last = float(self.points[-1])
        behind = last - self.reach - STEP / 2
        return behind >= last / kappa and self.average * _excess(behind) * (1 + _SLACK) <= lowered * _excess(
            last / kappa
        )


class _OfCount:
    """f′ and what follows from it, at x = 1 − B: bounds on either side, looked up in a table of B."""

    def __init__(self, weights: tuple[int, ...]) -> None:
        total = sum(weights)
        self.count = len(weights)
        # f′(x) = Σ n·P(n)·x^(n − 1)
        first = np.array([float(Fraction(n * weight, total)) for n, weight in enumerate(weights, start=1)])
        second = first[1:] * np.arange(1, self.count)
        steps = int(log(1 / _SMALLEST) / log(_RATIO)) + 1
        self._places = np.concatenate([[0.0], np.geomspace(_SMALLEST, 1.0, steps)])
        x = 1 - self._places
        self._first = np.polynomial.polynomial.polyval(x, first)
        self._second = np.polynomial.polynomial.polyval(x, second)
        self._tilted = x * self._second / self._first
        self.average = float(self._first[0])

    def highest_loss(self) -> float:
        """Return what r is never above: ψ(1 − B)·φ(w + θ), B ≥ Φ(w + θ)."""
        w = np.concatenate([[-np.inf], np.arange(-12.0, 8 + _ALONG / 2, _ALONG), [np.inf]])
        steepest = self.slope(_cdf(w[:-1]), _cdf(w[1:]))[1]
        steepest = np.maximum.accumulate(steepest[::-1])[::-1]  # B may be anything above
        return float((steepest * _most(w[:-1], w[1:])).max()) * (1 + _SLACK)

    def highest(self, b: Floats) -> Floats:
        """Return f′ at 1 − B or above."""
        return np.asarray(self._first[self._before(b)] * (1 + _SLACK))

    def slope(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return bounds of ψ(1 − B) for B between two numbers: f′, f″ and x·ψ(x), a mean of j, grow with x."""
        before, after = self._before(low), self._after(high)
        x_most = np.minimum(1 - low, 1.0)
        x_least = np.maximum(1 - high, 1e-12)
        upper = np.minimum(self._second[before] / self._first[after], self._tilted[before] / x_least)
        lower = np.maximum(self._second[after] / self._first[before], self._tilted[after] / np.maximum(x_most, 1e-12))
        return lower * (1 - _SLACK), upper * (1 + _SLACK)

    def _before(self, b: Floats) -> NDArray[np.intp]:
        """Return the place of the next number of the table that is not above B, with room for rounding."""
        return np.maximum(np.searchsorted(self._places, b * (1 - _SLACK), side="right") - 1, 0)

    def _after(self, b: Floats) -> NDArray[np.intp]:
        return np.minimum(np.searchsorted(self._places, b * (1 + _SLACK), side="left"), self._places.size - 1)


def _cells(of_count: _OfCount, z: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return of each cell of z and w the largest f′(1 − B_0), and the largest r + h/2 − z, 0 where no B is below 1."""
    cdf_z, cdf_w, moved = _cdf(z), _cdf(w), _cdf(w + STEP)
    low = cdf_z[:-1, None] + cdf_w[None, :-1]
    start = _cdf(z - STEP)[:-1, None] + cdf_w[None, :-1]
    end = np.minimum(cdf_z[1:, None] + moved[None, 1:], 1.0)
    least, greatest = of_count.slope(np.minimum(start, 1.0), end)
    difference = _most(w[:-1], w[1:] + STEP)[None, :] - _least(z[:-1] - STEP, z[1:])[:, None] + _SLACK
    losses = np.where(difference > 0, greatest * difference, least * difference) + STEP / 2 - z[:-1, None] + _SLACK
    there = low <= 1 + _SLACK
    return np.where(there, of_count.highest(np.minimum(low, 1.0)), 0.0), np.where(there, losses, -np.inf)


def _most(low: Floats, high: Floats) -> Floats:
    """Return the largest density between two numbers."""
    return np.where((low <= 0) & (high >= 0), _density(0.0), np.maximum(_densities(low), _densities(high)))


def _least(low: Floats, high: Floats) -> Floats:
    return np.minimum(_densities(low), _densities(high))


def _densities(at: Floats) -> Floats:
    return np.asarray(np.exp(-np.square(at) / 2) / sqrt(2 * pi))


def _density(at: float | Floats) -> Floats:
    return _densities(np.asarray(at, dtype=np.float64))


def _cdf_at(at: float) -> float:
    return erfc(-at / sqrt(2)) / 2


def _cdf(at: Floats) -> Floats:
    return np.array([_cdf_at(one) for one in at.tolist()])


def _excess(at: float) -> float:
    """Return Ψ(t) = E(Z − t)₊; what cancels leaves a relative error of t²·2⁻⁵² at most."""
    return exp(-at * at / 2) / sqrt(2 * pi) - at * _cdf_at(-at)


def ceil_to(number: float, unit: float) -> float:
    """Return the next multiple of a power of two."""
    return float(np.ceil(number / unit) * unit)
