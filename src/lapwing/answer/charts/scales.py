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
    """From numbers to places between `start` and `end`.

    Args:
        log: Whether it is logarithmic; then `low` is above 0.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def is_below(self, value: float) -> bool:
        """Tell whether a number is below a log scale. A linear one has all numbers."""
        return self.log and value < self.low

    def at(self, value: float) -> float:
        """Return the place of a number, at an end if it is beyond."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        number = value if not self.log else math.log(max(value, self.low))
        part = (number - low) / (high - low)
        return round(self.start + min(1.0, max(0.0, part)) * (self.end - self.start), 2)

    def ticks(self, most: int = 6) -> list[AxisTick]:
        """Return places of round numbers."""
        if self.log:
            powers = self._powers(most)
            if len(powers) > 1:
                return [AxisTick(at=self.at(number), text=_short(number)) for number in powers]
        step = _step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [AxisTick(at=self.at(n * step), text=separated(n * step)) for n in range(first, last + 1)]

    def _powers(self, most: int) -> list[float]:
        """Return powers of ten, with their doubles and halves if there is room, and some of them if there is not."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for digits, step in (((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 6), ((1,), 12), ((1,), 60)):
            powers = [digit * 10.0**power for power in range(first, last + 1, step) for digit in digits]
            held = [number for number in powers if self.low <= number <= self.high]
            if len(held) <= most:
                return held
        return []


def log_scale_of(values: Sequence[float], ends: Sequence[float], start: float, end: float) -> Scale | None:
    """Return a logarithmic scale for values and the ends of their intervals; None if no value is above 0.

    It has all values above 0, and ends down to a thousandth of the least of them.
    """
    positive = [value for value in values if 0 < value < math.inf]
    if not positive:
        return None
    least = min(positive)
    all_ = [*positive, *(end for end in ends if least / 1000 <= end < math.inf)]
    return Scale(low=min(all_) / 1.1, high=max(all_) * 1.1, start=start, end=end, log=True)


def _short(number: float) -> str:
    """Return a number of a log axis, with a power of ten if it is long.

    >>> _short(0.5), _short(2000.0), _short(1e9)
    ('0.5', '2,000', '1e9')
    """
    return separated(number) if 1e-4 <= number < 1e7 else f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-")


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
