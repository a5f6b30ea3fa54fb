"""The laws of the threshold and clipping mechanisms, and of the generalised choice, written again from definitions."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import count

from mpmath import mp, mpf

from tests.support.privacy.oracle import real

# So small that it matters to no ratio of probabilities that a test looks at.
SMALL = mpf(10) ** -30


@cache
def ratio(scale: Fraction) -> mpf:
    return mp.exp(-1 / real(scale))


@cache
def reach(scale: Fraction) -> int:
    """Beyond it geometric and discrete Laplace noise have less than SMALL."""
    return next(m for m in count() if ratio(scale) ** m < SMALL)


@cache
def at_least(scale: Fraction, m: int) -> mpf:
    """P(geometric ≥ m)."""
    return ratio(scale) ** max(m, 0)


@cache
def exactly(scale: Fraction, m: int) -> mpf:
    return (1 - ratio(scale)) * at_least(scale, m) if m >= 0 else mpf(0)


def median(first: Fraction, second: Fraction) -> int:
    """The largest b with P(ν − ρ ≥ b) ≥ ½, by adding up over ρ; `first` is the scale of ρ, `second` that of ν."""
    chances = [exactly(first, r) for r in range(reach(first))]

    def tail(b: int) -> mpf:
        return mp.fsum(chance * at_least(second, r + b) for r, chance in enumerate(chances))

    b = 0
    while tail(b) < mpf(1) / 2:
        b -= 1
    while tail(b + 1) >= mpf(1) / 2:
        b += 1
    return b


def verdict_law(
    first: Fraction, second: Fraction, cap: int, answers: Sequence[int], level: int
) -> dict[tuple[bool, ...], mpf]:
    """P(verdicts) if the threshold is level + ρ, with `level` including the offset."""
    law: dict[tuple[bool, ...], mpf] = defaultdict(mpf)

    def follow(told: tuple[bool, ...], chance: mpf, threshold: int) -> None:
        if len(told) == len(answers) or sum(told) == cap:
            law[told] += chance
            return
        above = at_least(second, threshold - answers[len(told)])
        follow((*told, True), chance * above, threshold)
        if above < 1:
            follow((*told, False), chance * (1 - above), threshold)

    for r in range(reach(first)):
        follow((), exactly(first, r), level + r)
    return dict(law)


def gap_law(
    first: Fraction, second: Fraction, cap: int, answers: Sequence[int], level: int
) -> dict[tuple[int | None, ...], mpf]:
    """P(gaps) of the same run."""
    law: dict[tuple[int | None, ...], mpf] = defaultdict(mpf)

    def follow(told: tuple[int | None, ...], chance: mpf, threshold: int) -> None:
        if len(told) == len(answers) or sum(gap is not None for gap in told) == cap:
            law[told] += chance
            return
        answer = answers[len(told)]
        if answer < threshold:
            follow((*told, None), chance * (1 - at_least(second, threshold - answer)), threshold)
        for noise in range(max(0, threshold - answer), reach(second)):
            follow((*told, answer + noise - threshold), chance * exactly(second, noise), threshold)

    for r in range(reach(first)):
        follow((), exactly(first, r), level + r)
    return dict(law)


def quantile_law(
    first: Fraction, second: Fraction, rank: int, candidates: Sequence[int], values: Sequence[int]
) -> dict[int, mpf]:
    """P(bound): the first candidate that passes; the last needs not be asked."""
    answers = [-sum(x > bound for x in values) for bound in candidates[:-1]]
    law: dict[int, mpf] = defaultdict(mpf)
    for told, chance in verdict_law(first, second, 1, answers, median(first, second) - rank).items():
        law[candidates[told.index(True) if True in told else -1]] += chance
    return dict(law)


def laplace_at_most(scale: Fraction, x: int) -> mpf:
    """P(discrete Laplace ≤ x)."""
    q = ratio(scale)
    return q**-x / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)


def race_law(scale: Fraction, levels: Sequence[int], failure: Fraction, values: Sequence[int]) -> dict[int, mpf]:
    """P(max(0, Σ min(x, τ) + noise − penalty over τ)), as differences of a product of distribution functions."""
    share = real(failure) / (len(levels) + 1)
    sums = [sum(min(x, level) for x in values) for level in levels]
    penalties = [next(h for h in count() if 1 - laplace_at_most(scale * level, h) <= share) for level in levels]

    def at_most(y: int) -> mpf:
        parts = zip(levels, sums, penalties, strict=True)
        return mp.fprod(laplace_at_most(scale * level, y - total + penalty) for level, total, penalty in parts)

    law, y, before = {0: at_most(0)}, 0, at_most(0)
    while 1 - before > SMALL:
        y += 1
        law[y] = at_most(y) - before
        before += law[y]
    return law


def defects(scores: Sequence[int], sensitivities: Sequence[int], margin: Fraction, resolution: int) -> list[int]:
    """⌊M·max over j of …⌋, by trying all pairs."""
    handicapped = [q - margin * d for q, d in zip(scores, sensitivities, strict=True)]
    pairs = list(zip(handicapped, sensitivities, strict=True))
    return [int(resolution * max((h - mine) / (d + own) for h, d in pairs)) for mine, own in pairs]


def generalised_law(
    scale: Fraction, sensitivities: Sequence[int], margin: Fraction, resolution: int, scores: Sequence[int]
) -> dict[int, mpf]:
    weights = [mp.exp(-u / (resolution * real(scale))) for u in defects(scores, sensitivities, margin, resolution)]
    return {i: weight / mp.fsum(weights) for i, weight in enumerate(weights)}
