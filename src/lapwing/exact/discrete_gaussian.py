"""The discrete Gaussian law, P(n) ∝ e^(−n²/2v) on the integers, for any rational variance parameter v.

Theory of operation. A small v is one table. For a larger one choose k such that √v/2^k is from 32 to 64, cut n into its
high and its low bits, n = 2^k·H + L with 0 ≤ L < 2^k, and write n = 2^k·p, p = H + u, u = L/2^k. Then

    e^(−n²/2v) = e^(−p²·rate),   rate = 4^k/2v,

so 2^−k·n is an accepted point of `acceptance` with u uniform on the multiples of 2^−k, that is, with L made of k fair
bits. Every integer is one such point, so accepted numbers have exactly the law wanted, whole tails included. Nothing is
multiplied and nothing rounded: H and L are the high and the low bits of the result.

Rate and u are rational and known, so what the first 32 bits of C leave open is a question about C alone.
"""

from fractions import Fraction
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.acceptance import COIN_BITS, Acceptance, beyond
from lapwing.exact.arrays import IntArray, assign, in_chunks, single
from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.exact.signed_weights import SignedWeights
from lapwing.exact.tables import InversionTable
from lapwing.exact.uniform import LazyUniform

# Up to here (σ = 64) the law has a table of its own; beyond, that of the heights has σ/2^k from 32 to 64.
_TABLE_VARIANCE = 1 << 12
_WORD_BITS = 64
# Up to σ = 2^50 results are int64, beyond Python integers.
_INT64_BITS = 44


def discrete_gaussian(variance: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent numbers with P(n) ∝ e^(−n²/(2·variance)), exactly.

    `tables` and `acceptance` say how the work depends on what is drawn.

    Args:
        variance: Any rational above 0 (tables are kept for the last few).
        size: How many, ≥ 0.
        entropy: The randomness.

    Returns:
        int64 up to σ = 2^50, Python integers beyond, and also below it where a number would not fit int64 (probability
        under 2^-4000). The numbers are a function of (variance, size, the bytes read).
    """
    if variance <= 0 or size < 0:
        raise ValueError("the variance must be above 0 and the size at least 0")
    if variance <= _TABLE_VARIANCE:
        table = _table(variance)
        if size == 1:
            return single(table.draw_one(entropy), wide=False)
        return in_chunks(lambda count: table.draw(count, entropy), size)
    bits, acceptance = _split(variance)
    if size == 1:
        return single(_draw_one(bits, acceptance, entropy), wide=bits > _INT64_BITS)
    return in_chunks(lambda count: _draw(bits, acceptance, count, entropy), size)


@lru_cache(maxsize=32)
def _table(variance: Fraction) -> InversionTable:
    return InversionTable.of(SignedWeights(rate=1 / (2 * variance), zeros=1))


@lru_cache(maxsize=32)
def _split(variance: Fraction) -> tuple[int, Acceptance]:
    """Choose the least k with v/4^k ≤ 2^12, hence above 2^10: the rate is from 2^−13 to below 2^−11."""
    bits = 0
    while variance > _TABLE_VARIANCE << 2 * bits:
        bits += 1
    return bits, Acceptance.at((1 << 2 * bits) / (2 * variance))


def _draw(bits: int, acceptance: Acceptance, count: int, entropy: Entropy) -> IntArray:
    """Accept proposals, in order, until there are enough; surplus ones may be dropped."""
    pieces: list[IntArray] = []
    wanted = count
    while wanted > 0:
        piece = _accepted(bits, acceptance, wanted + wanted // 64 + 8, entropy)[:wanted]
        wanted -= piece.size
        pieces.append(piece)
    return cast("IntArray", np.concatenate(pieces)) if pieces else np.empty(0, dtype=np.int64)


def _accepted(bits: int, acceptance: Acceptance, count: int, entropy: Entropy) -> IntArray:
    """Make `count` proposals and return the numbers of those that are accepted, in order."""
    given = acceptance.propose(count, entropy)
    # L before the review: it may decide by the bits of u that are in L, as u has no others.
    low, words = _low_bits(bits, given.words, entropy)
    accepted, unsettled = acceptance.review(given._replace(words=words))
    high: IntArray = given.signed if low.dtype == np.int64 else given.signed.astype(object)
    values: IntArray = (high << bits) | low
    # From the first to the last, as each reads more bytes: the numbers are a function of the bytes read.
    for i in unsettled.tolist():
        number = (int(given.signed[i]) << bits) | int(low[i])
        accepted[i] = _accepts(bits, acceptance.rate, number, int(given.coins[i]), entropy)
        values = assign(values, i, number)
    return values[accepted]


def _low_bits(bits: int, words: NDArray[np.uint64], entropy: Entropy) -> tuple[IntArray, NDArray[np.uint64]]:
    """Return each L, which begins with the bits of its word, and the words without the bits beyond L."""
    if bits <= _INT64_BITS:
        spare = np.uint64(_WORD_BITS - bits)
        shifted = words >> spare
        return shifted.view(np.int64), shifted << spare
    low: IntArray = words.astype(object)
    drawn = _WORD_BITS
    while drawn < bits:
        low = (low << _WORD_BITS) | np.frombuffer(read_exactly(entropy, 8 * words.size), dtype="<u8").astype(object)
        drawn += _WORD_BITS
    spare = np.uint64(max(_WORD_BITS - bits, 0))
    return low >> (drawn - bits), words >> spare << spare


def _draw_one(bits: int, acceptance: Acceptance, entropy: Entropy) -> int:
    """Accept one proposal."""
    while True:
        given = acceptance.propose_one(entropy)
        u = LazyUniform(prefix=given.word, bits=_WORD_BITS, entropy=entropy)
        while u.bits < bits:
            u.reveal()
        spare = max(_WORD_BITS - bits, 0)
        is_accepted = acceptance.review_one(given._replace(word=given.word >> spare << spare))
        number = (given.signed << bits) | (u.prefix >> (u.bits - bits))
        if is_accepted is None:
            is_accepted = _accepts(bits, acceptance.rate, number, given.coin, entropy)
        if is_accepted:
            return number


def _accepts(bits: int, rate: Fraction, number: int, coin_prefix: int, entropy: Entropy) -> bool:
    """Decide whether C ≥ 1 − e^(−γ), γ = (p² − h²)·rate, revealing bits of C until it is certain."""
    signed = number >> bits
    gamma = rate * (Fraction(number, 1 << bits) ** 2 - max(signed, ~signed) ** 2)
    coin = LazyUniform(prefix=coin_prefix, bits=COIN_BITS, entropy=entropy)
    while (verdict := beyond(coin, gamma, gamma)) is None:
        coin.reveal()
    return verdict
