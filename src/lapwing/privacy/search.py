"""Searches whose result is certified by a test, however poor the guess that they begin with; and guesses."""

import math
from collections.abc import Callable
from fractions import Fraction


def largest(test: Callable[[int], bool], *, guess: int, least: int = 0) -> int:
    """Return the largest n ≥ `least` that passes a test which is true up to some n and false beyond it.

    The result has passed the test, unless it is `least`, which is taken to pass. Evaluates the test about
    2·log₂|guess − n| times.
    """
    low, step = max(guess, least), 1
    if low == least or test(low):
        while test(low + step):
            low, step = low + step, 2 * step
        high = low + step
    else:
        high = low
        while (low := max(least, high - step)) > least and not test(low):
            high, step = low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if test(middle) else (low, middle)
    return low


def smallest(test: Callable[[int], bool], *, guess: int, least: int = 0) -> int:
    """Return the smallest n ≥ `least` that passes a test which is false up to some n and true beyond it.

    The result has passed the test.
    """
    return largest(lambda n: not test(n), guess=guess - 1, least=least - 1) + 1


def minus_log(x: Fraction) -> float:
    """Return about ln(1/x) for x > 0, however small: a guess, in floating point."""
    return math.log(x.denominator) - math.log(x.numerator)
