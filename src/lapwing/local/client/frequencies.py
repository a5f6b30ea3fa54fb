"""The mechanisms for one of a list of values: how a report is drawn, and the worst ratio between two answers."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .rules import THRESHOLDS, WHOLE, Parameters, Read, Rule, below, coin, either, others, response_ratio

PRIME: Final = (1 << 31) - 1
"""The field in which answers are hashed: h(v) = ((a·v + b) mod PRIME) mod range."""


def _binary_ratio(parameters: Parameters, count: int) -> Fraction:
    """Return the larger of two ratios: a yes and a no may tell differently much."""
    yes, no = parameters["threshold_yes"], parameters["threshold_no"]
    return max(either(Fraction(yes, no)), either(Fraction(WHOLE - yes, WHOLE - no)))


def as_digits(bits: int, count: int) -> str:
    """Return so many bits as hexadecimal digits: bit i is bit i mod 8 of byte ⌊i/8⌋."""
    return bits.to_bytes(-(-count // 8), "little").hex()


def randomized_response(threshold: int, bound: int, true: int, read: Read) -> int:
    """Return the true value of so many with the threshold's probability, else one of the others, each as likely."""
    kept = coin(threshold, read)
    other = below(bound - 1, read)
    return true if kept else other + (other >= true)


def _draw_subset(parameters: Parameters, count: int, true: int, read: Read) -> list[int]:
    kept = coin(parameters["threshold"], read)
    chosen = others(parameters["size"] - kept, count, true, read)
    return sorted([*chosen, true] if kept else chosen)


def _subset_ratio(parameters: Parameters, count: int) -> Fraction:
    """Divide P(S | a value in S) = (T/2^64)/C(k−1, w−1) by P(S | one outside) = (1 − T/2^64)/C(k−1, w)."""
    threshold, size = parameters["threshold"], parameters["size"]
    return either(Fraction(threshold * (count - size), (WHOLE - threshold) * size))


def unary_encoding(parameters: Parameters, count: int, true: int, read: Read) -> str:
    """Return a bit for each value, as digits: the true value's is 1 with one threshold, the others with another."""
    bits = 0
    for value in range(count):
        bits |= coin(parameters["threshold_own" if value == true else "threshold_other"], read) << value
    return as_digits(bits, count)


def _unary_ratio(parameters: Parameters, count: int) -> Fraction:
    """Return the ratio of two answers: only their own two bits differ, and both tell, so the ratios multiply."""
    own, other = parameters["threshold_own"], parameters["threshold_other"]
    return either(Fraction(own * (WHOLE - other), other * (WHOLE - own)))


def _draw_hash(parameters: Parameters, count: int, true: int, read: Read) -> list[int]:
    a, b, faces = below(PRIME, read), below(PRIME, read), parameters["range"]
    return [a, b, randomized_response(parameters["threshold"], faces, (a * true + b) % PRIME % faces, read)]


FREQUENCY_RULES: Final[Mapping[str, Rule[int]]] = {
    "binary": Rule(
        ranges=lambda count: {"threshold_yes": THRESHOLDS, "threshold_no": THRESHOLDS},
        ratio=_binary_ratio,
        draw=lambda parameters, count, true, read: int(coin(parameters[f"threshold_{'yes' if true else 'no'}"], read)),
    ),
    "k-ary": Rule(
        ranges=lambda count: {"threshold": THRESHOLDS},
        ratio=lambda parameters, count: response_ratio(parameters["threshold"], count),
        draw=lambda parameters, count, true, read: randomized_response(parameters["threshold"], count, true, read),
    ),
    "subset": Rule(
        ranges=lambda count: {"threshold": THRESHOLDS, "size": range(1, count)},
        ratio=_subset_ratio,
        draw=_draw_subset,
    ),
    "unary": Rule(
        ranges=lambda count: {"threshold_own": THRESHOLDS, "threshold_other": THRESHOLDS},
        ratio=_unary_ratio,
        draw=unary_encoding,
    ),
    "hashing": Rule(
        ranges=lambda count: {"threshold": THRESHOLDS, "range": range(2, PRIME)},
        ratio=lambda parameters, count: response_ratio(parameters["threshold"], parameters["range"]),
        draw=_draw_hash,
    ),
}
