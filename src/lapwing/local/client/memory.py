"""A noisy answer that the device keeps, and makes noisy again for each report (the permanent and the instantaneous).

While the answer stays the same, all reports together lose no more than the kept answer does. Where answers change, that
is no longer so: each report then loses as much as its own noise allows.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from .listed import shown
from .refusals import AnswerRefused
from .rules import UNCHANGED, Memory, MemoryRule, Parameters, face_ratio
from .words import WHOLE, Read

MOST_CURVE: Final = 1024
"""Reports of which a device computes the exact loss; of more it takes what all together stay below."""
DAMAGED: Final = "The device's memory of this task is damaged; nothing was sent."


def unchanged_ratio(first: Fraction, second: Fraction, count: int, reports: int) -> Fraction:
    """Return the worst ratio of so many reports together, for two answers that never change, of k = count values.

    With a = p₁/q₁ and b = p₂/q₂ of the two k-ary rounds, it is (a·b^T + k − 1)/(b^T + a + k − 2). For let n_z of the T
    reports name z: their probability for x is proportional to a·b^(n_x) + the sum of b^(n_z) over all z ≠ x. The ratio
    for x and y rises with b^(n_x) and falls with every other term, and n_x = T makes the one as large and the others as
    small as they can be. It is the ratio of one report for T = 1, and comes near a, which it never reaches.

    Args: first, second: a and b, both above 1.
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

    Raises: AnswerRefused if it cannot have been kept.
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


def _rounds(given: Parameters, count: int) -> tuple[Fraction, Fraction]:
    return face_ratio(given["threshold_first"], count), face_ratio(given["threshold_second"], count)


def _draw(given: Parameters, count: int, true: int, read: Read, memory: Memory, period: int) -> tuple[int, Memory]:
    """Make the kept noisy form of the answer noisy again; it is drawn when the answer is first given."""
    drawn = kept(memory, str(true), range(count))
    if drawn is None:
        drawn = shown(given["threshold_first"], count, true, read)
    return shown(given["threshold_second"], count, drawn, read), {**memory, str(true): drawn}


def _after(given: Parameters, count: int, reports: int) -> tuple[Fraction, Fraction | None]:
    first, second = _rounds(given, count)
    unchanged = first if reports > MOST_CURVE else unchanged_ratio(first, second, count, reports)
    return unchanged, changing_ratio(first, second, count, reports)


MEMOISED: Final[MemoryRule[int]] = MemoryRule(
    ranges=_ranges,
    ratio=lambda given, count: unchanged_ratio(*_rounds(given, count), count, 1),
    more={UNCHANGED: lambda given, count: _rounds(given, count)[0]},
    draw=_draw,
    after=_after,
)
