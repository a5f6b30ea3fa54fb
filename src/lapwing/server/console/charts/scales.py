"""Axes: round numbers, and where a number lies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from lapwing.privacy.figures import separated


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTick:
    """A place on an axis, and what it says."""

    at: float
    text: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From numbers to places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a number, at an end if it is beyond."""
        part = (value - self.low) / (self.high - self.low)
        return round(self.start + min(1.0, max(0.0, part)) * (self.end - self.start), 2)

    def ticks(self, most: int = 6) -> list[AxisTick]:
        """Return places of round numbers."""
        step = _step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [AxisTick(at=self.at(n * step), text=separated(n * step)) for n in range(first, last + 1)]


def scale_of(values: Sequence[float], start: float, end: float, *, zero: bool = True) -> Scale:
    """Return the scale on which all of some numbers lie, with 0 if `zero`."""
    finite = [value for value in values if math.isfinite(value)] + ([0.0] if zero else [])
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Scale(low=low, high=high, start=start, end=end)


def _step(least: float) -> float:
    """Return the least of 1, 2 and 5, times a power of ten, that is no smaller.

    >>> _step(0.7), _step(13), _step(300)
    (1.0, 20.0, 500.0)
    """
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))
