"""A noisy bit for each value that the device keeps, and makes noisy again for each report."""

from fractions import Fraction
from typing import Final

from .listed import draw_unary
from .memory import DAMAGED, MOST_CURVE
from .refusals import AnswerRefused
from .rules import THRESHOLDS, UNCHANGED, Memory, MemoryRule, Parameters, either
from .words import WHOLE, Read, coin

MOST_POWER: Final = 1 << 13
"""Bits times reports of which a device computes the bound for answers that may change; a bound of more says nothing."""

Chances = tuple[Fraction, Fraction]
"""How often a bit is set, in two cases."""


def unchanged_unary_ratio(first: Chances, second: Chances, reports: int) -> Fraction:
    """Return the worst ratio of so many reports together, for two answers that never change.

    Two answers x and y differ in their own two bits. Of a bit that says 1 in m of T reports, the likelihoods if it is
    that of the answer and if not have a ratio that rises or falls with m, as a mixture of two kept bits: so it is worst
    at m = T and m = 0. The bit of x has the one and that of y the other; bits are independent, so both ratios multiply.

    Args: first: the chances of the kept bit of the answer and of the others. second: those of a reported bit if the
        kept one is set, and if not.
    """

    def told(ones: Fraction, zeros: Fraction) -> Fraction:
        own, other = first
        return (own * ones + (1 - own) * zeros) / (other * ones + (1 - other) * zeros)

    one, zero = second
    return either(told(one**reports, zero**reports) / told((1 - one) ** reports, (1 - zero) ** reports))


def changing_unary_ratio(first: Chances, second: Chances, count: int, reports: int) -> Fraction | None:
    """Return a bound of the worst ratio for answers that may change at any time; None if it is too large to say much.

    Given what was sent before, each bit of a report is a mixture over what may be kept, whatever the answers were. Two
    such mixtures are within b = max(p₂/q₂, (1 − q₂)/(1 − p₂)), and bits are independent. So it is the ratio of one
    report times b^(k·(T − 1)).
    """
    if not reports or count * (reports - 1) > MOST_POWER:
        return None if reports else Fraction(1)
    one, zero = second
    bit = max(either(one / zero), either((1 - one) / (1 - zero)))
    return unchanged_unary_ratio(first, second, 1) * bit ** (count * (reports - 1))


def _rounds(given: Parameters) -> tuple[Chances, Chances]:
    own, other, one, zero = (Fraction(given[name], WHOLE) for name in _NAMES)
    return (own, other), (one, zero)


def _draw(given: Parameters, count: int, true: int, read: Read, memory: Memory, period: int) -> tuple[str, Memory]:
    """Make the kept bits of the answer noisy again; they are drawn when the answer is first given."""
    kept = memory.get(str(true))
    if kept is None:
        kept = draw_unary(given, count, true, read)
    size = -(-count // 8)
    if not isinstance(kept, str) or len(kept) != 2 * size or not set(kept) <= set("0123456789abcdef"):
        raise AnswerRefused(DAMAGED)
    bits = int.from_bytes(bytes.fromhex(kept), "little")
    said = bytearray(size)
    for value in range(count):
        threshold = given["threshold_one" if bits >> value & 1 else "threshold_zero"]
        said[value // 8] |= coin(threshold, read) << value % 8
    return said.hex(), {**memory, str(true): kept}


def _after(given: Parameters, count: int, reports: int) -> tuple[Fraction, Fraction | None]:
    first, second = _rounds(given)
    unchanged = _whole(given) if reports > MOST_CURVE else unchanged_unary_ratio(first, second, reports)
    return unchanged, changing_unary_ratio(first, second, count, reports)


def _whole(given: Parameters) -> Fraction:
    """Return what all reports of an answer that never changes stay below: the ratio of the kept bits themselves."""
    (own, other), _ = _rounds(given)
    return either(own * (1 - other) / (other * (1 - own)))


_NAMES: Final = ("threshold_own", "threshold_other", "threshold_one", "threshold_zero")

MEMOISED_UNARY: Final[MemoryRule[int]] = MemoryRule(
    ranges=lambda count: dict.fromkeys(_NAMES, THRESHOLDS),
    ratio=lambda given, count: unchanged_unary_ratio(*_rounds(given), 1),
    more={UNCHANGED: lambda given, count: _whole(given)},
    draw=_draw,
    after=_after,
)
