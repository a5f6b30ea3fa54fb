"""Strategy *gaussian*: every mean with Gaussian noise, and the transfer theorem."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

from lapwing.errors import BudgetExhausted
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.generalisation.gaussian_answers import GaussianAnswers
from lapwing.holdout.answer import Reply
from lapwing.holdout.strategy import ROUNDING, STEPS
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import GaussianDP


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianStrategy:
    """Add Gaussian noise to each of so many means.

    Guarantee:
        GaussianDP(√questions/(n·σ)) for all answers, under `replace_one`: sums are whole numbers of steps, one person
        moves a sum by STEPS, and the noise is rounded Gaussian of σ·n·STEPS. All answers are within `half_width` of the
        population's means with probability 1 − chance (`generalisation.gaussian_answers`).
    """

    name: ClassVar[str] = "gaussian"
    answers: GaussianAnswers
    chance: Fraction

    def half_width(self) -> Fraction:
        """Return the half-width of all answers; of the rounded noise, half a step of the sum is added."""
        return self.answers.half_width_up(self.chance) + ROUNDING + Fraction(1, 2 * STEPS * self.answers.people)

    def start(self, entropy: Entropy) -> "GaussianAnswering":
        """Return what answers."""
        return GaussianAnswering(self, self.half_width(), entropy)

    def said(self) -> str:
        """Say what it does."""
        return (
            f"each mean with Gaussian noise of standard deviation {float(self.answers.sigma):.3g}; "
            f"{self.answers.questions:,} questions at most, together μ = {self.answers.loss.mu:.3g} under replace_one"
        )


@final
@dataclass(slots=True)
class GaussianAnswering:
    """The state: how many were asked."""

    strategy: GaussianStrategy
    promised: Fraction
    entropy: Entropy
    asked: int = field(default=0)

    def admit(self) -> None:
        """Count one more question."""
        most = self.strategy.answers.questions
        if self.asked >= most:
            raise BudgetExhausted(
                f"All {most:,} questions that the promise was made for were asked; one more would end it. "
                "Start a holdout of other people, and with more questions from the first."
            )
        self.asked += 1

    def answer(self, values: IntArray, guess: Fraction | None) -> Reply:
        """Return the noisy mean; a guess is not needed."""
        answers = self.strategy.answers
        noise = RoundedGaussian(sigma=answers.sigma * answers.people * STEPS)
        noisy = noise.release(int(values.sum()), self.entropy)
        return Reply(value=Fraction(noisy, answers.people * STEPS), half_width=self.promised, source="noise")

    @property
    def loss(self) -> GaussianDP:
        """The loss of the answers so far."""
        answers = self.strategy.answers
        return GaussianDP.from_mu_squared(self.asked / (answers.people * answers.sigma) ** 2)

    @property
    def left(self) -> int:
        """The questions that are left."""
        return self.strategy.answers.questions - self.asked
