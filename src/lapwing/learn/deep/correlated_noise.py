"""Noise that is correlated over a few steps, so that less of it is left in the sum of all.

Theory of operation. Weights are a sum of all steps, so noise that a later step takes back costs less than fresh noise.
y = Cx + z is released, x the exact sums of all steps, and the optimizer sees x̂ = C⁻¹y = x + C⁻¹z. C is lower
triangular and Toeplitz with b coefficients, the first of the square root of the matrix of prefix sums: c_0 = 1,
c_k = c_(k−1)·(1 − 1/(2k)). They are whole numbers of 1/UNIT here, rounded down, and stand for themselves: so Cx is
made of integers, exactly, and x̂ follows from the integers that were released, in floating point.

Guarantee:
    What one gradient of length at most C adds to y, all steps together, is at most C·`reach` long; the noise on y has a
    deviation of σ times that (`sampling` has the proof for all steps).

Source:
    Kalinin and Lampert 2024 (the banded square root); Denisov et al. 2022 (adaptive streams).
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Final, final

import numpy as np

from lapwing.exact.entropy import Entropy
from lapwing.learn.columns import Floats
from lapwing.learn.unit_rows import Integers
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian

UNIT: Final = 1 << 10
MOST_BANDS: Final = 64
"""A sum of MOST_UNITS gradients has entries below 2⁴², times UNIT and so many coefficients below 2⁵⁸."""


def coefficients_of(bands: int) -> tuple[int, ...]:
    """Return c_0 … c_(b−1) in parts of 1/UNIT, rounded down."""
    exact = [Fraction(1)]
    for k in range(1, bands):
        exact.append(exact[-1] * Fraction(2 * k - 1, 2 * k))
    return tuple(int(one * UNIT) for one in exact)


def reach_of(coefficients: tuple[int, ...]) -> int:
    """Return a whole number at or above √Σc_k²: of one coefficient, that one."""
    squared = sum(coefficient * coefficient for coefficient in coefficients)
    return isqrt(squared - 1) + 1


@final
@dataclass(slots=True, kw_only=True)
class CorrelatedNoise:
    """Adds noise to the sums of steps, one after the other.

    Args:
        coefficients: Of C, the first above 0.
        deviation: Of the noise on x, if there were one coefficient.
    """

    coefficients: tuple[int, ...]
    deviation: Fraction
    _sums: list[Integers] = field(default_factory=list)
    _estimates: list[Floats] = field(default_factory=list)

    @classmethod
    def over(cls, bands: int, deviation: Fraction) -> "CorrelatedNoise":
        """Return noise correlated over so many steps; of one, each has its own."""
        return cls(coefficients=coefficients_of(bands) if bands > 1 else (1,), deviation=deviation)

    def release(self, exact: Integers, entropy: Entropy) -> Floats:
        """Return a step's sum with noise, of which a part is what earlier steps had, with the other sign."""
        first, *later = self.coefficients
        noise = RoundedGaussian(sigma=self.deviation * reach_of(self.coefficients))
        mixed = first * exact
        for one, sum_before in zip(later, self._sums, strict=False):
            mixed = mixed + one * sum_before
        left = np.asarray(noise.release(mixed, entropy), dtype=np.float64)
        for one, before in zip(later, self._estimates, strict=False):
            left = left - one * before
        estimate: Floats = left / first
        self._sums = [exact, *self._sums][: len(later)]
        self._estimates = [estimate, *self._estimates][: len(later)]
        return estimate
