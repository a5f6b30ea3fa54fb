"""Count the units of each key with noise, and release the counts that reach a threshold: one noise for keys and counts.

Guarantee. Let each unit hold at most k keys, and let noise of a law that is symmetric around 0 be added to each count
by itself. With the threshold of `CountThresholding` the release of the keys and of their noisy counts is, on every pair
of add_remove neighbours and but for an event of probability δ, a function of that noise on vectors at distance at most
k in L1 and √k in L2. So it loses what the law loses for that sensitivity, and δ, in the sense of `privacy.approximate`.

Proof. Let unit v be added to D, which makes D'. Call C the keys that at least m = `minimum` units hold in D: they are
so held in D', too. Call N the t keys that m units hold in D' and m − 1 in D: v holds them, so t ≤ k. No other key is
ever released from either. Let A be the event that no key of N is released on D'. The noise on N is independent of the
noise on C. So given A, the output on D' is what the noise on C makes of the counts of C in D': each noisy count that
reaches the threshold, with its key. On D the output is the same function of the noisy counts of C in D. The two vectors
of counts differ by 1 on those keys of C that v holds, k at most: the loss of the law. A key of N has the count m on D',
and is released with probability

    p = P(m + noise ≥ threshold) = P(noise ≥ T − 1),   T = threshold − (m − 1),

and A has probability (1 − p)^t ≥ (1 − p)^k ≥ 1 − δ, as T is chosen. Hence the output on D' is (1 − δ)·P⁰ + δ·P¹, where
P⁰ and the output on D are a pair of the law's loss. ∎

Releasing the noisy weights of `WeightedGaussian`, or of an adaptive selection, would need another proof and tell less:
they are no counts. For units of one key, k = 1, this is the best of both: noise of one unit's sensitivity for
everything.

Source:
    Korolova, Kenthapadi, Mishra and Ntoulas 2009 (releasing noisy counts above a threshold); Wilson et al. 2020 (arXiv
    1909.01917) and Desfontaines, Voss, Gipson and Mandayam 2022 (arXiv 2006.03684) for units of several keys.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, Enclosure, enclose
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms import partitions
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import TAIL_BITS
from lapwing.mechanisms.parameters import rational, whole_number
from lapwing.mechanisms.partitions import MOST_KEYS, KeySelection
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.weighted_gaussian import MOST_MINIMUM
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.search import smallest

CountNoise = RoundedGaussian | DiscreteLaplace
"""Laws of noise on counts: symmetric and, as is needed for the ends of intervals, log-concave."""

NOISES: dict[str, type[RoundedGaussian] | type[DiscreteLaplace]] = {
    kind.name: kind for kind in (RoundedGaussian, DiscreteLaplace)
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountThresholding:
    """Release the keys whose number of units, plus noise, reaches a threshold, together with that noisy number.

    Args:
        law: The noise, whose loss for counts of units of `max_keys` keys is the loss but for delta.
        delta: Above 0.
        max_keys: How many keys a unit has at most.
        minimum: How many units a key needs.
    """

    name: ClassVar[str] = "thresholding"
    law: CountNoise
    delta: Fraction
    max_keys: int
    minimum: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", probability(rational(self.delta, "delta"), "delta"))
        object.__setattr__(self, "max_keys", whole_number(self.max_keys, "max_keys", least=1, most=MOST_KEYS))
        object.__setattr__(self, "minimum", whole_number(self.minimum, "minimum", least=1, most=MOST_MINIMUM))

    @property
    def threshold(self) -> int:
        """The noisy number of units from which a key is released."""
        return _threshold(self.law, self.max_keys, self.delta) + self.minimum - 1

    @property
    def noise(self) -> tuple[float, float]:
        """The scale of the noise and the threshold, in units."""
        return float(self.law.scale), float(self.threshold)

    def weight(self, _degree: int) -> int:
        """Return what a unit adds to the count of each of its keys: 1, however many it has."""
        return 1

    def counted(self, units: NDArray[np.int64], entropy: Entropy = SYSTEM) -> tuple[NDArray[np.bool_], IntArray]:
        """Tell which keys are released, and return the noisy counts of these, given how many units hold each key.

        Whoever calls it has bounded the units: each has at most `max_keys` keys.
        """
        noisy = self.law.release(units, entropy)
        released = partitions.reaching(noisy, self.threshold) & (units >= self.minimum)
        return released, noisy[released]

    def select(
        self, units: NDArray[np.int64], _weights: NDArray[np.int64], entropy: Entropy = SYSTEM
    ) -> NDArray[np.bool_]:
        """Tell which keys are released."""
        return self.counted(units, entropy)[0]

    def selects_as_well_as(self, other: KeySelection) -> bool:
        """Tell whether keys were selected with noise of no larger scale and no less delta than by another."""
        if not isinstance(other, CountThresholding) or self.law.name != other.law.name:
            return False
        return self.law.scale <= other.law.scale and self.delta >= other.delta

    def record(self) -> list[str | int]:
        """Return the parameters as stored answers keep them."""
        return [str(self.delta), self.max_keys, self.minimum, self.law.name, *self.law.record()]

    @classmethod
    def from_record(cls, delta: str, max_keys: int, minimum: int, law: str, *parameters: str) -> Self:
        """Return what `record` was written of."""
        noise = NOISES[law].from_record(parameters)
        return cls(law=noise, delta=Fraction(delta), max_keys=max_keys, minimum=minimum)

    def units_needed(self, confidence: Number) -> tuple[int, int]:
        """Return how many units make a key's release certain to `confidence`, however many keys each has: twice."""
        count = partitions.count_for(confidence, lambda units: self.chance(units).lower)
        return count, count

    def chance(self, units: int) -> Enclosure:
        """Bound the chance that a key is released if so many units hold it."""
        if whole_number(units, "units") < self.minimum:
            return Enclosure(Fraction(0), Fraction(0))
        return upper_tail(self.law, self.threshold - units)


def upper_tail(law: CountNoise, least: int) -> Enclosure:
    """Bound P(noise ≥ least), for noise that is symmetric around 0."""
    inside = law.coverage(least - 1 if least > 0 else -least)
    half = Enclosure((1 - inside.upper) / 2, (1 - inside.lower) / 2)
    return half if least > 0 else Enclosure(1 - half.upper, 1 - half.lower)


@lru_cache(maxsize=256)
def _threshold(law: CountNoise, max_keys: int, delta: Fraction) -> int:
    """Return the least T ≥ 1 that is certified to have (1 − P(noise ≥ T − 1))^max_keys ≥ 1 − delta."""
    each = -math.expm1(math.log1p(-min(float(delta), 1 - 2.0**-50)) / max_keys)
    guess = law.half_width(1 - 2 * Fraction(max(each, 1e-290))) if each < 0.5 else 1  # what it leads to is certified

    def hides(least: int) -> bool:
        passing = upper_tail(law, least - 1).upper
        return passing == 0 or (passing < 1 and _is_rare(passing, max_keys, delta))

    return smallest(hides, guess=guess + 2, least=1)


def _is_rare(passing: Fraction, keys: int, delta: Fraction) -> bool:
    """Tell whether it is certain that (1 − passing)^keys ≥ 1 − delta."""
    formula = _slack_ball if delta < Fraction(1, 2) else _slack_of_rest_ball
    try:
        return enclose(formula, passing, Fraction(keys), min(delta, 1 - delta), bits=TAIL_BITS).lower >= 0
    except ArithmeticError:  # the chance of staying below is 0 to this precision
        return False


def _slack_ball(passing: Ball, keys: Ball, delta: Ball) -> Ball:
    return keys * (-passing).log1p() - (-delta).log1p()


def _slack_of_rest_ball(passing: Ball, keys: Ball, rest: Ball) -> Ball:
    # The same for δ = 1 − rest, which no ball tells from 1 where the rest is tiny.
    return keys * (-passing).log1p() - rest.log()
