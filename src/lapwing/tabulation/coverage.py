"""The effect of adjusting on errors, simulated from released values.

Theory of operation. An adjusted number is nearer to the truth on average, but not in every cell. A negative number that
becomes 0 makes others smaller. So an interval around an adjusted number has no guarantee for its cell. Its coverage on
average over the cells of a table is measured here. Take the adjusted table for the truth, add noise of the public
distribution, and adjust again. Then count the cells that are within the half-width of the raw interval.

Guarantee:
    Post-processing. The simulation sees adjusted numbers and public noise. Its random numbers follow from the adjusted
    numbers, so that a second run says the same. They protect nobody: the numbers are released already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod, sqrt
from typing import Final, final

import numpy as np

from lapwing.machine import progress
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.residual_marginals import Axes, ResidualMarginals
from lapwing.query.plan.plan import Question
from lapwing.release.workloads import Workload
from lapwing.tabulation.common_table import Floats
from lapwing.tabulation.consistency import AdjustedGroup
from lapwing.tabulation.public_totals import Number

CONFIDENCE: Final = 0.95
MOST_SIMULATIONS: Final = 20
FEWEST_SIMULATIONS: Final = 3
CELLS: Final = 400_000
"""Of all simulations together, about."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustmentEffect:
    """The effect of adjusting on the numbers of a table, on average over its cells and over simulations.

    Args:
        average_coverage: The part of cells whose adjusted number is within the raw half-width of the truth.
        error: The root of the mean squared error of adjusted numbers, in steps; `raw_error` is that of released ones.
    """

    average_coverage: float
    error: float
    raw_error: float
    simulations: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointNoise:
    """The noise of numbers that were measured together.

    Args:
        numbers: Each with the place of its number in the workload.
    """

    workload: Workload
    numbers: Mapping[Number, tuple[int, int]]

    def draw(self, questions: Sequence[Question], generator: np.random.Generator) -> dict[Number, Floats]:
        """Return noise of all numbers: of the law that `residual_marginals` has, without its rounding."""
        mechanism = self.workload.mechanism
        parts = _residual_noise(mechanism, generator)
        drawn = {}
        for number, place in self.numbers.items():
            whole = mechanism.marginals[self.workload.members[place]]
            table = np.zeros([mechanism.sizes[i] for i in whole])
            for axes, part in parts.items():
                if axes <= frozenset(whole):
                    spread = prod(mechanism.sizes[i] for i in whole if i not in axes)
                    table = table + part.reshape([mechanism.sizes[i] if i in axes else 1 for i in whole]) / spread
            rounded = self.workload.cells(questions[number[0]], np.rint(table).astype(np.int64))
            drawn[number] = rounded.astype(np.float64)
        return drawn


def _residual_noise(mechanism: ResidualMarginals, generator: np.random.Generator) -> dict[Axes, Floats]:
    """Return P_A (noise of the residual A) / n_A for each A."""
    parts: dict[Axes, Floats] = {}
    for axes, precision in zip(mechanism.residuals, mechanism.precisions, strict=True):
        shape = [mechanism.sizes[i] for i in sorted(axes)]
        noise = generator.normal(size=shape) / sqrt(precision) / prod(shape)
        for axis in range(len(shape)):
            noise = noise - noise.mean(axis=axis, keepdims=True)
        parts[axes] = np.asarray(noise)
    return parts


def effects(
    adjusted: AdjustedGroup,
    laws: Mapping[Number, NoiseLaw],
    together: Sequence[JointNoise],
    questions: Sequence[Question],
) -> dict[Number, AdjustmentEffect]:
    """Return the effect of adjusting on each table of a group.

    Args:
        laws: Of the noise of each number; `together` has those that were measured together.
    """
    group = adjusted.group
    seed = sha256(adjusted.common.tobytes()).digest()
    generator = np.random.default_rng(int.from_bytes(seed, "big"))
    times = max(FEWEST_SIMULATIONS, min(MOST_SIMULATIONS, CELLS // group.cells))
    near, squares, raw = (np.zeros(len(group.numbers)) for _ in range(3))
    truths = [adjusted.numbers[number].astype(np.float64) for number in group.numbers]
    for turn in range(times):
        noise = {number: drawn for joint in together for number, drawn in joint.draw(questions, generator).items()}
        for number, values in adjusted.numbers.items():
            if number not in noise:
                noise[number] = _noise(laws[number], values.size, generator)
        simulated = [truth + noise[number] for truth, number in zip(truths, group.numbers, strict=True)]
        with progress.step(turn, times):
            again = group.tables(group.common_table(simulated))
        for place, (number, truth, table) in enumerate(zip(group.numbers, truths, again, strict=True)):
            error = table - truth
            near[place] += float((np.abs(error) <= laws[number].half_width(CONFIDENCE)).mean())
            squares[place] += float((error**2).mean())
            raw[place] += float((noise[number] ** 2).mean())
    return {
        number: AdjustmentEffect(
            average_coverage=near[place] / times,
            error=sqrt(squares[place] / times),
            raw_error=sqrt(raw[place] / times),
            simulations=times,
        )
        for place, number in enumerate(group.numbers)
    }


def _noise(law: NoiseLaw, size: int, generator: np.random.Generator) -> Floats:
    """Return noise of its own for each cell, of the law's shape and deviation."""
    deviation = float(law.standard_deviation)
    if isinstance(law, DiscreteLaplace):
        return np.rint(generator.laplace(scale=deviation / sqrt(2), size=size))
    return np.rint(generator.normal(scale=deviation, size=size))
