"""The mechanisms for any text: sketches, and prefixes of words that nobody has listed.

Both hash words. A word is the point (x, y) of its SHA-256, and a function (a, c, b) puts it into bucket
((a·x + c·y + b) mod PRIME) mod m. If a, c and b are uniform below PRIME, then for two different points both residues
are uniform and independent: the map from (a, c, b) to the two residues is affine, and of rank 2 as (x, y, 1) and
(x′, y′, 1) are no multiples of each other, so that each pair of residues comes from PRIME functions exactly.

A sketch's functions are public and come from the task. Which one is used is drawn without looking at the word.

For prefixes, a word is padded with zero bytes to the most bytes that the task allows. Of its bits, most significant
first, the prefixes of `first`, `first + step`, … bits are asked for, and at last all, each by a group of respondents;
`checking` groups more are asked for the whole word. A respondent's group is drawn without looking at the word.
"""

import hashlib
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .frequencies import PRIME, as_digits, randomized_response
from .rules import THRESHOLDS, Parameters, Read, Rule, below, coin, response_ratio

MOST_FUNCTIONS: Final = 1 << 20
MOST_BUCKETS: Final = 1 << 16
MOST_ORDER: Final = 20
MOST_CHECKING: Final = 100

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


def numbered(parameters: Parameters, number: int) -> Function:
    """Return the function of a number: each seed s has s mod PRIME + number·⌊s/PRIME⌋, mod PRIME.

    Of uniform seeds, each function is uniform, and any two with numbers below PRIME are independent: the values of
    first + number·step at two numbers are a bijection of (first, step).
    """
    a, c, b = ((parameters[seed] % PRIME + number * (parameters[seed] // PRIME)) % PRIME for seed in SEEDS)
    return a, c, b


def draw_sketch(parameters: Parameters, size: int, word: str, read: Read) -> list[int | str]:
    """Return a function's number, and a bit for each bucket: right with the threshold's probability, else flipped.

    Only the word's own bit is 1 before the flips.
    """
    number, buckets = below(parameters["functions"], read), parameters["buckets"]
    own = bucket(numbered(parameters, number), point(as_bytes(word)), buckets)
    bits = 0
    for index in range(buckets):
        right = coin(parameters["threshold"], read)
        bits |= (right == (index == own)) << index
    return [number, as_digits(bits, buckets)]


def sketch_ratio(parameters: Parameters, size: int) -> Fraction:
    """Return the worst ratio: two words differ in two bits at most, and both tell, so it is (T/(2^64 − T))²."""
    return response_ratio(parameters["threshold"], 2) ** 2


def draw_hadamard(parameters: Parameters, size: int, word: str, read: Read) -> list[int]:
    """Return a function's number, a row of the Hadamard matrix, and its sign at the word's bucket, flipped by chance.

    The matrix has 2^order rows; the entry of row l at bucket h is −1 to the number of ones that l and h have in common.
    A sign is 0 for +1 and 1 for −1.
    """
    number, row = below(parameters["functions"], read), below(1 << parameters["order"], read)
    own = bucket(numbered(parameters, number), point(as_bytes(word)), 1 << parameters["order"])
    right = coin(parameters["threshold"], read)
    return [number, row, (own & row).bit_count() % 2 ^ (not right)]


def hadamard_ratio(parameters: Parameters, size: int) -> Fraction:
    """Return the worst ratio: for each function and row, a sign is right with probability T/2^64, or wrong."""
    return response_ratio(parameters["threshold"], 2)


def prefix_sizes(parameters: Parameters, size: int) -> list[int]:
    """Return how many bits the prefix of each group has; the last groups have the whole word."""
    return [*range(parameters["first"], 8 * size, parameters["step"]), *[8 * size] * (1 + parameters["checking"])]


def prefix(data: bytes, bits: int) -> bytes:
    """Return the first bits of some bytes; what is missing to the last byte is 0."""
    kept = bytearray(data[: -(-bits // 8)])
    kept[-1] &= 0xFF << -bits % 8 & 0xFF
    return bytes(kept)


def draw_prefix(parameters: Parameters, size: int, word: str, read: Read) -> list[int]:
    """Return a group, a hash function a, c, b, and a face: that of the prefix with the threshold's probability, or not.

    Args:
        size: The most bytes of a word.
    """
    sizes, faces = prefix_sizes(parameters, size), parameters["range"]
    group = below(len(sizes), read)
    function = below(PRIME, read), below(PRIME, read), below(PRIME, read)
    true = bucket(function, point(prefix(as_bytes(word).ljust(size, b"\0"), sizes[group])), faces)
    return [group, *function, randomized_response(parameters["threshold"], faces, true, read)]


def prefix_ratio(parameters: Parameters, size: int) -> Fraction:
    """Return the worst ratio: for each group and function it is randomized response with as many faces as the range."""
    return response_ratio(parameters["threshold"], parameters["range"])


def prefix_ranges(size: int) -> Mapping[str, range]:
    """Return the parameters, for words of so many bytes at most."""
    return {
        "first": range(1, 8 * size + 1),
        "step": range(1, 8 * size + 1),
        "checking": range(MOST_CHECKING + 1),
        "range": range(2, PRIME),
        "threshold": THRESHOLDS,
    }


def _sketch_ranges(**own: range) -> Mapping[str, range]:
    seeds = dict.fromkeys(SEEDS, range(PRIME**2))
    return {"threshold": THRESHOLDS, "functions": range(1, MOST_FUNCTIONS + 1), **own, **seeds}


HEAVY_HITTER_RULES: Final[Mapping[str, Rule[str]]] = {
    "sketch": Rule(
        ranges=lambda size: _sketch_ranges(buckets=range(2, MOST_BUCKETS + 1)), ratio=sketch_ratio, draw=draw_sketch
    ),
    "hadamard": Rule(
        ranges=lambda size: _sketch_ranges(order=range(1, MOST_ORDER + 1)), ratio=hadamard_ratio, draw=draw_hadamard
    ),
    "prefixes": Rule(ranges=prefix_ranges, ratio=prefix_ratio, draw=draw_prefix),
}
