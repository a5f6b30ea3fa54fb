"""The law of round(N(0, σ²)) for a small σ, of which one table is made: P(≤ k) = Φ((k + ½)/σ)."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final, final

from lapwing.exact import bounds
from lapwing.exact.bounds import Ball, Bracket, complement, within
from lapwing.exact.tables import Boundaries, InversionTable

# Φ(−9.3) < 2^−64.
_TAIL_SQUARED: Final = Fraction(93, 10) ** 2


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


@lru_cache(maxsize=32)
def table_of(variance: Fraction) -> InversionTable:
    """Return the law's table, which is built in a few milliseconds."""
    return InversionTable.of(RoundedNormal(variance=variance))


def _cumulative_ball(half_odd: Ball, variance: Ball) -> Ball:
    return bounds.normal_cdf_ball(half_odd / variance.sqrt())
