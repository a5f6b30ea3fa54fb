"""Naive targets of reconstruction: counts with noise that does not grow with the number of questions.

None of it has a way into the engine.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.chance import generator

BASE: Final = 5
"""Counts are rounded at random to multiples of this, as some offices do; the expected count is the true one."""


def rounded_at_random(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the multiple of 5 above or below, each with the probability that keeps the expectation."""
    rest = counts % BASE
    up = generator().integers(0, BASE, counts.shape) < rest
    return counts - rest + BASE * up


def within(counts: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    """Return counts with uniform noise that is never larger than `reach`."""
    return counts + generator().integers(-reach, reach + 1, counts.shape)
