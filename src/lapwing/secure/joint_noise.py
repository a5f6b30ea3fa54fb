"""One noise that no server knows: three servers draw the bits of a discrete Laplace variable together.

Theory of operation. Discrete Laplace noise is the difference of two geometric variables, and the binary digits of a
geometric variable are independent: digit i is 1 with probability π_i = 1/(1 + e^(2^i/scale)), as
e^(−g/scale) = Π e^(−2^i·g_i/scale). A digit is drawn as "64 secret random bits, read as a number, are below c_i", with
c_i/2⁶⁴ next above π_i.

A secret bit is the exclusive or of three components; server i knows components i and i + 1, counted around, and no
other. So component i is common to the servers i − 1 and i, and a *random* secret bit costs nothing: each component is
read from what these two share. Exclusive or with a secret or a public bit is each server's own work. For the product of
two secret bits server i computes x_i·y_i + x_i·y_(i+1) + x_(i+1)·y_i, modulo 2; the three of these add up to x·y. It
hides its own behind the difference of two common random bits, which cancel in the sum, and sends it to server i − 1:
again each has two components of three. Comparing takes six rounds of such products, as (below, equal) of the upper half
of the bits and of the lower half give those of the whole.

At the end server 0 knows components 0 and 1 of a digit d, and so e = d₀ ⊕ d₁; servers 1 and 2 both know d₂. Server 0
splits e modulo p: one part r is common to it and server 1, the other, e − r, it sends to server 2. With d₂ = 1 both
flip their part, as d = d₂ + (1 − 2·d₂)·e. So servers 1 and 2 hold parts of d modulo p, and of every sum of digits.

Guarantee:
    To servers that follow this, what one of them sees is independent of all digits, if what the other two share is
    uniform: of each secret bit one component is unknown to it, and every message that it gets is hidden by what it does
    not know (`tests/secure/test_joint_noise.py` enumerates that). Two servers together know the noise. A server that
    does not follow it can shift the noise, and nobody notices.

Source:
    The sharing is that of Cramer, Damgård and Ishai 2005, the product that of Araki, Furukawa, Lindell, Nof and Ohara
    2016; digits of geometric variables as in Dwork, Kenthapadi, McSherry, Mironov and Naor 2006.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import fixed_points
from lapwing.secure.field import MODULUS, uniform
from lapwing.secure.wire import CELL_BYTES, cells_of

DIGITS: Final = 61
"""So many that a geometric variable reaches every residue: with fewer, noise would have an end that tells."""
BITS: Final = 64
CELL_DELTA: Final = Fraction(14, 10**18)
"""What rounding costs in each cell: more than 2·61 times 2⁻⁶³, see `digits_for`."""
Messages = Generator[bytes, bytes, list[int]]
"""Yields what is for the server before, is sent what comes from the one after, and returns this server's parts."""
Secret = tuple[int, int]
"""What a server has of secret bits: the component of its own number, and the one after it."""
SecretBits = Generator[bytes, bytes, list[Secret]]


class Shared(Protocol):
    """Random bytes that two servers have in common."""

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Digits:
    """The digits whose weighted sum is the noise: each is 1 with probability threshold / 2^bits, independently."""

    thresholds: tuple[int, ...]
    weights: tuple[int, ...]
    bits: int

    def message_bytes(self, cells: int) -> list[int]:
        """Return how long the messages of the rounds are, for the noise of so many cells."""
        lanes, rounds = cells * len(self.weights), self.bits.bit_length() - 1
        products = [2 * (self.bits >> round_) * _bytes(lanes) for round_ in range(1, rounds + 1)]
        return [*products, CELL_BYTES * lanes]


@lru_cache(maxsize=16)
def digits_for(scale: Fraction, count: int = DIGITS, bits: int = BITS) -> Digits:
    """Return the digits of discrete Laplace noise.

    Guarantee:
        With the usual count and bits, the law of their sum modulo p = 2⁶¹ − 1 is (1 − δ)·ν + δ·ρ, with ν that of
        discrete Laplace noise modulo p, some law ρ, and δ ≤ CELL_DELTA. So with probability 1 − δ adding it has the
        loss of discrete Laplace noise, in the sense of `privacy.approximate`. A digit with c/2⁶⁴ from π to π + e is one
        of π with probability 1 − τ and otherwise some other, if 1 − c/2⁶⁴ ≥ (1 − τ)(1 − π): so τ = e/(1 − π) will do,
        and e is 2⁻⁶⁴ and a little, π at most ½. Together the digits of both variables have 122·2⁻⁶³ and a little. With
        exact digits 0 to 60 a variable is geometric from 0 to p, and modulo p that is (1 − τ) times the geometric law
        modulo p, and τ at 0, with τ ≤ e^(−p/scale), which is below 2⁻²⁹⁰⁰.

    Args:
        scale: In steps, 2⁵⁰ at most.
        count: Of digits, modulo 2^count − 1.
        bits: Of each threshold, a power of two.
    """
    if not 0 < scale <= 1 << 50:
        raise InvalidParameter(f"The scale of a joint noise is {float(scale):.4g}; it must be above 0, 2^50 at most.")
    rows = [(Fraction(1 << place) / scale,) for place in range(count)]
    brackets = fixed_points(lambda x: 1 / (1 + x.exp()), rows, bits=bits + 64)
    thresholds = tuple(-(-bracket.upper // (1 << 64)) for bracket in brackets)
    weights = tuple(1 << place for place in range(count))
    return Digits(2 * thresholds, (*weights, *(-weight for weight in weights)), bits)


def joint_noise(
    digits: Digits, cells: int, place: int, before: Shared, after: Shared, modulus: int = MODULUS
) -> Messages:
    """Take part in drawing the noise of some cells, as the server of a place.

    Args:
        place: 0, 1 or 2.
        before: What this server shares with the one before it, around.
        after: With the one after.
    """
    width = len(digits.weights)
    lanes = cells * width  # a secret bit is a bit of an integer, which has one for each digit of each cell
    everywhere = (1 << lanes) - 1
    each_cell = everywhere // ((1 << width) - 1)

    def drawn() -> Secret:
        first, second = (int.from_bytes(each.read(_bytes(lanes)), "little") for each in (before, after))
        return first & everywhere, second & everywhere

    less: list[Secret] = []
    equal: list[Secret] = []
    for bit in range(digits.bits):  # of the drawn words, the lowest first
        ones = each_cell * sum((c >> bit & 1) << lane for lane, c in enumerate(digits.thresholds))
        own, other = _flipped(drawn(), everywhere, place)  # so 1 where the drawn bit is 0
        less.append((own & ones, other & ones))
        equal.append(_flipped((own, other), ones, place))
    while len(less) > 1:
        pairs = [(equal[high], lower[high - 1]) for lower in (less, equal) for high in range(1, len(less), 2)]
        products = yield from _products(pairs, [drawn() for _ in pairs], _bytes(lanes))
        half = len(less) // 2
        less = [_sum(less[2 * each + 1], products[each]) for each in range(half)]
        equal = products[half:]
    own, other = less[0]
    if place == 0:
        parts = uniform(lanes, after, modulus)
        hidden = ((bit - part) % modulus for bit, part in zip(_listed(own ^ other, lanes), parts, strict=True))
        yield b"".join(each.to_bytes(CELL_BYTES, "little") for each in hidden)
        return [0] * cells
    message = yield bytes(CELL_BYTES * lanes)
    if place == 1:
        parts, one = uniform(lanes, before, modulus), 0
    else:
        parts, one = cells_of(message), 1
    flips = _listed(other if place == 1 else own, lanes)  # both of these servers know component 2
    each = zip(digits.weights * cells, flips, parts, strict=True)
    weighted = [weight * (one - part if flip else part) for weight, flip, part in each]
    return [sum(weighted[at : at + width]) % modulus for at in range(0, lanes, width)]


def _products(pairs: Sequence[tuple[Secret, Secret]], masks: Sequence[Secret], size: int) -> SecretBits:
    """Return the products of pairs of secret bits, after one round of messages."""
    summands = [
        x[0] & y[0] ^ x[0] & y[1] ^ x[1] & y[0] ^ mask[0] ^ mask[1] for (x, y), mask in zip(pairs, masks, strict=True)
    ]
    theirs = yield b"".join(each.to_bytes(size, "little") for each in summands)
    received = (int.from_bytes(theirs[at : at + size], "little") for at in range(0, len(theirs), size))
    return list(zip(summands, received, strict=True))


def _sum(first: Secret, second: Secret) -> Secret:
    return first[0] ^ second[0], first[1] ^ second[1]


def _flipped(secret: Secret, lanes: int, place: int) -> Secret:
    """Return secret bits of which those of some lanes are flipped: in component 0, which servers 0 and 2 know."""
    own, other = secret
    return own ^ lanes if place == 0 else own, other ^ lanes if place == 2 else other


def _listed(bits: int, lanes: int) -> list[int]:
    data = np.frombuffer(bits.to_bytes(_bytes(lanes), "little"), dtype=np.uint8)
    return np.unpackbits(data, count=lanes, bitorder="little").tolist()


def _bytes(lanes: int) -> int:
    return (lanes + 7) // 8
