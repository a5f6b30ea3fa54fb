"""Bounds with a proof: rational intervals that contain the true value of a real formula.

Formulas are evaluated in python-flint's ball arithmetic, where every operation returns a ball that provably contains
the exact result, and the ball's ends are returned as exact rationals. A caller takes the end that errs towards more
privacy. This is the only module that knows flint, but for `integrals`.
"""

import math
import os
from collections.abc import Callable, Iterable
from fractions import Fraction
from threading import Lock
from typing import NamedTuple

from flint import arb, ctx, fmpq

Ball = arb
"""A real number known up to a proven error; formulas given to `enclose` are functions of these."""

# flint's working precision is one global of the process. Any precision gives a true ball, so the lock is not for
# soundness: it keeps one thread from widening another's.
_PRECISION_LOCK = Lock()
if hasattr(os, "register_at_fork"):  # a child must not wait for a thread that it does not have
    os.register_at_fork(
        before=_PRECISION_LOCK.acquire,
        after_in_parent=_PRECISION_LOCK.release,
        after_in_child=_PRECISION_LOCK.release,
    )

# Ends are returned as rationals, so a magnitude outside 2^±_LARGEST_EXPONENT would fill the memory with zeros.
_LARGEST_EXPONENT = 1 << 14
_MOST_BITS = 1 << 15


class Enclosure(NamedTuple):
    """An interval that contains the true value."""

    lower: Fraction
    upper: Fraction


class Bracket(NamedTuple):
    """Integers lower ≤ 2^bits · value ≤ upper around a true value; the number of bits is the caller's."""

    lower: int
    upper: int


def enclose(formula: Callable[..., Ball], *arguments: Fraction, bits: int = 128) -> Enclosure:
    """Return rational bounds on a formula of balls, evaluated with a working precision of `bits`.

    Raises:
        ArithmeticError: If the formula has no finite value at this precision.
    """
    with _PRECISION_LOCK, ctx.workprec(bits):
        ball = _evaluate(formula, arguments)
        if not ball.is_finite():
            raise ArithmeticError("the formula has no finite enclosure here")
        return _ends(ball)


def enclose_tightly(formula: Callable[..., Ball], *arguments: Fraction, bits: int = 64) -> Enclosure:
    """Return bounds whose width is at most about 2^−bits of the value, raising the precision until that is so.

    A magnitude below 2^−16384 counts as that tight already.

    Raises:
        ArithmeticError: If no precision up to 2^15 bits suffices.
    """
    working = bits + 64
    while working <= _MOST_BITS:
        with _PRECISION_LOCK, ctx.workprec(working):
            ball = _evaluate(formula, arguments)
            if ball.is_finite() and (ball.rel_accuracy_bits() >= bits or _is_negligible(ball)):
                return _ends(ball)
        working *= 2
    raise ArithmeticError(f"the formula is not known to {bits} bits at a working precision of {_MOST_BITS} bits")


def _evaluate(formula: Callable[..., Ball], arguments: tuple[Fraction, ...]) -> Ball:
    return formula(*(arb(fmpq(x.numerator, x.denominator)) for x in arguments))


def _is_negligible(ball: Ball) -> bool:
    mantissa, exponent = (int(part) for part in ball.abs_upper().man_exp())
    return mantissa == 0 or exponent + mantissa.bit_length() < -_LARGEST_EXPONENT


def _ends(ball: Ball) -> Enclosure:
    return Enclosure(-_rational_up(-ball.lower()), _rational_up(ball.upper()))


def _rational_up(point: Ball) -> Fraction:
    """Return an exact point, or 0 or 2^−_LARGEST_EXPONENT above it if it is too near to 0 to be written out."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    magnitude = exponent + mantissa.bit_length()
    if magnitude > _LARGEST_EXPONENT:
        raise ArithmeticError("the formula's value is too large to be written out")
    if magnitude < -_LARGEST_EXPONENT:
        return Fraction(1, 1 << _LARGEST_EXPONENT) if mantissa > 0 else Fraction(0)
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def fixed_points(formula: Callable[..., Ball], rows: Iterable[tuple[Fraction, ...]], *, bits: int) -> list[Bracket]:
    """Return brackets on 2^bits times a formula of balls, for many rows of arguments.

    The working precision is 64 bits above the result's. A value too small to matter costs nothing: its bracket is
    about (−1, 1).

    Raises:
        ArithmeticError: If the formula has no finite value at this precision, or one beyond 2^64.
    """
    with _PRECISION_LOCK, ctx.workprec(bits + 64):
        unit, limit = arb(2) ** bits, arb(2) ** (bits + 64)
        return [_bracket(_evaluate(formula, row) * unit, limit) for row in rows]


def fixed_point(formula: Callable[..., Ball], *arguments: Fraction, bits: int) -> Bracket:
    """Return a bracket on 2^bits times a formula of balls."""
    return fixed_points(formula, [arguments], bits=bits)[0]


def _bracket(ball: Ball, limit: Ball) -> Bracket:
    # Below the limit the working precision holds every digit before the point, so floor and ceil are exact.
    if not abs(ball) < limit:
        raise ArithmeticError("the formula's value is not finite, or too large to be written out")
    return Bracket(_integer(ball.lower().floor()), _integer(ball.upper().ceil()))


def _integer(point: Ball) -> int:
    whole = point.unique_fmpz()
    if whole is None:
        raise ArithmeticError("the working precision does not hold the integer part")
    return int(whole)


def within(bracket: Bracket, bits: int) -> Bracket:
    """Use that a probability lies between 0 and 1."""
    return Bracket(max(bracket.lower, 0), min(bracket.upper, 1 << bits))


def complement(bracket: Bracket, bits: int) -> Bracket:
    """Return the bracket of 1 − p from the bracket of p."""
    return Bracket((1 << bits) - bracket.upper, (1 << bits) - bracket.lower)


def exp(x: Fraction, bits: int = 128) -> Enclosure:
    """Bound e^x."""
    return enclose(arb.exp, x, bits=bits)


def log(x: Fraction, bits: int = 128) -> Enclosure:
    """Bound the natural logarithm of x > 0."""
    return enclose(arb.log, x, bits=bits)


def normal_cdf_ball(x: Ball) -> Ball:
    """Return Φ(x) = erfc(−x/√2)/2 as a ball; for use inside formulas given to `enclose`."""
    return (-x / arb(2).sqrt()).erfc() / 2


def normal_pdf_ball(x: Ball) -> Ball:
    """Return φ(x) = e^(−x²/2)/√(2π) as a ball; for use inside formulas given to `enclose`."""
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def normal_two_sided_quantile_ball(tail: Ball) -> Ball:
    """Return the z > 0 with P(|N(0, 1)| > z) = tail, as a ball; for use inside formulas given to `enclose`."""
    return arb(2).sqrt() * tail.erfcinv()


def dyadic_up(x: Fraction, bits: int) -> Fraction:
    """Return the smallest n·2^k ≥ x > 0 with n of at most `bits` binary digits (0 for x = 0)."""
    if x == 0:
        return x
    unit = dyadic_unit(x, bits)
    return math.ceil(x / unit) * unit


def dyadic_unit(x: Fraction, bits: int) -> Fraction:
    """Return the power of two u with 2^(bits − 2) < x/u < 2^bits, for x > 0."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - bits + 1
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def square_root_up(x: Fraction, bits: int = 64) -> Fraction:
    """Return √x for x ≥ 0: exactly if it is rational, else rounded up to a dyadic of about `bits` binary digits."""
    root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    if root**2 == x:
        return root
    exponent = (x.numerator.bit_length() - x.denominator.bit_length()) // 2 - bits
    unit = Fraction(2) ** exponent
    return (math.isqrt(math.ceil(x / unit**2) - 1) + 1) * unit
