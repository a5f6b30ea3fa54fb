"""Compare two releases of the same tables, for example of two months, with intervals that know the noise of both.

Both releases have noise of their own, which is independent: a number that was bought once and shown twice is no change.
For normal noise, the difference has normal noise, and its half-width is the root of the sum of both squares. For other
noise, the sum of both half-widths is taken. Both intervals hold together with at least 90 %, and then the difference is
within that sum.
"""

import math
from dataclasses import dataclass
from typing import final

from lapwing.tabulation.published import Cell, PublishedFigure, PublishedNumber, PublishedRelease


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """The change of one cell.

    Args:
        half_width: Of the interval of the change.
    """

    keys: tuple[Cell, ...]
    before: float
    now: float
    half_width: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval of the change excludes zero."""
        return abs(self.now - self.before) > self.half_width


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NumberChanges:
    """The changes of one number, in the cells that both releases have.

    Args:
        is_same: Whether both releases show one result that was bought once.
        confidence: Of the intervals.
    """

    number: PublishedNumber
    changes: tuple[CellChange, ...]
    is_same: bool
    confidence: float

    @property
    def clear(self) -> tuple[CellChange, ...]:
        """The changes whose interval excludes zero."""
        return tuple(change for change in self.changes if change.is_clear)


def changes_between(before: PublishedRelease, now: PublishedRelease) -> tuple[NumberChanges, ...]:
    """Return the changes of all numbers that both releases have, by the names of tables, numbers and keys.

    Guarantee:
        Post-processing of published numbers.
    """
    earlier = {(number.table, number.name, number.key_names): number for number in before.numbers}
    found = []
    for number in now.numbers:
        other = earlier.get((number.table, number.name, number.key_names))
        if other is None:
            continue
        normal = number.is_normal and other.is_normal
        old = {_texts(keys): figure for keys, figure in other.figures.items()}
        pairs = ((keys, old.get(_texts(keys)), figure) for keys, figure in number.figures.items())
        changes = tuple(change for keys, a, b in pairs if a is not None and (change := _change(keys, a, b, normal)))
        found.append(
            NumberChanges(
                number=number,
                changes=changes,
                is_same=number.origin == other.origin and number.figures == other.figures,
                confidence=0.95 if normal else 0.9,
            )
        )
    return tuple(found)


def _texts(keys: tuple[Cell, ...]) -> tuple[str, ...]:
    """Return keys as texts: two files of CSV may have different types of them."""
    return tuple(map(str, keys))


def _change(keys: tuple[Cell, ...], before: PublishedFigure, now: PublishedFigure, normal: bool) -> CellChange | None:
    a, b = before.half_width, now.half_width
    if a is None or b is None or before.value is None or now.value is None or not math.isfinite(a + b):
        return None
    return CellChange(keys=keys, before=before.value, now=now.value, half_width=math.hypot(a, b) if normal else a + b)
