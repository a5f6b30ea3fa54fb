"""Bounds with a proof: rational intervals that contain the true value of a real formula.

Formulas are evaluated in python-flint's ball arithmetic, where every operation returns a ball that provably contains
the exact result, and the ball's ends are returned as exact rationals. A caller takes the end that errs towards more
privacy. This is the only module that knows flint.
"""

from collections.abc import Callable
from fractions import Fraction
from threading import Lock
from typing import NamedTuple

from flint import arb, ctx, fmpq

# flint's working precision is one global of the process. Any precision gives a true ball, so the lock is not for
# soundness: it keeps one thread from widening another's.
_PRECISION_LOCK = Lock()


class Bounds(NamedTuple):
    """An interval that contains the true value."""

    lower: Fraction
    upper: Fraction


def enclose(formula: Callable[..., arb], *arguments: Fraction, bits: int = 128) -> Bounds:
    """Return rational bounds on a formula of balls, evaluated with a working precision of `bits`.

    Raises: ArithmeticError if the formula has no finite value at this precision.
    """
    with _PRECISION_LOCK, ctx.workprec(bits):
        ball = formula(*(arb(fmpq(x.numerator, x.denominator)) for x in arguments))
        if not ball.is_finite():
            raise ArithmeticError("the formula has no finite enclosure here")
        return Bounds(_exact(ball.lower()), _exact(ball.upper()))


def _exact(point: arb) -> Fraction:
    mantissa, exponent = point.man_exp()
    scale = Fraction(2) ** int(exponent)
    return int(mantissa) * scale


def exp(x: Fraction, bits: int = 128) -> Bounds:
    """Bound e^x."""
    return enclose(arb.exp, x, bits=bits)


def log(x: Fraction, bits: int = 128) -> Bounds:
    """Bound the natural logarithm of x > 0."""
    return enclose(arb.log, x, bits=bits)


def sqrt(x: Fraction, bits: int = 128) -> Bounds:
    """Bound the square root of x ≥ 0."""
    return enclose(arb.sqrt, x, bits=bits)


def normal_cdf_ball(x: arb) -> arb:
    """Return Φ(x) = erfc(−x/√2)/2 as a ball; for use inside formulas given to `enclose`."""
    return (-x / arb(2).sqrt()).erfc() / 2


def normal_cdf(x: Fraction, bits: int = 128) -> Bounds:
    """Bound the standard normal distribution function Φ(x)."""
    return enclose(normal_cdf_ball, x, bits=bits)
