"""The geometric law, P(m) = (1 − q) q^m for m ≥ 0 with q = e^(−1/scale), for any rational scale; without rejection.

Theory of operation. A small scale is one table. For a large scale M is cut into blocks of bits,
M = H·2^k + Σ_j C_j·2^(k_j) with 0 ≤ C_j < 2^(w_j) and k_0 = 0, k_(j+1) = k_j + w_j, k = the sum of the widths. Since

    q^M = (q^(2^k))^H · Π_j (q^(2^(k_j)))^(C_j)

is a product of functions of one block each, over all combinations of blocks, the blocks are independent, each with
its factor as law (up to normalisation): H is geometric with ratio q^(2^k), C_j is a geometric law cut to 2^(w_j)
outcomes with ratio q^(2^(k_j)). Every table is exact (see `tables`), hence so is M, with its whole tail.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple, final

import numpy as np

from lapwing.exact import bounds
from lapwing.exact.arrays import IntArray, in_chunks, single
from lapwing.exact.bounds import Ball, Bracket, complement, within
from lapwing.exact.entropy import Entropy
from lapwing.exact.tables import Boundaries, InversionTable

# One table holds scales up to this; a larger scale is halved, a bit a time, until it is not above it.
_TABLE_SCALE = 40
# A block of w bits costs one lookup and leaves about 2^w of 65,536 cells undecided.
_BLOCK_BITS = 10
# 64-bit results keep their promise of int64 up to here; beyond, results are Python integers.
INT64_SCALE = 1 << 50
# The precision of recurrences: their error, some thousand units, stays far below the 64 bits wanted.
GUARD_BITS = 192
# e^(−45) < 2^−64.
TAIL = 45


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric:
    """The law P(h) ∝ e^(−h·rate), h ≥ 0: P(> h) = e^(−(h + 1)·rate)."""

    rate: Fraction

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Bracket 2^bits · P(≤ outcome)."""
        if outcome < 0:
            return Bracket(0, 0)
        tail = bounds.fixed_point(lambda x: (-x).exp(), (outcome + 1) * self.rate, bits=bits)
        return complement(within(tail, bits), bits)

    def boundaries(self) -> Boundaries:
        """Bracket the boundaries by the recurrence P(> h) = P(> h − 1) · e^(−rate)."""
        ratio = power(self.rate)
        tails = powers(ratio, ratio, ceil(TAIL / self.rate) + 1)
        return Boundaries(first=-1, brackets=[Bracket(0, 0), *(complement(tail, 64) for tail in tails)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricBlock:
    """The law P(c) ∝ e^(−c·rate) on 0 ≤ c < 2^width.

    With r = e^(−rate) and s_n = 1 + r + … + r^(n − 1) = (1 − r^n)/(1 − r): P(≤ c) = s_(c + 1) / s_(2^width).
    """

    rate: Fraction
    width: int

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Bracket 2^bits · P(≤ outcome)."""
        count = min(max(outcome + 1, 0), 1 << self.width)
        if count in (0, 1 << self.width):
            certain = (count >> self.width) << bits
            return Bracket(certain, certain)
        share = bounds.fixed_point(_share_ball, Fraction(count), Fraction(1 << self.width), self.rate, bits=bits)
        return within(share, bits)

    def boundaries(self) -> Boundaries:
        """Bracket the boundaries by the recurrence s_(n + 1) = 1 + r·s_n."""
        ratio, one = power(self.rate), 1 << GUARD_BITS
        lower = upper = 0
        sums = [Bracket(lower, upper)]
        for _ in range(1 << self.width):
            lower = one + (lower * ratio.lower >> GUARD_BITS)
            upper = one + (upper * ratio.upper >> GUARD_BITS) + 1
            sums.append(Bracket(lower, upper))
        # Now lower and upper are those of the last sum, the total.
        inside = (Bracket((low << 64) // upper, (high << 64) // lower + 1) for low, high in sums[1:-1])
        brackets = [Bracket(0, 0), *(within(bracket, 64) for bracket in inside), Bracket(1 << 64, 1 << 64)]
        return Boundaries(first=-1, brackets=brackets)


def geometric(scale: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent numbers with P(m) = (1 − q) q^m, m ≥ 0, q = e^(−1/scale), exactly.

    `tables` says how the work depends on what is drawn.

    Args:
        scale: Any rational above 0 (tables are kept for the last few).
        size: How many, ≥ 0.
        entropy: The randomness.

    Returns:
        int64 up to scale 2^50, Python integers beyond, and also below it where a number would not fit int64
        (probability under 2^-5000). The numbers are a function of (scale, size, the bytes read).
    """
    if scale <= 0 or size < 0:
        raise ValueError("the scale must be above 0 and the size at least 0")
    top, low = _tables(scale)
    wide = scale > INT64_SCALE
    if size == 1:
        return single(extend_one(top.draw_one(entropy), low, entropy), wide=wide)
    return in_chunks(lambda count: extend(top.draw(count, entropy), low, entropy, wide=wide), size)


@lru_cache(maxsize=16)
def _tables(scale: Fraction) -> tuple[InversionTable, "LowBits"]:
    """Build the tables of a scale; a function of the scale alone, so any thread may share them."""
    low = LowBits.of(scale)
    return InversionTable.of(Geometric(rate=Fraction(1 << low.bits) / scale)), low


class Block(NamedTuple):
    """Some neighbouring bits of a geometric number."""

    table: InversionTable
    width: int


class LowBits(NamedTuple):
    """The tables of the low bits, so many that what is left fits one table; from the highest to the lowest."""

    bits: int
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, scale: Fraction) -> "LowBits":
        """Choose the blocks of a scale, about equally wide, and build their tables."""
        bits = 0
        while scale > _TABLE_SCALE << bits:
            bits += 1
        pieces = -(-bits // _BLOCK_BITS)
        blocks = []
        remaining = bits
        for piece in range(pieces, 0, -1):
            width = -(-remaining // piece)
            remaining -= width
            blocks.append(
                Block(InversionTable.of(GeometricBlock(rate=Fraction(1 << remaining) / scale, width=width)), width)
            )
        return cls(bits, tuple(blocks))


def extend(high: IntArray, low: LowBits, entropy: Entropy, *, wide: bool) -> IntArray:
    """Draw the low bits below high ones (all ≥ 0), as Python integers if `wide` or where int64 would overflow."""
    if not low.bits:
        return high
    # Made wide before the first shift: one that overflows would change the number.
    if high.dtype == np.int64 and (wide or (high >> (63 - low.bits)).any()):
        high = high.astype(object)
    for table, width in low.blocks:
        high <<= width
        high |= table.draw(high.size, entropy)
    return high


def extend_one(high: int, low: LowBits, entropy: Entropy) -> int:
    """Do the same for a single number."""
    for table, width in low.blocks:
        high = high << width | table.draw_one(entropy)
    return high


def power(rate: Fraction) -> Bracket:
    """Bracket e^(−rate) at the precision of recurrences."""
    return within(bounds.fixed_point(lambda x: (-x).exp(), rate, bits=GUARD_BITS), GUARD_BITS)


def powers(start: Bracket, ratio: Bracket, count: int) -> list[Bracket]:
    """Bracket start · ratio^i for i < count, at 64 bits."""
    lower, upper = start
    drop = GUARD_BITS - 64
    result = []
    for _ in range(count):
        result.append(Bracket(lower >> drop, (upper >> drop) + 1))
        lower = lower * ratio.lower >> GUARD_BITS
        upper = (upper * ratio.upper >> GUARD_BITS) + 1
    return result


def _share_ball(count: Ball, total: Ball, rate: Ball) -> Ball:
    return (-count * rate).expm1() / (-total * rate).expm1()
