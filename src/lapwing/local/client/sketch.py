"""Count-mean sketches, as a respondent's device fills them: a word's bucket under one of many functions, made noisy.

The functions are public and come from the task. Which one is used is drawn without looking at the word.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .listed import PRIME
from .points import SEEDS, as_bytes, bucket, numbered, point
from .rules import THRESHOLDS, Rule, face_ratio
from .words import Read, below, coin

MOST_FUNCTIONS: Final = 1 << 20
MOST_BUCKETS: Final = 1 << 16
MOST_ORDER: Final = 20
_SEED: Final = range(PRIME**2)


def draw_sketch(given: Mapping[str, int], size: int, word: str, read: Read) -> list[int | str]:
    """Return a function's number, and a bit for each bucket: right with the threshold's probability, else flipped.

    The bits are hexadecimal digits; bucket i is bit i mod 8 of byte ⌊i/8⌋. Only the word's own bit is 1 before the
    flips.
    """
    number, buckets = below(given["functions"], read), given["buckets"]
    own = bucket(numbered(given, number), point(as_bytes(word)), buckets)
    bits = bytearray(-(-buckets // 8))
    for index in range(buckets):
        right = coin(given["threshold"], read)
        bits[index // 8] |= (right == (index == own)) << index % 8
    return [number, bits.hex()]


def sketch_ratio(given: Mapping[str, int], size: int) -> Fraction:
    """Return the worst ratio: two words differ in two bits at most, and both tell, so it is (T/(2^64 − T))²."""
    return face_ratio(given["threshold"], 2) ** 2


def draw_hadamard(given: Mapping[str, int], size: int, word: str, read: Read) -> list[int]:
    """Return a function's number, a row of the Hadamard matrix, and its sign at the word's bucket, flipped by chance.

    The matrix has 2^order rows; the entry of row l at bucket h is −1 to the number of ones that l and h have in common.
    A sign is 0 for +1 and 1 for −1.
    """
    number, row = below(given["functions"], read), below(1 << given["order"], read)
    own = bucket(numbered(given, number), point(as_bytes(word)), 1 << given["order"])
    right = coin(given["threshold"], read)
    return [number, row, (own & row).bit_count() % 2 ^ (not right)]


def hadamard_ratio(given: Mapping[str, int], size: int) -> Fraction:
    """Return the worst ratio: for each function and row, a sign is right with probability T/2^64, or wrong."""
    return face_ratio(given["threshold"], 2)


def _ranges(**own: range) -> Mapping[str, range]:
    return {"threshold": THRESHOLDS, "functions": range(1, MOST_FUNCTIONS + 1), **own, **dict.fromkeys(SEEDS, _SEED)}


SKETCH_RULES: Final[Mapping[str, Rule[str]]] = {
    "sketch": Rule(
        ranges=lambda size: _ranges(buckets=range(2, MOST_BUCKETS + 1)), ratio=sketch_ratio, draw=draw_sketch
    ),
    "hadamard": Rule(
        ranges=lambda size: _ranges(order=range(1, MOST_ORDER + 1)), ratio=hadamard_ratio, draw=draw_hadamard
    ),
}
