"""The rounded Gaussian law, round(N(0, σ²)) on the integers, for any rational σ².

Theory of operation. A small σ is one table of P(≤ k) = Φ((k + ½)/σ) (`rounded_normal`). A larger σ takes a standard
normal number whose bits are revealed as they are needed, multiplies it by σ and rounds: one table serves every such σ.

An accepted point p of `acceptance` at rate 1/8192, with u uniform on [0, 1), has density
∝ e^(−p²/8192): it is 64 N. The result is the integer nearest to σp/64, found by its magnitude ⌊σ(h + x)/64 + ½⌋. Halves
have probability 0.

u and C are numbers whose bits are revealed as needed. The fast path knows 54 bits of u and 32 of C, computes with
integers only, and is a proof: each step carries a bound on everything left out (`Acceptance.limits`, `_Scaling`). What
it leaves open is settled by `unsettled_multiples`, which reveals further bits of the same u and C until ball arithmetic
and exact integer roots decide. There is no third outcome, so the law is exact. About 10^-6 of the comparisons with C
are unsettled, and of the roundings 2^-57·σ.

Timing. Rounding does the same work for every proposal. Beyond σ = 2^50 each accepted proposal is rounded by the slow
path, which reads the same bytes for nearly all of them but multiplies integers of varying size.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Self, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.acceptance import Acceptance, Proposal
from lapwing.exact.arrays import IntArray, assign, in_chunks, single
from lapwing.exact.entropy import Entropy
from lapwing.exact.rounded_normal import table_of
from lapwing.exact.unsettled_multiples import FRACTION_BITS, GRID, RATE, UNREAD_BITS, settled

# Up to here the law has a table of its own: at most about 750 boundaries, built in a few milliseconds.
_TABLE_VARIANCE = 40**2
# Beyond σ = 2^50 the fast path's rounding would settle little, and results are Python integers.
INT64_VARIANCE = 1 << 100


def rounded_gaussian(variance: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent numbers distributed as round(N(0, variance)), exactly.

    `tables` and `acceptance` say how the work depends on what is drawn.

    Args:
        variance: The number σ², any rational above 0 (the last few tables stay in memory).
        size: How many, ≥ 0.
        entropy: The randomness.

    Returns:
        int64 up to σ = 2^50, Python integers beyond, and also below it where a number would not fit int64 (probability
        under 2^-4000). The numbers are a function of (variance, size, the bytes read).
    """
    if variance <= 0 or size < 0:
        raise ValueError("the variance must be above 0 and the size at least 0")
    if variance <= _TABLE_VARIANCE:
        table = table_of(variance)
        if size == 1:
            return single(table.draw_one(entropy), wide=False)
        return in_chunks(lambda count: table.draw(count, entropy), size)
    if size == 1:
        return single(_rounded_multiple(variance, entropy), wide=variance > INT64_VARIANCE)
    return in_chunks(lambda count: _rounded_multiples(variance, count, entropy), size)


def _rounded_multiples(variance: Fraction, count: int, entropy: Entropy) -> IntArray:
    """Draw `count` independent numbers distributed as round(σN), N standard normal, variance = σ² ≥ 2^10.

    Proposals are independent and taken in order, so surplus accepted ones may be dropped.
    """
    pieces: list[IntArray] = []
    wanted = count
    while wanted > 0:
        piece = _accepted_multiples(variance, wanted + wanted // 100 + 8, entropy)[:wanted]
        wanted -= piece.size
        pieces.append(piece)
    return cast("IntArray", np.concatenate(pieces)) if pieces else np.empty(0, dtype=np.int64)


def _rounded_multiple(variance: Fraction, entropy: Entropy) -> int:
    """Draw one such number."""
    while True:
        proposal = _acceptance().propose_one(entropy)
        is_accepted = _acceptance().review_one(proposal)
        if is_accepted is not False:
            value = settled(variance, proposal, entropy, is_accepted=bool(is_accepted))
            if value is not None:
                return value


def _accepted_multiples(variance: Fraction, count: int, entropy: Entropy) -> IntArray:
    """Make `count` proposals and return the rounded multiples of those that are accepted, in order."""
    proposals = _acceptance().propose(count, entropy)
    accepted, unsettled = _acceptance().review(proposals)
    values: IntArray
    if variance > INT64_VARIANCE:
        values, unrounded = np.zeros(count, dtype=object), np.ones(count, dtype=bool)
    else:
        values, unrounded = _scaling(variance).round(proposals.signed, proposals.words)
    # From the first to the last, as each reads more bytes: the numbers are a function of the bytes read.
    for i in np.union1d(unsettled, np.flatnonzero(unrounded & accepted)).tolist():
        proposal = Proposal(*(int(column[i]) for column in proposals))
        value = settled(variance, proposal, entropy, is_accepted=bool(accepted[i]))
        accepted[i] = value is not None
        values = assign(values, i, value or 0)
    return values[accepted]


@lru_cache(maxsize=1)
def _acceptance() -> Acceptance:
    return Acceptance.at(RATE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Scaling:
    """Multiplication by σ/64 and rounding, on 64-bit words.

    With S = ⌊2^s·σ/64⌋, of 64 bits, σ/64 lies in [S, S + 1)·2^−s; and h + x in [Y, Y + 1]·2^−54 with Y below 2^63. So
    2^(s + 54)·σ(h + x)/64 lies in [SY, SY + S + Y + 1]. With S and Y cut into halves of 32 bits,
    P = S₁Y₁ + ⌊S₁Y₀/2^32⌋ + ⌊S₀Y₁/2^32⌋ is at most SY/2^64 and misses less than 3 of it. In all

        P ≤ 2^f·σ(h + x)/64 < P + 5,   f = s − 10.

    Hence ⌊σ(h + x)/64 + ½⌋ = ⌊(P + 2^(f − 1))/2^f⌋ unless the last f bits of P + 2^(f − 1) are among the four greatest.
    P + 2^(f − 1) < 2^63 + 2^53.
    """

    high: np.uint64
    low: np.uint64
    fraction_bits: int

    @classmethod
    def of(cls, variance: Fraction) -> Self:
        """Take S = ⌊2^s·σ/64⌋ as the root of ⌊4^s·σ²/4096⌋, with the s that makes it 64 bits, 32 ≤ σ ≤ 2^50.

        The root of a floor is the floor of the root: no integer lies between the two.
        """
        shift = 64 - isqrt(int(variance / GRID**2)).bit_length()
        word = isqrt(int(variance * (1 << 2 * shift) / GRID**2))
        return cls(high=np.uint64(word >> 32), low=np.uint64(word & 0xFFFFFFFF), fraction_bits=shift - 10)

    def round(
        self, signed: NDArray[np.int64], words: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the integers nearest to σ(H + u)/64, and for which of them that is not settled."""
        sign = signed >> 63
        place = signed << FRACTION_BITS
        place |= (words >> np.uint64(UNREAD_BITS)).view(np.int64)
        place ^= sign
        y = place.view(np.uint64)
        half_word = np.uint64(32)
        y_high, y_low = y >> half_word, y & np.uint64(0xFFFFFFFF)
        product = self.high * y_high + (self.high * y_low >> half_word) + (self.low * y_high >> half_word)
        product += np.uint64(1 << (self.fraction_bits - 1))
        last = np.uint64((1 << self.fraction_bits) - 1)
        magnitude = (product >> np.uint64(self.fraction_bits)).view(np.int64)
        unsettled = (product & last) >= last - np.uint64(3)
        return (magnitude ^ sign) - sign, unsettled


@lru_cache(maxsize=32)
def _scaling(variance: Fraction) -> _Scaling:
    return _Scaling.of(variance)
