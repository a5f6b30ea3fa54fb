"""How many reports support each value, drawn without drawing the reports where their law allows it.

The law is that of `support_counts(randomize(values))`, up to probabilities rounded to floats:

- Binary and unary: each report supports each value by a coin of its own, so each count is a sum of two binomials.
- k-ary: of the respondents with a value, a binomial number keeps it, and the rest is spread over the others evenly.
- Subset: a set is uniform among those of its size without the true value. So values are gone through one by one; a set
  that still lacks j of m remaining others takes the next with probability j/m, whatever it took before. Sets with the
  same j and m are counted together, a binomial number of them takes it.
- Local hashing: reports share no such law, as one hash function decides on all values. Its reports are drawn.

For simulations: NumPy's generator draws, which is no source of randomness for reports that anybody sends.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.local.frequencies.binary import BinaryResponse
from lapwing.local.frequencies.kary import KaryResponse
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.frequencies.subset import SubsetSelection
from lapwing.local.frequencies.unary import UnaryEncoding
from lapwing.local.simulation.blocks import simulate_counts

Counts = NDArray[np.int64]
MOST_STEPS: Final = 1 << 25
"""Binomial draws up to which a law is followed instead of drawing reports."""


def draw_counts(mechanism: Randomizer, totals: Counts, generator: np.random.Generator) -> Counts:
    """Return how many reports support each value, of respondents of whom `totals[v]` have value v."""
    p, q = (float(chance) for chance in mechanism.rates(1))
    many = totals.size**2
    match mechanism:
        case BinaryResponse():
            ones = generator.binomial(totals[1], p) + generator.binomial(totals[0], q)
            return np.array([totals.sum() - ones, ones], dtype=np.int64)
        case UnaryEncoding():
            return np.array(
                generator.binomial(totals, p) + generator.binomial(totals.sum() - totals, q), dtype=np.int64
            )
        case KaryResponse() if many <= MOST_STEPS:
            return _spread(totals, p, generator)
        case SubsetSelection(size=size) if many * size <= MOST_STEPS:
            return _sets(totals, p, size, generator)
        case _:
            return simulate_counts(mechanism, np.repeat(np.arange(totals.size), totals))


def steps(mechanism: Randomizer, respondents: int) -> int:
    """Return how much work `draw_counts` is, in draws or hashes."""
    k = mechanism.categories
    match mechanism:
        case BinaryResponse() | UnaryEncoding():
            return k
        case KaryResponse() if k**2 <= MOST_STEPS:
            return k**2
        case SubsetSelection(size=size) if k**2 * size <= MOST_STEPS:
            return k**2 * size
        case _:
            return respondents * k


def _spread(totals: Counts, keep: float, generator: np.random.Generator) -> Counts:
    kept = generator.binomial(totals, keep)
    others = (1 - np.eye(totals.size)) / (totals.size - 1)
    counts: Counts = kept + generator.multinomial(totals - kept, others).sum(axis=0)
    return counts


def _sets(totals: Counts, keep: float, size: int, generator: np.random.Generator) -> Counts:
    """Go through the values: `ahead[v, j]` counts sets whose true value v is to come, `passed[j]` the others."""
    k = totals.size
    counts: Counts = generator.binomial(totals, keep)
    lacking = np.arange(size + 1)
    ahead, passed = np.zeros((k, size + 1), dtype=np.int64), np.zeros(size + 1, dtype=np.int64)
    ahead[:, size - 1], ahead[:, size] = counts, totals - counts
    for value in range(k):
        left = k - value
        for sets, others in ((passed, left), (ahead[value + 1 :], left - 1)):
            if others:
                taken = generator.binomial(sets, np.minimum(lacking / others, 1))
                counts[value] += taken.sum()
                sets -= taken
                sets[..., :-1] += taken[..., 1:]
        passed += ahead[value]
    return counts
