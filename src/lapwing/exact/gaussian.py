"""The rounded Gaussian law, round(N(0, σ²)) on the integers, for any rational σ.

A small σ is one table of P(≤ k) = Φ((k + ½)/σ). A larger σ takes a standard normal number whose bits are revealed as
they are needed (`normal`), multiplies it by σ and rounds: the same two tables serve every such σ.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import final

from lapwing.exact import bounds, normal
from lapwing.exact.arrays import IntArray, in_chunks
from lapwing.exact.bounds import Ball, Bracket
from lapwing.exact.entropy import Entropy
from lapwing.exact.law import Boundaries, complement, within
from lapwing.exact.tables import Table

# Up to here the law has a table of its own: at most about 750 boundaries, built in a few milliseconds.
_TABLE_SIGMA = 40
# Φ(−9.3) < 2^−64.
_TAIL = Fraction(93, 10)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedNormal:
    """The law of round(N(0, σ²)): P(≤ k) = Φ((k + ½)/σ). Halves are rounded either way; they have probability 0."""

    sigma: Fraction

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Bracket 2^bits · P(≤ outcome)."""
        half_odd = Fraction(2 * outcome + 1, 2)
        return within(bounds.fixed_point(_cumulative_ball, half_odd, self.sigma, bits=bits), bits)

    def boundaries(self) -> Boundaries:
        """Bracket the boundaries k < 0, and by symmetry P(≤ −1 − k) = 1 − P(≤ k) the others."""
        count = ceil(_TAIL * self.sigma) + 1
        rows = ((Fraction(-2 * k - 1, 2), self.sigma) for k in range(count, -1, -1))
        below = [within(bracket, 64) for bracket in bounds.fixed_points(_cumulative_ball, rows, bits=64)]
        return Boundaries(
            first=-1 - count, brackets=[*below, *(complement(bracket, 64) for bracket in reversed(below))]
        )


def rounded_gaussian(sigma: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent numbers distributed as round(N(0, σ²)), exactly.

    The work of the fast path is the same whatever is drawn; `tables` and `normal` say where the rare escalations are.

    Args: sigma, any rational above 0 (tables are kept for the last few); size, how many, ≥ 0; entropy, the randomness.
    Returns: int64 up to σ = 2^50, Python integers beyond, and also below it where a number would not fit int64
        (probability under 2^-4000). The numbers are a function of (sigma, size, the bytes read).
    """
    if sigma <= 0 or size < 0:
        raise ValueError("sigma must be above 0 and the size at least 0")
    if sigma <= _TABLE_SIGMA:
        table = _table(sigma)
        return in_chunks(lambda count: table.draw(count, entropy), size)
    return in_chunks(lambda count: normal.rounded_multiples(sigma, count, entropy), size)


@lru_cache(maxsize=32)
def _table(sigma: Fraction) -> Table:
    return Table.of(RoundedNormal(sigma=sigma))


def _cumulative_ball(half_odd: Ball, sigma: Ball) -> Ball:
    return bounds.normal_cdf_ball(half_odd / sigma)
