"""A naive target: respondents who answer the same question every day, each time with fresh coins.

None of it has a way into the engine; the coins are as good as ours, only that they are thrown anew.
"""

from fractions import Fraction
from math import exp

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.chance import generator


def reports_with_fresh_coins(answers: NDArray[np.int64], epsilon: Fraction, days: int) -> NDArray[np.int8]:
    """Return what each person reports, a row each, on so many days: the truth with probability e^ε/(1 + e^ε)."""
    lies = generator().random((answers.size, days)) < 1 / (1 + exp(float(epsilon)))
    reports: NDArray[np.int8] = (answers[:, None] != lies).astype(np.int8)
    return reports
