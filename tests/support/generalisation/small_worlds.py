"""Mechanisms so small that everything they imply for a population can be added up: an oracle for the theorems."""

from dataclasses import dataclass
from itertools import product
from typing import final

import numpy as np
from numpy.typing import NDArray

from lapwing.privacy.amounts import Number

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SmallWorld:
    """n persons drawn from a law over m kinds, and a law over transcripts for every sample.

    Args: law: of one person; kernel: by sample, a row each in the order of `product`, the law of the transcript.
    """

    law: Floats
    people: int
    kernel: Floats

    @property
    def samples(self) -> list[tuple[int, ...]]:
        return list(product(range(len(self.law)), repeat=self.people))

    @property
    def probabilities(self) -> Floats:
        return np.array([np.prod([self.law[x] for x in sample]) for sample in self.samples])

    @property
    def transcripts(self) -> Floats:
        """The probability of each transcript."""
        return np.asarray(self.probabilities @ self.kernel)

    def delta(self, epsilon: float) -> float:
        """The exact δ at ε over all pairs of samples that differ in one person."""
        place = {sample: i for i, sample in enumerate(self.samples)}
        worst = 0.0
        for sample in self.samples:
            for i in range(self.people):
                for x in range(len(self.law)):
                    other = (*sample[:i], x, *sample[i + 1 :])
                    gap = self.kernel[place[sample]] - np.exp(epsilon) * self.kernel[place[other]]
                    worst = max(worst, float(np.maximum(gap, 0).sum()))
        return worst

    @property
    def gaps(self) -> Floats:
        """For each transcript, sup over questions q of |q(posterior) − q(population)|: the distance in variation."""
        joint = self.probabilities[:, None] * self.kernel
        posterior = np.zeros((self.kernel.shape[1], len(self.law)))
        for row, sample in zip(joint, self.samples, strict=True):
            for x in sample:
                posterior[:, x] += row / self.people
        posterior /= self.transcripts[:, None]
        return np.asarray(np.abs(posterior - self.law).sum(axis=1) / 2)

    def to_delta(self, *, epsilon: Number) -> float:
        """The exact δ, as measures have it."""
        return self.delta(float(epsilon))

    def to_epsilon(self, *, delta: Number) -> float:
        raise NotImplementedError


def random_world(drawing: np.random.Generator) -> SmallWorld:
    """Return a world of up to three persons of up to three kinds, with a mechanism of any shape."""
    kinds, people, transcripts = (int(drawing.integers(a, b)) for a, b in ((2, 4), (1, 4), (2, 6)))
    law = np.maximum(drawing.dirichlet(np.full(kinds, drawing.choice([0.3, 1.0, 5.0]))), 1e-6)
    law /= law.sum()
    samples = list(product(range(kinds), repeat=people))
    scale = drawing.choice([0.1, 0.5, 1.0, 3.0])
    if drawing.random() < 0.5:  # each person adds to the score of each transcript
        scores = drawing.normal(size=(people, kinds, transcripts)) * scale
        logs = np.array([sum(scores[i, x] for i, x in enumerate(sample)) for sample in samples])
    else:
        logs = drawing.normal(size=(len(samples), transcripts)) * scale
    kernel = np.exp(logs)
    if drawing.random() < 0.3:  # some transcripts nearly rule samples out
        kernel = kernel * (drawing.random(kernel.shape) < 0.8) + 1e-9
    return SmallWorld(law=law, people=people, kernel=kernel / kernel.sum(axis=1, keepdims=True))


def randomized_response(epsilon: float, share: float, people: int = 1) -> SmallWorld:
    """Return persons with a yes of this probability who each answer truly with probability e^ε/(1 + e^ε)."""
    true = np.exp(epsilon) / (1 + np.exp(epsilon))
    one = np.array([[true, 1 - true], [1 - true, true]])
    kernel = one
    for _ in range(people - 1):
        kernel = np.kron(kernel, one)
    return SmallWorld(law=np.array([1 - share, share]), people=people, kernel=kernel)


def revealing(kinds: int, chance: float) -> SmallWorld:
    """Return one person of many kinds, all alike, who is named with this probability; else nothing is said."""
    kernel = np.hstack([np.full((kinds, 1), 1 - chance), chance * np.eye(kinds)])
    return SmallWorld(law=np.full(kinds, 1 / kinds), people=1, kernel=np.maximum(kernel, 1e-300))
