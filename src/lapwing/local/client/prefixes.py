"""Prefix extending, as a respondent's device does its part: one prefix of the word, hashed and made noisy.

A word is padded with zero bytes to the most bytes that the task allows. Of its bits, most significant first, the
prefixes of `first`, `first + step`, … bits are asked for, and at last all, each by a group of respondents; `checking`
groups more are asked for the whole word. Which group a respondent is in is drawn without looking at the word.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .listed import PRIME, shown
from .points import as_bytes, bucket, point
from .rules import THRESHOLDS, Rule, face_ratio
from .words import Read, below

MOST_CHECKING: Final = 100


def prefix_sizes(given: Mapping[str, int], size: int) -> list[int]:
    """Return how many bits the prefix of each group has; the last groups have the whole word."""
    return [*range(given["first"], 8 * size, given["step"]), *[8 * size] * (1 + given["checking"])]


def prefix(data: bytes, bits: int) -> bytes:
    """Return the first bits of some bytes; what is missing to the last byte is 0."""
    kept = bytearray(data[: -(-bits // 8)])
    kept[-1] &= 0xFF << -bits % 8 & 0xFF
    return bytes(kept)


def draw_prefix(given: Mapping[str, int], size: int, word: str, read: Read) -> list[int]:
    """Return a group, a hash function a, c, b, and a face: that of the prefix with the threshold's probability, or not.

    Args: size: the most bytes of a word.
    """
    sizes, faces = prefix_sizes(given, size), given["range"]
    group = below(len(sizes), read)
    function = below(PRIME, read), below(PRIME, read), below(PRIME, read)
    true = bucket(function, point(prefix(as_bytes(word).ljust(size, b"\0"), sizes[group])), faces)
    return [group, *function, shown(given["threshold"], faces, true, read)]


def prefix_ratio(given: Mapping[str, int], size: int) -> Fraction:
    """Return the worst ratio: for each group and function it is randomized response with as many faces as the range."""
    return face_ratio(given["threshold"], given["range"])


def prefix_ranges(size: int) -> Mapping[str, range]:
    """Return the parameters, for words of so many bytes at most."""
    return {
        "first": range(1, 8 * size + 1),
        "step": range(1, 8 * size + 1),
        "checking": range(MOST_CHECKING + 1),
        "range": range(2, PRIME),
        "threshold": THRESHOLDS,
    }


PREFIX_RULES: Final[Mapping[str, Rule[str]]] = {
    "prefixes": Rule(ranges=prefix_ranges, ratio=prefix_ratio, draw=draw_prefix),
}
