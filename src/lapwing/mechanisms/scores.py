"""What mechanisms that choose by score share: reading scores, what a range of scores costs, and what a loss allows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import dyadic_unit, enclose_tightly
from lapwing.mechanisms.noisy import SCALE_BITS, check_positive
from lapwing.mechanisms.parameters import SMALLEST_SCALE, integers, rational, whole_number
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.bounded_range import bounded_range_amount, bounded_range_down
from lapwing.privacy.conversions import pure_epsilon_down
from lapwing.privacy.measures import Loss, PureDP, privacy_measure_of
from lapwing.privacy.search import largest

MOST_CANDIDATES = 1 << 30

_MOST_DISTANCE = np.iinfo(np.int64).max


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSensitivity:
    """The most that a score moves between neighbouring data sets, for mechanisms that compare scores.

    Args:
        bound: The most that any one score moves, in the unit of the scores, ≥ 0.
        monotonic: Whether, between two neighbours, all scores that move do so in the same direction (as counts of rows
            do when a row is added).
    """

    bound: Fraction = Fraction(1)
    monotonic: bool = False

    def __post_init__(self) -> None:
        bound = rational(self.bound, "The sensitivity bound")
        if bound < 0:
            raise InvalidParameter(f"The sensitivity bound is {self.bound}; it must be 0 or more.")
        if not isinstance(self.monotonic, bool):
            raise InvalidParameter(f"monotonic is {self.monotonic!r}; it must be True or False.")
        object.__setattr__(self, "bound", bound)

    @property
    def range(self) -> Fraction:
        """The most that the difference of two scores moves: the bound if monotonic, else twice the bound.

        A choice that depends only on differences of scores may be charged by only this number.
        """
        return self.bound if self.monotonic else 2 * self.bound


def scored(sensitivity: ScoreSensitivity) -> ScoreSensitivity:
    """Return the sensitivity of scores that are compared.

    Raises:
        InvalidParameter: If it is anything else.
    """
    if not isinstance(sensitivity, ScoreSensitivity):
        raise InvalidParameter(
            f"The sensitivity is of type {type(sensitivity).__name__}; scores that are compared need a "
            "ScoreSensitivity, such as ScoreSensitivity(bound=1, monotonic=True)."
        )
    return sensitivity


def read_scores(scores: IntArray | Sequence[int]) -> IntArray:
    """Return the scores of at least one candidate as integers.

    Raises:
        InvalidParameter: If they are not integers, or not one row of 1 to 2³⁰; their values are not shown.
    """
    whole = integers(scores, "The scores")
    if not 1 <= whole.size <= MOST_CANDIDATES:
        raise InvalidParameter(f"There are {whole.size} scores; give one for each of 1 to 2^30 candidates.")
    return whole


def below_best(scores: IntArray) -> IntArray:
    """Return how far each score is below the best, exactly: int64 if all of these fit, else Python ints."""
    best, worst = int(scores.max()), int(scores.min())
    if scores.dtype == np.int64 and best - worst > _MOST_DISTANCE:
        scores = scores.astype(np.object_)
    distances: IntArray = best - scores
    return distances if best - worst > _MOST_DISTANCE else distances.astype(np.int64, copy=False)


def bounded_range_loss(kind: str, eta: Fraction) -> Loss:
    """Return the loss in a measure of any mechanism of bounded range η."""
    measure = privacy_measure_of(kind)
    return measure.from_amount(bounded_range_amount(kind, eta))


def pure_within(loss: Loss) -> Fraction:
    """Return the largest ε whose every ε-DP mechanism keeps a loss: exactly if it is pure, else of 45 binary digits.

    Raises:
        InvalidParameter: If the loss is 0.
    """
    check_positive(loss)
    if isinstance(loss, PureDP):
        return loss.epsilon
    near = pure_epsilon_down(loss.kind, loss.amount)
    return largest_passing(lambda epsilon: PureDP(epsilon).to_kind(loss.kind) <= loss, near)


def range_within(loss: Loss) -> Fraction:
    """Return the largest η whose every η-bounded-range mechanism keeps a loss: exactly if pure, else of 45 digits.

    Raises:
        InvalidParameter: If the loss is 0.
    """
    check_positive(loss)
    if isinstance(loss, PureDP):
        return loss.epsilon
    near = bounded_range_down(loss.kind, loss.amount)
    return largest_passing(lambda eta: bounded_range_amount(loss.kind, eta) <= loss.amount, near)


def largest_passing(test: Callable[[Fraction], bool], near: Fraction) -> Fraction:
    """Return the largest number of about 45 binary digits that passes a test which fails beyond some number."""
    unit = dyadic_unit(near, SCALE_BITS)
    return unit * largest(lambda n: test(n * unit), guess=math.floor(near / unit))


def scale_for_range(loss: Loss, sensitivity: ScoreSensitivity) -> Fraction:
    """Return the least scale for which range/scale, as a bounded range, keeps a loss; not below the least allowed."""
    return max(SMALLEST_SCALE, scored(sensitivity).range / range_within(loss))


def scale_for_pure(loss: Loss, sensitivity: ScoreSensitivity) -> Fraction:
    """Return the least scale for which a pure loss of range/scale keeps a loss; not below the least allowed."""
    return max(SMALLEST_SCALE, scored(sensitivity).range / pure_within(loss))


def exponential_shortfall(scale: Fraction, candidates: int, confidence: Number, *, halved: bool) -> int:
    """Return the least certified h with w·e^(−(h + 1)/scale) ≤ 1 − confidence, w = candidates − 1, or half of that.

    That is h + 1 ≥ scale·ln(w/(1 − confidence)), the right side rounded up.
    """
    others = Fraction(whole_number(candidates, "candidates", least=1, most=MOST_CANDIDATES) - 1, 2 if halved else 1)
    ratio = others / (1 - probability(confidence, "confidence"))
    if ratio <= 1:
        return 0
    return max(0, math.ceil(scale * enclose_tightly(lambda x: x.log(), ratio).upper) - 1)
