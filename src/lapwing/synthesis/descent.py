"""Fitting a distribution to noisy tables about as well as the next choice needs it: in NumPy, which compiles nothing.

Theory of operation. A method that chooses tables one after another fits a distribution for every one of them, and mbi
compiles a program for every set of tables, which takes a hundred times as long as running it. So only the last
distribution is mbi's, which begins where this one ended; those before are needed to say which table to measure next.

It is mirror descent (McKenna, Sheldon and Miklau 2019): the sum of squares over twice the variances is convex in the
tables, and a step takes its gradient in them from the logarithms of the distribution. Momentum (Beck and Teboulle
2009), which is given up where it made things worse (O'Donoghue and Candès 2015), stands in for hundreds of steps. How
near it comes is measured, not proved: nothing private hangs on it, as all of it is post-processing of released numbers.
"""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Final

import numpy as np

from lapwing.synthesis.marginal_tree import Floats, MarginalTree
from lapwing.synthesis.reading import Clique

STEPS: Final = 300
BLOCK: Final = 25
ENOUGH: Final = 1e-3
"""It stops where a block of steps makes the sum smaller by less than 1, which noise does, and than this share of it."""

Told = Mapping[Clique, tuple[Floats, float]]
"""Tables with the standard deviation of their noise."""
Potentials = Mapping[Clique, Floats]
"""Tables whose sum is the logarithm of a distribution, but for a constant."""


def descend(
    told: Told,
    start: Potentials,
    model_of: Callable[[Potentials], MarginalTree],
) -> tuple[MarginalTree, Potentials]:
    """Return a distribution whose tables are near to what is told of them, and its logarithm as a sum of tables.

    Args:
        start: Where to begin, of those tables that it has.
        model_of: The distribution that potentials make.
    """
    cliques = list(told)
    at: Potentials = {clique: start.get(clique, np.zeros(told[clique][0].shape)) for clique in cliques}
    model = model_of(at)
    apart, slope = _apart(model, told)
    before, momentum, ended = at, 1.0, apart
    size = min(deviation for _, deviation in told.values()) ** 2 / model.total
    for step in range(1, STEPS + 1):
        moved: Potentials = {clique: at[clique] - size * slope[clique] for clique in cliques}
        faster = (1 + sqrt(1 + 4 * momentum**2)) / 2
        further = (momentum - 1) / faster
        tried: Potentials = {clique: moved[clique] + further * (moved[clique] - before[clique]) for clique in cliques}
        there = model_of(tried)
        found, slope_there = _apart(there, told)
        if found <= apart:
            at, before, model, apart, slope, momentum = tried, moved, there, found, slope_there, faster
        elif momentum > 1:
            before, momentum = at, 1.0
        else:
            size /= 2
        if step % BLOCK == 0:
            if ended - apart < max(1.0, ENOUGH * apart):
                break
            ended = apart
    return model, at


def _apart(model: MarginalTree, told: Told) -> tuple[float, Potentials]:
    """Return the sum of squares over twice the variances, and its gradient in the tables."""
    apart, slope = 0.0, dict[Clique, Floats]()
    for clique, (counts, deviation) in told.items():
        gap = model.marginal(clique) - counts
        slope[clique] = gap / deviation**2
        apart += float((gap * slope[clique]).sum()) / 2
    return apart, slope
