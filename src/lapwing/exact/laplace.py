"""The discrete Laplace law, P(x) ∝ e^(−|x|/scale) on the integers, for any rational scale; without rejection.

Theory of operation. Write q = e^(−1/scale) and let S be a fair-looking coin with P(S = 1) = q/(1 + q) and M ≥ 0 an
independent geometric number with P(M = m) = (1 − q) q^m. Put X = M if S = 0 and X = −1 − M if S = 1. Then

    P(X = m) = (1 − q) q^m / (1 + q) for m ≥ 0,   P(X = −m) = q/(1 + q) · (1 − q) q^(m − 1) for m ≥ 1,

which is (1 − q)/(1 + q) · q^|x| on both sides: the discrete Laplace law. In two's complement −1 − M is the bitwise
complement of M, so X is M exclusive-or the sign mask.

A small scale is one table of X. For a large scale M is cut into blocks of bits, M = H·2^k + Σ_j C_j·2^(k_j) with
0 ≤ C_j < 2^(w_j) and k_0 = 0, k_(j+1) = k_j + w_j, k = the sum of the widths. Since

    q^M = (q^(2^k))^H · Π_j (q^(2^(k_j)))^(C_j)

is a product of functions of one block each, over all combinations of blocks, the blocks are independent, each with
its factor as law (up to normalisation): H is geometric with ratio q^(2^k), C_j is a geometric law cut to 2^(w_j)
outcomes with ratio q^(2^(k_j)). S is independent of M, so S and H may be drawn from one table (`SignedGeometric`) as
H or its complement. Every table is exact (see `tables`), hence so is X, with its whole tails.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple, final

import numpy as np

from lapwing.exact import bounds
from lapwing.exact.arrays import IntArray, in_chunks
from lapwing.exact.bounds import Ball, Bracket
from lapwing.exact.entropy import Entropy
from lapwing.exact.law import Boundaries, complement, within
from lapwing.exact.tables import Table

# One table holds scales up to this; a larger scale is halved, a bit a time, until it is not above it.
_TABLE_SCALE = 40
# A block of w bits costs one lookup and leaves about 2^w of 65,536 cells undecided.
_BLOCK_BITS = 10
# 64-bit results keep their promise of int64 up to here; beyond, results are Python integers.
_INT64_SCALE = 1 << 50
# The precision of recurrences: their error, some thousand units, stays far below the 64 bits wanted.
_GUARD_BITS = 192
# e^(−45) < 2^−64.
_TAIL = 45


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SignedGeometric:
    """The law of H (for S = 0) or −1 − H (for S = 1), where H is M without its low `shift` bits.

    With q = e^(−1/scale) and T(a) = e^(−a/scale) / (1 + q):
    P(> h) = T((h + 1)·2^shift) for h ≥ 0, and P(≤ −g) = T(1 + (g − 1)·2^shift) for g ≥ 1.
    """

    scale: Fraction
    shift: int

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Bracket 2^bits · P(≤ outcome)."""
        if outcome >= 0:
            return complement(self._tail((outcome + 1) << self.shift, bits), bits)
        return self._tail(1 + ((-1 - outcome) << self.shift), bits)

    def _tail(self, start: int, bits: int) -> Bracket:
        return within(bounds.fixed_point(_tail_ball, Fraction(start), self.scale, bits=bits), bits)

    def boundaries(self) -> Boundaries:
        """Bracket the boundaries by the recurrences T(a + 2^shift) = T(a) · q^(2^shift)."""
        count = ceil(_TAIL * self.scale / (1 << self.shift)) + 1
        ratio = _power(Fraction(1 << self.shift) / self.scale)
        below = _powers(self._tail(1, _GUARD_BITS), ratio, count)
        above = _powers(self._tail(1 << self.shift, _GUARD_BITS), ratio, count)
        brackets = [*reversed(below), *(complement(bracket, 64) for bracket in above)]
        return Boundaries(first=-count, brackets=brackets)


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
        ratio, one = _power(self.rate), 1 << _GUARD_BITS
        lower = upper = 0
        sums = [Bracket(lower, upper)]
        for _ in range(1 << self.width):
            lower = one + (lower * ratio.lower >> _GUARD_BITS)
            upper = one + (upper * ratio.upper >> _GUARD_BITS) + 1
            sums.append(Bracket(lower, upper))
        # Now lower and upper are those of the last sum, the total.
        inside = (Bracket((low << 64) // upper, (high << 64) // lower + 1) for low, high in sums[1:-1])
        brackets = [Bracket(0, 0), *(within(bracket, 64) for bracket in inside), Bracket(1 << 64, 1 << 64)]
        return Boundaries(first=-1, brackets=brackets)


def discrete_laplace(scale: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent numbers with P(x) ∝ e^(−|x|/scale), exactly.

    The work of the fast path is the same whatever is drawn; `tables` says where the rare escalations are.

    Args: scale, any rational above 0 (tables are kept for the last few); size, how many, ≥ 0; entropy, the randomness.
    Returns: int64 up to scale 2^50, Python integers beyond, and also below it where a number would not fit int64
        (probability under 2^-4000). The numbers are a function of (scale, size, the bytes read).
    """
    if scale <= 0 or size < 0:
        raise ValueError("the scale must be above 0 and the size at least 0")
    blocks = _blocks(scale)
    return in_chunks(lambda count: _draw(blocks, count, entropy, wide=scale > _INT64_SCALE), size)


class _Block(NamedTuple):
    table: Table
    width: int


class _Blocks(NamedTuple):
    top: Table
    low: tuple[_Block, ...]  # from the highest bits to the lowest


@lru_cache(maxsize=16)
def _blocks(scale: Fraction) -> _Blocks:
    """Choose the blocks of a scale and build their tables; a function of the scale alone, so any thread may share."""
    bits = 0
    while scale > _TABLE_SCALE << bits:
        bits += 1
    pieces = -(-bits // _BLOCK_BITS)
    low = []
    remaining = bits
    for piece in range(pieces, 0, -1):
        width = -(-remaining // piece)
        remaining -= width
        low.append(_Block(Table.of(GeometricBlock(rate=Fraction(1 << remaining) / scale, width=width)), width))
    return _Blocks(Table.of(SignedGeometric(scale=scale, shift=bits)), tuple(low))


def _draw(blocks: _Blocks, count: int, entropy: Entropy, *, wide: bool) -> IntArray:
    """Draw every block and put the bits together; the sign mask complements them all at the end."""
    signed = blocks.top.draw(count, entropy)
    if not blocks.low:
        return signed
    sign = -(signed < 0).astype(np.int64)
    magnitude: IntArray = signed ^ sign
    if magnitude.dtype == np.int64 and (wide or (magnitude >> (63 - sum(block.width for block in blocks.low))).any()):
        magnitude = magnitude.astype(object)
    for table, width in blocks.low:
        magnitude <<= width
        magnitude |= table.draw(count, entropy)
    magnitude ^= sign
    return magnitude


def _tail_ball(start: Ball, scale: Ball) -> Ball:
    return (-start / scale).exp() / (1 + (-1 / scale).exp())


def _share_ball(count: Ball, total: Ball, rate: Ball) -> Ball:
    return (-count * rate).expm1() / (-total * rate).expm1()


def _power(rate: Fraction) -> Bracket:
    """Bracket e^(−rate) at the precision of recurrences."""
    return within(bounds.fixed_point(lambda x: (-x).exp(), rate, bits=_GUARD_BITS), _GUARD_BITS)


def _powers(start: Bracket, ratio: Bracket, count: int) -> list[Bracket]:
    """Bracket start · ratio^i for i < count, at 64 bits."""
    lower, upper = start
    drop = _GUARD_BITS - 64
    powers = []
    for _ in range(count):
        powers.append(Bracket(lower >> drop, (upper >> drop) + 1))
        lower = lower * ratio.lower >> _GUARD_BITS
        upper = (upper * ratio.upper >> _GUARD_BITS) + 1
    return powers
