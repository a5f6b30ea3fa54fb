"""The noise of a number that is shown only where it reaches a threshold, and what it says of the true number then.

Theory of operation. A count n gets noise X of a symmetric, log-concave law, and y = n + X is shown if it reaches a
threshold T. Of counts near or below T mostly those are shown whose noise was large, so that y ± h, which holds for a
number that is shown in any case, covers them less often, and n ≤ T − h − 1 never. An interval for what is shown must
hold given that it is shown. Its ends are, with a = (1 − confidence)/2 and m the least n that is ever shown:

    upper: y + h, where h is the half-width with P(X > h) ≤ a;
    lower: the least n ≥ m with P(n + X ≥ y) > a·P(n + X ≥ T).

Proof that, for every n ≥ m, each end is beyond n with probability a at most, given y ≥ T. Upper: given y ≥ T the law of
y lies higher than without, so P(y < n − h | y ≥ T) ≤ P(X < −h) = P(X > h) ≤ a. Lower: the ratio P(n + X ≥ y)/P(n + X ≥
T) rises with n, since for log-concave noise the ratio of its tails at two points a fixed distance apart is monotone. So
the lower end exceeds n only if P(Y ≥ y | Y ≥ T) ≤ a, Y with the law of n + X; and the chance of a y that has so small a
chance to be reached is a at most. ∎ Rounded Gaussian noise is log-concave as its density is, over which it integrates
unit by unit (Prékopa 1973), and discrete Laplace noise as its logarithm is concave.

Far above T the lower end is y − h. Near T it goes down to m: of a number that barely passed, little is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from lapwing.exact.arrays import IntArray, integer_array
from lapwing.mechanisms.thresholding import NOISES, CountNoise, upper_tail
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.search import smallest


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseAboveThreshold:
    """The noise of a count that is shown where it reaches a threshold, which then selects the count's key.

    Its half-width, scale and deviation are those of the noise, whether the count is shown or not: at most 5 % of all
    keys are shown with a number that is off by more than the half-width at 95 %. Given that it is shown, see `ends`.

    Args:
        law: The noise.
        threshold: The least number that is shown.
        minimum: The least true count that is ever shown.
    """

    name: ClassVar[str] = "noise above a threshold"
    law: CountNoise
    threshold: int
    minimum: int = 1

    @property
    def scale(self) -> Fraction:
        """The parameter of the noise."""
        return self.law.scale

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.law.standard_deviation

    def half_width(self, confidence: Number) -> int:
        """Return an h with P(|noise| ≤ h) ≥ confidence."""
        return self.law.half_width(confidence)

    def ends(self, values: IntArray, confidence: Number) -> tuple[IntArray, IntArray]:
        """Return the ends of intervals that contain the true counts with this confidence, given that they are shown.

        Args:
            values: The noisy counts that are shown.
        """
        tail, h = (1 - probability(confidence, "confidence")) / 2, self.law.half_width(confidence)
        lows: dict[int, int] = {}
        low, settled = self.minimum, False
        for value in np.unique(values).tolist():
            # The lower end rises by 1 at least where y does, up to y − h: once it is there, it stays there.
            low = value - h if settled else max(self.minimum, min(value - h, self._lower(value, tail, low)))
            settled = self.minimum < low == value - h
            lows[value] = low
        return integer_array([lows[value] for value in values.tolist()]), values + h

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them."""
        return [self.law.name, str(self.threshold), str(self.minimum), *self.law.record()]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        law, threshold, minimum, *numbers = parameters
        return cls(law=NOISES[law].from_record(numbers), threshold=int(threshold), minimum=int(minimum))

    def _lower(self, value: int, tail: Fraction, guess: int) -> int:
        """Return the least n that is not certain to have P(n + noise ≥ value) ≤ tail·P(n + noise ≥ threshold)."""

        def possible(n: int) -> bool:
            shown = upper_tail(self.law, self.threshold - n).lower
            return upper_tail(self.law, value - n).upper > tail * shown

        return smallest(possible, guess=guess, least=self.minimum)
