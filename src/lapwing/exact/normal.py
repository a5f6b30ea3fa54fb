"""A standard normal number with bits on demand, and its rounded multiples round(σN) for large σ.

Theory of operation. Write |N| = (h + x)/64 with an integer h ≥ 0 and 0 ≤ x < 1. The density of |N| at that point is
proportional to

    e^(−(h + x)²/8192) = e^(−h²/8192) · e^(−γ),   γ = x(x + 2h)/8192 ≥ 0.

Propose a sign and h with P(h) ∝ e^(−h²/8192) (the table `SignedGrid`), x uniform on [0, 1), and a coin C uniform on
[0, 1); accept if C ≥ 1 − e^(−γ). Accepted pairs (h, x) have density ∝ e^(−h²/8192) · P(C ≥ 1 − e^(−γ)), the one wanted
(von Neumann 1951). A proposal that is not accepted (about 0.6 %) is dropped whole, so how many proposals it takes says
nothing about what is accepted at last. The result is ±⌊σ(h + x)/64 + ½⌋.

x and C are numbers whose bits are revealed as needed. The fast path knows 54 bits of x and 32 of C, computes with
integers only, and is a proof: each comparison carries a bound on everything left out (`_accept`, `_Scaling`), and a
proposal for which a comparison could still go either way is settled by `_accepts` and `_rounded`, which reveal further
bits of the same x and C until ball arithmetic and exact rationals decide. There is no third outcome, so the law is
exact. About 10^-6 of the comparisons with C are unsettled, and of the roundings 2^-57·σ.

Timing. The fast path does the same work for every proposal. Beyond σ = 2^50 each accepted proposal is rounded by the
slow path, which reads the same bytes for nearly all of them but multiplies integers of varying size.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor, isqrt
from typing import NamedTuple, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact import bounds
from lapwing.exact.arrays import IntArray, assign
from lapwing.exact.bounds import Bracket
from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.exact.law import Boundaries, complement, within
from lapwing.exact.tables import Table
from lapwing.exact.uniform import LazyUniform

_GRID = 64
_TWICE_VARIANCE = 2 * _GRID**2
_FRACTION_BITS = 54
_COIN_BITS = 32
# The fast path's products stay below 2^63 for heights under this; a greater one (probability 2^-180) is unsettled.
_HEIGHT_LIMIT = 1000
# Beyond this σ the fast path's rounding would settle little, and results are Python integers.
_INT64_SIGMA = 1 << 50


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SignedGrid:
    """The law of h (positive sign) or −1 − h (negative sign): P(h) ∝ w_h = e^(−h²/8192), h ≥ 0, either sign equally.

    With the partial sums s_n = w_0 + … + w_(n − 1) and their limit s: P(≤ h) = ½ + s_(h + 1)/2s and P(≤ −1 − h) =
    ½ − s_h/2s for h ≥ 0.
    """

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Bracket 2^bits · P(≤ outcome)."""
        sums = _PartialSums.at(bits)
        return sums.upper_half(outcome + 1) if outcome >= 0 else complement(sums.upper_half(-1 - outcome), bits)

    def boundaries(self) -> Boundaries:
        """Bracket the boundaries up to height 604: the tail beyond has probability below 2^−64."""
        sums = _PartialSums.at(64)
        above = [sums.upper_half(n) for n in range(605)]
        below = [complement(bracket, 64) for bracket in reversed(above[1:])]
        return Boundaries(first=-605, brackets=[*below, *above])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _PartialSums:
    """Brackets on s_0, s_1, … (in units of 2^−(bits + 64)) and on s."""

    bits: int
    partial: tuple[Bracket, ...]
    total: Bracket

    @classmethod
    def at(cls, bits: int) -> Self:
        """Sum weights until they no longer matter.

        From n ≥ 600 on, each weight is at most e^(−1201/8192) < 7/8 of the one before, so those from n on sum to
        at most 8 w_n.
        """
        count = max(_GRID * (isqrt(14 * (bits + 64) // 10) + 1), 600)
        rows = ((Fraction(h * h, _TWICE_VARIANCE),) for h in range(count + 1))
        weights = bounds.fixed_points(lambda x: (-x).exp(), rows, bits=bits + 64)
        partial = [Bracket(0, 0)]
        for lower, upper in weights[:-1]:
            partial.append(Bracket(partial[-1].lower + max(lower, 0), partial[-1].upper + upper))
        total = Bracket(partial[-1].lower, partial[-1].upper + 8 * weights[-1].upper)
        return cls(bits=bits, partial=tuple(partial), total=total)

    def upper_half(self, n: int) -> Bracket:
        """Bracket 2^bits · (½ + s_n/2s)."""
        lower, upper = self.partial[n] if n < len(self.partial) else (self.partial[-1].lower, self.total.upper)
        half = 1 << (self.bits - 1)
        low = half + (lower * half) // self.total.upper
        high = half - (-upper * half) // self.total.lower
        return within(Bracket(low, high), self.bits)


class _Proposals(NamedTuple):
    """Signs (−1 or 0), heights, the first 54 bits of each x, the first 32 bits of each C."""

    sign: NDArray[np.int64]
    height: NDArray[np.int64]
    fraction: NDArray[np.uint64]
    coin: NDArray[np.int64]


def rounded_multiples(sigma: Fraction, count: int, entropy: Entropy) -> IntArray:
    """Draw `count` independent numbers distributed as round(σN), σ ≥ 32, N standard normal.

    Proposals are independent and taken in order, so surplus accepted ones may be dropped.
    """
    pieces: list[IntArray] = []
    wanted = count
    while wanted > 0:
        piece = _accepted_multiples(sigma, wanted + wanted // 100 + 8, entropy)[:wanted]
        wanted -= piece.size
        pieces.append(piece)
    return cast("IntArray", np.concatenate(pieces)) if pieces else np.empty(0, dtype=np.int64)


def _accepted_multiples(sigma: Fraction, count: int, entropy: Entropy) -> IntArray:
    """Make `count` proposals and return the rounded multiples of those that are accepted, in order."""
    proposals = _propose(count, entropy)
    accepted, unsettled = _accept(proposals)
    values: IntArray
    if sigma > _INT64_SIGMA:
        values, unsettled = np.zeros(count, dtype=object), unsettled | accepted
    else:
        magnitude, unrounded = _Scaling.of(sigma).round(proposals.height, proposals.fraction)
        values, unsettled = (magnitude ^ proposals.sign) - proposals.sign, unsettled | (accepted & unrounded)
    for i in np.flatnonzero(unsettled):
        value = _settled(sigma, proposals, int(i), entropy, is_accepted=bool(accepted[i]))
        accepted[i] = value is not None
        values = assign(values, int(i), value or 0)
    return values[accepted]


def _propose(count: int, entropy: Entropy) -> _Proposals:
    # A height beyond int64 would need a prefix of more than 2^100 equal bits: the conversion never fails.
    signed = _grid().draw(count, entropy).astype(np.int64)
    sign = signed >> 63
    fraction = np.frombuffer(read_exactly(entropy, 8 * count), dtype="<u8") >> np.uint64(64 - _FRACTION_BITS)
    coin = np.frombuffer(read_exactly(entropy, 4 * count), dtype="<u4").astype(np.int64)
    return _Proposals(sign, signed ^ sign, fraction, coin)


@lru_cache(maxsize=1)
def _grid() -> Table:
    return Table.of(SignedGrid())


def _accept(proposals: _Proposals) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which proposals are surely accepted, and which are not settled; the others are surely not accepted.

    With X the first 31 bits of x and A = X + 2^32·h, γ lies in [X·A, (X + 1)(A + 1)) / 2^75. Dropping 10 bits of A,
    A' = ⌊A/2^10⌋, and 33 of the product gives g = ⌊X·A'/2^33⌋ with g ≤ 2^32·γ < g + 2, since (X + A' + 1)/2^33 < 1
    for h < 1000. As γ − γ²/2 ≤ 1 − e^(−γ) ≤ γ − γ²/2 + γ³/6 and 1 − e^(−γ) grows with γ by at most as much,

        g − g²/2^33  ≤  2^32 (1 − e^(−γ))  ≤  g + 2 − g²/2^33 + (g²/2^33)·g/(3·2^32).

    s = ⌊g²/2^33⌋ makes the first at least g − s − 1 and the second at most g + 3 − s + ⌊(s + 1)·g/2^33⌋. C lies in
    [c, c + 1)/2^32. All products are below 2^63.
    """
    x = (proposals.fraction >> np.uint64(_FRACTION_BITS - 31)).astype(np.int64)
    g = (((proposals.height << 32) + x) >> 10) * x >> 33
    s = g * g >> 33
    low = g - s - 1
    high = g + 3 - s + ((s + 1) * g >> 33)
    tall = proposals.height >= _HEIGHT_LIMIT
    accepted = (proposals.coin >= high) & ~tall
    return accepted, (proposals.coin >= low) & ~accepted | tall


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Scaling:
    """Multiplication by σ/64 and rounding, on 64-bit words.

    σ/64 lies in [S, S + 1)·2^−s with 2^63 ≤ S < 2^64, and h + x in [Y, Y + 1)·2^−54 with Y = 2^54·h + fraction below
    2^64. So 2^(s + 54)·σ(h + x)/64 lies in [SY, SY + S + Y + 1). With S and Y cut into halves of 32 bits,
    P = S₁Y₁ + ⌊S₁Y₀/2^32⌋ + ⌊S₀Y₁/2^32⌋ is at most SY/2^64 and misses less than 3 of it. In all

        P ≤ 2^f·σ(h + x)/64 < P + 5,   f = s − 10.

    Hence ⌊σ(h + x)/64 + ½⌋ = ⌊(P + 2^(f − 1))/2^f⌋ unless the last f bits of P + 2^(f − 1) are among the four greatest.
    P + 2^(f − 1) < 1000·2^54 + 2^53 < 2^64.
    """

    high: np.uint64
    low: np.uint64
    fraction_bits: int

    @classmethod
    def of(cls, sigma: Fraction) -> Self:
        """Take the leading 64 bits of σ/64, 32 ≤ σ ≤ 2^50."""
        ratio = sigma / _GRID
        shift = 64 - floor(ratio).bit_length()
        word = floor(ratio * (1 << shift))
        return cls(high=np.uint64(word >> 32), low=np.uint64(word & 0xFFFFFFFF), fraction_bits=shift - 10)

    def round(
        self, height: NDArray[np.int64], fraction: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return ⌊σ(h + x)/64 + ½⌋, and for which elements that is not settled."""
        y = (height.astype(np.uint64) << np.uint64(_FRACTION_BITS)) + fraction
        half_word = np.uint64(32)
        y_high, y_low = y >> half_word, y & np.uint64(0xFFFFFFFF)
        product = self.high * y_high + (self.high * y_low >> half_word) + (self.low * y_high >> half_word)
        product += np.uint64(1 << (self.fraction_bits - 1))
        last = np.uint64((1 << self.fraction_bits) - 1)
        return (product >> np.uint64(self.fraction_bits)).astype(np.int64), (product & last) >= last - np.uint64(3)


def _settled(sigma: Fraction, proposals: _Proposals, i: int, entropy: Entropy, *, is_accepted: bool) -> int | None:
    """Settle one proposal: its rounded multiple, or None if it is not accepted."""
    height = int(proposals.height[i])
    x = LazyUniform(prefix=int(proposals.fraction[i]), bits=_FRACTION_BITS, entropy=entropy)
    coin = LazyUniform(prefix=int(proposals.coin[i]), bits=_COIN_BITS, entropy=entropy)
    if not is_accepted and not _accepts(height, x, coin):
        return None
    magnitude = _rounded(sigma, height, x)
    return -magnitude if proposals.sign[i] else magnitude


def _accepts(height: int, x: LazyUniform, coin: LazyUniform) -> bool:
    """Decide whether C ≥ 1 − e^(−γ), γ = x(x + 2h)/8192, revealing bits of x and C until it is certain."""
    while True:
        bits = x.bits + 64
        least, most = (value * (value + 2 * height) / _TWICE_VARIANCE for value in (x.lower, x.upper))
        if coin.lower >= 1 - bounds.exp(-most, bits).lower:
            return True
        if coin.upper <= 1 - bounds.exp(-least, bits).upper:
            return False
        x.reveal()
        coin.reveal()


def _rounded(sigma: Fraction, height: int, x: LazyUniform) -> int:
    """Return ⌊σ(h + x)/64 + ½⌋, revealing bits of x until both ends of its interval agree."""
    while True:
        # σ(h + x)/64 + ½ as a quotient of integers, at the lower end; the upper end is one step on.
        step, divisor = 2 * sigma.numerator, 2 * _GRID * sigma.denominator << x.bits
        dividend = step * ((height << x.bits) + x.prefix) + divisor // 2
        least, most = dividend // divisor, (dividend + step) // divisor
        if least == most:
            return least
        x.reveal()
