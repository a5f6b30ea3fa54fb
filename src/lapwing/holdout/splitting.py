"""Strategy *splitting*: a part of the people for each question, the baseline that needs no theory."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.generalisation.sampling import deviation_up
from lapwing.holdout.answer import Reply
from lapwing.holdout.strategy import ROUNDING, mean


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Splitting:
    """Answer each question with the plain mean of people that no other question looks at.

    Guarantee:
        No privacy. A question is chosen by answers about other people, so each answer is as of a question that was
        fixed beforehand (Hoeffding), and a union bound is over the questions: √(ln(2k/chance)/(2⌊n/k⌋)).
    """

    name: ClassVar[str] = "splitting"
    people: int
    questions: int
    chance: Fraction

    def __post_init__(self) -> None:
        if self.questions > self.people:
            raise InvalidParameter(
                f"There are {self.people:,} people and {self.questions:,} questions; splitting needs one each at least."
            )

    def half_width(self) -> Fraction:
        """Return the half-width of all answers."""
        part = Fraction(self.people // self.questions)
        return min(Fraction(1), deviation_up(part, 2 * self.questions / self.chance) + ROUNDING)

    def start(self, entropy: Entropy) -> "SplittingAnswering":
        """Return what answers, with the people in a random order: files are often sorted."""
        order = samplers.uniform_integers(1 << 62, self.people, entropy).argsort(kind="stable")
        return SplittingAnswering(self, order, self.half_width())

    def said(self) -> str:
        """Say what it does."""
        return (
            f"the plain mean of {self.people // self.questions:,} other people for each of {self.questions:,} questions"
        )


@final
@dataclass(slots=True)
class SplittingAnswering:
    """The state: the order of the people, and how many parts were used."""

    strategy: Splitting
    order: NDArray[np.int64]
    promised: Fraction
    asked: int = field(default=0)
    loss: None = None

    def admit(self) -> None:
        """Take the next part."""
        if self.asked >= self.strategy.questions:
            raise BudgetExhausted(
                f"All {self.strategy.questions:,} parts of the people were used; none is left. "
                "Start a holdout of other people, and with more questions from the first."
            )
        self.asked += 1

    def answer(self, values: IntArray, guess: Fraction | None) -> Reply:
        """Return the mean of the part."""
        size = self.strategy.people // self.strategy.questions
        part = self.order[(self.asked - 1) * size : self.asked * size]
        return Reply(value=mean(values[part]), half_width=self.promised, source="part")

    @property
    def left(self) -> int:
        """The parts that are left."""
        return self.strategy.questions - self.asked
