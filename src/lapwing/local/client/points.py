"""Words as points of a plane over a prime field, and the functions that put them into buckets.

A word is the point (x, y) of its SHA-256, and a function (a, c, b) puts it into bucket ((a·x + c·y + b) mod PRIME) mod
m. If a, c and b are uniform below PRIME, then for two different points both residues are uniform and independent: the
map from (a, c, b) to the two residues is affine, and of rank 2 as (x, y, 1) and (x′, y′, 1) are no multiples of each
other, so that each pair of residues comes from PRIME functions exactly.
"""

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Final

from .listed import PRIME

Point = tuple[int, int]
Function = tuple[int, int, int]

SEEDS: Final = ("seed_x", "seed_y", "seed_shift")
"""The parameters from which numbered functions follow, each below PRIME²."""


def as_bytes(word: str) -> bytes:
    """Return a word as all compare it: in Unicode's form NFC, as UTF-8."""
    return unicodedata.normalize("NFC", word).encode("utf-8")


def point(data: bytes) -> Point:
    """Return the point of some bytes: the first 31 bits of their SHA-256 and the next 31, each mod PRIME."""
    digest = int.from_bytes(hashlib.sha256(data).digest()[:8], "little")
    return digest % (1 << 31) % PRIME, (digest >> 31) % (1 << 31) % PRIME


def bucket(function: Function, at: Point, count: int) -> int:
    """Return the bucket of a point, of so many."""
    a, c, b = function
    return (a * at[0] + c * at[1] + b) % PRIME % count


def numbered(given: Mapping[str, int], number: int) -> Function:
    """Return the function of a number: each seed s has s mod PRIME + number·⌊s/PRIME⌋, mod PRIME.

    Of uniform seeds, each function is uniform, and any two with numbers below PRIME are independent: the values of
    first + number·step at two numbers are a bijection of (first, step).
    """
    a, c, b = ((given[seed] % PRIME + number * (given[seed] // PRIME)) % PRIME for seed in SEEDS)
    return a, c, b
