"""Laws of finitely many atoms: as transforms, for compositions, and as sums, for one use of any and many of a coin."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import final

import numpy as np

from lapwing.exact.bounds import Ball, Enclosure, enclose, enclose_tightly, fixed_points
from lapwing.privacy.discs import UNIT, Discs, rotations, up
from lapwing.privacy.loss_laws import FINE, WEIGHT_BITS, FloatArray, Nodes, Transform, guessed_scale

_CURVE_BITS = 200
_BINOMIAL_BITS = 192
_CURVE_ERROR = Fraction(1, 1 << 140)


@final
@dataclass(frozen=True, slots=True, eq=False)
class AtomLaw:
    """Finitely many atoms.

    Args:
        positions: Losses.
        masses: > 0, each within a relative MASS_ERROR of the true one.
        infinite: The mass at +∞.
    """

    positions: tuple[Fraction, ...]
    masses: tuple[Fraction, ...]
    infinite: Fraction = Fraction(0)

    @property
    def most(self) -> Fraction | None:
        """The largest finite loss."""
        return max(self.positions, default=Fraction(0))

    def log_moments(self, tilts: FloatArray) -> FloatArray:
        """Return log M(tilt), as a guess in floats."""
        positions, logs = _floats(self)
        exponents = np.multiply.outer(tilts, positions) + logs
        most = exponents.max(axis=1)
        return np.asarray(most + np.log(np.exp(exponents - most[:, None]).sum(axis=1)))

    def transform(self, nodes: Nodes) -> Transform:
        """Return Σ m·e^(zl), atom by atom; one of weight below 2⁻⁸⁰ is left to the radius."""
        scale = guessed_scale(self, nodes.tilt)
        tilt, step = Fraction(nodes.tilt), Fraction(nodes.step)
        rows = [(tilt * at - scale, mass) for at, mass in zip(self.positions, self.masses, strict=True)]
        centres = np.zeros(nodes.size, dtype=np.complex128)
        radius = bound = 0.0
        for position, bracket in zip(
            self.positions, fixed_points(lambda x, m: m * x.exp(), rows, bits=WEIGHT_BITS), strict=True
        ):
            weight = (bracket.lower + bracket.upper) / 2 * FINE
            bound += weight
            if weight < 2.0**-80:
                radius += weight
                continue
            if not step:  # one real place
                centres += weight
                continue
            phases = rotations(step * position, nodes.size)
            centres += weight * phases.centres
            radius += weight * phases.radius
        # A weight is within 2⁻⁹⁵ + (MASS_ERROR + 2u)·weight, its product within 2u, and a sum of K within K·u of Σ|·|.
        count = len(rows)
        radius += (count + 8) * UNIT * bound + count * 2 * FINE
        bound = up(bound * (1 + (count + 4) * UNIT) + count * 2 * FINE)
        return Transform(Discs(centres, up(radius), bound), scale)

    def log_decay(self, tilt: float, reach: float) -> float:
        """Return 0: somewhere M is about as large again."""
        return 0.0


@lru_cache(maxsize=1 << 7)
def _floats(law: AtomLaw) -> tuple[FloatArray, FloatArray]:
    """Return positions and logarithms of masses, for guesses."""
    positions = np.array([float(position) for position in law.positions])
    return positions, np.array([math.log(m.numerator) - math.log(m.denominator) for m in law.masses])


@final
@dataclass(frozen=True, slots=True, eq=False)
class AtomCurve:
    """D(y) = Σ over atoms l > y of m·(1 − e^(y−l)) = P(l > y) − e^y·Q(l > y).

    Args:
        positions: The atoms, rising.
        above_p: The sums of m and of m·e^(−l) from each on, and 0.
        above_q: The sums of m and of m·e^(−l) from each on, and 0.
    """

    positions: tuple[Fraction, ...]
    above_p: tuple[Fraction, ...]
    above_q: tuple[Fraction, ...]

    @classmethod
    def of(cls, law: AtomLaw) -> "AtomCurve":
        """Sum the atoms from the top."""
        atoms = sorted(zip(law.positions, law.masses, strict=True))
        q = [enclose_tightly(lambda at, m: m * (-at).exp(), at, m, bits=_CURVE_BITS).upper for at, m in atoms]
        return cls(tuple(at for at, _ in atoms), _sums([m for _, m in atoms]), _sums(q))

    def bounds(self, epsilon: float) -> Enclosure:
        """Return certified bounds on D(epsilon): masses are within 2⁻¹⁵⁰ of themselves, the rest is finer."""
        first = bisect_right(self.positions, Fraction(epsilon))
        p, q = self.above_p[first], self.above_q[first]
        taken = enclose(Ball.exp, Fraction(epsilon), bits=_CURVE_BITS)
        error = _CURVE_ERROR * (p + taken.upper * q)
        return Enclosure(max(Fraction(0), p - taken.upper * q - error), max(Fraction(0), p - taken.lower * q) + error)

    def above(self, epsilon: float) -> Fraction:
        """Return a certified upper bound on D(epsilon)."""
        return self.bounds(epsilon).upper

    def below(self, epsilon: float) -> Fraction:
        """Return a certified lower bound on D(epsilon)."""
        return self.bounds(epsilon).lower

    def guess(self, epsilon: float) -> tuple[float, float]:
        """Return the logarithm of D(epsilon), for both bounds."""
        near = _log(self.bounds(epsilon).upper)
        return near, near


@final
@dataclass(frozen=True, slots=True, eq=False)
class BinomialCurve:
    """D of a law of two atoms, h > l, taken n times: k times h and n − k times l is a loss of l_k = k·h + (n − k)·l.

    D(y) = Σ over l_k > y of C(n, k)·m_h^k·m_l^(n−k)·(1 − e^(y−l_k)) = P − e^y·Q, where with p = m_h/(m_h + m_l) and the
    first k above y, P = (m_h + m_l)^n·P(Bin(n, p) ≥ k), and P(Bin(n, p) ≥ k) = I_p(k, n − k + 1), the regularised
    incomplete beta function. Q is the same of the masses m·e^(−loss).
    """

    law: AtomLaw
    count: int

    def bounds(self, epsilon: float) -> Enclosure:
        """Return certified bounds on D(epsilon): masses are within 2⁻¹⁵⁰ of themselves, powers within count·2⁻¹⁴⁹."""
        (low, light), (high, heavy) = sorted(zip(self.law.positions, self.law.masses, strict=True))
        n, y = self.count, Fraction(epsilon)
        first = max(0, math.floor((y - n * low) / (high - low)) + 1)
        if first > n:
            return Enclosure(Fraction(0), Fraction(0))

        def tail(heavy: Ball, light: Ball, factor: Ball) -> Ball:
            total, k = heavy + light, Ball(first)
            above = (heavy / total).beta_lower(k, n + 1 - k, regularized=True) if first else Ball(1)
            return (factor + n * total.log()).exp() * above

        def turned(heavy: Ball, light: Ball, high: Ball, low: Ball, y: Ball) -> Ball:
            return tail(heavy * (-high).exp(), light * (-low).exp(), y)

        try:
            p = enclose(tail, heavy, light, Fraction(0), bits=_BINOMIAL_BITS)
            q = enclose(turned, heavy, light, high, low, y, bits=_BINOMIAL_BITS)
        except ArithmeticError:
            return Enclosure(Fraction(0), Fraction(1))  # too few digits for so many uses
        error = n * _CURVE_ERROR * (p.upper + q.upper)
        return Enclosure(max(Fraction(0), p.lower - q.upper - error), max(Fraction(0), p.upper - q.lower) + error)

    def above(self, epsilon: float) -> Fraction:
        """Return a certified upper bound on D(epsilon)."""
        return self.bounds(epsilon).upper

    def below(self, epsilon: float) -> Fraction:
        """Return a certified lower bound on D(epsilon)."""
        return self.bounds(epsilon).lower

    def guess(self, epsilon: float) -> tuple[float, float]:
        """Return the logarithms of both bounds."""
        lower, upper = self.bounds(epsilon)
        return _log(lower), _log(upper)


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator) if x else -math.inf


def _sums(values: list[Fraction]) -> tuple[Fraction, ...]:
    return tuple(accumulate(reversed(values), initial=Fraction(0)))[::-1]
