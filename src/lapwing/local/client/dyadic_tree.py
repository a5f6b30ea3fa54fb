"""Yes or no in every period, of which a few changes are reported: a tree of blocks, one loss for all periods together.

Theory of operation. A device draws a level h and a slot j once. Blocks of 2^h periods follow each other. Of the changes
of its answer (the answer before the first period counts as no) it keeps the j-th alone. At the end of every block it
reports one bit: a coin that favours the direction of the kept change if that lies in the block, and else a fair coin.

So at most one block of a device is not a fair coin, whatever its answers were, and however often they changed. Given h
and j, the probability of all bits of its n blocks together is 2^(1 − n) times p, 1 − p or ½, and the ratio for any two
histories is p/(1 − p) at most. That goes for the mixture over h and j too, which do not depend on the answers. So it is
the loss of all periods together. If there are more blocks than slots it is attained: by a history that changes in the
blocks 1 … c, against one that changes in the blocks 2 … c + 1.

Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar and Thakurta 2019, who spend half of ε on a bit; all of it is
allowed.
"""

from collections.abc import Mapping
from typing import Final

from .memoised import DAMAGED, kept
from .randomness import WHOLE, Read, below, coin
from .refusals import AnswerRefused
from .rules import ALL, THRESHOLDS, Memory, MemoryRule, Parameters, response_ratio

MOST_LEVELS: Final = 10
MOST_CHANGES: Final = 1_000
MOST_DAYS: Final = 366


def _ranges(count: int) -> Mapping[str, range]:
    return {
        "threshold": THRESHOLDS,
        "levels": range(1, MOST_LEVELS + 1),
        "changes": range(1, MOST_CHANGES + 1),
        "days": range(1, MOST_DAYS + 1),
    }


def _draw(
    parameters: Parameters, count: int, true: int, read: Read, memory: Memory, period: int
) -> tuple[list[int] | None, Memory]:
    """Return what is sent after a period, if a block ends with it: its level, its number, and a bit.

    The answers affect the bit only, never whether or when something is sent. A period without an answer counts as
    unchanged, and a block that ended in such a period is not reported.
    """
    levels, slots, periods = parameters["levels"], parameters["changes"], 1 << parameters["levels"]
    before = memory or _drawn(levels, slots, read)
    level, slot = _kept(before, "level", range(levels + 1)), _kept(before, "slot", range(slots))
    answered, last = _kept(before, "period", range(periods + 1)), _kept(before, "answer", range(2))
    seen, change = _kept(before, "changes", range(slots + 1)), _kept(before, "change", range(-1, 2))
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


def _drawn(levels: int, slots: int, read: Read) -> Memory:
    """Return the memory before the first period: the answer is no."""
    level, slot = below(levels + 1, read), below(slots, read)
    return {"level": level, "slot": slot, "period": 0, "answer": 0, "changes": 0, "change": 0}


def _kept(memory: Memory, name: str, allowed: range) -> int:
    """Return what is kept; a device that lost a part of its memory must not draw again."""
    number = kept(memory, name, allowed)
    if number is None:
        raise AnswerRefused(DAMAGED)
    return number


TREE: Final[MemoryRule[int]] = MemoryRule(
    ranges=_ranges,
    ratio=lambda parameters, count: response_ratio(parameters["threshold"], 2),
    more={ALL: lambda parameters, count: response_ratio(parameters["threshold"], 2)},
    draw=_draw,
)
