"""The mechanisms for a list of values: how a report is drawn, and the worst ratio of two answers' probabilities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final, final

from .words import WHOLE, Read, below, coin, others

PRIME: Final = (1 << 31) - 1
"""The field in which answers are hashed: h(v) = ((a·v + b) mod PRIME) mod range."""
PLACES: Final = Decimal("1e-12")
"""The ε of a task is rounded up to a multiple of this."""

Said = int | str | list[int]
"""What a report says."""
Parameters = Mapping[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One mechanism: its parameters with their ranges, given the number of values; its worst ratio; its reports."""

    ranges: Callable[[int], Mapping[str, range]]
    ratio: Callable[[Parameters, int], Fraction]
    draw: Callable[[Parameters, int, int, Read], Said]


_THRESHOLDS: Final = range(1, WHOLE)


def _either(ratio: Fraction) -> Fraction:
    return max(ratio, 1 / ratio)


def _binary_ratio(given: Parameters, count: int) -> Fraction:
    """Compare both reports: the one may tell more than the other."""
    yes, no = given["threshold_yes"], given["threshold_no"]
    return max(_either(Fraction(yes, no)), _either(Fraction(WHOLE - yes, WHOLE - no)))


def _draw_binary(given: Parameters, count: int, true: int, read: Read) -> int:
    return int(coin(given["threshold_yes"] if true else given["threshold_no"], read))


def _shown(threshold: int, bound: int, true: int, read: Read) -> int:
    """Return the true face with the threshold's probability, else one of the others."""
    kept = coin(threshold, read)
    other = below(bound - 1, read)
    return true if kept else other + (other >= true)


def _face_ratio(threshold: int, bound: int) -> Fraction:
    return _either(Fraction(threshold * (bound - 1), WHOLE - threshold))


def _draw_subset(given: Parameters, count: int, true: int, read: Read) -> list[int]:
    kept = coin(given["threshold"], read)
    chosen = others(given["size"] - kept, count, true, read)
    return sorted([*chosen, true] if kept else chosen)


def _subset_ratio(given: Parameters, count: int) -> Fraction:
    """Divide P(S | a value in S) = (T/2^64)/C(k−1, w−1) by P(S | one outside) = (1 − T/2^64)/C(k−1, w)."""
    threshold, size = given["threshold"], given["size"]
    return _either(Fraction(threshold * (count - size), (WHOLE - threshold) * size))


def _draw_unary(given: Parameters, count: int, true: int, read: Read) -> str:
    bits = bytearray(-(-count // 8))
    for value in range(count):
        threshold = given["threshold_own" if value == true else "threshold_other"]
        bits[value // 8] |= coin(threshold, read) << value % 8
    return bits.hex()


def _unary_ratio(given: Parameters, count: int) -> Fraction:
    """Compare the bits of the two answers, which alone differ: both tell, so their ratios multiply."""
    own, other = given["threshold_own"], given["threshold_other"]
    return _either(Fraction(own * (WHOLE - other), other * (WHOLE - own)))


def _draw_hash(given: Parameters, count: int, true: int, read: Read) -> list[int]:
    a, b = below(PRIME, read), below(PRIME, read)
    return [a, b, _shown(given["threshold"], given["range"], (a * true + b) % PRIME % given["range"], read)]


RULES: Final[Mapping[str, Rule]] = {
    "binary": Rule(
        ranges=lambda count: {"threshold_yes": _THRESHOLDS, "threshold_no": _THRESHOLDS},
        ratio=_binary_ratio,
        draw=_draw_binary,
    ),
    "k-ary": Rule(
        ranges=lambda count: {"threshold": _THRESHOLDS},
        ratio=lambda given, count: _face_ratio(given["threshold"], count),
        draw=lambda given, count, true, read: _shown(given["threshold"], count, true, read),
    ),
    "subset": Rule(
        ranges=lambda count: {"threshold": _THRESHOLDS, "size": range(1, count)},
        ratio=_subset_ratio,
        draw=_draw_subset,
    ),
    "unary": Rule(
        ranges=lambda count: {"threshold_own": _THRESHOLDS, "threshold_other": _THRESHOLDS},
        ratio=_unary_ratio,
        draw=_draw_unary,
    ),
    "hashing": Rule(
        ranges=lambda count: {"threshold": _THRESHOLDS, "range": range(2, PRIME)},
        ratio=lambda given, count: _face_ratio(given["threshold"], given["range"]),
        draw=_draw_hash,
    ),
}


def epsilon_up(ratio: Fraction) -> Decimal:
    """Return ln(ratio), for a ratio ≥ 1, rounded up to 12 decimal places.

    Python's decimal logarithm is correctly rounded, so with 60 digits the difference errs by less than 1e-55.
    """
    if ratio == 1:
        return Decimal(0)
    context = Context(prec=60)
    logarithm = context.subtract(context.ln(Decimal(ratio.numerator)), context.ln(Decimal(ratio.denominator)))
    return context.add(logarithm, Decimal("1e-50")).quantize(PLACES, rounding=ROUND_CEILING, context=context)
