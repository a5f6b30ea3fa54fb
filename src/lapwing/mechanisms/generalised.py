"""The best of some candidates whose scores are unequally sensitive.

Theory of operation. The exponential mechanism must fit its noise to the most sensitive score. Where the sensitivities
Δ_i are public and unequal (selling at price p, the revenue moves by p between neighbours), candidates are compared in
pairs instead, each pair on its own scale. With a public margin t ≥ 0, the defect of candidate i is

    s(i) = max over j of ((q_j − t·Δ_j) − (q_i − t·Δ_i)) / (Δ_i + Δ_j),

and the exponential mechanism chooses a candidate of small defect.

Claim: |s(i) − s'(i)| ≤ 1 between neighbours. For a fixed j the numerator moves by at most Δ_i + Δ_j, so the quotient
moves by at most 1, and a largest of numbers that move by at most 1 each moves by at most 1.

Claim: u(i) = ⌊M·s(i)⌋ moves by at most M, for a whole number M. If s ≤ s' + 1 then M·s ≤ M·s' + M, hence
⌊M·s⌋ ≤ ⌊M·s' + M⌋ = ⌊M·s'⌋ + M. So rounding costs no privacy, and what is compared are integers.

Claim: min s = 0. From j = i, s ≥ 0; for an i with the largest q_i − t·Δ_i no quotient is positive.

All comparisons are of whole numbers. The quotient is the slope of the line from (−Δ_i, b_i) to (Δ_j, b_j), with
b = q − t·Δ times the denominator of t: its maximum over j is at a corner of the upper convex hull of the points
(Δ_j, b_j), all of which are to the right of every (−Δ_i, b_i). Along the hull the slope from a point rises and then
falls, so the corner is found by bisection: n·log n steps for n candidates.

Source:
    Raskhodnikova and Smith 2016 (Lipschitz Extensions for Node-Private Graph Statistics and the Generalized Exponential
    Mechanism), for scores to be minimised; here for the largest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar, Final, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import SMALLEST_SCALE, integers, rational, scale_of_noise, whole_number
from lapwing.mechanisms.scores import bounded_range_loss, range_within
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss

_FINENESS = 1 << 10
_MARGIN_STEPS = 1 << 10
LARGEST_SENSITIVITY: Final = 1 << 62
_INT64 = np.iinfo(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralisedExponential:
    """Choose a candidate with about the largest score, where score i moves by at most `sensitivities[i]`.

    The probability of candidate i is proportional to e^(−u(i)/(M·scale)) with u(i) = ⌊M·s(i)⌋. The top of this file
    defines the defects s; M is `resolution`.

    Guarantee:
        Bounded range 2/scale, hence PureDP(2/scale). The weight of a candidate moves by a factor of e^(±1/scale)
        between neighbours, because u moves by at most M. The sum of the weights is common to all candidates, so the
        log-ratios of their probabilities differ by at most 2/scale from each other.

    Args:
        scale: From 2⁻³⁰ to 2⁸⁰.
        sensitivities: One whole number a candidate, from 1 to 2⁶².
        margin: t ≥ 0, how many of its sensitivities a score is handicapped by; `for_loss` chooses it for a confidence.

    Source:
        Raskhodnikova and Smith 2016.
    """

    name: ClassVar[str] = "generalised exponential"
    scale: Fraction
    sensitivities: tuple[int, ...]
    margin: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        object.__setattr__(self, "sensitivities", _read_sensitivities(self.sensitivities))
        margin = rational(self.margin, "margin")
        if margin < 0:
            raise InvalidParameter(f"margin is {self.margin}; it must be 0 or more.")
        object.__setattr__(self, "margin", margin)

    @classmethod
    def for_loss(cls, loss: Loss, sensitivities: Iterable[int], confidence: Number) -> Self:
        """Return the mechanism that spends all of a loss, with the margin that is best at a confidence.

        The margin is the largest defect of the choice at that confidence, rounded up to a multiple of scale/1024. Then
        `shortfall` is twice the margin times the sensitivity of the best candidate.
        """
        listed = _read_sensitivities(sensitivities)
        scale = max(SMALLEST_SCALE, 2 / range_within(loss))
        step = scale / _MARGIN_STEPS
        return cls(
            scale=scale,
            sensitivities=listed,
            margin=ceil(_largest_defect(scale, len(listed), confidence) / step) * step,
        )

    @property
    def resolution(self) -> int:
        """M, how many steps a defect of 1 has: the least of 1, 2, 4, … with M·scale ≥ 1024."""
        return _resolution(self.scale)

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure: the loss of a bounded range of 2/scale."""
        return bounded_range_loss(kind, 2 / self.scale)

    def record(self) -> list[str | int]:
        """Return the parameters as stored answers keep them."""
        return [str(self.scale), str(self.margin), *self.sensitivities]

    @classmethod
    def from_record(cls, scale: str, margin: str, *sensitivities: int) -> Self:
        """Return what `record` was written of."""
        return cls(scale=Fraction(scale), margin=Fraction(margin), sensitivities=sensitivities)

    def release(self, scores: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return the index of the choice.

        Raises:
            InvalidParameter: If the scores are not whole numbers, one a candidate; nothing is drawn then.
        """
        whole = integers(scores, "The scores")
        if whole.size != len(self.sensitivities):
            raise InvalidParameter(
                f"There are {whole.size} scores for {len(self.sensitivities)} sensitivities; give one for each."
            )
        defects = defects_of(whole, self.sensitivities, self.margin, self.resolution)
        return int(samplers.exponential_choice(defects, self.resolution * self.scale, entropy))

    def largest_defect(self, confidence: Number) -> Fraction:
        """Return an r with s(choice) ≤ r at a confidence 1 − β at least: r = scale·ln(n/β) + 1/M, rounded up.

        Some candidate has u = 0 and weight 1, so P(u ≥ x) ≤ n·e^(−x/(M·scale)). This is β at x = M·scale·ln(n/β); and
        M·s < u + 1.
        """
        return _largest_defect(self.scale, len(self.sensitivities), confidence)

    def shortfall(self, candidate: int, confidence: Number) -> int:
        """Return an h such that the choice's score is at least the candidate's less h, with this confidence at least.

        At one confidence this holds for all candidates at once: the choice i has q_i ≥ max over j of q_j − h(j).

        If s(i) ≤ r, then (q_j − tΔ_j) − (q_i − tΔ_i) ≤ r(Δ_i + Δ_j). So q_i ≥ q_j − (t + r)Δ_j − (r − t)Δ_i. For r ≤ t
        the last term only helps; else Δ_i is at most the largest of all. Scores are whole numbers: h is rounded down.
        """
        index = whole_number(candidate, "candidate", most=len(self.sensitivities) - 1)
        r, t = self.largest_defect(confidence), self.margin
        return int((t + r) * self.sensitivities[index] + max(Fraction(0), r - t) * max(self.sensitivities))


def defects_of(scores: IntArray, sensitivities: Sequence[int], margin: Fraction, resolution: int) -> IntArray:
    """Return ⌊resolution · s(i)⌋ for every candidate, exactly."""
    right = np.array(sensitivities, dtype=np.object_)
    heights = margin.denominator * scores.astype(np.object_) - margin.numerator * right
    corners = _upper_hull(right.tolist(), heights.tolist())
    x = np.array([corner[0] for corner in corners], dtype=np.object_)
    y = np.array([corner[1] for corner in corners], dtype=np.object_)
    low = np.zeros(right.size, dtype=np.int64)
    high = np.full(right.size, len(corners) - 1, dtype=np.int64)
    while (low < high).any():
        # Where low = high, the middle is low, and `onwards` must not be acted upon.
        middle = (low + high) // 2
        after = np.minimum(middle + 1, len(corners) - 1)
        # Is the slope from (−Δ_i, b_i) to the next corner larger than to this one?
        onwards = (y[after] - heights) * (x[middle] + right) > (y[middle] - heights) * (x[after] + right)
        onwards = np.asarray(onwards, dtype=np.bool_) & (low < high)
        low = np.where(onwards, middle + 1, low)
        high = np.where(onwards, high, middle)
    defects: IntArray = resolution * (y[low] - heights) // ((x[low] + right) * margin.denominator)
    return defects.astype(np.int64) if max(defects.tolist()) <= _INT64.max else defects


def _upper_hull(x: list[int], y: list[int]) -> list[tuple[int, int]]:
    """Return the corners of the upper convex hull of some points, from left to right, one for each x."""
    corners: list[tuple[int, int]] = []
    for px, py in sorted(zip(x, y, strict=True)):
        while corners and _covered(corners, px, py):
            corners.pop()
        corners.append((px, py))
    return corners


def _covered(corners: list[tuple[int, int]], px: int, py: int) -> bool:
    """Tell whether the last corner is below or on the line from the one before it to a new point on the right."""
    bx, by = corners[-1]
    if bx == px:
        return by <= py
    if len(corners) == 1:
        return False
    ax, ay = corners[-2]
    return (by - ay) * (px - bx) <= (py - by) * (bx - ax)


def _resolution(scale: Fraction) -> int:
    steps = ceil(_FINENESS / scale)
    return 1 << (steps - 1).bit_length() if steps > 1 else 1


def _largest_defect(scale: Fraction, candidates: int, confidence: Number) -> Fraction:
    tail = 1 - probability(confidence, "confidence")
    logarithm = enclose_tightly(lambda n, p: (n / p).log(), Fraction(candidates), tail).upper
    return scale * logarithm + Fraction(1, _resolution(scale))


def _read_sensitivities(values: Iterable[int]) -> tuple[int, ...]:
    try:
        given = tuple(values)
    except TypeError as error:
        raise InvalidParameter(f"The sensitivities are a {type(values).__name__}; give a list of integers.") from error
    listed = tuple(whole_number(value, "A sensitivity", least=1, most=LARGEST_SENSITIVITY) for value in given)
    if not listed:
        raise InvalidParameter("There are no sensitivities; give at least one candidate.")
    return listed
