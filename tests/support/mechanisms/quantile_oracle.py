"""The laws of the quantile mechanisms, written again from their definitions: grid point by grid point, row by row."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import product

from mpmath import mp, mpf

from tests.support.privacy.oracle import real


def rank_error(rows: Sequence[int], q: Fraction, v: int) -> Fraction:
    """How far q·n is from the nearest of the ranks that v has among the rows."""
    ranks = range(sum(x < v for x in rows), sum(x <= v for x in rows) + 1)
    target = q * len(rows)
    return Fraction(0) if ranks[0] <= target <= ranks[-1] else min(abs(rank - target) for rank in ranks)


def quantile(rows: Sequence[int], q: Fraction, lower: int, upper: int, scale: Fraction) -> dict[int, mpf]:
    """P(v) ∝ e^(−(rank error of v)/scale), where rows off the grid are at its ends."""
    inside = [min(max(x, lower), upper) for x in rows]
    weights = {v: mp.exp(-real(rank_error(inside, q, v) / scale)) for v in range(lower, upper + 1)}
    total = mp.fsum(weights.values())
    return {v: weight / total for v, weight in weights.items()}


def quantiles(
    rows: Sequence[int], wanted: tuple[Fraction, ...], lower: int, upper: int, scale: Fraction, spread: int = 1
) -> dict[Hashable, mpf]:
    """The middle quantile first, then those before it and after it, averaged over the places of the rows."""
    inside = [min(max(x, lower), upper) for x in rows]
    law: dict[Hashable, mpf] = defaultdict(mpf)
    for places in product(range(spread), repeat=len(rows)):
        fine = [x * spread + place for x, place in zip(inside, places, strict=True)]
        ends = (lower * spread, upper * spread + spread - 1)
        for values, p in _split(fine, wanted, (Fraction(0), Fraction(1)), ends, scale).items():
            law[tuple(v // spread for v in values)] += p / spread ** len(rows)
    return dict(law)


def _split(
    rows: Sequence[int],
    wanted: tuple[Fraction, ...],
    between: tuple[Fraction, Fraction],
    ends: tuple[int, int],
    scale: Fraction,
) -> dict[tuple[int, ...], mpf]:
    if not wanted:
        return {(): mpf(1)}
    middle = len(wanted) // 2 if len(wanted) % 2 else (len(wanted) - 1) // 2
    q, (low, high), (lower, upper) = wanted[middle], between, ends
    law: dict[tuple[int, ...], mpf] = defaultdict(mpf)
    for v, p in quantile(rows, (q - low) / (high - low), lower, upper, scale).items():
        left = _split([x for x in rows if x <= v], wanted[:middle], (low, q), (lower, v), scale)
        right = _split([x for x in rows if x > v], wanted[middle + 1 :], (q, high), (v, upper), scale)
        for (before, p_before), (after, p_after) in product(left.items(), right.items()):
            law[*before, v, *after] += p * p_before * p_after
    return law


def node_counts(rows: Sequence[int], lower: int, upper: int, branching: int) -> list[int]:
    """The rows in every node that holds a grid point, level by level from the one that has at most `branching`."""
    points, widths = upper - lower + 1, [1]
    while -(-points // widths[0]) > branching:
        widths.insert(0, widths[0] * branching)
    return [
        sum(start <= min(max(x, lower), upper) - lower < start + width for x in rows)
        for width in widths
        for start in range(0, points, width)
    ]


def noisy_counts(counts: Sequence[int], scale: Fraction, reach: int) -> dict[tuple[int, ...], mpf]:
    """Independent discrete Laplace noise on every count, as far as `reach`."""
    q = mp.exp(-1 / real(scale))
    noise = {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-reach, reach + 1)}
    return {
        tuple(count + x for count, x in zip(counts, xs, strict=True)): mp.fprod(noise[x] for x in xs)
        for xs in product(noise, repeat=len(counts))
    }
