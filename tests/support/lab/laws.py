"""The discrete Laplace by its probabilities, one integer at a time: what the lab's formulas are compared with."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def discrete_laplace(scale: float, true: int, reach: int) -> Floats:
    """Return the probabilities of the answers from −reach to reach, made to add up to 1."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1) - true) / scale)
    law: Floats = weights / weights.sum()
    return law


def best_guess(one: Floats, other: Floats) -> float:
    """Return how often the best guess between two laws is right, each of them as likely as the other."""
    return float(np.maximum(one, other).sum() / 2)
