"""Strategies *guess-and-check* and *rounding*: the sample's own means, and a count of what they could have told."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import comb, log, sqrt
from typing import ClassVar, Self, final

from lapwing.errors import BudgetExhausted
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.generalisation.sampling import deviation_up
from lapwing.holdout.answer import Reply
from lapwing.holdout.strategy import ROUNDING, mean


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GuessAndCheck:
    """Return the asker's guess where the sample's mean is near enough to it, else the mean, rounded to a grid.

    All intervals are within `width`. It goes on for as long as that can be promised: for many questions if guesses
    hold, for few if not.

    Guarantee:
        No privacy. Before question i, f of the i − 1 answers were rounded means, each one of `levels` numbers, and the
        others guesses that held, which were known beforehand. So there are W = C(i − 1, f)·levels^f transcripts, each
        with a question that is fixed beforehand, and of every question |q(S) − q(P)| ≤ h = √(ln(2W/c)/(2n)) but with
        the chance c·(1/W) each (`generalisation.description`). Here c = chance/(i(i + 1)(f + 1)(f + 2)), which add up
        to the chance over all i ≥ 1 and f ≥ 0. A guess g that is returned has |g − q(S)| ≤ width − h; a rounded mean is
        within half a step of q(S).

    Args:
        people: n.
        width: That no interval is wider than, to either side.
        levels: Of the grid.

    Source:
        Rogers, Roth, Smith, Srebro, Thakkar and Woodworth 2020 (arXiv 1906.09231), Guess and Check.
    """

    name: ClassVar[str] = "guess-and-check"
    people: int
    width: Fraction
    levels: int
    chance: Fraction

    @classmethod
    def of_width(cls, people: int, width: Fraction, chance: Fraction) -> Self:
        """Return one with a grid whose half step is an eighth of the width."""
        return cls(people=people, width=width, levels=-(-4 // width), chance=chance)

    def half_width(self) -> Fraction:
        """Return the width: what cannot be promised within it is refused."""
        return self.width

    def strays(self, question: int, failures: int) -> Fraction:
        """Return h of a question after so many failures, with what a value's own rounding adds."""
        ways = comb(question - 1, failures) * self.levels**failures
        shares = question * (question + 1) * (failures + 1) * (failures + 2)
        return deviation_up(Fraction(self.people), 2 * ways * shares / self.chance) + ROUNDING

    def admits(self, question: int, failures: int) -> bool:
        """Tell whether the width can be promised of a question, whether its guess holds or not."""
        return self.strays(question, failures) + Fraction(1, 2 * self.levels) <= self.width

    def most(self, failures: int) -> int:
        """Return how many questions it goes on for if so many guesses fail at once."""
        if not self.admits(failures + 1, failures):
            return 0
        low, high = failures + 1, 2 * failures + 2
        while high < 1 << 40 and self.admits(high, failures):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.admits(middle, failures) else (low, middle)
        return low

    def start(self, entropy: Entropy) -> "GuessAndCheckAnswering":
        """Return what answers; it draws nothing."""
        return GuessAndCheckAnswering(self)

    def said(self) -> str:
        """Say what it does."""
        return (
            f"your guess, if the sample's mean is near it: within ± {float(self.width):.3g} minus the sampling error. "
            f"Otherwise the mean, rounded to {self.levels:,} levels, as long as ± {float(self.width):.3g} holds"
        )


@final
@dataclass(slots=True)
class GuessAndCheckAnswering:
    """The state: how many were asked, and how many of the guesses failed."""

    strategy: GuessAndCheck
    asked: int = field(default=0)
    failures: int = field(default=0)
    loss: None = None
    left: None = None

    def admit(self) -> None:
        """Count one more question, if the width can be promised."""
        if not self.strategy.admits(self.asked + 1, self.failures):
            raise BudgetExhausted(
                f"After {self.asked:,} questions, of which {self.failures:,} had no guess that was close enough, "
                f"± {float(self.strategy.width):g} can no longer be promised. Start a holdout of other people, or one "
                "of a larger width."
            )
        self.asked += 1

    def answer(self, values: IntArray, guess: Fraction | None) -> Reply:
        """Return the guess if it holds, else the rounded mean."""
        strays, value = self.strategy.strays(self.asked, self.failures), mean(values)
        if guess is not None and abs(guess - value) <= self.strategy.width - strays:
            return Reply(value=guess, half_width=self.strategy.width, source="guess")
        self.failures += 1
        return Reply(
            value=on_grid(value, self.strategy.levels),
            half_width=strays + Fraction(1, 2 * self.strategy.levels),
            source="rounding",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """Return the sample's mean, rounded to a coarse grid, so many times at most.

    Guarantee:
        No privacy. Before question i there were levels^(i − 1) transcripts, so |q(S) − q(P)| ≤ √(ln(2k·levels^(i −
        1)/chance)/(2n)) for all k questions, but with the chance (`generalisation.description`). The first answers are
        the sharpest.

    Args:
        people: n.
        questions: k.
        levels: Of the grid.
    """

    name: ClassVar[str] = "rounding"
    people: int
    questions: int
    levels: int
    chance: Fraction

    @classmethod
    def best(cls, people: int, questions: int, chance: Fraction) -> Self:
        """Return one with the grid that makes the last answer's half-width least, as far as floats can tell."""

        def last(levels: int) -> float:
            told = log(2 * questions / float(chance)) + (questions - 1) * log(levels)
            return 1 / (2 * levels) + sqrt(told / (2 * people))

        return cls(people=people, questions=questions, levels=min(range(2, 1001), key=last), chance=chance)

    def at(self, question: int) -> Fraction:
        """Return the half-width of a question by its number."""
        ways = self.levels ** (question - 1)
        strays = deviation_up(Fraction(self.people), 2 * ways * self.questions / self.chance)
        return min(Fraction(1), strays + ROUNDING + Fraction(1, 2 * self.levels))

    def half_width(self) -> Fraction:
        """Return that of the last answer."""
        return self.at(self.questions)

    def start(self, entropy: Entropy) -> "RoundingAnswering":
        """Return what answers; it draws nothing."""
        return RoundingAnswering(self)

    def said(self) -> str:
        """Say what it does."""
        return f"the sample's mean rounded to {self.levels:,} levels, {self.questions:,} times at most"


@final
@dataclass(slots=True)
class RoundingAnswering:
    """The state: how many were asked."""

    strategy: Rounding
    asked: int = field(default=0)
    loss: None = None

    def admit(self) -> None:
        """Count one more question."""
        if self.asked >= self.strategy.questions:
            raise BudgetExhausted(
                f"All {self.strategy.questions:,} questions that the promise was made for were asked. Start a holdout "
                "of other people, and with more questions from the first."
            )
        self.asked += 1

    def answer(self, values: IntArray, guess: Fraction | None) -> Reply:
        """Return the rounded mean."""
        rounded = on_grid(mean(values), self.strategy.levels)
        return Reply(value=rounded, half_width=self.strategy.at(self.asked), source="rounding")

    @property
    def left(self) -> int:
        """The questions that are left."""
        return self.strategy.questions - self.asked


def on_grid(value: Fraction, levels: int) -> Fraction:
    """Return the middle of the one of so many equal parts of [0, 1] that holds a value."""
    return Fraction(2 * min(levels - 1, value * levels // 1) + 1, 2 * levels)
