"""Which of several numbers is the first to pass a threshold of its own, by the sparse vector technique.

Theory of operation. Number i moves by at most Δ_i between neighbours, and passes if s_i·(q_i − b_i) ≥ 0, s_i = 1 for
"at least b_i" and −1 for "at most b_i". With Δ the largest of the Δ_i, compared are

    g_i = ⌊s_i·(q_i − b_i)·Δ/Δ_i⌋,

which pass if g_i ≥ 0. Without the floor g_i moves by at most Δ; as Δ is a whole number, so it does with it: if x ≤ y +
Δ then ⌊x⌋ ≤ ⌊y⌋ + Δ. Where all that move do so in one direction, so do the g_i, as ⌊·⌋ never falls. So `AboveThreshold`
applies with the sensitivity Δ and the threshold 0, for one answer above.

What is released is a whole number for each: b_i for the one that is told to be above, b_i − s_i for those before it,
which are told to be below, and for those after it, of which nothing is told. So whoever looks for the first number that
passes its threshold among these finds the one that the mechanism told. They are a function of its answer.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import ClassVar, NamedTuple, Self, final

import numpy as np

from lapwing.exact import geometric, integers  # what is drawn from: nothing is loaded once a question is paid
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.floats import float_near
from lapwing.mechanisms.additive import FIRST
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.mechanisms.sparse_vector import AboveThreshold
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import Loss

PREPARED = (geometric, integers)


class Threshold(NamedTuple):
    """What a number passes: `bound` or more, or if not `at_least` or less; and how far it moves between neighbours."""

    bound: int
    at_least: bool
    moved: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOfThresholds:
    """Tell which of several numbers is the first that passes its threshold; of each number it states its share.

    Guarantee:
        That of `AboveThreshold` for one answer above, as the top of the file proves; `loss` is an equal share of it for
        each number, all of which are released together or not at all.

    Args:
        thresholds: Of each number in order, all `moved` at least 1.
        one_way: Whether all that move pass more easily, or all less.
        mechanism: Whose scales are in steps of the number that moves furthest.
        place: Of this number.
        before: What the same loss bought in earlier versions, which serves as well if it was bought.
    """

    name: ClassVar[str] = FIRST
    thresholds: tuple[Threshold, ...]
    one_way: bool
    mechanism: AboveThreshold
    place: int
    before: AboveThreshold | None = field(default=None, compare=False, repr=False)

    @classmethod
    def for_loss(cls, loss: Loss, thresholds: Sequence[Threshold], *, one_way: bool) -> tuple[Self, ...]:
        """Return the sharpest for a loss, once for each number."""
        moved = _sensitivity(thresholds, one_way=one_way)
        mechanism, before = AboveThreshold.for_loss(loss, moved), AboveThreshold.for_epsilon_of(loss, moved)
        return tuple(
            cls(thresholds=tuple(thresholds), one_way=one_way, mechanism=mechanism, place=place, before=before)
            for place in range(len(thresholds))
        )

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return an equal share of the loss of the whole, for this number; `sensitivity` is that of the number."""
        moved = _sensitivity(self.thresholds, one_way=self.one_way)
        if sensitivity.l1 > self.thresholds[self.place].moved:
            raise ValueError("the number moves further than the mechanism was made for; this is a bug in Lapwing")
        whole = self.mechanism.loss(moved, kind)
        return whole.from_amount(whole.amount / len(self.thresholds))

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how far one unit moves the number."""
        return float(sensitivity.l1)

    def release_all(self, values: Sequence[IntArray], entropy: Entropy = SYSTEM) -> tuple[IntArray, ...]:
        """Return a number for each, of which the first that passes its threshold is the one that was told.

        Args:
            values: Arrays of one number each, in the order of the thresholds.
        """
        most = max(threshold.moved for threshold in self.thresholds)
        pairs = [(int(value[0]), threshold) for value, threshold in zip(values, self.thresholds, strict=True)]
        answers = [_sign(t) * (value - t.bound) * most // t.moved for value, t in pairs]
        told = self.mechanism.release(np.array(answers, dtype=object), 0, entropy)
        first = len(told) - 1 if len(told) and told[-1] else -1
        return tuple(
            np.array([threshold.bound - (0 if place == first else _sign(threshold))], dtype=np.int64)
            for place, threshold in enumerate(self.thresholds)
        )

    @property
    def accepted(self) -> tuple[Self, ...]:
        """What may have been bought at this price: itself, and what earlier versions sold."""
        return (self,) if self.before is None else (self, replace(self, mechanism=self.before, before=None))

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Refuse: numbers of this law are released together alone."""
        raise NotImplementedError("use release_all")

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on this number, in its steps; the threshold has noise of its own."""
        moved = self.thresholds[self.place].moved
        return self.mechanism.query_scale * moved / max(threshold.moved for threshold in self.thresholds)

    @property
    def standard_deviation(self) -> float:
        """The scale, in steps: nothing is added to what is released."""
        return float_near(self.scale)

    def half_width(self, confidence: Number) -> int:
        """Return an h such that, of all numbers together, none is told wrongly that is h or more from its threshold."""
        h = self.mechanism.half_width(len(self.thresholds), confidence)
        return ceil(Fraction(h * self.thresholds[self.place].moved, max(t.moved for t in self.thresholds)))

    def record(self) -> list[str]:
        """Return the parameters as stored answers keep them, the scale last."""
        thresholds = json.dumps([[str(t.bound), t.at_least, str(t.moved)] for t in self.thresholds])
        ratio = self.mechanism.threshold_scale / self.mechanism.query_scale
        return [str(self.place), thresholds, str(int(self.one_way)), str(ratio), str(self.mechanism.query_scale)]

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Return what `record` was written of."""
        place, written, one_way, ratio, scale = parameters
        thresholds = tuple(
            Threshold(int(bound), bool(least), int(moved)) for bound, least, moved in json.loads(written)
        )
        mechanism = AboveThreshold(threshold_scale=Fraction(ratio) * Fraction(scale), query_scale=Fraction(scale))
        return cls(thresholds=thresholds, one_way=one_way == "1", mechanism=mechanism, place=int(place))


def _sign(threshold: Threshold) -> int:
    return 1 if threshold.at_least else -1


def _sensitivity(thresholds: Sequence[Threshold], *, one_way: bool) -> ScoreSensitivity:
    return ScoreSensitivity(bound=Fraction(max(threshold.moved for threshold in thresholds)), monotonic=one_way)
