"""One-run audits: how much privacy a training has lost at least, by how many coins it gave away."""

from fractions import Fraction
from math import exp

import numpy as np
from scipy.stats import binom

from lapwing.learn import logistic
from lapwing.learn.noisy_sums import Releases
from lapwing.learn.unit_rows import GRID, UnitRows
from lapwing.privacy.measures import GaussianDP
from tests.support.learn.people import Seen, watched

FAILURE = 1e-6


def least_epsilon(right: int, guesses: int, canaries: int, delta: float) -> float:
    """Return an ε that (ε, δ)-DP training has at least, but for a chance of FAILURE, after so many right guesses.

    If training is (ε, δ)-DP and each canary is in by a fair coin, as many guesses are right as in Binomial(guesses,
    e^ε/(1 + e^ε)) at most, but for a chance of 2·canaries·δ (Steinke, Nasr and Jagielski 2023, theorem 5.2 with its α
    at most 2).
    """
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = float(binom.sf(right - 1, guesses, 1 / (1 + exp(-middle)))) + 2 * canaries * delta
        low, high = (middle, high) if chance <= FAILURE else (low, middle)
    return low


def guessed(mu: float, canaries: int, guesses: int, *, seed: int, steps: int = 4) -> tuple[int, float]:
    """Train on canaries that are in by coins; guess the coins from all that was released; return how many were right.

    Each canary is a person with a feature of its own, whose gradient nobody else has. Guessed are those that stand out
    most to either side, as many to each.
    """
    inside = np.random.default_rng(seed).integers(0, 2, canaries).astype(bool)
    rows = (GRID * np.eye(canaries, dtype=np.int64))[inside]
    units = UnitRows(features=rows, target=np.ones(len(rows), dtype=np.int64), starts=np.arange(len(rows)))
    parts = {"curvature": (1, Fraction(1, 10)), "gradient": (steps, Fraction(9, 10) / steps)}
    releases, seen = Releases(GaussianDP(Fraction(str(mu))), parts, replaced=False), Seen()
    with watched(seen):
        logistic.descend(units, releases, penalty=1e-3, steps=steps, length=0.7, places=1)
    scores = np.zeros(canaries)
    for name, released in zip(seen.names, seen.released, strict=True):
        if name == "gradient":
            scores -= released[1:].astype(float)  # who is in pulls the weight of their own feature upwards
    order = np.argsort(scores)
    half = guesses // 2
    return int((~inside[order[:half]]).sum() + inside[order[-half:]].sum()), float(len(rows))
