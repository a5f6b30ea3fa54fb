"""The meaning of a loss for somebody who guesses about one privacy unit: how often the guess is right, out of 100.

Two data sets are neighbours, and both seem equally likely to somebody who sees an output of one of them. This person
guesses which it was. Without the output, a guess is right 50 times out of 100.
"""

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Final

from lapwing.exact.bounds import exp
from lapwing.exact.floats import float_up
from lapwing.privacy.additive import GaussianDP, Loss, PureDP

WITHOUT: Final = 50
"""Guesses that are right out of 100 without any output."""
_NORMAL: Final = NormalDist()


def guessed(neighbouring: str, one: str = "a person") -> str:
    """Return the subject of a guess."""
    presence, contents = f"whether {one} is in the data", f"which of two things the data say about {one}"
    return presence if neighbouring == "add_remove" else contents


def right_guesses_up(loss: Loss, delta: Fraction = Fraction(0)) -> Fraction:
    """Return how often a guess between two equally likely neighbours is right at most, rounded up.

    No guess is right more often than (1 + d)/2, where d is the total variation distance of the two laws of the output.
    An exact loss bounds d: ε by (e^ε − 1)/(e^ε + 1), and μ by 2·Φ(μ/2) − 1. With ρ the divergence is ρ at most, so d
    is at most √(ρ/2) and at most √(1 − e^(−ρ)). If the loss holds with probability 1 − δ (`privacy.approximate`), and
    bounds the distance of its own pair by d₀, then d ≤ δ + (1 − δ)·d₀. Rounded up to a hundredth of a percent, of a
    float's accuracy.

    Args:
        delta: The probability with which the loss may not hold.

    Source:
        Kairouz, Oh and Viswanath 2015 for (ε, δ); Dong, Roth and Su 2022 for μ. Bun and Steinke 2016, with the
        inequalities of Pinsker and of Bretagnolle and Huber, for ρ.

    >>> right_guesses_up(PureDP(0)), right_guesses_up(PureDP(1)), right_guesses_up(GaussianDP(1))
    (Fraction(1, 2), Fraction(7311, 10000), Fraction(1383, 2000))
    """
    distance = float(delta) + (1 - float(delta)) * _distance_up(loss)
    return Fraction(min(10_000, math.ceil(5_000 * (1 + distance) + 1e-6) if distance else 5_000), 10_000)


def _distance_up(loss: Loss) -> float:
    """Return the largest total variation distance that a loss allows."""
    if isinstance(loss, PureDP):
        return 1 - 2 / (1 + float_up(exp(loss.epsilon).upper)) if loss.epsilon < 700 else 1.0
    if isinstance(loss, GaussianDP):
        return 2 * _NORMAL.cdf(loss.mu / 2) - 1
    rho = float_up(loss.amount)
    return min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))


def times_of_100(right: Fraction) -> int:
    """Return a share of guesses in whole times out of 100, rounded up."""
    return math.ceil(100 * right)


def in_words(times: int) -> str:
    """Say how often a guess can be right, out of 100: the same words everywhere.

    >>> in_words(74), in_words(100)
    ('right at most 74 times out of 100', 'right nearly always')
    """
    return "right nearly always" if times > 99 else f"right at most {times} times out of 100"
