"""Settle the proposals of a rounded Gaussian that 54 bits of u and 32 of C leave open (`rounded_gaussian`).

They are about one in a million. Further bits of the same u and C are revealed until ball arithmetic decides the
comparison with C, and exact integer roots the rounding: so nothing is left to chance or to rounding errors.
"""

from fractions import Fraction
from math import isqrt
from typing import Final

from lapwing.exact.acceptance import COIN_BITS, Proposal, beyond
from lapwing.exact.entropy import Entropy
from lapwing.exact.uniform import LazyUniform

GRID: Final = 64
"""An accepted point is this many times a standard normal number."""
RATE: Final = Fraction(1, 2 * GRID**2)
FRACTION_BITS: Final = 54
"""How many of the first 64 bits of u the fast path looks at."""
UNREAD_BITS: Final = 64 - FRACTION_BITS


def settled(variance: Fraction, given: Proposal, entropy: Entropy, *, is_accepted: bool) -> int | None:
    """Settle one proposal: its rounded multiple, or None if it is not accepted."""
    u = LazyUniform(prefix=given.word >> UNREAD_BITS, bits=FRACTION_BITS, entropy=entropy)
    coin = LazyUniform(prefix=given.coin, bits=COIN_BITS, entropy=entropy)
    if not is_accepted and not accepts(given.signed, u, coin):
        return None
    magnitude = rounded(variance, given.signed, u)
    return -magnitude if given.signed < 0 else magnitude


def _place(signed: int, u: LazyUniform) -> int:
    """Return the integer n for which |H + u| lies in [n, n + 1] / 2^bits."""
    place = (signed << u.bits) + u.prefix
    return place if signed >= 0 else ~place


def accepts(signed: int, u: LazyUniform, coin: LazyUniform) -> bool:
    """Decide whether C ≥ 1 − e^(−γ), γ = ((h + x)² − h²)·rate, revealing bits of u and C until it is certain."""
    height = max(signed, ~signed)
    while True:
        place = _place(signed, u)
        least, most = (RATE * (Fraction(end, 1 << u.bits) ** 2 - height**2) for end in (place, place + 1))
        verdict = beyond(coin, least, most)
        if verdict is not None:
            return verdict
        u.reveal()
        coin.reveal()


def rounded(variance: Fraction, signed: int, u: LazyUniform) -> int:
    """Return ⌊y + ½⌋ for y = σ|H + u|/64 as ⌊(⌊√(4y²)⌋ + 1)/2⌋, revealing bits of u until both its ends agree.

    A floor of the square, of its root and of the half each passes through the next: ⌊√z⌋ = ⌊√⌊z⌋⌋, ⌊z/2⌋ = ⌊⌊z⌋/2⌋.
    """
    while True:
        place, divisor = _place(signed, u), variance.denominator * GRID**2 << 2 * u.bits
        least, most = ((isqrt(4 * variance.numerator * end**2 // divisor) + 1) // 2 for end in (place, place + 1))
        if least == most:
            return least
        u.reveal()
