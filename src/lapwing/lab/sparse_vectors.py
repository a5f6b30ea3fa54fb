"""Four published sparse vectors that do not keep what they claim, for *mistakes*: on neighbours, by law and by draws.

A sparse vector compares noisy answers with a noisy threshold, 0 here, and tells of each whether it is above. Its noises
are continuous Laplace. In one world all answers are what they are; in the neighbouring one each has moved by 1 at most.
Given the threshold z, answers are independent: one of q is below with F(z − q), F being the law of an answer's noise.
So an outcome has probability ∫ p(z)·Π … dz, which is summed on a grid. Lyu, Su and Li (2017) found these four kinds of
mistakes among six published versions; the worlds below are like theirs.

- *no cap*: noise of scale 2/ε on threshold and answers, and no end after the first answer above.
- *noise not by cap*: scales 4/ε and 4/3ε, however many answers above may be told.
- *exact answers*: noise of scale 2/ε on the threshold alone.
- *noisy answer told*: scales 2/ε and 4/ε, which would do, but what is above is told with its noisy answer.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import exp
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.chance import generator

Floats = NDArray[np.float64]
ROWS: Final = 3
"""Answers below, and as many above."""
_STEPS: Final = 200_001
_REACH: Final = 40
_AT_ONCE: Final = 250_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """A published variant, and the two worlds and the outcome that give it away.

    Args:
        threshold: Scales of the noises; 0 for none.
        answer: Scales of the noises; 0 for none.
        one: Answers in both worlds; the outcome is that the first `below` are below, and all others above.
        other: As `one`.
        told: Whether the last answer is told with its noise, and has to be within so much of 0.
    """

    name: str
    threshold: float
    answer: float
    one: tuple[int, ...]
    other: tuple[int, ...]
    below: int
    told: float | None = None

    def chance(self, answers: tuple[int, ...]) -> float:
        """Return the probability of the outcome, summed over the noise of the threshold."""
        edges = {0.0, *map(float, answers), *([self.told, -self.told] if self.told else [])}
        reach = _REACH * max(self.threshold, self.answer) + 2
        points = sorted({-reach, *edges, reach})
        return sum(self._between(low, high, answers) for low, high in pairwise(points))

    def _between(self, low: float, high: float, answers: tuple[int, ...]) -> float:
        """Sum over thresholds between two points, between which everything is smooth, by the midpoint rule."""
        width = (high - low) / _STEPS
        z: Floats = (low + width * (np.arange(_STEPS) + 0.5)).astype(np.float64)
        chance = np.exp(-np.abs(z) / self.threshold) / (2 * self.threshold)
        for q in answers[: self.below]:
            chance *= self._law(z - q)
        for q in answers[self.below :]:
            chance *= 1 - self._law(z - q) if self.told is None else self._within(z, q, self.told)
        return float(chance.sum() * width)

    def _law(self, x: Floats) -> Floats:
        """Return the probability that an answer's noise is below x."""
        if not self.answer:
            return (x > 0).astype(np.float64)
        tail = np.exp(-np.abs(x) / self.answer) / 2
        return np.where(x < 0, tail, 1 - tail)

    def _within(self, z: Floats, q: int, reach: float) -> Floats:
        """Return the probability that a noisy answer is above z, and within some reach of 0."""
        most = self._law(np.full(1, reach - q))
        return np.maximum(0.0, most - self._law(np.maximum(z, -reach) - q))

    def hits(self, answers: tuple[int, ...], draws: int) -> int:
        """Run it so often, and count the outcome."""
        total = 0
        for start in range(0, draws, _AT_ONCE):
            size = min(_AT_ONCE, draws - start)
            drawing = generator()
            threshold = drawing.laplace(0.0, self.threshold, (size, 1))
            noisy = np.array(answers) + (drawing.laplace(0.0, self.answer, (size, len(answers))) if self.answer else 0)
            above = noisy >= threshold
            outcome = ~above[:, : self.below].any(axis=1) & above[:, self.below :].all(axis=1)
            if self.told is not None:
                outcome &= np.abs(noisy[:, -1]) <= self.told
            total += int(outcome.sum())
        return total


def published(epsilon: float) -> tuple[SparseVector, ...]:
    """Return the four at an ε that they claim."""
    zeros = (0,) * (2 * ROWS)
    apart = (1,) * ROWS + (-1,) * ROWS
    return (
        SparseVector(name="no cap", threshold=2 / epsilon, answer=2 / epsilon, one=zeros, other=apart, below=ROWS),
        SparseVector(
            name="noise not by cap",
            threshold=4 / epsilon,
            answer=4 / (3 * epsilon),
            one=zeros,
            other=apart,
            below=ROWS,
        ),
        SparseVector(name="exact answers", threshold=2 / epsilon, answer=0.0, one=(0, 1), other=(1, 0), below=1),
        SparseVector(
            name="noisy answer told",
            threshold=2 / epsilon,
            answer=4 / epsilon,
            one=(0,) * (2 * ROWS + 1),
            other=(1,) * (2 * ROWS) + (0,),
            below=2 * ROWS,
            told=1 / epsilon,
        ),
    )


def exact_answers(epsilon: float) -> float:
    """Return P(0 < z ≤ 1) of the threshold: the outcome of exact answers, which has no chance in the other world."""
    return (1 - exp(-epsilon / 2)) / 2
