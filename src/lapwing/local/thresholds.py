"""How a mechanism's integers follow from ε: thresholds of 64-bit words, rounded towards more privacy.

Other parameters, such as the size of a set, are chosen for the least variance (`least`).
"""

import math
from collections.abc import Callable
from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.local.client import WHOLE
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, exact

LARGEST_EPSILON = 32
_BITS = 128


def threshold(value: int, name: str) -> int:
    """Return a threshold from 1 to 2^64 − 1."""
    return whole_number(value, name, least=1, most=WHOLE - 1)


def chance(threshold: int) -> Fraction:
    """Return the probability that a word lies below a threshold."""
    return Fraction(threshold, WHOLE)


def odds_down(epsilon: Fraction, against: Fraction) -> int:
    """Return ⌊2^64·e^ε/(e^ε + against)⌋: a coin that tells the truth no more often than ε allows."""

    def formula(e: Ball, m: Ball) -> Ball:
        grown = e.exp()
        return grown / (grown + m)

    return _within(math.floor(_enclosed(formula, epsilon, against)[0] * WHOLE))


def odds_up(epsilon: Fraction) -> int:
    """Return ⌈2^64/(e^ε + 1)⌉: a coin that lies no less often than ε demands."""
    return _within(math.ceil(_enclosed(lambda e: 1 / (e.exp() + 1), epsilon)[1] * WHOLE))


def epsilon_of(value: Number) -> Fraction:
    """Return an ε from above 0 to 32, exactly."""
    number = exact(value, "epsilon")
    if not 0 < number <= LARGEST_EPSILON:
        raise InvalidParameter(f"epsilon is {value}; it must be above 0, and {LARGEST_EPSILON} at most.")
    return number


def least(cost: Callable[[int], Fraction], guess: int, allowed: range) -> int:
    """Return the integer of the least cost: walk downhill from a guess, in steps that shrink to 1."""
    here = min(max(guess, allowed.start), allowed.stop - 1)
    best, step = cost(here), max(1, here // 2)
    while step:
        for there in (here - step, here + step):
            if there in allowed and (price := cost(there)) < best:
                here, best = there, price
                break
        else:
            step //= 2
    return here


def _enclosed(formula: Callable[..., Ball], *arguments: Fraction) -> tuple[Fraction, Fraction]:
    return enclose_tightly(formula, *arguments, bits=_BITS)


def _within(number: int) -> int:
    return min(max(number, 1), WHOLE - 1)
