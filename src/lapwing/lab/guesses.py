"""How often guesses about someone are right, by law: by one answer, by many with fresh noise, and by a majority.

The derivations are those of *one-query* and *averaging*.
"""

from math import comb, exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_REPEATS: Final = 5_000
"""An attack ends after so many answers; fresh noise withstands it at an ε below 0.047."""
CELLS: Final = 32
"""Of the grid, from 0 to the largest term."""

Floats = NDArray[np.float64]


def at_most(epsilon: float) -> float:
    """Return how often a guess between two neighbours is right at most, whatever it goes by, after a loss of ε."""
    return 1 / (1 + exp(-epsilon))


def term_law(epsilon: float) -> Floats:
    """Return the law of one term in units of ε, on a grid from −1 to 1, if x = 1."""
    points = np.linspace(-1.0, 1.0, 2 * CELLS + 1)
    edges = np.concatenate(([-1.0], (points[:-1] + points[1:]) / 2, [1.0]))
    law = np.diff(np.exp(-epsilon * (1 - edges) / 2) / 2)
    law[0] += exp(-epsilon) / 2
    law[-1] += 0.5
    return law


def beyond(epsilon: float, repeats: int, level: float) -> float:
    """Return P(S > level) after so many answers, if x = 1; a cell of the grid counts in the part that is beyond."""
    length = 2 * CELLS * repeats + 1
    size = 1 << (length - 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(term_law(epsilon), size) ** repeats, size)[:length]
    places = np.arange(length) - CELLS * repeats
    return float(law @ np.clip(places + 0.5 - level * CELLS / epsilon, 0.0, 1.0))


def least_repeats(epsilon: float, level: float, chance: float) -> int | None:
    """Return after how many answers P(S > level) is at least what is wanted; None if that takes too many."""
    most = 1
    while beyond(epsilon, most, level) < chance:
        if most >= MOST_REPEATS:
            return None
        most = min(2 * most, MOST_REPEATS)
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if beyond(epsilon, middle, level) >= chance else (middle, most)
    return most


def by_majority(epsilon: float, answers: int) -> float:
    """Return how often the majority of so many guesses is right, by one answer of ε each; a tie counts half."""
    p = at_most(epsilon)
    chances = [comb(answers, right) * p**right * (1 - p) ** (answers - right) for right in range(answers + 1)]
    tie = chances[answers // 2] if answers % 2 == 0 else 0.0
    return min(1.0, sum(chances[answers // 2 + 1 :]) + tie / 2)  # the sum may end an ulp above 1
