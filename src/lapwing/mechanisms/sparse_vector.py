"""The sparse vector technique: which of many answers lie above a threshold, paid for by those that do.

Theory of operation. One number of geometric noise ρ is drawn for the threshold T, and one, ν_i, for each answer q_i.
An answer is told to be above if q_i + ν_i ≥ T + b + ρ, with a public offset b; after `count` answers above, the run is
over. All noise is ≥ 0: what matters is that it can be shifted upwards at a price, P(m) = e^(s/scale)·P(m + s), and
geometric noise has half the variance of the discrete Laplace noise that costs the same.

Proof of privacy. Fix neighbours with answers q and q', |q_i − q'_i| ≤ Δ, and what was released: which answers are
above and, perhaps, their gaps q_i + ν_i − (T + b + ρ). To every noise (ρ, ν) that leads to this release on q belongs
one that leads to it on q':

    ρ' = ρ + s,    ν'_i = ν_i + s + q_i − q'_i for i above,    ν'_i = ν_i for i below,

with an integer s ≥ 0 that depends on q, q' and the release only. An answer above keeps its gap, hence stays above.
One below stays below as q'_i + ν_i ≤ q_i + ν_i + s < T + b + ρ', if s ≥ q'_i − q_i. The map is a translation, hence
one-to-one, and it leads to possible noise if no shift is negative. So the release is at most e^ε times as likely on q
as on q', where ε adds up the shifts, each over its scale:

- In general s = ⌊Δ⌋ will do: the shifts above are from 0 to 2Δ and ε = Δ/threshold_scale + count·2Δ/query_scale.
- If no answer is larger on q', s = 0 will do: the shifts above are q_i − q'_i ≤ Δ, and ε = count·Δ/query_scale.
- If none is smaller on q', s = ⌊Δ⌋ has shifts above of s − (q'_i − q_i) ≤ Δ: ε = (Δ/threshold_scale) +
  count·Δ/query_scale.
- A monotonic sensitivity promises one of the last two for neighbours in one order, and the other in the other order. So
  the log-ratio of a whole run lies in one interval, whatever the neighbours: with q the larger answers, in
  [−Δ/threshold_scale − count·Δ/query_scale, count·Δ/query_scale]. In μ and ρ that is less than ε-DP, which knows the
  larger end alone (`privacy.bounded_range`): .908 and not 1.232 at ε = ½ + ½ for one answer above.

Questions may depend on earlier releases, for they are then fixed with them; the threshold's noise is shifted once for
the whole run, so there is no need to draw it again after an answer above. Nothing was assumed about the number of
answers below: they are free. Every part is needed. Of the six versions that Lyu, Su and Li compare, four are not
private as claimed: one adds no noise to the answers, one has no cap, one has noise that does not grow with the cap,
and one releases the noisy answer itself, whose comparison with the threshold then gives the threshold away.

Source:
    Dwork, Naor, Reingold, Rothblum and Vadhan 2009 (the technique); Lyu, Su and Li 2017 (Understanding the Sparse
    Vector Technique, arXiv 1603.01699; what is wrong elsewhere, and the split of the budget); Liu et al. 2024 (arXiv
    2407.20068; exponential noise); Ding et al. 2019 (PVLDB 13(3); the gap, for Laplace noise). The proof is ours.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from threading import Lock
from typing import ClassVar, NoReturn, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, enclose, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import SMALLEST_SCALE, integers, rational, scale_of_noise, whole_number
from lapwing.mechanisms.scores import ScoreSensitivity, largest_passing, pure_within, range_within, scored
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.bounded_range import interval_amount
from lapwing.privacy.measures import Loss, PureDP, privacy_measure_of
from lapwing.privacy.search import smallest

_MOST = 10**9
_BLOCK = 1 << 14
_SAFE = 1 << 62


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    """Tell of each integer answer whether it is above a threshold, until `count` of them were.

    Guarantee:
        PureDP(Δ/threshold_scale + count·r/query_scale) where no answer moves by more than Δ between neighbours. Here r
        = Δ if the answers that move all do so in one direction (a monotonic sensitivity), else 2Δ. It covers the gaps
        as well. The proof stands at the top of this file; the loss is attained. In gdp and zcdp it is the loss of these
        log-ratios' interval if the sensitivity is monotonic, else the loss of the ε.

    Args:
        threshold_scale: Of the geometric noise on the threshold and on each answer, in steps of the answers, from 2⁻³⁰
            to 2⁸⁰.
        query_scale: As `threshold_scale`.
        count: How many answers above before the run is over, ≥ 1.
    """

    name: ClassVar[str] = "above threshold"
    threshold_scale: Fraction
    query_scale: Fraction
    count: int = 1

    def __post_init__(self) -> None:
        for field in ("threshold_scale", "query_scale"):
            object.__setattr__(self, field, scale_of_noise(getattr(self, field), field))
        object.__setattr__(self, "count", whole_number(self.count, "count", least=1, most=_MOST))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: ScoreSensitivity, count: int = 1) -> Self:
        """Return the mechanism that spends all of a loss, split so that the difference of the noises varies least.

        With ε_1 for the threshold and ε_2 for the answers, the variance is about (Δ/ε_1)² + (count·r/ε_2)². It is
        smallest for ε_1 : ε_2 = 1 : (count·r/Δ)^(2/3) (Lyu, Su and Li 2017).
        The ratio is rounded, the sum is not. In a pure loss ε_1 + ε_2 is all of it. In another loss it is the largest ε
        of 45 binary digits that fits. Let a monotonic sensitivity have a loss in gdp or zcdp. The length ε_1 + 2ε_2 of
        the interval is then about the same for all splits. The least variance then has a ratio of 1 : (count²/2)^(1/3).
        """
        whole, before = whole_number(count, "count", least=1, most=_MOST), cls.for_epsilon_of(loss, sensitivity, count)
        if isinstance(loss, PureDP) or not sensitivity.monotonic or not sensitivity.bound:
            return before
        ratio = (whole**2 / 2) ** (1 / 3)
        near = range_within(loss) * Fraction((1 + ratio) / (1 + 2 * ratio))

        def lost(epsilon: Fraction) -> Fraction:
            return cls._split(epsilon, sensitivity, whole, ratio).loss(sensitivity, loss.kind).amount

        for _ in range(3):  # a better guess: the amount is nearly a square
            near *= Fraction(math.sqrt(loss.amount / lost(near)))
        best = cls._split(largest_passing(lambda e: lost(e) <= loss.amount, near), sensitivity, whole, ratio)
        return min(best, before, key=lambda law: law.threshold_scale**2 + law.query_scale**2)

    @classmethod
    def for_epsilon_of(cls, loss: Loss, sensitivity: ScoreSensitivity, count: int = 1) -> Self:
        """Return the split of the largest ε whose every mechanism keeps a loss: what was bought before intervals."""
        count = whole_number(count, "count", least=1, most=_MOST)
        shifts = count if scored(sensitivity).monotonic else 2 * count
        return cls._split(pure_within(loss), sensitivity, count, float(shifts) ** (2 / 3))

    @classmethod
    def _split(cls, epsilon: Fraction, sensitivity: ScoreSensitivity, count: int, ratio: float) -> Self:
        if sensitivity.bound == 0:
            return cls(threshold_scale=SMALLEST_SCALE, query_scale=SMALLEST_SCALE, count=count)
        first = epsilon / (1 + Fraction(round(1000 * ratio), 1000))
        return cls(
            threshold_scale=max(SMALLEST_SCALE, sensitivity.bound / first),
            query_scale=max(SMALLEST_SCALE, count * sensitivity.range / (epsilon - first)),
            count=count,
        )

    @property
    def offset(self) -> int:
        """The amount that raises the threshold, because the noises differ in size: a median of their difference.

        It is the largest b with P(ν − ρ ≥ b) ≥ ½. So an answer at the threshold is above it with probability at least
        ½, and one just below it with less. It is a function of only the scales; for equal scales it is 0.
        """
        return _median(self.threshold_scale, self.query_scale)

    def loss(self, sensitivity: ScoreSensitivity, kind: str) -> Loss:
        """Return the loss of a whole run: in gdp and zcdp of the log-ratios' interval, if answers move one way."""
        above = self.count * scored(sensitivity).range / self.query_scale
        epsilon = PureDP(sensitivity.bound / self.threshold_scale + above)
        if not sensitivity.monotonic or not above or kind not in ("gdp", "zcdp"):
            return epsilon.to_kind(kind)
        return privacy_measure_of(kind).from_amount(interval_amount(kind, above, epsilon.epsilon))

    def release(
        self, answers: IntArray | Sequence[int], threshold: int, entropy: Entropy = SYSTEM
    ) -> NDArray[np.bool_]:
        """Return for each answer whether it is above; the result ends with the last answer above that `count` allows.

        Raises:
            InvalidParameter: If answers or threshold are not whole numbers; nothing is drawn then.
        """
        gaps = self._gaps(answers, threshold, entropy)
        above: NDArray[np.bool_] = np.asarray(gaps >= 0, dtype=np.bool_)
        return above

    def release_gaps(
        self, answers: IntArray | Sequence[int], threshold: int, entropy: Entropy = SYSTEM
    ) -> tuple[int | None, ...]:
        """Return for each answer above its noisy gap, a whole number ≥ 0, and None for each below; at the same loss."""
        return tuple(int(gap) if gap >= 0 else None for gap in self._gaps(answers, threshold, entropy))

    def start(self, threshold: int, entropy: Entropy = SYSTEM) -> "ThresholdSession":
        """Draw the threshold's noise and return a session that takes answers one at a time.

        All of the session together has the loss of the mechanism, however many answers it is asked about.
        """
        return ThresholdSession(self, threshold, entropy)

    def half_width(self, queries: int, confidence: Number) -> int:
        """Return an h such that over `queries` answers no verdict is wrong by h or more, with this confidence at least.

        That is: every answer told to be below is < threshold + h, and every one told to be above is > threshold − h. It
        holds for questions that depend on earlier verdicts too, since it speaks only of the noise.

        An answer ≥ T + h gets the verdict "below" only if ρ − ν_i ≥ h + 1 − b, hence ρ ≥ h + 1 − b. One ≤ T − h gets
        "above" only if ν_i − ρ ≥ h + b. With p = e^(−1/threshold_scale) and q = e^(−1/query_scale), for d ≥ 0,

            P(ρ − ν_i ≥ d) = p^d·(1 − q)/(1 − pq)    and    P(ν_i − ρ ≥ d) = q^d·(1 − p)/(1 − pq).

        So the first happens to any answer with probability at most min(1, queries·(1 − q)/(1 − pq))·p^d. The second has
        at most min(1, queries·q^d·(1 − p)/(1 − pq)). The sum of both stays below 1 − confidence.
        """
        queries = whole_number(queries, "queries", least=1)
        tail = 1 - probability(confidence, "confidence")
        t1, t2, b = self.threshold_scale, self.query_scale, self.offset

        def enough(h: int) -> bool:
            low, high = h + 1 - b, h + b
            if low < 0 or high < 0:
                return False
            wrong = enclose_tightly(_wrong_ball, 1 / t1, 1 / t2, Fraction(low), Fraction(high), Fraction(queries))
            return wrong.upper <= tail

        # A first guess in floating point; the search does not depend on it.
        reach = math.log(queries) + math.log(tail.denominator) - math.log(tail.numerator)
        return smallest(enough, guess=math.ceil(max(t1, t2) * Fraction(reach)))

    def _gaps(self, answers: IntArray | Sequence[int], threshold: int, entropy: Entropy) -> IntArray:
        """Return q_i + ν_i − (T + b + ρ) for the answers up to the last above; the negative ones are private."""
        whole = integers(answers, "The answers")
        level = _public_integer(threshold, "threshold") + self.offset + self._threshold_noise(entropy)
        pieces: list[IntArray] = [np.empty(0, dtype=np.int64)]
        left = self.count
        for start in range(0, whole.size, _BLOCK):
            block = whole[start : start + _BLOCK]
            gaps = _differences(block, samplers.geometric(self.query_scale, block.size, entropy), level)
            above = np.flatnonzero(gaps >= 0)
            if above.size >= left:
                pieces.append(gaps[: above[left - 1] + 1])
                break
            left -= above.size
            pieces.append(gaps)
        exact = any(piece.dtype == np.object_ for piece in pieces)
        return np.concatenate(pieces, dtype=np.object_) if exact else np.concatenate(pieces, dtype=np.int64)

    def _threshold_noise(self, entropy: Entropy) -> int:
        return int(samplers.geometric(self.threshold_scale, 1, entropy)[0])


@final
class ThresholdSession:
    """One run of `AboveThreshold` that takes answers one at a time; made by its `start`.

    It holds the threshold's noise, which is private: it is not shown, and the session can be neither copied nor
    pickled, nor used in a forked process, as two sessions with the same noise would tell more than was paid for.
    Threads may share it.
    """

    __slots__ = ("_entropy", "_left", "_level", "_lock", "_mechanism", "_process")

    def __init__(self, mechanism: AboveThreshold, threshold: int, entropy: Entropy) -> None:
        threshold = _public_integer(threshold, "threshold")
        self._mechanism = mechanism
        self._entropy = entropy
        self._left = mechanism.count
        self._lock = Lock()
        self._process = os.getpid()
        self._level = threshold + mechanism.offset + mechanism._threshold_noise(entropy)

    @property
    def left(self) -> int:
        """How many more answers above the session will tell of before it is over."""
        return self._left

    def ask(self, answer: int) -> bool:
        """Tell whether an answer is above the threshold.

        Raises:
            InvalidParameter: If the session is over or the answer is not a whole number; nothing is drawn then.
        """
        return self.ask_gap(answer) is not None

    def ask_gap(self, answer: int) -> int | None:
        """Return the noisy gap of an answer above the threshold, a whole number ≥ 0, or None if it is below.

        Raises:
            InvalidParameter: If the session is over or the answer is not a whole number; nothing is drawn then.
        """
        if isinstance(answer, bool) or not isinstance(answer, Integral):
            raise InvalidParameter(f"The answer is a {type(answer).__name__}; it must be a whole number.")
        if os.getpid() != self._process:
            raise InvalidParameter("The session belongs to the process that started it; start another and pay for it.")
        with self._lock:
            if not self._left:
                raise InvalidParameter(
                    f"The session is over: it has found {self._mechanism.count} above the threshold, as many as were "
                    "paid for. Nothing was drawn. Start another session and pay for it."
                )
            gap = int(answer) + int(samplers.geometric(self._mechanism.query_scale, 1, self._entropy)[0]) - self._level
            if gap < 0:
                return None
            self._left -= 1
            return gap

    def __repr__(self) -> str:
        return f"<session of {self._mechanism!r}, {self._left} left>"

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter("A session holds private noise and can be neither copied nor pickled; start another.")


def _wrong_ball(r1: Ball, r2: Ball, low: Ball, high: Ball, queries: Ball) -> Ball:
    both = (-(r1 + r2)).expm1()
    below = (queries * (-r2).expm1() / both).min(1) * (-low * r1).exp()
    above = (queries * (-r1).expm1() / both * (-high * r2).exp()).min(1)
    return below + above


@lru_cache(maxsize=1 << 10)
def _median(threshold_scale: Fraction, query_scale: Fraction) -> int:
    """Return the largest b with P(ν − ρ ≥ b) ≥ ½, from the two tails that `half_width` states.

    For b ≥ 0 that is q^b·A ≥ ½ with A = (1 − p)/(1 − pq), so b = ⌊query_scale·ln(2A)⌋ if A ≥ ½. Else b = −m < 0 with
    P(ρ − ν ≥ m + 1) = p^(m + 1)·B ≤ ½ and B = (1 − q)/(1 − pq), so m = ⌈threshold_scale·ln(2B)⌉ − 1, at least 1.
    Should rounding matter here, b would be off by one, and still a public constant.
    """

    def middle(t: Ball, other: Ball) -> Ball:
        # t·ln(2·P(noise of scale t ≥ that of the other scale))
        return t * (2 * (-1 / other).expm1() / (-1 / t - 1 / other).expm1()).log()

    up = enclose(middle, query_scale, threshold_scale, bits=384).upper
    if up >= 0:
        return math.floor(up)
    return 1 - max(2, math.ceil(enclose(middle, threshold_scale, query_scale, bits=384).upper))


def _differences(answers: IntArray, noise: IntArray, level: int) -> IntArray:
    """Return answers + noise − level exactly."""
    if answers.dtype == noise.dtype == np.int64 and answers.size:
        lowest, highest = int(answers.min()) - level, int(answers.max()) + int(noise.max()) - level
        if max(abs(level), abs(lowest), abs(highest), abs(highest + level)) < _SAFE:
            return answers + noise - level
    exact: IntArray = answers.astype(np.object_) + noise.astype(np.object_) - level
    return exact


def _public_integer(value: int, name: str) -> int:
    number = rational(value, name)
    if number.denominator != 1:
        raise InvalidParameter(f"The {name} is {value}; it must be a whole number, in steps of the answers.")
    return int(number)
