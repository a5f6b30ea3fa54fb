"""Compare two releases of the same tables, for example of two months, with intervals that know the noise of both.

Both releases have noise of their own, which is independent: a number that was bought once and shown twice is no change.
For normal noise, the difference has normal noise, and its half-width is the root of the sum of both squares. For other
noise, the sum of both half-widths is taken. Both intervals hold together with at least 90 %, and then the difference is
within that sum.

The later release may have sharpened a number of the earlier one. Then its noise is a mean of the earlier noise, with
weight w ≥ 0, and of new noise. The covariance of both is w times the variance of the earlier noise. So it is not
negative, and the difference has at most the variance above.
"""

import math
from dataclasses import dataclass
from typing import final

from lapwing.privacy.additive_loss import from_record
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

    @property
    def by_noise(self) -> float:
        """How many cells would have such a change on average, at most, if the data were the same."""
        return 0.0 if self.is_same else (1 - self.confidence) * len(self.changes)


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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedPromise:
    """(ε, δ) of two releases together, for people in the data of both."""

    epsilon: float
    delta: float


def combined_promise(before: PublishedRelease, now: PublishedRelease) -> CombinedPromise | None:
    """Return (ε, δ) of two releases together; None if their ledgers are of different kinds.

    Guarantee:
        The losses of both add up, by the composition of the measure. Charges for other results are not in it.
    """
    first, second = before.manifest, now.manifest
    if first["measure"] != second["measure"] or first["neighbouring"] != second["neighbouring"]:
        return None
    loss = from_record(first["cost"]) + from_record(second["cost"])
    own = max(first["delta"], second["delta"])
    keys = sum(float(one.get("delta_keys", 0)) for one in (first, second))
    return CombinedPromise(epsilon=loss.to_epsilon(delta=own), delta=own + keys)


def _texts(keys: tuple[Cell, ...]) -> tuple[str | None, ...]:
    """Return keys as texts: two files of CSV may have different types of them."""
    return tuple(None if key is None else str(key) for key in keys)


def _change(keys: tuple[Cell, ...], before: PublishedFigure, now: PublishedFigure, normal: bool) -> CellChange | None:
    a, b = before.half_width, now.half_width
    if a is None or b is None or before.value is None or now.value is None or not math.isfinite(a + b):
        return None
    return CellChange(keys=keys, before=before.value, now=now.value, half_width=math.hypot(a, b) if normal else a + b)
