"""Propose points of the line by height and fraction, and accept them into the Gaussian law.

Theory of operation. A point p = H + u with an integer H and 0 ≤ u < 1 has |p| = h + x with h = H, x = u on the right
of 0, and h = −1 − H, x = 1 − u on the left: h ≥ 0 is an integer and 0 ≤ x ≤ 1. Its Gaussian weight is

    e^(−p²·rate) = e^(−h²·rate) · e^(−γ),   γ = x(x + 2h)·rate ≥ 0.

So propose H by the table of `SignedWeights`, P(H) ∝ e^(−h²·rate), u uniform (on [0, 1), or on any grid in it), and a
coin C uniform on [0, 1), and accept if C ≥ 1 − e^(−γ). Accepted points have weight ∝ e^(−h²·rate) · P(C ≥ 1 − e^(−γ)),
the one wanted (von Neumann 1951). A proposal that is not accepted (about one in a hundred) is dropped whole, and
proposals are independent: how many it takes says nothing about what is accepted at last.

The comparison with C is a proof in integers. It knows 32 bits of C and a bracket on x, carries a bound on everything
left out (`limits`), and names the proposals that it does not settle, some 10^-6 of them. They are settled by `beyond`,
with as many more bits of u and C as it takes.

Timing. In a large draw most proposals are accepted because C is beyond the limits of all points of their height
(`doubtful`), and only the others are compared; in a small one all are.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact import bounds
from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.exact.signed_weights import SignedWeights
from lapwing.exact.tables import FIXED_WORK, InversionTable
from lapwing.exact.uniform import LazyUniform

COIN_BITS = 32
# The products of `limits` stay below 2^63 for heights under this; a greater one (probability 2^-49) is unsettled.
HEIGHT_LIMIT = 512
_FRACTION_BITS = 31
_LEAST_RATE, _RATE_LIMIT = Fraction(1, 1 << 13), Fraction(1, 1 << 11)

Numbers = TypeVar("Numbers", int, NDArray[np.int64])


class Proposals(NamedTuple):
    """Each H, the first 64 bits of each u, the first 32 bits of each C."""

    signed: NDArray[np.int64]
    words: NDArray[np.uint64]
    coins: NDArray[np.uint32]


class Proposal(NamedTuple):
    """The same for a single point."""

    signed: int
    word: int
    coin: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Acceptance:
    """Proposals of one rate, 2^−13 ≤ rate < 2^−11, and the test of whether to accept them.

    `multiplier` is R = ⌊2^42·rate⌋. `last_doubtful` has for each position of the table the greatest coin at which some
    point of that height is not accepted for sure.
    """

    rate: Fraction
    table: InversionTable = field(repr=False)
    multiplier: int
    last_doubtful: NDArray[np.uint32] = field(repr=False)

    @classmethod
    def at(cls, rate: Fraction) -> Self:
        """Build the table of heights and what goes with it.

        As 1 − e^(−γ) ≤ γ ≤ (2h + 1)·rate, a coin of ⌈2^32 (2h + 1)·rate⌉ or more accepts, whatever x is. Positions at
        the ends of the table stand for heights without end, where no coin does.
        """
        if not _LEAST_RATE <= rate < _RATE_LIMIT:
            raise ValueError("the rate must be from 2^-13 to below 2^-11")
        table = InversionTable.of(SignedWeights(rate=rate, zeros=2))
        inner = range(table.first + 1, table.first + table.boundaries)
        doubtful = [((2 * max(h, ~h) + 1) * rate.numerator << COIN_BITS) // rate.denominator for h in inner]
        never = (1 << COIN_BITS) - 1
        last_doubtful = np.array([never, *(min(coin, never) for coin in doubtful), never], dtype=np.uint32)
        return cls(rate=rate, table=table, multiplier=int(rate * (1 << 42)), last_doubtful=last_doubtful)

    def propose(self, size: int, entropy: Entropy) -> Proposals:
        """Draw `size` independent proposals."""
        # A height beyond int64 would need a prefix of more than 2^100 equal bits: the conversion never fails.
        signed = self.table.draw(size, entropy).astype(np.int64, copy=False)
        words = np.frombuffer(read_exactly(entropy, 8 * size), dtype="<u8")
        return Proposals(signed, words, np.frombuffer(read_exactly(entropy, 4 * size), dtype="<u4"))

    def propose_one(self, entropy: Entropy) -> Proposal:
        """Draw one proposal."""
        signed = self.table.draw_one(entropy)
        data = read_exactly(entropy, 12)
        return Proposal(signed, int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little"))

    def review(self, given: Proposals) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return which proposals are accepted for sure, and the indices of those that are not settled."""
        accepted = np.ones(given.signed.size, dtype=bool)
        indices = self._doubtful(given)
        signed, coins = given.signed[indices], given.coins[indices].astype(np.int64)
        sign = signed >> 63
        height = signed ^ sign
        low, high = self.limits(height, _fraction((given.words[indices] >> np.uint64(33)).astype(np.int64), sign))
        tall = height >= HEIGHT_LIMIT
        sure = (coins >= high) & ~tall
        accepted[indices] = sure
        return accepted, indices[(coins >= low) & ~sure | tall]

    def review_one(self, given: Proposal) -> bool | None:
        """Return whether a proposal is accepted, None if that is not settled."""
        sign = -(given.signed < 0)
        height = given.signed ^ sign
        low, high = self.limits(height, _fraction(given.word >> 33, sign))
        if height >= HEIGHT_LIMIT or low <= given.coin < high:
            return None
        return given.coin >= high

    def _doubtful(self, given: Proposals) -> NDArray[np.intp]:
        """Return the indices of proposals that their height and coin alone do not accept; of all, if they are few."""
        if given.signed.size <= FIXED_WORK:
            return np.arange(given.signed.size)
        return np.flatnonzero(given.coins <= self.last_doubtful.take(given.signed - self.table.first, mode="clip"))

    def limits(self, height: Numbers, fraction: Numbers) -> tuple[Numbers, Numbers]:
        """Return bounds on the coins: below the first none is accepted, from the second on every one is.

        For x in [X, X + 1]/2^31, X < 2^31, and h < 512. With A = X + 2^32·h, 2^62·γ/rate lies in
        [X·A, (X + 1)(A + 1)]. Dropping 10 bits of A, A' = ⌊A/2^10⌋, and 32 of the product gives P = ⌊X·A'/2^32⌋ with
        P ≤ 2^20·γ/rate < P + 3, since (X + A' + 1)/2^32 < 2. And R ≤ 2^42·rate < R + 1. So g = ⌊P·R/2^30⌋ has
        g ≤ 2^32·γ < g + 10, since P < 2^31, R < 2^31 and (P + 3R + 3)/2^30 < 9. As γ − γ²/2 ≤ 1 − e^(−γ) ≤
        γ − γ²/2 + γ³/6 and 1 − e^(−γ) grows with γ by at most as much,

            g − g²/2^33  ≤  2^32 (1 − e^(−γ))  ≤  g + 10 − g²/2^33 + (g²/2^33)·g/(3·2^32).

        s = ⌊g²/2^33⌋ makes the first at least g − s − 1 and the second at most g + 11 − s + ⌊(s + 1)·g/2^33⌋. C lies in
        [c, c + 1)/2^32. Since γ ≤ 1025/2^11, g² is below 2^63, and so are all products.
        """
        p = (((height << 32) + fraction) >> 10) * fraction >> 32
        g = p * self.multiplier >> 30
        s = g * g >> 33
        return g - s - 1, g + 11 - s + ((s + 1) * g >> 33)


def beyond(coin: LazyUniform, least: Fraction, most: Fraction) -> bool | None:
    """Return whether C ≥ 1 − e^(−γ) for every γ from `least` to `most`, None if what is known of C does not tell."""
    bits = coin.bits + 64
    if coin.lower >= 1 - bounds.exp(-most, bits).lower:
        return True
    if coin.upper <= 1 - bounds.exp(-least, bits).upper:
        return False
    return None


def _fraction(first_bits: Numbers, sign: Numbers) -> Numbers:
    """Return the first 31 bits of x from those of u: 1 − u lies in [X, X + 1]/2^31 for their complement X."""
    return first_bits ^ (sign & ((1 << _FRACTION_BITS) - 1))
