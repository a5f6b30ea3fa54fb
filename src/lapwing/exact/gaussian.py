"""The rounded Gaussian law, round(N(0, σ²)) on the integers, for any rational σ².

A small σ is one table of P(≤ k) = Φ((k + ½)/σ). A larger σ takes a standard normal number whose bits are revealed as
they are needed (`normal`), multiplies it by σ and rounds: one table serves every such σ.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import final

from lapwing.exact import bounds, normal
from lapwing.exact.arrays import IntArray, in_chunks, single
from lapwing.exact.bounds import Ball, Bracket
from lapwing.exact.entropy import Entropy
from lapwing.exact.law import Boundaries, complement, within
from lapwing.exact.tables import Table

# Up to here the law has a table of its own: at most about 750 boundaries, built in a few milliseconds.
_TABLE_VARIANCE = 40**2
# Φ(−9.3) < 2^−64.
_TAIL_SQUARED = Fraction(93, 10) ** 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedNormal:
    """The law of round(N(0, σ²)): P(≤ k) = Φ((k + ½)/σ). Halves are rounded either way; they have probability 0."""

    variance: Fraction

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Bracket 2^bits · P(≤ outcome)."""
        half_odd = Fraction(2 * outcome + 1, 2)
        return within(bounds.fixed_point(_cumulative_ball, half_odd, self.variance, bits=bits), bits)

    def boundaries(self) -> Boundaries:
        """Bracket the boundaries k < 0, and by symmetry P(≤ −1 − k) = 1 − P(≤ k) the others."""
        count = isqrt(int(_TAIL_SQUARED * self.variance)) + 2
        rows = ((Fraction(-2 * k - 1, 2), self.variance) for k in range(count, -1, -1))
        below = [within(bracket, 64) for bracket in bounds.fixed_points(_cumulative_ball, rows, bits=64)]
        return Boundaries(
            first=-1 - count, brackets=[*below, *(complement(bracket, 64) for bracket in reversed(below))]
        )


def rounded_gaussian(variance: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent numbers distributed as round(N(0, variance)), exactly.

    `tables`, `acceptance` and `normal` say how the work depends on what is drawn.

    Args: variance, that is σ², any rational above 0 (tables are kept for the last few); size, how many, ≥ 0; entropy,
        the randomness.
    Returns: int64 up to σ = 2^50, Python integers beyond, and also below it where a number would not fit int64
        (probability under 2^-4000). The numbers are a function of (variance, size, the bytes read).
    """
    if variance <= 0 or size < 0:
        raise ValueError("the variance must be above 0 and the size at least 0")
    if variance <= _TABLE_VARIANCE:
        table = _table(variance)
        if size == 1:
            return single(table.draw_one(entropy), wide=False)
        return in_chunks(lambda count: table.draw(count, entropy), size)
    if size == 1:
        return single(normal.rounded_multiple(variance, entropy), wide=variance > normal.INT64_VARIANCE)
    return in_chunks(lambda count: normal.rounded_multiples(variance, count, entropy), size)


@lru_cache(maxsize=32)
def _table(variance: Fraction) -> Table:
    return Table.of(RoundedNormal(variance=variance))


def _cumulative_ball(half_odd: Ball, variance: Ball) -> Ball:
    return bounds.normal_cdf_ball(half_odd / variance.sqrt())
