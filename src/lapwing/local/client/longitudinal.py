"""Mechanisms for answers that are asked again and again: noisy answers that a device keeps, and a tree of periods.

**Kept answers.** A noisy answer is drawn once and kept, and made noisy again for each report.

The kept answer is RAPPOR's *permanent* response, the report its *instantaneous* one. While the answer stays the same,
all reports together lose no more than the kept answer does. Once answers change that no longer holds: then each report
may lose as much as its own noise allows.

Two forms are here: one value of k (`MEMOISED`), and a bit for each value (`MEMOISED_UNARY`). RAPPOR keeps bits, too,
and takes its ratios from here.

**The tree.** A yes or no in every period, of which a few changes are reported, with one loss for all periods together.
A device draws a level h and a slot j once. Blocks of 2^h periods follow each other. Of the changes
of its answer (the answer before the first period counts as no) it keeps the j-th alone. At the end of every block it
reports one bit: a coin that favours the direction of the kept change if that lies in the block, and else a fair coin.

So at most one block of a device is not a fair coin, whatever its answers were, and however often they changed. Given h
and j, the probability of all bits of its n blocks together is 2^(1 − n) times p, 1 − p or ½, and the ratio for any two
histories is p/(1 − p) at most. That goes for the mixture over h and j too, which do not depend on the answers. So it is
the loss of all periods together. If there are more blocks than slots it is attained: by a history that changes in the
blocks 1 … c, against one that changes in the blocks 2 … c + 1.

Source:
    Erlingsson, Feldman, Mironov, Raghunathan, Talwar and Thakurta 2019, who spend half of ε on a bit; all of it is
    allowed.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .frequencies import as_digits, randomized_response, unary_encoding
from .rules import (
    ALL,
    THRESHOLDS,
    UNCHANGED,
    WHOLE,
    AnswerRefused,
    Memory,
    MemoryRule,
    Parameters,
    Read,
    below,
    coin,
    either,
    response_ratio,
)

MOST_CURVE: Final = 1024
"""Up to so many reports a device computes the exact loss; for more it takes the bound that holds for any number."""
MOST_POWER: Final = 1 << 13
"""Up to so many bits times reports a device computes the bound for changing answers; a larger one says nothing."""
MOST_LEVELS: Final = 10
MOST_CHANGES: Final = 1_000
MOST_DAYS: Final = 366
DAMAGED: Final = "The device's memory of this task is damaged; nothing was sent."


# One value of k.


def unchanged_ratio(first: Fraction, second: Fraction, count: int, reports: int) -> Fraction:
    """Return the worst ratio of so many reports together, for two answers that never change, of k = count values.

    With a = p₁/q₁ and b = p₂/q₂ of the two k-ary rounds, it is (a·b^T + k − 1)/(b^T + a + k − 2). For let n_z of the T
    reports name z: their probability for x is proportional to a·b^(n_x) + the sum of b^(n_z) over all z ≠ x. The ratio
    for x and y rises with b^(n_x) and falls with every other term, and n_x = T makes the one as large and the others as
    small as they can be. It is the ratio of one report for T = 1, and comes near a, which it never reaches.

    Args:
        first: A and b, both above 1.
        second: A and b, both above 1.
    """
    power = second**reports
    return (first * power + count - 1) / (power + first + count - 2)


def changing_ratio(first: Fraction, second: Fraction, count: int, reports: int) -> Fraction:
    """Return a bound of the worst ratio for answers that may change at any time: that of one report times b^(T − 1).

    Given what was sent before, a report is a mixture of the laws of the second round over the kept answers, whatever
    the answers were; two mixtures are within b of each other, and the first reports within the ratio of one.
    """
    return unchanged_ratio(first, second, count, 1) * second ** (reports - 1) if reports else Fraction(1)


def kept(memory: Memory, name: str, allowed: range) -> int | None:
    """Return a number that the device keeps, or None.

    Raises:
        AnswerRefused: If it cannot have been kept.
    """
    number = memory.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or number not in allowed:
        raise AnswerRefused(DAMAGED)
    return number


def _ranges(count: int) -> Mapping[str, range]:
    """Allow no round that names the true value less often than another: `unchanged_ratio` is not for these."""
    truthful = range(WHOLE // count + 1, WHOLE)
    return {"threshold_first": truthful, "threshold_second": truthful}


def _rounds(parameters: Parameters, count: int) -> tuple[Fraction, Fraction]:
    return response_ratio(parameters["threshold_first"], count), response_ratio(parameters["threshold_second"], count)


def _draw(parameters: Parameters, count: int, true: int, read: Read, memory: Memory, period: int) -> tuple[int, Memory]:
    """Make the kept noisy form of the answer noisy again; it is drawn when the answer is first given."""
    permanent = kept(memory, str(true), range(count))
    if permanent is None:
        permanent = randomized_response(parameters["threshold_first"], count, true, read)
    report = randomized_response(parameters["threshold_second"], count, permanent, read)
    return report, {**memory, str(true): permanent}


def _after(parameters: Parameters, count: int, reports: int) -> tuple[Fraction, Fraction | None]:
    first, second = _rounds(parameters, count)
    unchanged = first if reports > MOST_CURVE else unchanged_ratio(first, second, count, reports)
    return unchanged, changing_ratio(first, second, count, reports)


MEMOISED: Final[MemoryRule[int]] = MemoryRule(
    ranges=_ranges,
    ratio=lambda parameters, count: unchanged_ratio(*_rounds(parameters, count), count, 1),
    more={UNCHANGED: lambda parameters, count: _rounds(parameters, count)[0]},
    draw=_draw,
    after=_after,
)


# Bits.

Chances = tuple[Fraction, Fraction]
"""How often a bit is 1, in two cases."""


def unchanged_bits_ratio(first: Chances, second: Chances, reports: int) -> Fraction:
    """Return the worst ratio of so many reports together, for two answers that never change and differ in two bits.

    Each of the two answers has one of these bits to itself. Of a bit that is 1 in m of T reports, the likelihoods if it
    is that of the answer and if not have a ratio that rises or falls with m, as a mixture of two kept bits: so it is
    worst at m = T and m = 0. The bit of the one answer has the former and that of the other the latter; bits are
    independent, so both ratios multiply. Where answers differ in more such pairs, it is this to the power of their
    number.

    Args:
        first: The chances of a kept bit that is the answer's, and of one that is not.
        second: Those of a reported bit if the kept one is set, and if not.
    """

    def likelier(ones: Fraction, zeros: Fraction) -> Fraction:
        own, other = first
        return (own * ones + (1 - own) * zeros) / (other * ones + (1 - other) * zeros)

    one, zero = second
    return either(likelier(one**reports, zero**reports) / likelier((1 - one) ** reports, (1 - zero) ** reports))


def changing_bits_ratio(
    first: Chances, second: Chances, bits: int, reports: int, *, pairs: int = 1, most: int = MOST_POWER
) -> Fraction | None:
    """Return a bound of the worst ratio for answers that may change at any time; None if it is too large to say much.

    Given what was sent before, each bit of a report is a mixture over what may be kept, whatever the answers were. Two
    such mixtures are within b = max(p₂/q₂, (1 − q₂)/(1 − p₂)), and bits are independent. So it is the ratio of one
    report times b^(bits·(T − 1)).

    Args:
        bits: Of a report.
        pairs: In how many pairs of bits two answers differ.
        most: Bits times later reports.
    """
    if not reports:
        return Fraction(1)
    one, zero = second
    single = unchanged_bits_ratio(first, second, 1) ** pairs
    if reports == 1:
        return single
    if not zero or one == 1 or bits * (reports - 1) > most:
        return None
    again = max(either(one / zero), either((1 - one) / (1 - zero)))
    return single * again ** (bits * (reports - 1))


def bits_again(bits: int, count: int, threshold_zero: int, threshold_one: int, read: Read) -> str:
    """Return a report of kept bits, as digits: each is a 1 with a threshold of its own if it is set, and if not."""
    report = 0
    for index in range(count):
        report |= coin(threshold_one if bits >> index & 1 else threshold_zero, read) << index
    return as_digits(report, count)


def kept_bits(digits: object, count: int, damaged: str = DAMAGED) -> int:
    """Return bits that the device keeps as digits.

    Raises:
        AnswerRefused: If they cannot have been kept.
    """
    length = 2 * -(-count // 8)
    if not isinstance(digits, str) or len(digits) != length or not set(digits) <= set("0123456789abcdef"):
        raise AnswerRefused(damaged)
    return int.from_bytes(bytes.fromhex(digits), "little")


_UNARY: Final = ("threshold_own", "threshold_other", "threshold_one", "threshold_zero")


def _bit_rounds(parameters: Parameters) -> tuple[Chances, Chances]:
    own, other, one, zero = (Fraction(parameters[name], WHOLE) for name in _UNARY)
    return (own, other), (one, zero)


def _draw_bits(
    parameters: Parameters, count: int, true: int, read: Read, memory: Memory, period: int
) -> tuple[str, Memory]:
    """Make the kept bits of the answer noisy again; they are drawn when the answer is first given."""
    digits = memory.get(str(true))
    if digits is None:
        digits = unary_encoding(parameters, count, true, read)
    permanent = kept_bits(digits, count)
    report = bits_again(permanent, count, parameters["threshold_zero"], parameters["threshold_one"], read)
    return report, {**memory, str(true): digits}


def _kept_bits_ratio(parameters: Parameters) -> Fraction:
    """Return what all reports of an answer that never changes stay below: the ratio of the kept bits themselves."""
    (own, other), _ = _bit_rounds(parameters)
    return either(own * (1 - other) / (other * (1 - own)))


def _after_bits(parameters: Parameters, count: int, reports: int) -> tuple[Fraction, Fraction | None]:
    rounds = _bit_rounds(parameters)
    unchanged = _kept_bits_ratio(parameters) if reports > MOST_CURVE else unchanged_bits_ratio(*rounds, reports)
    return unchanged, changing_bits_ratio(*rounds, count, reports)


MEMOISED_UNARY: Final[MemoryRule[int]] = MemoryRule(
    ranges=lambda count: dict.fromkeys(_UNARY, THRESHOLDS),
    ratio=lambda parameters, count: unchanged_bits_ratio(*_bit_rounds(parameters), 1),
    more={UNCHANGED: lambda parameters, count: _kept_bits_ratio(parameters)},
    draw=_draw_bits,
    after=_after_bits,
)


# A tree of periods.


def _tree_ranges(count: int) -> Mapping[str, range]:
    return {
        "threshold": THRESHOLDS,
        "levels": range(1, MOST_LEVELS + 1),
        "changes": range(1, MOST_CHANGES + 1),
        "days": range(1, MOST_DAYS + 1),
    }


def _draw_tree(
    parameters: Parameters, count: int, true: int, read: Read, memory: Memory, period: int
) -> tuple[list[int] | None, Memory]:
    """Return what is sent after a period, if a block ends with it: its level, its number, and a bit.

    The answers affect the bit only, never whether or when something is sent. A period without an answer counts as
    unchanged, and a block that ended in such a period is not reported.
    """
    levels, slots, periods = parameters["levels"], parameters["changes"], 1 << parameters["levels"]
    before = memory or _tree_before(levels, slots, read)
    level, slot = _kept_number(before, "level", range(levels + 1)), _kept_number(before, "slot", range(slots))
    answered, last = _kept_number(before, "period", range(periods + 1)), _kept_number(before, "answer", range(2))
    seen, change = _kept_number(before, "changes", range(slots + 1)), _kept_number(before, "change", range(-1, 2))
    if not answered < period <= periods:
        raise AnswerRefused(
            f"Period {period} of {periods} cannot follow period {answered}: one answer a period; nothing was sent."
        )
    block = (period - 1) >> level
    if block != (answered - 1) >> level:
        change = 0
    if true != last and seen == slot:
        change = true - last
    seen = min(seen + (true != last), slots)
    after = {"level": level, "slot": slot, "period": period, "answer": true, "changes": seen, "change": change}
    if period % (1 << level):
        return None, after
    limit = {0: WHOLE // 2, 1: parameters["threshold"], -1: WHOLE - parameters["threshold"]}[change]
    return [level, block, int(coin(limit, read))], after


def _tree_before(levels: int, slots: int, read: Read) -> Memory:
    """Return the memory before the first period: the answer is no."""
    level, slot = below(levels + 1, read), below(slots, read)
    return {"level": level, "slot": slot, "period": 0, "answer": 0, "changes": 0, "change": 0}


def _kept_number(memory: Memory, name: str, allowed: range) -> int:
    """Return what is kept; a device that lost a part of its memory must not draw again."""
    number = kept(memory, name, allowed)
    if number is None:
        raise AnswerRefused(DAMAGED)
    return number


TREE: Final[MemoryRule[int]] = MemoryRule(
    ranges=_tree_ranges,
    ratio=lambda parameters, count: response_ratio(parameters["threshold"], 2),
    more={ALL: lambda parameters, count: response_ratio(parameters["threshold"], 2)},
    draw=_draw_tree,
)


LONGITUDINAL_RULES: Final[Mapping[str, MemoryRule[int]]] = {
    "memoised": MEMOISED, "memoised-unary": MEMOISED_UNARY, "tree": TREE
}  # fmt: skip
"""For one of a list of values."""
