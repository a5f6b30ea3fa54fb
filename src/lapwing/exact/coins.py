"""Coins that fall with exactly the chance that they should.

Theory of operation. A coin with chance p is U < p for a uniform U on [0, 1), of which only the bits that matter are
revealed. With brackets a ≤ 2^64·p ≤ b and U in [u, u + 1)/2^64, u < a proves U < p and u ≥ b proves U ≥ p; what is
left (2^−62 of the coins or less) is decided by `LazyUniform.below` from brackets of growing precision, and so without
any error. Large batches look at the first 16 bits of U alone: they decide unless they equal those of a or b, about
once in 65,536 coins, and then 48 more bits of the same U follow. Where all coins of a large batch have one chance, the
first 8 bits are looked at and all but one in 256 are decided.

Timing. A batch of up to 4,096 coins does the same work however they fall. In a larger one, the few coins that take 48
or 56 more bits are a matter of U and p, and their number may tell of p what 16 or 8 bits of it would.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Bracket
from lapwing.exact.decay import NATS, Digit, decay, digits_of
from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.exact.uniform import LazyUniform

_CHUNK = 1 << 16
# So many bytes are drawn and compared within the processor's cache, and hide what a key for them costs.
_ALIKE_CHUNK = 1 << 18
# Up to here every coin takes 64 bits at once.
_WHOLE_WORDS = 1 << 12
_REST_BITS = np.uint64(48)
_BYTE_BITS = 8
_MOST_CHANCES = 1 << 20


class Chances(Protocol):
    """Finitely many chances, to be looked up by number; hashable, since their table is kept."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def __hash__(self) -> int: ...

    def bracket(self, index: int, bits: int) -> Bracket:
        """Return integers lower ≤ 2^bits · p ≤ upper, both within 0 … 2^bits, for the chance p of this number.

        upper − lower stays bounded as `bits` grows, so more bits always tell more.
        """
        ...

    def brackets(self, bits: int) -> list[Bracket]:
        """Return the brackets of all chances; they may be wider by 1."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoinTable:
    """Brackets of many chances at 64 bits: u < `heads` proves U < p, and u > `most` proves U ≥ p.

    `heads` is the lower end, or 2^64 − 1 where that is 2^64; `most` is one less than the upper end, or 0 where that is
    0. Both only leave more to be decided later. `heads_cell` and `most_cell` are their first 16 bits.
    """

    heads: NDArray[np.uint64] = field(repr=False)
    most: NDArray[np.uint64] = field(repr=False)
    heads_cell: NDArray[np.uint16] = field(repr=False)
    most_cell: NDArray[np.uint16] = field(repr=False)

    @classmethod
    def of(cls, brackets: list[Bracket]) -> Self:
        """Build the table from brackets at 64 bits."""
        heads = np.array([min(lower, (1 << 64) - 1) for lower, _ in brackets], dtype=np.uint64)
        most = np.array([max(upper - 1, 0) for _, upper in brackets], dtype=np.uint64)
        cells = [(ends >> _REST_BITS).astype(np.uint16) for ends in (heads, most)]
        return cls(heads=heads, most=most, heads_cell=cells[0], most_cell=cells[1])

    def flip(
        self, indices: NDArray[np.int64], bracket: Callable[[int, int], Bracket], entropy: Entropy
    ) -> NDArray[np.bool_]:
        """Flip one coin an index, each 0 … count − 1; bracket(k, bits) encloses the chance of the k-th coin."""
        if indices.size <= _WHOLE_WORDS:
            words = np.frombuffer(read_exactly(entropy, 8 * indices.size), dtype="<u8")
            heads, unsettled = self._compare(words, indices)
            return self.settle(heads, np.flatnonzero(unsettled), words[unsettled], bracket, entropy)
        cells = np.frombuffer(read_exactly(entropy, 2 * indices.size), dtype="<u2")
        heads = cells < self.heads_cell.take(indices, mode="clip")
        where = np.flatnonzero((cells <= self.most_cell.take(indices, mode="clip")) & ~heads)
        rest = np.frombuffer(read_exactly(entropy, 8 * where.size), dtype="<u8") >> np.uint64(16)
        words = cells[where].astype(np.uint64) << _REST_BITS | rest
        heads[where], unsettled = self._compare(words, indices[where])
        return self.settle(heads, where[unsettled], words[unsettled], bracket, entropy)

    def _compare(
        self, words: NDArray[np.uint64], indices: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which coins are surely heads, and which are not settled; the others are surely not heads."""
        heads = words < self.heads.take(indices, mode="clip")
        return heads, (words <= self.most.take(indices, mode="clip")) & ~heads

    @staticmethod
    def settle(
        heads: NDArray[np.bool_],
        where: NDArray[np.intp],
        words: NDArray[np.uint64],
        bracket: Callable[[int, int], Bracket],
        entropy: Entropy,
    ) -> NDArray[np.bool_]:
        """Decide what 64 bits leave open, with as many more as it takes."""
        for position, word in zip(where.tolist(), words.tolist(), strict=True):
            uniform = LazyUniform(prefix=word, bits=64, entropy=entropy)
            heads[position] = uniform.below(lambda bits, position=position: bracket(position, bits))  # type: ignore[misc]
        return heads


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RationalChance:
    """One rational chance."""

    probability: Fraction
    count: int = 1

    def brackets(self, bits: int) -> list[Bracket]:
        """Round the one down and up."""
        return [self.bracket(0, bits)]

    def bracket(self, index: int, bits: int) -> Bracket:
        """Round down and up."""
        scaled = self.probability.numerator << bits
        return Bracket(scaled // self.probability.denominator, -(-scaled // self.probability.denominator))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Decay:
    """One chance e^(−exponent)."""

    exponent: Fraction
    count: int = 1

    def brackets(self, bits: int) -> list[Bracket]:
        """Bracket the one."""
        return [self.bracket(0, bits)]

    def bracket(self, index: int, bits: int) -> Bracket:
        """Bracket the exponential."""
        return decay(self.exponent, bits)


def coins(chances: Chances, indices: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
    """Flip independent coins, the k-th with the chance number indices[k], exactly.

    Args:
        chances: Whose table is kept for the last few.
        indices: Each from 0 to count − 1.
        entropy: The randomness.
    """
    if not 1 <= chances.count <= _MOST_CHANCES:
        raise ValueError(f"there must be 1 to {_MOST_CHANCES} chances")
    if indices.ndim != 1 or indices.dtype != np.int64:
        raise ValueError("the indices must be one row of int64")
    if indices.size and (indices.min() < 0 or indices.max() >= chances.count):
        raise ValueError("the indices must be from 0 to the number of chances less 1")
    table = _table(chances)

    def flip(part: NDArray[np.int64]) -> NDArray[np.bool_]:
        return table.flip(part, lambda position, bits: chances.bracket(int(part[position]), bits), entropy)

    pieces = [flip(indices[start : start + _CHUNK]) for start in range(0, indices.size, _CHUNK)]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.bool_)


def bernoulli(probability: Fraction, size: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Flip `size` independent coins with a rational chance from 0 to 1, exactly."""
    if not 0 <= probability <= 1 or size < 0:
        raise ValueError("the probability must be from 0 to 1 and the size at least 0")
    chance = RationalChance(probability=Fraction(probability))
    if size <= _WHOLE_WORDS:
        return coins(chance, np.zeros(size, dtype=np.int64), entropy)
    heads = np.empty(size, dtype=np.bool_)
    for start in range(0, size, _ALIKE_CHUNK):
        _flip_alike(heads[start : start + _ALIKE_CHUNK], chance, entropy)
    return heads


def _flip_alike(heads: NDArray[np.bool_], chance: RationalChance, entropy: Entropy) -> None:
    """Flip coins of one chance, by the first byte of each U, and by 56 bits more where that is the byte of the chance.

    With ⌊2^8·p⌋ ≤ 2^8·p ≤ ⌈2^8·p⌉ and U in [u, u + 1)/2^8, u < ⌊2^8·p⌋ proves U < p, u ≥ ⌈2^8·p⌉ proves U ≥ p, and
    what is left is u = ⌊2^8·p⌋ if 2^8·p is not whole.
    """
    first = np.frombuffer(read_exactly(entropy, heads.size), dtype=np.uint8)
    lower, upper = chance.bracket(0, _BYTE_BITS)
    np.less(first, lower, out=heads)
    # Returns before more is read: with a whole chance the first byte has decided every coin.
    if lower == upper:
        return
    where = np.flatnonzero(first == lower)
    rest = np.frombuffer(read_exactly(entropy, 8 * where.size), dtype="<u8") >> np.uint64(_BYTE_BITS)
    words = np.uint64(lower << 64 - _BYTE_BITS) | rest
    low, high = chance.bracket(0, 64)
    heads[where] = words < low
    unsettled = (words >= low) & (words < high)
    CoinTable.settle(heads, where[unsettled], words[unsettled], chance.bracket, entropy)


def bernoulli_exp(exponent: Fraction, size: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Flip `size` independent coins with the chance e^(−exponent), for any rational exponent ≥ 0, exactly."""
    if exponent < 0 or size < 0:
        raise ValueError("the exponent and the size must be at least 0")
    return coins(_Decay(exponent=Fraction(exponent)), np.zeros(size, dtype=np.int64), entropy)


def exponential_coins(distances: IntArray, scale: Fraction, entropy: Entropy) -> NDArray[np.bool_]:
    """Flip independent coins, the i-th with the chance e^(−distances[i]/scale), exactly.

    e^(−d/scale) is a product over the digits of d (`decay`). A coin is flipped for each digit, and all must be heads:
    they are independent, so the chance of that is the product.

    Args:
        distances: Integers ≥ 0 of any size.
        scale: Any rational above 0 (tables are kept for the last few).
        entropy: The randomness.
    """
    if scale <= 0:
        raise ValueError("the scale must be above 0")
    if distances.ndim != 1 or distances.dtype not in (np.int64, np.object_):
        raise ValueError("the distances must be one row of int64 or of Python integers")
    if distances.size and distances.min() < 0:
        raise ValueError("the distances must be at least 0")
    tables = _decay_tables(Fraction(scale))
    pieces = [_all_heads(distances[i : i + _CHUNK], tables, entropy) for i in range(0, distances.size, _CHUNK)]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.bool_)


def _all_heads(distances: IntArray, tables: tuple[tuple[Digit, CoinTable], ...], entropy: Entropy) -> NDArray[np.bool_]:
    """Flip the coins of every digit."""
    heads = np.ones(distances.size, dtype=np.bool_)
    for digit, table in tables:

        def bracket(position: int, bits: int, digit: Digit = digit) -> Bracket:
            return digit.bracket(digit.value(int(distances[position])), bits)

        heads &= table.flip(digit.indices(distances), bracket, entropy)
    return heads


@lru_cache(maxsize=16)
def _table(chances: Chances) -> CoinTable:
    return CoinTable.of(chances.brackets(64))


@lru_cache(maxsize=16)
def _decay_tables(scale: Fraction) -> tuple[tuple[Digit, CoinTable], ...]:
    return tuple((digit, CoinTable.of(digit.brackets(64))) for digit in digits_of(scale, NATS))
