"""What one server releases of the parts that it holds: their sums, cell by cell, with noise."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

import numpy as np

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.secure.field import MODULUS

_LOW: Final = np.uint64((1 << 32) - 1)


class AddsNoise(Protocol):
    """What adds independent noise to each integer of an array."""

    def release(self, values: IntArray, entropy: Entropy) -> IntArray:
        """Return the values with noise."""
        ...


@final
class NoiseParts:
    """Adds numbers that are there: one server's parts of a noise that all have drawn together."""

    def __init__(self, parts: Sequence[int]) -> None:
        self._parts = np.array(parts, dtype=np.int64)

    def release(self, values: IntArray, entropy: Entropy) -> IntArray:
        """Return the values with the parts."""
        return values + self._parts


def noisy_total(
    totals: Sequence[int], noise: AddsNoise, entropy: Entropy = SYSTEM, modulus: int = MODULUS
) -> tuple[int, ...]:
    """Return a server's parts of totals, each with its own noise, modulo the modulus.

    Guarantee:
        For whoever knows all other servers' parts, that of adding `noise` to the totals: those parts move the sum by
        what is known, and reduction modulo the modulus is post-processing.
    """
    drawn = noise.release(np.zeros(len(totals), dtype=np.int64), entropy)
    return tuple((total + each) % modulus for total, each in zip(totals, drawn.tolist(), strict=True))


def totals_of(
    parts: bytes, width: int, modulus: int = MODULUS, *, combined: Callable[[Sequence[int]], list[int]] = list
) -> list[int]:
    """Return the sums of the cells of many records, modulo the modulus.

    Args:
        combined: How sums of cells add up, linearly, to those that are released.
    """
    numbers = np.frombuffer(parts, dtype="<u8").reshape(-1, width)
    # Halves of 32 bits, whose sums have room for 2^32 records; whole cells of 61 bits would have it for eight.
    low = (numbers & _LOW).sum(axis=0, dtype=np.uint64)
    high = (numbers >> np.uint64(32)).sum(axis=0, dtype=np.uint64)
    totals = [(int(first) + (int(second) << 32)) % modulus for first, second in zip(low, high, strict=True)]
    return combined(totals)
