"""Strategy *subsampling*: each question is asked of a few people at random. It promises nothing yet."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import ClassVar, final

from lapwing.errors import BudgetExhausted
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.holdout.answer import Reply
from lapwing.holdout.strategy import mean


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subsampling:
    """Answer each question with the plain mean of a fresh random sample of the people.

    Guarantee:
        None, and no interval. Blanc 2023 (arXiv 2302.08661) shows that such answers generalise: about n/√k people a
        question keep the error of k questions of the order of √(√k/n). The constants of a bound that holds with a
        stated probability are not derived there nor here, so nothing is said of an answer.
    """

    name: ClassVar[str] = "subsampling"
    people: int
    questions: int

    @property
    def size(self) -> int:
        """How many people are asked: n/√k."""
        return max(1, self.people // max(1, isqrt(self.questions)))

    def half_width(self) -> None:
        """Return nothing."""
        return

    def start(self, entropy: Entropy) -> "SubsamplingAnswering":
        """Return what answers."""
        return SubsamplingAnswering(self, entropy)

    def said(self) -> str:
        """Say what it does."""
        return f"the plain mean of {self.size:,} people drawn at random for each question, without an interval"


@final
@dataclass(slots=True)
class SubsamplingAnswering:
    """The state: how many were asked."""

    strategy: Subsampling
    entropy: Entropy
    asked: int = field(default=0)
    loss: None = None

    def admit(self) -> None:
        """Count one more question."""
        if self.asked >= self.strategy.questions:
            raise BudgetExhausted(
                f"All {self.strategy.questions:,} questions that the samples were made for were asked."
            )
        self.asked += 1

    def answer(self, values: IntArray, guess: Fraction | None) -> Reply:
        """Return the mean of a random sample."""
        drawn = samplers.subset(self.strategy.people, self.strategy.size, self.entropy)
        return Reply(value=mean(values[drawn]), half_width=None, source="sample")

    @property
    def left(self) -> int:
        """The questions that are left."""
        return self.strategy.questions - self.asked
