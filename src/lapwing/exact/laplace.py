"""The discrete Laplace law, P(x) ∝ e^(−|x|/scale) on the integers, for any rational scale; without rejection.

Theory of operation. Write q = e^(−1/scale) and let S be a fair-looking coin with P(S = 1) = q/(1 + q) and M ≥ 0 an
independent geometric number with P(M = m) = (1 − q) q^m. Put X = M if S = 0 and X = −1 − M if S = 1. Then

    P(X = m) = (1 − q) q^m / (1 + q) for m ≥ 0,   P(X = −m) = q/(1 + q) · (1 − q) q^(m − 1) for m ≥ 1,

which is (1 − q)/(1 + q) · q^|x| on both sides: the discrete Laplace law. In two's complement −1 − M is the bitwise
complement of M, so X is M exclusive-or the sign mask.

A small scale is one table of X. For a large scale M is cut into independent blocks of bits (`geometric`), of which the
highest is H. S is independent of M, so S and H may be drawn from one table (`SignedGeometric`) as H or its complement.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import final

import numpy as np

from lapwing.exact import bounds
from lapwing.exact.arrays import IntArray, in_chunks, single
from lapwing.exact.bounds import Ball, Bracket, complement, within
from lapwing.exact.entropy import Entropy
from lapwing.exact.geometric import GUARD_BITS, INT64_SCALE, TAIL, LowBits, extend, extend_one, power, powers
from lapwing.exact.tables import Boundaries, InversionTable


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
        count = ceil(TAIL * self.scale / (1 << self.shift)) + 1
        ratio = power(Fraction(1 << self.shift) / self.scale)
        below = powers(self._tail(1, GUARD_BITS), ratio, count)
        above = powers(self._tail(1 << self.shift, GUARD_BITS), ratio, count)
        brackets = [*reversed(below), *(complement(bracket, 64) for bracket in above)]
        return Boundaries(first=-count, brackets=brackets)


def discrete_laplace(scale: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent numbers with P(x) ∝ e^(−|x|/scale), exactly.

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
        return single(_draw_one(top, low, entropy), wide=wide)
    return in_chunks(lambda count: _draw(top, low, count, entropy, wide=wide), size)


@lru_cache(maxsize=16)
def _tables(scale: Fraction) -> tuple[InversionTable, LowBits]:
    """Build the tables of a scale; a function of the scale alone, so any thread may share them."""
    low = LowBits.of(scale)
    return InversionTable.of(SignedGeometric(scale=scale, shift=low.bits)), low


def _draw(top: InversionTable, low: LowBits, count: int, entropy: Entropy, *, wide: bool) -> IntArray:
    """Draw every block and put the bits together; the sign mask complements them all at the end."""
    signed = top.draw(count, entropy)
    if not low.bits:
        return signed
    sign = -(signed < 0).astype(np.int64)
    # The low bits are drawn for the magnitude, so the sign is taken off before them and put on after.
    magnitude = extend(signed ^ sign, low, entropy, wide=wide)
    magnitude ^= sign
    return magnitude


def _draw_one(top: InversionTable, low: LowBits, entropy: Entropy) -> int:
    signed = top.draw_one(entropy)
    sign = -(signed < 0)
    return extend_one(signed ^ sign, low, entropy) ^ sign


def _tail_ball(start: Ball, scale: Ball) -> Ball:
    return (-start / scale).exp() / (1 + (-1 / scale).exp())
