"""The laws of the mechanisms that choose by score, written again from their definitions."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations

from mpmath import mp, mpf

from tests.support.privacy.oracle import real


def exponential(scores: Sequence[int], scale: Fraction) -> dict[int, mpf]:
    """P(i) = e^(s_i/scale) / Σ e^(s_j/scale)."""
    best = max(scores)
    weights = [mp.exp((s - best) / real(scale)) for s in scores]
    return {i: weight / mp.fsum(weights) for i, weight in enumerate(weights)}


def permute_and_flip(scores: Sequence[int], scale: Fraction) -> dict[int, mpf]:
    """Every order of the candidates is equally likely; the first whose coin is heads is chosen."""
    heads = [mp.exp((s - max(scores)) / real(scale)) for s in scores]
    orders = list(permutations(range(len(scores))))
    law = dict.fromkeys(range(len(scores)), mpf(0))
    for order in orders:
        left = mpf(1) / len(orders)
        for i in order:
            law[i] += left * heads[i]
            left *= 1 - heads[i]
    return law


def noisy_max(scores: Sequence[int], scale: Fraction, reach: int) -> dict[int, mpf]:
    """Add up over the largest noisy score and over who else has it; noise beyond `reach` is left out."""
    q = mp.exp(-1 / real(scale))

    def at(i: int, z: int) -> mpf:
        return (1 - q) / (1 + q) * q ** abs(z - scores[i])

    def under(i: int, z: int) -> mpf:
        """P(s_i + L_i < z), by the tail that is the shorter."""
        g = z - scores[i]
        return q ** (1 - g) / (1 + q) if g <= 0 else 1 - q**g / (1 + q)

    law = dict.fromkeys(range(len(scores)), mpf(0))
    for z in range(min(scores) - reach, max(scores) + reach + 1):
        here, below = [at(i, z) for i in law], [under(i, z) for i in law]
        for i in law:
            others = [j for j in law if j != i]
            for size in range(len(scores)):
                for tied in combinations(others, size):
                    share = here[i] / (size + 1)
                    for j in others:
                        share *= here[j] if j in tied else below[j]
                    law[i] += share
    return law


def peeled(scores: Sequence[int], scale: Fraction, count: int) -> dict[tuple[int, ...], mpf]:
    """The exponential mechanism again and again, without those chosen before."""
    law = {}
    for order in permutations(range(len(scores)), count):
        left, share = list(range(len(scores))), mpf(1)
        for i in order:
            among = exponential([scores[j] for j in left], scale)
            share *= among[left.index(i)]
            left.remove(i)
        law[order] = share
    return law


def on_grid(pieces: tuple[Sequence[int], Sequence[int]], scale: Fraction, weights: Sequence[int]) -> dict[int, mpf]:
    """P(x) ∝ weight(x)·e^(score(x)/scale), point by point; the grid is 0 … len(weights) − 1."""
    starts, scores = pieces
    score = [scores[max(j for j, start in enumerate(starts) if start <= x)] for x in range(len(weights))]
    points = [weight * mp.exp(s / real(scale)) for weight, s in zip(weights, score, strict=True)]
    return {x: point / mp.fsum(points) for x, point in enumerate(points) if point}
