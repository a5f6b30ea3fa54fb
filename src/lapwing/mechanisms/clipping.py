"""Bounds on what one unit adds to a sum, where no good bound is known in public.

Theory of operation. A sum has a finite sensitivity only if each unit's contribution is cut at a bound. A bound that is
too low loses what is above it, one that is too high asks for noise that nobody needs. `UnboundedQuantile` buys a bound
that few units exceed, on which a sum may be bought afterwards; `RaceToTheTop` tries all powers of two, releases the
sum at once, and errs downwards only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import (
    SMALLEST_SCALE,
    Rational,
    integers,
    rational,
    scale_of_noise,
    whole_number,
)
from lapwing.mechanisms.scores import ScoreSensitivity, pure_within
from lapwing.mechanisms.sparse_vector import AboveThreshold
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss, PureDP
from lapwing.privacy.search import smallest

_LARGEST = 1 << 62
_MOST_CANDIDATES = 1 << 17
_COUNTS = ScoreSensitivity(bound=Fraction(1), monotonic=True)
_HALF = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedQuantile:
    """Return the first of growing candidates that about `rank` units or fewer exceed.

    The candidates are public: `start`, and after each ℓ the larger of ℓ + 1 and ⌈growth·ℓ⌉, up to `most`. For one after
    the other, `AboveThreshold` tells whether −#{x > ℓ} is above −rank; the first such ℓ is returned, and `most` if
    there is none.

    Guarantee:
        PureDP(1/threshold_scale + 1/query_scale) where every unit has one value. If a unit is added, #{x > ℓ} grows by
        1 for every ℓ below its value and stays for every other. So the answers are monotonic with Δ = 1. If a value is
        replaced by a larger one, #{x > ℓ} grows by 1 for every ℓ between them. So the same holds for neighbours by
        replacement. If a unit has up to K values, that is a group of K: the loss is `for_group(K)`.

    Args:
        threshold_scale: Of the noise, in units, from 2⁻³⁰ to 2⁸⁰.
        query_scale: Of the noise, in units, from 2⁻³⁰ to 2⁸⁰.
        rank: How many units may exceed the bound, ≥ 0 (see `rank_error`).
        start: The first candidate, ≥ 0.
        growth: > 1.
        most: The last, at most 2⁶².

    Source:
        Durfee 2023 (Unbounded Differentially Private Quantile and Maximum Estimation, arXiv 2305.01177).
    """

    name: ClassVar[str] = "unbounded quantile"
    threshold_scale: Fraction
    query_scale: Fraction
    rank: int
    start: int = 1
    growth: Fraction = Fraction(101, 100)
    most: int = _LARGEST

    def __post_init__(self) -> None:
        for field in ("threshold_scale", "query_scale"):
            object.__setattr__(self, field, scale_of_noise(getattr(self, field), field))
        object.__setattr__(self, "rank", whole_number(self.rank, "rank"))
        object.__setattr__(self, "most", whole_number(self.most, "most", least=1, most=_LARGEST))
        object.__setattr__(self, "start", whole_number(self.start, "start", most=self.most))
        growth = rational(self.growth, "growth")
        if growth <= 1:
            raise InvalidParameter(f"growth is {self.growth}; it must be above 1, such as 1.01 given as a Decimal.")
        object.__setattr__(self, "growth", growth)
        _ladder(self.start, self.growth, self.most)

    @classmethod
    def for_loss(
        cls,
        loss: Loss,
        *,
        rank: int,
        start: int = 1,
        growth: Rational = Fraction(101, 100),
        most: int = _LARGEST,
    ) -> Self:
        """Return the mechanism that spends all of a loss, half of it on the threshold (see `AboveThreshold`)."""
        test = AboveThreshold.for_loss(loss, _COUNTS)
        return cls(
            threshold_scale=test.threshold_scale,
            query_scale=test.query_scale,
            rank=rank,
            start=start,
            growth=rational(growth, "growth"),
            most=most,
        )

    @property
    def candidates(self) -> NDArray[np.int64]:
        """The bounds that may be released, ascending."""
        return _ladder(self.start, self.growth, self.most).copy()

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure, where every unit has one value."""
        return self._test.loss(_COUNTS, kind)

    def release(self, values: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return a bound that about `rank` of the values or fewer exceed.

        Raises:
            InvalidParameter: If the values are not whole numbers; nothing is drawn then.
        """
        ladder = _ladder(self.start, self.growth, self.most)
        # No candidate is below 0 or above `most`, so cutting there moves no value across a candidate.
        cut = _clipped(integers(values, "The values"), self.most)
        exceeded = np.bincount(np.searchsorted(ladder, cut), minlength=ladder.size + 1)
        above = np.cumsum(exceeded[::-1])[::-1][1:]
        verdicts = self._test.release(-above[:-1].astype(np.int64), -self.rank, entropy)
        passed = np.flatnonzero(verdicts)
        return int(ladder[passed[0] if passed.size else -1])

    def rank_error(self, confidence: Number) -> int:
        """Return an h such that, with this confidence at least, fewer than rank + h values exceed the bound.

        More than rank − h values exceed the candidate before it, if there is one. So the bound is at most one step of
        the ladder too high. If no candidate passed and `most` is returned, only this second claim is made.
        """
        asked = _ladder(self.start, self.growth, self.most).size - 1
        return self._test.half_width(max(asked, 1), confidence)

    @property
    def _test(self) -> AboveThreshold:
        return AboveThreshold(threshold_scale=self.threshold_scale, query_scale=self.query_scale)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RaceToTheTop:
    """Release a sum of whole numbers ≥ 0, one from each unit, that is too large with a small probability only.

    The levels τ are the powers of two below `most`, and `most` itself; there are L. For each, the sum of min(x, τ) gets
    discrete Laplace noise of scale `scale`·τ and pays a penalty. The noise exceeds the penalty with probability at most
    β/(L + 1), with β = `failure`. The largest of the results, and of 0, is released. No level may promise too much, and
    a low one that cuts little loses less to noise and penalty than a high one.

    Guarantee:
        PureDP(L/scale). The sum of min(x, τ) moves by at most τ if a unit is added, removed or replaced. So each noisy
        sum is (1/scale)-DP (see `DiscreteLaplace`), and all L together are (L/scale)-DP. The release is a function of
        them and of public numbers. Contributions are cut at 0 and at `most`, so the sensitivity needs no promise.

    Args:
        scale: Of the noise, in units of the level, from 2⁻³⁰ to 2⁸⁰ also when multiplied by `most`.
        most: The largest contribution that counts, from 1 to 2⁶².
        failure: β, above 0 and below 1.

    Source:
        Dong, Fang, Yi, Tao and Machanavajjhala 2022 (R2T: Instance-optimal Truncation for Differentially Private Query
        Evaluation with Foreign Keys). The constants are ours.
    """

    name: ClassVar[str] = "race to the top"
    scale: Fraction
    most: int
    failure: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", whole_number(self.most, "most", least=1, most=_LARGEST))
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        scale_of_noise(self.scale * self.most, "scale · most")
        object.__setattr__(self, "failure", probability(rational(self.failure, "failure"), "failure"))

    @classmethod
    def for_loss(cls, loss: Loss, *, most: int, failure: Rational = Fraction(1, 20)) -> Self:
        """Return the least noise whose loss is at most `loss`: scale = L/ε."""
        most = whole_number(most, "most", least=1, most=_LARGEST)
        scale = len(_levels(most)) / pure_within(loss)
        return cls(scale=max(SMALLEST_SCALE, scale), most=most, failure=rational(failure, "failure"))

    @property
    def levels(self) -> tuple[int, ...]:
        """The public levels at which contributions are cut, ascending."""
        return _levels(self.most)

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure: L/scale in pure, and what any such mechanism loses in the others."""
        return PureDP(len(self.levels) / self.scale).to_kind(kind)

    def penalty(self, level: int) -> int:
        """Return what a level pays: the smallest h with a certified P(noise > h) = q^(h + 1)/(1 + q) ≤ β/(L + 1).

        Here q = e^(−1/(scale·level)); the penalty is about scale·level·ln((L + 1)/2β).
        """
        if level not in self.levels:
            raise InvalidParameter(f"The level is {level}; it must be one of {', '.join(map(str, self.levels))}.")
        return _penalty(self.scale * level, self.failure / (len(self.levels) + 1))

    def release(self, contributions: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return the sum of the contributions, most probably less what `shortfall` allows, and at least 0.

        Raises:
            InvalidParameter: If the contributions are not whole numbers; nothing is drawn then.
        """
        cut = _clipped(integers(contributions, "The contributions"), self.most)
        penalties = [self.penalty(level) for level in self.levels]
        best = 0
        for level, total, penalty in zip(self.levels, cut_sums(cut, self.levels), penalties, strict=True):
            noise = int(samplers.discrete_laplace(self.scale * level, 1, entropy)[0])
            best = max(best, total + noise - penalty)
        return best

    def shortfall(self, largest: int) -> int:
        """Return an h such that truth − h ≤ release ≤ truth with probability at least 1 − β.

        The truth is the sum of the contributions, cut at 0 and `most`. It holds for all data whose largest contribution
        is at most `largest`.

        L + 1 events have probability at most β/(L + 1) each. For each level, the noise is above its penalty; for τ*, it
        is below minus its penalty. (The noise is symmetric.) If none happens, no level's result is above its sum of
        min(x, τ), which is at most the truth. The result of τ*, which cuts nothing, is at least the truth less twice
        its penalty.
        """
        largest = whole_number(largest, "largest")
        return 2 * self.penalty(next((level for level in self.levels if level >= largest), self.most))


@lru_cache(maxsize=64)
def _ladder(start: int, growth: Fraction, most: int) -> NDArray[np.int64]:
    """Return start and, after each ℓ, max(ℓ + 1, ⌈growth·ℓ⌉), below `most`; then `most`."""
    rungs, rung = [], start
    while rung < most:
        rungs.append(rung)
        if len(rungs) >= _MOST_CANDIDATES:
            raise InvalidParameter(
                f"From {start} to {most} there are more than {_MOST_CANDIDATES} candidates; use a larger growth."
            )
        rung = max(rung + 1, -(-growth.numerator * rung // growth.denominator))
    ladder = np.array([*rungs, most], dtype=np.int64)
    ladder.flags.writeable = False
    return ladder


@lru_cache(maxsize=64)
def _levels(most: int) -> tuple[int, ...]:
    """Return the powers of two below `most`, and `most`."""
    return (*(1 << k for k in range((most - 1).bit_length())), most)


@lru_cache(maxsize=1 << 10)
def _penalty(scale: Fraction, tail: Fraction) -> int:
    def beyond(h: int) -> Fraction:
        return enclose_tightly(lambda r, n: (-r * (n + 1)).exp() / (1 + (-r).exp()), 1 / scale, Fraction(h)).upper

    def near(t: Ball, p: Ball) -> Ball:
        return -t * (p * (1 + (-1 / t).exp())).log() - 1

    return smallest(lambda h: beyond(h) <= tail, guess=ceil(enclose_tightly(near, scale, tail).upper))


def _clipped(values: IntArray, most: int) -> NDArray[np.int64]:
    """Return the values cut at 0 and at `most` ≤ 2⁶²."""
    return np.minimum(np.maximum(values, 0), most).astype(np.int64)


def cut_sums(values: NDArray[np.int64], levels: tuple[int, ...]) -> list[int]:
    """Return Σ min(x, τ) for each level exactly: what is at most τ is summed, the rest counted.

    Sums are taken of halves of 32 bits, which cannot overflow for fewer than 2³¹ values.
    """
    ordered = np.sort(values)
    ends = np.searchsorted(ordered, np.array(levels, dtype=np.int64), side="right")
    totals, below, start = [], 0, 0
    for level, end in zip(levels, ends.tolist(), strict=True):
        piece = ordered[start:end]
        below += (int((piece >> _HALF).sum()) << _HALF) + int((piece & ((1 << _HALF) - 1)).sum())
        totals.append(below + level * (ordered.size - end))
        start = end
    return totals
