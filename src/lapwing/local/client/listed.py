"""The mechanisms for a list of values: how a report is drawn, and the worst ratio of two answers' probabilities."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .rules import THRESHOLDS, Parameters, Rule, either, face_ratio
from .words import WHOLE, Read, below, coin, others

PRIME: Final = (1 << 31) - 1
"""The field in which answers are hashed: h(v) = ((a·v + b) mod PRIME) mod range."""


def _binary_ratio(given: Parameters, count: int) -> Fraction:
    """Compare both reports: the one may tell more than the other."""
    yes, no = given["threshold_yes"], given["threshold_no"]
    return max(either(Fraction(yes, no)), either(Fraction(WHOLE - yes, WHOLE - no)))


def _draw_binary(given: Parameters, count: int, true: int, read: Read) -> int:
    return int(coin(given["threshold_yes"] if true else given["threshold_no"], read))


def shown(threshold: int, bound: int, true: int, read: Read) -> int:
    """Return the true face with the threshold's probability, else one of the others."""
    kept = coin(threshold, read)
    other = below(bound - 1, read)
    return true if kept else other + (other >= true)


def _draw_subset(given: Parameters, count: int, true: int, read: Read) -> list[int]:
    kept = coin(given["threshold"], read)
    chosen = others(given["size"] - kept, count, true, read)
    return sorted([*chosen, true] if kept else chosen)


def _subset_ratio(given: Parameters, count: int) -> Fraction:
    """Divide P(S | a value in S) = (T/2^64)/C(k−1, w−1) by P(S | one outside) = (1 − T/2^64)/C(k−1, w)."""
    threshold, size = given["threshold"], given["size"]
    return either(Fraction(threshold * (count - size), (WHOLE - threshold) * size))


def draw_unary(given: Parameters, count: int, true: int, read: Read) -> str:
    """Return a bit for each value, as hexadecimal digits: that of the true one has a threshold of its own."""
    bits = bytearray(-(-count // 8))
    for value in range(count):
        threshold = given["threshold_own" if value == true else "threshold_other"]
        bits[value // 8] |= coin(threshold, read) << value % 8
    return bits.hex()


def _unary_ratio(given: Parameters, count: int) -> Fraction:
    """Compare the bits of the two answers, which alone differ: both tell, so their ratios multiply."""
    own, other = given["threshold_own"], given["threshold_other"]
    return either(Fraction(own * (WHOLE - other), other * (WHOLE - own)))


def _draw_hash(given: Parameters, count: int, true: int, read: Read) -> list[int]:
    a, b = below(PRIME, read), below(PRIME, read)
    return [a, b, shown(given["threshold"], given["range"], (a * true + b) % PRIME % given["range"], read)]


LISTED: Final[Mapping[str, Rule[int]]] = {
    "binary": Rule(
        ranges=lambda count: {"threshold_yes": THRESHOLDS, "threshold_no": THRESHOLDS},
        ratio=_binary_ratio,
        draw=_draw_binary,
    ),
    "k-ary": Rule(
        ranges=lambda count: {"threshold": THRESHOLDS},
        ratio=lambda given, count: face_ratio(given["threshold"], count),
        draw=lambda given, count, true, read: shown(given["threshold"], count, true, read),
    ),
    "subset": Rule(
        ranges=lambda count: {"threshold": THRESHOLDS, "size": range(1, count)},
        ratio=_subset_ratio,
        draw=_draw_subset,
    ),
    "unary": Rule(
        ranges=lambda count: {"threshold_own": THRESHOLDS, "threshold_other": THRESHOLDS},
        ratio=_unary_ratio,
        draw=draw_unary,
    ),
    "hashing": Rule(
        ranges=lambda count: {"threshold": THRESHOLDS, "range": range(2, PRIME)},
        ratio=lambda given, count: face_ratio(given["threshold"], given["range"]),
        draw=_draw_hash,
    ),
}
