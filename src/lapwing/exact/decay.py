"""The decay e^(−d/scale) of a whole number d, as a product over the digits of d.

Theory of operation. Write d = H·2^k + Σ_j C_j·2^(k_j) with 0 ≤ C_j < 2^(w_j): the top digit H has no limit, the low
digits are blocks of bits. Then

    e^(−d/scale) = e^(−H·2^k/scale) · Π_j e^(−C_j·2^(k_j)/scale),

so short tables, one a digit, serve every d and every scale. A top digit from which on the decay is below e^(−nats) is
looked up as the last entry of its table, which therefore bounds it from above only; who needs the true value takes
the true digit (`value`). So nothing is cut off.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact import bounds
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Bracket, within

# e^(−45) < 2^−64.
NATS = 45
# A table has about so many entries: few enough for the cache, and for a new scale to be ready in milliseconds.
_ENTRY_BITS = 12
_INT64_SHIFT = 62


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """One digit of a distance: its weight 2^shift, and how many values its table has."""

    scale: Fraction
    shift: int
    count: int
    is_top: bool

    def indices(self, distances: IntArray) -> NDArray[np.int64]:
        """Return where the table has each distance's digit."""
        if self.shift > _INT64_SHIFT and distances.dtype == np.int64:
            return np.zeros(distances.size, dtype=np.int64)
        shifted = distances >> self.shift if self.shift else distances
        found = np.minimum(shifted, self.count - 1) if self.is_top else shifted & (self.count - 1)
        return found.astype(np.int64, copy=False)

    def value(self, distance: int) -> int:
        """Return a distance's digit, whatever its size."""
        return distance >> self.shift if self.is_top else (distance >> self.shift) & (self.count - 1)

    def bracket(self, digit: int, bits: int) -> Bracket:
        """Bracket 2^bits · e^(−digit·2^shift/scale)."""
        return decay(Fraction(digit << self.shift) / self.scale, bits)

    def brackets(self, bits: int, guard: int = 128) -> list[Bracket]:
        """Bracket 2^bits times the entries of the table, by the recurrence r^(c + 1) = r^c · r.

        Each step rounds both ends outwards by at most one unit of 2^−(bits + guard), and the count is below 2^14. The
        last entry of the top digit stands for all digits from there on, so its lower end is 0.
        """
        working = bits + guard
        ratio = self.bracket(1, working)
        lower = upper = 1 << working
        table = []
        for _ in range(self.count):
            table.append(Bracket(lower >> guard, -(-upper >> guard)))
            lower = lower * ratio.lower >> working
            upper = -(-upper * ratio.upper >> working)
        if self.is_top:
            table[-1] = Bracket(0, table[-1].upper)
        return table


@lru_cache(maxsize=64)
def digits_of(scale: Fraction, nats: int) -> tuple[Digit, ...]:
    """Return the digits for a scale, from the top down; the top one's table reaches down to e^(−nats)."""
    bits = 0
    while nats * scale > 1 << (bits + _ENTRY_BITS):
        bits += 1
    top = Digit(scale=scale, shift=bits, count=ceil(nats * scale / (1 << bits)) + 1, is_top=True)
    low = []
    for piece in range(-(-bits // _ENTRY_BITS), 0, -1):
        width = -(-bits // piece)
        bits -= width
        low.append(Digit(scale=scale, shift=bits, count=1 << width, is_top=False))
    return (top, *low)


def decay(exponent: Fraction, bits: int) -> Bracket:
    """Bracket 2^bits · e^(−exponent), for an exponent ≥ 0."""
    return within(bounds.fixed_point(lambda x: (-x).exp(), exponent, bits=bits), bits)
