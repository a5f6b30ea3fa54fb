"""Vectors of complex numbers, each known up to a proven distance: floats where speed is needed, with their error.

The only facts used about the hardware are those of IEEE 754 doubles: an operation's result is within a relative
u = 2⁻⁵³ of the true one (within 2⁻¹⁰⁷⁴ where it underflows), so that a complex product is within √5·u (Brent, Percival
and Zimmermann 2007), fused or not. No elementary function of NumPy is relied on: sines and exponentials come from ball
arithmetic and are continued by products.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.bounds import Ball, fixed_point

ComplexArray = NDArray[np.complex128]

UNIT = 2.0**-53
_SEED_BITS = 160


def up(value: float) -> float:
    """Return a float above the exact result of the few sums and products of floats ≥ 0 that made this one."""
    return value * (1 + 2.0**-48) + 2.0**-1000


@dataclass(frozen=True, slots=True, eq=False)
class Discs:
    """Numbers zₙ with |centres[n] − zₙ| ≤ radius and |zₙ| ≤ bound."""

    centres: ComplexArray
    radius: float
    bound: float

    def __mul__(self, other: "Discs") -> "Discs":
        rounding = 4 * UNIT * (self.bound + self.radius) * (other.bound + other.radius)
        radius = self.radius * other.bound + other.radius * self.bound + self.radius * other.radius + rounding
        return Discs(self.centres * other.centres, up(radius), up(self.bound * other.bound))

    def __add__(self, other: "Discs") -> "Discs":
        bound = up(self.bound + other.bound)
        radius = self.radius + other.radius
        return Discs(self.centres + other.centres, up(radius + 2 * UNIT * (bound + radius)), bound)

    def __sub__(self, other: "Discs") -> "Discs":
        return self + Discs(-other.centres, other.radius, other.bound)

    def scaled(self, factor: float, error: float) -> "Discs":
        """Return the product with a number ≥ 0 that is within `error` of `factor`."""
        bound = up(self.bound * (factor + error))
        radius = self.radius * factor + self.bound * error + 2 * UNIT * (bound + self.radius * factor)
        return Discs(self.centres * factor, up(radius), bound)

    def conjugate(self) -> "Discs":
        """Return the complex conjugates."""
        return Discs(self.centres.conj(), self.radius, self.bound)

    def within(self, bound: float) -> "Discs":
        """Return the same numbers, of which it is known otherwise that |zₙ| ≤ bound."""
        return Discs(self.centres, self.radius, min(self.bound, bound))

    def power(self, exponent: int) -> "Discs":
        """Return zₙ^exponent for an exponent ≥ 1 by squaring; the radius grows about in proportion to it."""
        result, square = None, self
        while True:
            if exponent & 1:
                result = square if result is None else result * square
            exponent >>= 1
            if not exponent:
                return result if result is not None else square
            square = square * square


def rotations(turn: Fraction, count: int) -> Discs:
    """Return e^(i·n·turn) for n from 0 to count − 1.

    Entry 2^j + m is entry m times e^(i·2^j·turn), so each is a product of at most log₂(count) + 1 seeds. A seed comes
    from one sine and cosine by squaring in integers: squaring doubles its error and adds less than 2 units of 2⁻¹⁶⁰, so
    that after j ≤ 40 steps it is below 2⁻¹¹⁰, and rounding it to floats adds a relative u. Each product adds at most
    √5·u. So an entry is within (√5 + 1 + 0.1)·u·levels < 4·u·levels, where entries have modulus 1 + O(u·levels).
    """
    values = np.ones(count, dtype=np.complex128)
    levels = (count - 1).bit_length()
    if turn == 0 or levels == 0:
        return Discs(values, 0.0, 1.0)
    one = 1 << _SEED_BITS
    x = fixed_point(Ball.cos, turn, bits=_SEED_BITS).lower
    y = fixed_point(Ball.sin, turn, bits=_SEED_BITS).lower
    filled = 1
    while filled < count:
        stop = min(2 * filled, count)
        np.multiply(values[: stop - filled], complex(x / one, y / one), out=values[filled:stop])
        filled = stop
        x, y = (x * x - y * y) >> _SEED_BITS, (2 * x * y) >> _SEED_BITS
    return Discs(values, up(4 * UNIT * levels), 1.0)


def reciprocals(values: ComplexArray, relative: float) -> tuple[ComplexArray, float]:
    """Return 1/z and its relative error, for z ≠ 0 of moderate size, known up to a relative distance ≤ 0.01.

    1/z = z̄/|z|²: the sum of squares is within 2u, the two quotients within another u.
    """
    squares = values.real**2 + values.imag**2
    return values.conj() / squares, 1.02 * relative + 4 * UNIT
