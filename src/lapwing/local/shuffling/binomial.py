"""Binomial laws as tables of floats, with a proof of how far off they may be.

Theory of operation. The chance of one number, the likeliest, comes from ball arithmetic. Those of its neighbours follow
by P(j+1) = P(j)·(n−j)/(j+1)·q/(1−q), outwards, so that they fall. A table holds about ten standard deviations on each
side. Beyond its ends the factors keep falling, so that what is left out is less than a geometric series. Upper bounds
add that, up to about 10⁻²³: for a δ below it, nothing better than the local ε is certified.

Errors. With u = 2⁻⁵³ each step has a relative error of 4u at most (three operations and a rounded q/(1 − q)), and each
sum of positive terms one of u a term. Tables have at most 4·10⁵ entries (10⁹ trials), and what is made of three tables
by five sums in a row is off by (3·4 + 5)·4·10⁵·u < 10⁻⁹ at most. `SLACK` is more than ten times that. Chances below
10⁻³⁰⁰ are lost to underflow; `LOST` is more than all of them together.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.exact.floats import float_up

SLACK: Final = 2.0**-26
LOST: Final = 1e-280
MOST_TRIALS: Final = 10**9

_DEVIATIONS: Final = 10
_MORE: Final = 60

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Binomial:
    """The number of heads in n tosses, without its rarest values.

    Args:
        first: The least number of the table.
        mass: The chances from there on.
        below: At least the chance of less, and of more.
        above: At least the chance of less, and of more.
        far: At least E[(X − last)₊].
    """

    first: int
    mass: Floats
    below: float
    above: float
    far: float

    @classmethod
    def of(cls, trials: int, chance: Fraction) -> Self:
        """Return the table of `trials` tosses, each heads with a chance above 0 and below 1."""
        mode = min(trials, int((trials + 1) * chance))
        reach = _DEVIATIONS * (isqrt(int(trials * chance * (1 - chance))) + 1) + _MORE
        low, high = max(0, mode - reach), min(trials, mode + reach)
        odds, peak = float(chance / (1 - chance)), _chance_of(trials, mode, chance)
        rising = np.arange(mode, high, dtype=np.float64)
        falling = np.arange(mode, low, -1, dtype=np.float64)
        up = peak * np.cumprod((trials - rising) * odds / (rising + 1))
        down = peak * np.cumprod(falling / ((trials - falling + 1) * odds))
        mass = np.concatenate([down[::-1], [peak], up])
        after, before = (trials - high) / (high + 1) * odds, low / ((trials - low + 1) * odds)
        above = float(mass[-1]) * after / (1 - after)
        return cls(
            first=low,
            mass=mass,
            below=float(mass[0]) * before / (1 - before),
            above=above,
            far=above / (1 - after),
        )

    @property
    def last(self) -> int:
        """The largest number of the table."""
        return self.first + self.mass.size - 1

    def reaching(self, number: int) -> float:
        """Return at least P(X ≥ number), but for `SLACK` and `LOST`."""
        if number > self.last:
            return self.above
        held = self.mass[max(0, number - self.first) :]
        return min(1.0, float(held.sum()) + self.above + (self.below if number < self.first else 0.0))

    def excess(self, *, whole: bool = True) -> "Excess":
        """Return E[(X − y)₊] as a function of y; what is beyond the table counts, or for a lower bound does not."""
        above, far = (self.above, self.far) if whole else (0.0, 0.0)
        tails = np.cumsum(np.append(above, self.mass[::-1]))[1:][::-1]
        surplus = np.cumsum(np.append(far, tails[:0:-1]))[::-1]
        return Excess(first=self.first, tails=tails, surplus=surplus)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """E[(X − y)₊], which is convex and falls: Σ_{j > y} P(X ≥ j), and linear between whole numbers.

    Args:
        tails: P(X ≥ j) from j = first on.
        surplus: E[(X − j)₊].
    """

    first: int
    tails: Floats
    surplus: Floats

    def up(self, y: Floats) -> Floats:
        """Return at least the value, but for `SLACK` and `LOST`: below the table as if X were never less."""
        return self._between(y) + np.maximum(self.first - y, 0)

    def down(self, y: Floats) -> Floats:
        """Return at most the value, but for `SLACK` and `LOST`."""
        return np.where(y >= self.first + self.tails.size - 1, 0.0, self._between(y))

    def _between(self, y: Floats) -> Floats:
        place = np.clip(y - self.first, 0, self.tails.size - 1)
        whole = np.minimum(np.floor(place), self.tails.size - 2).astype(np.int64)
        part = place - whole
        falls: Floats = self.surplus[whole + 1] + (1 - part) * self.tails[whole + 1]
        return falls


@lru_cache(maxsize=1 << 12)
def _chance_of(trials: int, number: int, chance: Fraction) -> float:
    def formula(n: Ball, m: Ball, q: Ball) -> Ball:
        ways = (n + 1).lgamma() - (m + 1).lgamma() - (n - m + 1).lgamma()
        return (ways + m * q.log() + (n - m) * (1 - q).log()).exp()

    return float_up(enclose_tightly(formula, Fraction(trials), Fraction(number), chance).upper)
