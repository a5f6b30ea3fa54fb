"""The buckets of many words under many hash functions: the client's arithmetic, a whole array at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.local import client
from lapwing.local.client.heavy_hitters import MOST_FUNCTIONS, SEEDS, as_bytes, point
from lapwing.local.frequencies import hashing
from lapwing.mechanisms.parameters import whole_number

MOST_WORDS: Final = 100_000

Points = NDArray[np.uint64]
"""The points of words: two columns."""
Places = NDArray[np.uint32]
"""Buckets."""
Functions = NDArray[np.uint64]
"""Functions: the columns a, c and b."""


def distinct_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return candidates, none of which can be taken for another.

    Raises:
        InvalidParameter: For none, too many, the same twice, or two with the same point (as rare as 2^-62 a pair,
            unless somebody looked for them).
    """
    whole_number(len(words), "The number of words", least=1, most=MOST_WORDS)
    if len({as_bytes(word) for word in words}) != len(words):
        raise InvalidParameter("The words must all be different, in Unicode's form NFC.")
    if len({point(as_bytes(word)) for word in words}) != len(words):
        raise InvalidParameter("Two of the words have the same point, so no report tells them apart; leave one out.")
    return tuple(words)


def points(data: Sequence[bytes]) -> Points:
    """Return the points of some bytes each."""
    return np.array([point(each) for each in data], dtype=np.uint64).reshape(len(data), 2)


def points_of(words: Sequence[str]) -> Points:
    """Return the points of words."""
    return points([as_bytes(word) for word in words])


def places(functions: Functions, at: Points, count: int) -> Places:
    """Return the bucket of each point (a column) under each function (a row), of so many."""
    a, c, b = (functions[:, [i]] for i in range(3))
    return _reduced(a * at[:, 0] + c * at[:, 1] + b, count)


def own_places(functions: Functions, at: Points, count: int) -> Places:
    """Return the bucket of each point under the function in the same row."""
    return _reduced(functions[:, 0] * at[:, 0] + functions[:, 1] * at[:, 1] + functions[:, 2], count)


def _reduced(sums: NDArray[np.uint64], count: int) -> Places:
    """Take sums mod PRIME and mod the count; two products of numbers below 2^31, and one such, stay below 2^64.

    Quotients are subtracted, as numpy divides by a constant faster than it takes a remainder.
    """
    prime, buckets = np.uint64(client.PRIME), np.uint32(count)
    residues: Places = (sums - sums // prime * prime).astype(np.uint32)
    return residues - residues // buckets * buckets


def random_functions(size: int, entropy: Entropy) -> Functions:
    """Draw functions, each uniform and independent."""
    drawn = [samplers.uniform_integers(client.PRIME, size, entropy).astype(np.uint64) for _ in "acb"]
    return np.stack(drawn, axis=1)


def meeting(count: int) -> Fraction:
    """Return with which probability two different points fall into the same of so many buckets, exactly."""
    return hashing.meeting(count, client.PRIME)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """The functions of a sketch: each uniform, and two of them independent, over the draw of the seeds.

    Args:
        count: How many.
        seed_x: From 0 to below PRIME², public.
        seed_y: From 0 to below PRIME², public.
        seed_shift: From 0 to below PRIME², public.
    """

    count: int
    seed_x: int
    seed_y: int
    seed_shift: int

    def __post_init__(self) -> None:
        whole_number(self.count, "functions", least=1, most=MOST_FUNCTIONS)
        for name in SEEDS:
            whole_number(getattr(self, name), name, most=client.PRIME**2 - 1)

    def at(self, numbers: IntArray) -> Functions:
        """Return the functions of some numbers."""
        prime = client.PRIME
        columns = [(getattr(self, name) % prime, getattr(self, name) // prime) for name in SEEDS]
        factors = numbers.astype(np.uint64)
        return np.stack([(np.uint64(s) + factors * np.uint64(t)) % np.uint64(prime) for s, t in columns], axis=1)


def random_seeds(entropy: Entropy) -> dict[str, int]:
    """Draw the three seeds of `Numbered`, by name."""
    drawn = samplers.uniform_integers(client.PRIME**2, len(SEEDS), entropy)
    return dict(zip(SEEDS, map(int, drawn), strict=True))
