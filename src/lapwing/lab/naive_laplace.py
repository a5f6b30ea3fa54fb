"""A naive target: Laplace noise in double precision, as textbooks and libraries wrote it, and what it can give.

None of it has a way into the engine.
"""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.chance import generator

Floats = NDArray[np.float64]
UNIT = 2.0**-53
"""The step of the uniform numbers."""


def answers(true: float, scale: float, size: int) -> Floats:
    """Return true + noise, noise = ±scale·ln u of a uniform u of 53 bits."""
    drawing = generator()
    sign = 2.0 * drawing.integers(0, 2, size) - 1.0
    noisy: Floats = true + sign * (scale * np.log(drawing.integers(1, 2**53 + 1, size) * UNIT))
    return noisy


def can_give(answer: Floats, true: float, scale: float) -> NDArray[np.bool_]:
    """Tell for each answer whether some u leads to it from a true figure: by trying all that may.

    If true + noise was rounded to y, then noise is y − true up to an ulp of y and one of itself, and so u·2^53 is
    e^(−|y − true|/scale)·2^53 up to 2 + 2/scale or so: as many are tried on both sides, and some more.
    """
    noise = answer - true
    sign = np.where(noise < 0, 1.0, -1.0)
    nearest = np.rint(np.exp(-np.abs(noise) / scale) / UNIT)
    possible = np.zeros(answer.shape, dtype=np.bool_)
    reach = 6 + ceil(2 / scale)
    for step in range(-reach, reach + 1):
        u = np.clip(nearest + step, 1.0, 2.0**53) * UNIT
        possible |= true + sign * (scale * np.log(u)) == answer
    return possible
