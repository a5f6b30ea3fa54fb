"""Strategy *thresholdout*: the asker guesses, the holdout says whether the guess holds, and pays if it does not."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import ClassVar, Self, final

from lapwing.errors import BudgetExhausted
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.generalisation.answers import gaussian_reach_up, geometric_reach_up
from lapwing.generalisation.gaussian_answers import believed
from lapwing.generalisation.posterior import posterior_gap_up
from lapwing.holdout.answer import Reply
from lapwing.holdout.strategy import ROUNDING, STEPS
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.mechanisms.sparse_vector import AboveThreshold, ThresholdSession
from lapwing.privacy.measures import GaussianDP, PureDP

_ONE_PERSON = ScoreSensitivity(bound=Fraction(STEPS))
"""One person moves a sum by STEPS at most, in either direction, and with it its distance from a guess."""
_RATIOS = (0.1, 0.2, 0.4, 0.8, 1.6)
_TRIED = 120
_FALSE_ALARMS = Fraction(1, 4)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholdout:
    """Return the asker's guess where the sample's mean is near it, else the mean with noise, so many times at most.

    A guess is compared by the sparse vector technique, anew after each guess that fails: `check` with fresh noise on
    the threshold and on every distance. After a failure the mean is released with Gaussian noise.

    Guarantee:
        Each guess that fails costs the ε of `check` and the μ of the noise. As μ² adds up, all answers together are
        μ-GDP with μ² = failures·(μ_check² + 1/(n·σ)²), where μ_check = 2Φ⁻¹(e^ε/(1 + e^ε)), under `replace_one`.
        Guesses that hold cost nothing more, however many. With probability 1 − chance all answers are within their
        half-widths: where a guess g holds, |g − q(S)|·n·STEPS < level + offset + ρ with the threshold's noise ρ alone,
        as the noise on a distance is never below 0, and there are `failures` draws of ρ at most; else the noise is
        Gaussian, `failures` times at most. From there on `generalisation.answers` and `generalisation.posterior`.

    Args:
        people: n.
        failures: How many guesses may fail before it is over.
        check: Of the distances, for one failure.
        level: The threshold; both in steps of a sum.
        sigma: Of the noise on a mean.
        besides: What else is released.

    Source:
        Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015 (Science 349); the noise and its split are ours.
    """

    name: ClassVar[str] = "thresholdout"
    people: int
    failures: int
    check: AboveThreshold
    level: int
    sigma: Fraction
    chance: Fraction
    besides: GaussianDP = field(default_factory=lambda: GaussianDP(0))

    @classmethod
    def best(
        cls,
        people: int,
        failures: int,
        questions: int,
        chance: Fraction,
        *,
        guessed_from: int | None = None,
        besides: GaussianDP | None = None,
    ) -> Self:
        """Return one whose half-width is small, and that hardly ever takes a good guess for a bad one.

        Its promise holds for whatever this chooses.

        Args:
            questions: How many are expected, which sets the threshold.
            guessed_from: The size of the training sample.
        """
        expected = max(1, questions)
        spread = sqrt(0.25 / people + (0.25 / guessed_from if guessed_from else 0.0))
        apart = NormalDist().inv_cdf(1 - float(_FALSE_ALARMS) / (4 * expected)) * spread
        reach, tail = log(expected / float(_FALSE_ALARMS)), log(4 * failures / float(chance)) + 1
        before = float(besides.mu_squared) if besides else 0.0

        def width(epsilon: float, ratio: float) -> float:
            first = epsilon / 2.587  # as AboveThreshold.for_loss splits it
            checked = 1.5708 * epsilon**2  # μ² of a small ε
            sigma = 1 / (people * sqrt(ratio * checked))
            gap = sqrt(before + failures * checked * (1 + ratio)) * believed(float(chance) / 2)
            below = (2 * reach / (epsilon - first) + tail / first) / people + apart
            c = 8 * failures / float(chance)
            return max(below, sigma * c * NormalDist().pdf(NormalDist().inv_cdf(1 / c))) + gap

        epsilons = [1e-6 * 1e7 ** (i / _TRIED) for i in range(_TRIED + 1)]
        epsilon, ratio = min(((e, r) for e in epsilons for r in _RATIOS), key=lambda pair: width(*pair))
        loss = PureDP(Fraction(epsilon).limit_denominator(10**9))
        check = AboveThreshold.for_loss(loss, _ONE_PERSON)
        level = round(float(check.query_scale) * reach + apart * people * STEPS) - check.offset
        sigma = Fraction(1 / (people * sqrt(ratio * 1.5708) * epsilon)).limit_denominator(1 << 60)
        return cls(
            people=people,
            failures=failures,
            check=check,
            level=level,
            sigma=sigma,
            chance=chance,
            besides=besides or GaussianDP(0),
        )

    @property
    def failure_loss(self) -> GaussianDP:
        """What one guess that fails costs."""
        checked = self.check.loss(_ONE_PERSON, "gdp")
        return GaussianDP.from_mu_squared(checked.amount + 1 / (self.people * self.sigma) ** 2)

    def _gap(self) -> Fraction:
        return posterior_gap_up(self.failures * self.failure_loss + self.besides, self.chance / 2) + ROUNDING

    def guess_half_width(self) -> Fraction:
        """Return the half-width where a guess holds; half a step is for the guess's own rounding."""
        reach = geometric_reach_up(self.check.threshold_scale, self.failures, self.chance / 4)
        beyond = self.level + self.check.offset + reach + Fraction(1, 2)
        return min(Fraction(1), max(Fraction(0), beyond) / (self.people * STEPS) + self._gap())

    def noisy_half_width(self) -> Fraction:
        """Return the half-width where a guess fails; half a step is for the noise's rounding."""
        reach = gaussian_reach_up(self.sigma, self.failures, self.chance / 4)
        return reach + Fraction(1, 2 * self.people * STEPS) + self._gap()

    def half_width(self) -> Fraction:
        """Return the larger of both."""
        return max(self.guess_half_width(), self.noisy_half_width())

    def start(self, entropy: Entropy) -> "ThresholdoutAnswering":
        """Return what answers."""
        return ThresholdoutAnswering(self, entropy, self.guess_half_width(), self.noisy_half_width())

    def said(self) -> str:
        """Say what it does."""
        return (
            f"your guess, where the sample's mean is within about {self.level / (self.people * STEPS):.3g} of it, else "
            f"the noisy mean; over after {self.failures:,} guesses that fail"
        )


@final
@dataclass(slots=True)
class ThresholdoutAnswering:
    """The state: the failures so far, and the sparse vector's run up to the next one."""

    strategy: Thresholdout
    entropy: Entropy
    guess_promised: Fraction
    noisy_promised: Fraction
    failures: int = field(default=0)
    run: ThresholdSession | None = field(default=None)

    def admit(self) -> None:
        """Refuse if the last guess that was paid for has failed."""
        if self.failures >= self.strategy.failures:
            raise BudgetExhausted(
                f"{self.failures:,} guesses failed, which is the maximum that the promise was made for. Start a "
                "holdout of other people, with more failures, or make better guesses."
            )

    def answer(self, values: IntArray, guess: Fraction | None) -> Reply:
        """Return the guess if it holds, else the noisy mean; without a guess, the noisy mean."""
        size, total = self.strategy.people * STEPS, int(values.sum())
        if guess is not None:
            if self.run is None:
                self.run = self.strategy.check.start(self.strategy.level, self.entropy)
            if not self.run.ask(abs(round(guess * size) - total)):
                return Reply(value=guess, half_width=self.guess_promised, source="guess")
        self.failures += 1
        self.run = None  # the next threshold has noise of its own: this failure's ε paid for no more
        noisy = RoundedGaussian(sigma=self.strategy.sigma * size).release(total, self.entropy)
        return Reply(value=Fraction(noisy, size), half_width=self.noisy_promised, source="noise")

    @property
    def loss(self) -> GaussianDP:
        """What is paid so far: the failures, and a run that has begun."""
        begun = 1 if self.run is not None else 0
        return (self.failures + begun) * self.strategy.failure_loss

    @property
    def left(self) -> int:
        """The questions that are surely left: if every guess fails."""
        return self.strategy.failures - self.failures
