"""Additive shares: numbers modulo 2⁶¹ − 1, split so that all parts but one tell nothing.

Theory of operation. A number x is split for m servers into m − 1 uniform numbers and the one that makes them add up to
x. Any m − 1 of the m parts are independent and uniform, whatever x is: for every choice of their values exactly one
draw of the randomness gives it (the remaining part is then fixed by x). So they can be drawn by who does not know x,
which is the simulator of the proofs in docs/theory/secure.md. Parts add up cell by cell: the sum of everybody's parts
at one server is a part of the sum of everybody's numbers.

Source:
    The one-time pad, in a group (Shannon 1949); as secret sharing, Karnin, Greene and Hellman 1983.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly

Numbers = npt.NDArray[np.uint64]
MODULUS: Final = (1 << 61) - 1
"""A prime, so that the same numbers serve for polynomials."""
LARGEST: Final = 1 << 56
"""Totals of a task are at most this in size, so that noise of a scale up to 2⁵⁰ wraps with probability below e⁻³²."""


def uniform(count: int, entropy: Entropy = SYSTEM, modulus: int = MODULUS) -> list[int]:
    """Return independent uniform numbers below the modulus: words of its length, those beyond it dropped."""
    numbers: list[int] = uniform_numbers(count, entropy, modulus).tolist()
    return numbers


def uniform_numbers(count: int, entropy: Entropy = SYSTEM, modulus: int = MODULUS) -> Numbers:
    """Return the numbers of `uniform` in an array."""
    size, mask = (modulus.bit_length() + 7) // 8, (1 << modulus.bit_length()) - 1
    numbers = np.zeros(0, dtype=np.uint64)
    while len(numbers) < count:
        words = numbers_in(read_exactly(entropy, size * (count - len(numbers))), size) & np.uint64(mask)
        numbers = np.concatenate((numbers, words[words < modulus]))
    return numbers


def numbers_in(data: bytes, size: int) -> Numbers:
    """Return the numbers of `size` bytes each, little-endian, at most 8."""
    words = np.zeros((len(data) // size, 8), dtype=np.uint8)
    words[:, :size] = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
    return words.view("<u8").reshape(-1)


def split(
    values: Sequence[int], servers: int, entropy: Entropy = SYSTEM, modulus: int = MODULUS
) -> tuple[tuple[int, ...], ...]:
    """Return a part of each value for each server; the parts of a value add up to it.

    Guarantee:
        Any `servers` − 1 of the parts are uniform and independent of the values, with fresh entropy.

    Raises:
        InvalidParameter: If there are fewer than two servers: a single server would get the values themselves.
    """
    if servers < 2:
        raise InvalidParameter(
            f"{servers} server cannot hold shares, because it would see every value; there must be 2."
        )
    width = len(values)
    drawn = uniform((servers - 1) * width, entropy, modulus)
    masks = [tuple(drawn[server * width : (server + 1) * width]) for server in range(servers - 1)]
    last = tuple((value - sum(each)) % modulus for value, *each in zip(values, *masks, strict=True))
    return (*masks, last)


POINTS: Final = (1, 2, 3)
"""Where three servers have the values of a client's lines."""
AT_ZERO: Final = (3, -3, 1)
"""Σ AT_ZERO[i]·f(POINTS[i]) = f(0) for every polynomial f of degree 2 at most (Lagrange)."""
CURVATURE: Final = (1, -2, 1)
"""Σ CURVATURE[i]·f(POINTS[i]) is twice the leading coefficient of such an f: 0 if, and only if, f is a line."""


def on_lines(values: Sequence[int], entropy: Entropy = SYSTEM, modulus: int = MODULUS) -> tuple[tuple[int, ...], ...]:
    """Return the points 1, 2 and 3 of a random line through each value at 0, for three servers.

    Guarantee:
        Any one of the three points is uniform and independent of the values; two of them give them.

    Source:
        Shamir 1979.
    """
    slopes = uniform(len(values), entropy, modulus)
    return tuple(
        tuple((value + slope * point) % modulus for value, slope in zip(values, slopes, strict=True))
        for point in POINTS
    )


def joined(parts: Sequence[Sequence[int]], modulus: int = MODULUS) -> list[int]:
    """Return what the parts of all servers add up to, as integers around 0."""
    totals = (sum(each) % modulus for each in zip(*parts, strict=True))
    return [total - modulus if total > modulus // 2 else total for total in totals]
