"""Analysts of six kinds who choose each question after the answers before, and know what the population's answer is.

A person is a row: fair coins, a label that has nothing to do with them, and a uniform number from 0 to 1. So
the population's mean of every question below is known exactly, and what an analyst finds beyond it is overfitting.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lapwing.holdout import HoldoutAnswer

Floats = NDArray[np.float64]
Ask = Callable[[Callable[[Floats], Any]], HoldoutAnswer]
Seen = list[tuple[HoldoutAnswer, float]]
"""Answers, each with the population's mean."""

FEATURES: Final = 24
LABEL, UNIFORM = FEATURES, FEATURES + 1
_PRIME = 2_147_483_647


def sample(people: int, drawing: np.random.Generator) -> Floats:
    """Draw people from the population."""
    coins = drawing.integers(0, 2, (people, FEATURES + 1)).astype(np.float64)
    return np.column_stack([coins, drawing.random(people)])


def agrees(feature: int) -> Callable[[Floats], Any]:
    """Whether a feature agrees with the label: a half of the population."""
    return lambda rows: rows[:, feature] == rows[:, LABEL]


def voted(weights: Floats) -> Callable[[Floats], Any]:
    """Whether a vote of features, with weights, agrees with the label: a half, as nothing tells of the label."""
    return lambda rows: ((rows[:, :FEATURES] - 0.5) @ weights + 1e-9 > 0) == (rows[:, LABEL] > 0.5)


def fixed(ask: Ask, questions: int, drawing: np.random.Generator) -> Seen:
    """Ask the features in order, again and again."""
    return [(ask(agrees(i % FEATURES)), 0.5) for i in range(questions)]


def unlucky(ask: Ask, questions: int, drawing: np.random.Generator) -> Seen:
    """Find the features that seem to tell of the label, and ask about a vote of them (Freedman's paradox)."""
    answers = [(ask(agrees(i % FEATURES)), 0.5) for i in range(questions - 1)]
    weights = np.zeros(FEATURES)
    for i, (answer, _) in enumerate(answers):
        weights[i % FEATURES] = answer.value - 0.5
    return [*answers, (ask(voted(np.sign(weights) + weights / 1e3)), 0.5)]


def climbing(ask: Ask, questions: int, drawing: np.random.Generator) -> Seen:
    """Turn one weight at a time, and keep it turned if the vote gets better (as on a leaderboard)."""
    weights = drawing.choice([-1.0, 1.0], FEATURES)
    seen: Seen = [(ask(voted(weights)), 0.5)]
    best = seen[0][0].value
    for _ in range(questions - 1):
        turned = weights * np.where(np.arange(FEATURES) == drawing.integers(FEATURES), -1, 1)
        seen.append((ask(voted(turned)), 0.5))
        if seen[-1][0].value > best:
            best, weights = seen[-1][0].value, turned
    return seen


def hashing(ask: Ask, questions: int, drawing: np.random.Generator) -> Seen:
    """Ask about random halves of the people, then about a vote of all halves that were seen above a half."""
    keys = drawing.integers(1, _PRIME, questions - 1)

    def halves(rows: Floats, of: NDArray[np.int64] = keys) -> Any:
        names = np.floor(rows[:, UNIFORM] * 2.0**31).astype(np.int64)
        mixed = (names[:, None] * of + (names[:, None] >> 7) * 31) % _PRIME
        return (mixed >> 11) & 1 == 1

    def agrees_with_half(i: int) -> Callable[[Floats], Any]:
        return lambda rows: halves(rows, keys[i : i + 1])[:, 0] == (rows[:, LABEL] > 0.5)

    first = [(ask(agrees_with_half(i)), 0.5) for i in range(questions - 1)]
    signs = np.array([1.0 if answer.value > 0.5 else -1.0 for answer, _ in first])

    def vote(rows: Floats) -> Any:
        return ((halves(rows) - 0.5) @ signs + 1e-9 > 0) == (rows[:, LABEL] > 0.5)

    return [*first, (ask(vote), 0.5)]  # the label is independent of names: a half


def between(low: float, high: float) -> Callable[[Floats], Any]:
    """Whether the uniform number is in an interval."""
    return lambda rows: (rows[:, UNIFORM] >= low) & (rows[:, UNIFORM] < high)


def narrowing(ask: Ask, questions: int, drawing: np.random.Generator) -> Seen:
    """Follow what deviates: ask of intervals of a uniform number, and go on in the half that looks fuller."""
    low, high = 0.0, 1.0
    seen: Seen = []
    for _ in range(questions):
        middle = (low + high) / 2
        half = (middle - low) if low < middle < high else 0.0
        answer = ask(between(low, middle))
        seen.append((answer, half))
        low, high = (low, middle) if answer.value > half else (middle, high)
        if high - low < 0.05:
            low, high = 0.0, 1.0
    return seen


def repeating(ask: Ask, questions: int, drawing: np.random.Generator) -> Seen:
    """Ask the same question until its noise is averaged away, then lean on the side on which the sample is."""
    question = agrees(int(drawing.integers(FEATURES)))
    seen = [(ask(question), 0.5) for _ in range(questions - 1)]
    above = np.mean([answer.value for answer, _ in seen]) > 0.5
    return [*seen, (ask(lambda rows: question(rows) == above), 0.5)]


ANALYSTS: Final = (fixed, unlucky, climbing, hashing, narrowing, repeating)


def covered(seen: Seen) -> bool:
    """Tell whether all intervals hold at once."""
    return all(a.low is not None and a.high is not None and a.low <= mean <= a.high for a, mean in seen)
