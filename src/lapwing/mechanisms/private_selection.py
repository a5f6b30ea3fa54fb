"""Choosing one of finitely many candidates by score: the exponential mechanism, permute-and-flip, report noisy max.

Theory of operation. Candidate i has an integer score s_i that depends on private data; the candidates themselves are
public, and so is their number. All three mechanisms depend on differences of scores only. `ScoreSensitivity.range`
bounds the most by which such a difference moves between neighbours, and each mechanism costs range/scale as a pure
loss. They differ in their law, hence in their error and in what they cost in other measures:

- The exponential mechanism has bounded range, which makes it cheap under composition (in gdp and zcdp).
- Permute-and-flip errs least among the three in a single use under a pure loss.
- Report noisy max adds noise to every score and reports the first. With Gumbel noise it is the exponential mechanism,
  with exponential noise permute-and-flip, and is drawn as such; with Laplace noise it is a mechanism of its own.

Nothing but the index is released; the noisy score is not, since it would cost more than the choice.

Timing. One pass does the same work for all scores that fit the same type; scores whose spread does not fit 64 bits are
computed with Python ints, which takes longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Ball, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.noisy import add
from lapwing.mechanisms.parameters import scale_of_noise, whole_number
from lapwing.mechanisms.scores import (
    MOST_CANDIDATES,
    ScoreSensitivity,
    below_best,
    bounded_range_loss,
    exponential_shortfall,
    read_scores,
    scale_for_pure,
    scale_for_range,
    scored,
)
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import Loss, PureDP
from lapwing.privacy.search import smallest

NOISES = ("laplace", "exponential", "gumbel")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism:
    """Choose candidate i with probability proportional to e^(score_i/scale).

    Guarantee:
        Bounded range η = range/scale, hence PureDP(η), (η²/8)-zCDP and GaussianDP(2Φ⁻¹(1/(1 + e^(−η/2)))). The
        log-ratio log P(i)/P'(i) is (s_i − s'_i)/scale + (log of the ratio of the sums). The second term is the same for
        all i, so two such log-ratios differ by at most range/scale.

    Args:
        scale: In steps of the score, from 2⁻³⁰ to 2⁸⁰.

    Source:
        McSherry and Talwar 2007; Dong, Durfee and Rogers 2020 (bounded range); Cesar and Rogers 2021 (zCDP).
    """

    name: ClassVar[str] = "exponential mechanism"
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: ScoreSensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`: range/ε exactly for a pure loss, else rounded up."""
        return cls(scale=scale_for_range(loss, sensitivity))

    def loss(self, sensitivity: ScoreSensitivity, kind: str) -> Loss:
        """Return the loss in a measure: the loss of a bounded range of range/scale."""
        return bounded_range_loss(kind, scored(sensitivity).range / self.scale)

    def release(self, scores: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return the index of the choice.

        Raises:
            InvalidParameter: If the scores are not integers, or there are none; nothing is drawn then.
        """
        return int(samplers.exponential_choice(below_best(read_scores(scores)), self.scale, entropy))

    def shortfall(self, candidates: int, confidence: Number) -> int:
        """Return an h with P(best score − chosen score ≤ h) ≥ confidence, for any scores.

        The best candidate has weight 1 against at most e^(−(h + 1)/scale) for each one that is worse by more than h.
        """
        return exponential_shortfall(self.scale, candidates, confidence, halved=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    """Flip a coin of chance e^((score − best)/scale) for candidates in random order; choose the first heads.

    All coins may as well be flipped at once and one of the heads be chosen uniformly; `release` does this. The first
    head in a uniformly random order, drawn apart from the coins, is each of the heads equally likely. The best
    candidate's coin is always heads.

    Guarantee:
        PureDP(range/scale). Give each score independent noise E_i with P(E_i > x) = e^(−x/scale), x ≥ 0. The noisy
        scores above the best score b belong to an independent coin each, of chance e^((s_i − b)/scale). The amounts by
        which they exceed b are, by lack of memory, again such noise, alike and independent. So the largest is each of
        them equally likely. So the mechanism has the same distribution as reporting the largest of s_i + E_i. Fix all
        noise but E_i: i is reported if E_i exceeds max (s_j − s_i + E_j). This threshold moves by at most r = range
        between neighbours, and P(E_i > m + r) ≥ e^(−r/scale)·P(E_i > m). It has no useful bounded range.

    Args:
        scale: In steps of the score, from 2⁻³⁰ to 2⁸⁰.

    Source:
        McKenna and Sheldon 2020 (arXiv 2010.12603); Ding, Kifer, Steinke et al. 2021 (arXiv 2105.07260).
    """

    name: ClassVar[str] = "permute-and-flip"
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))

    @classmethod
    def for_loss(cls, loss: Loss, sensitivity: ScoreSensitivity) -> Self:
        """Return the least noise whose loss is at most `loss`: range/ε exactly for a pure loss, else rounded up."""
        return cls(scale=scale_for_pure(loss, sensitivity))

    def loss(self, sensitivity: ScoreSensitivity, kind: str) -> Loss:
        """Return the loss in a measure: range/scale in pure, and what any such mechanism loses in the others."""
        return PureDP(scored(sensitivity).range / self.scale).to_kind(kind)

    def release(self, scores: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return the index of the choice.

        Raises:
            InvalidParameter: If the scores are not integers, or there are none; nothing is drawn then.
        """
        heads = samplers.exponential_coins(below_best(read_scores(scores)), self.scale, entropy)
        return _one_of(np.flatnonzero(heads), entropy)

    def shortfall(self, candidates: int, confidence: Number) -> int:
        """Return an h with P(best score − chosen score ≤ h) ≥ confidence, for any scores.

        One that is worse by g is heads with probability e^(−g/scale). It is then chosen with probability at most ½,
        because the best is heads too.
        """
        return exponential_shortfall(self.scale, candidates, confidence, halved=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoisyMax:
    """Add independent noise to every score and report whose is the largest.

    With "gumbel" noise, P(G ≤ x) = e^(−e^(−x/scale)), this is the exponential mechanism. The largest of s_i + G_i is i
    with probability ∝ e^(s_i/scale). With "exponential" noise it is permute-and-flip. Both are drawn as such. With
    "laplace" noise, P(L = x) ∝ e^(−|x|/scale) is added to the integer scores, and a tie is broken uniformly at random.

    Guarantee:
        PureDP(range/scale), and for Gumbel noise bounded range range/scale. For Laplace noise, let ties be broken by
        independent uniform marks, drawn beforehand. Fix the marks, and all noise except candidate i's. Then i is
        reported if L_i ≥ m for an integer m. It is m = max over j of s_j − s_i + L_j + [mark of j above mark of i]. It
        moves by at most r = ⌊range⌋ between neighbours. Every x has P(L = x + r) ≥ e^(−r/scale)·P(L = x). So
        P(L_i ≥ m + r) ≥ e^(−r/scale)·P(L_i ≥ m). This holds for all values of what was fixed, hence for i.

    Args:
        scale: In steps of the score, from 2⁻³⁰ to 2⁸⁰.
        noise: "laplace", "exponential" or "gumbel".

    Source:
        Dwork and Roth 2014, section 3.3; Ding, Kifer, Steinke et al. 2021 (arXiv 2105.07260).
    """

    name: ClassVar[str] = "report noisy max"
    scale: Fraction
    noise: Literal["laplace", "exponential", "gumbel"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_of_noise(self.scale))
        _check_noise(self.noise)

    @classmethod
    def for_loss(
        cls, loss: Loss, sensitivity: ScoreSensitivity, noise: Literal["laplace", "exponential", "gumbel"]
    ) -> Self:
        """Return the least noise of a kind whose loss is at most `loss`: range/ε for a pure loss, else rounded up."""
        _check_noise(noise)
        scale_for = scale_for_range if noise == "gumbel" else scale_for_pure
        return cls(scale=scale_for(loss, sensitivity), noise=noise)

    def loss(self, sensitivity: ScoreSensitivity, kind: str) -> Loss:
        """Return the loss in a measure: range/scale in pure; in others, for Gumbel noise, by the bounded range."""
        eta = scored(sensitivity).range / self.scale
        return bounded_range_loss(kind, eta) if self.noise == "gumbel" else PureDP(eta).to_kind(kind)

    def release(self, scores: IntArray | Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return the index of the choice.

        Raises:
            InvalidParameter: If the scores are not integers, or there are none; nothing is drawn then.
        """
        if self.noise == "gumbel":
            return ExponentialMechanism(scale=self.scale).release(scores, entropy)
        if self.noise == "exponential":
            return PermuteAndFlip(scale=self.scale).release(scores, entropy)
        noisy = np.asarray(add(read_scores(scores), lambda size: samplers.discrete_laplace(self.scale, size, entropy)))
        return _one_of(np.flatnonzero(noisy == noisy.max()), entropy)

    def shortfall(self, candidates: int, confidence: Number) -> int:
        """Return an h with P(best score − chosen score ≤ h) ≥ confidence, for any scores.

        For Laplace noise: one that is worse by g ≥ 0 is reported only if D = L_i − L_best ≥ g. With q = e^(−1/scale),

            P(D = d) = ((1 − q)/(1 + q))²·q^d·(d + 1 + 2q²/(1 − q²))    for d ≥ 0.
            P(D ≥ g) = q^g·(g·(1 − q) + 1 + 2q²/(1 + q))/(1 + q)²       (the sum of these over d ≥ g).

        This, times the number of the others, stays below 1 − confidence at g = h + 1.
        """
        if self.noise == "gumbel":
            return ExponentialMechanism(scale=self.scale).shortfall(candidates, confidence)
        if self.noise == "exponential":
            return PermuteAndFlip(scale=self.scale).shortfall(candidates, confidence)
        others = Fraction(whole_number(candidates, "candidates", least=1, most=MOST_CANDIDATES) - 1)
        tail = 1 - probability(confidence, "confidence")
        if others == 0:
            return 0

        def enough(h: int) -> bool:
            return enclose_tightly(_difference_tail_ball, 1 / self.scale, Fraction(h + 1), others).upper <= tail

        return smallest(enough, guess=exponential_shortfall(self.scale, candidates, confidence, halved=False))


def _difference_tail_ball(rate: Ball, g: Ball, others: Ball) -> Ball:
    q = (-rate).exp()
    return others * (-rate * g).exp() * (g * (1 - q) + 1 + 2 * q * q / (1 + q)) / (1 + q) ** 2


def _one_of(indices: NDArray[np.intp], entropy: Entropy) -> int:
    """Return one of the indices, each equally likely."""
    return int(indices[int(samplers.uniform_integers(indices.size, 1, entropy)[0])])


def _check_noise(noise: str) -> None:
    if noise not in NOISES:
        raise InvalidParameter(f"The noise is {noise!r}; it must be one of {', '.join(NOISES)}.")
