"""A naive target of timing: a geometric sampler that throws coins until one fails, as many libraries do.

None of it has a way into the engine.
"""

from math import exp
from typing import NamedTuple

from lapwing.lab.chance import generator

_DRAWING = generator()


class Draw(NamedTuple):
    """A number and how many coins it took."""

    noise: int
    coins: int


def discrete_laplace(scale: float) -> Draw:
    """Return discrete Laplace noise: a sign, and as many coins as succeed; anew if that is −0."""
    drawing, again = _DRAWING.random, exp(-1 / scale)
    coins = 0
    while True:
        sign = -1 if drawing() < 0.5 else 1
        size = 0
        coins += 1
        while drawing() < again:
            size += 1
            coins += 1
        if size or sign > 0:
            return Draw(sign * size, coins)
