"""What a strategy is: a promise made of public numbers, and, once started, what answers one question after another."""

from fractions import Fraction
from typing import ClassVar, Final, Protocol

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.holdout.answer import Reply
from lapwing.privacy.measures import GaussianDP

STEPS: Final = 1 << 20
"""Values are whole numbers from 0 to STEPS, so that sums are exact and one person moves a sum by STEPS at most."""
ROUNDING: Final = Fraction(1, 2 * STEPS)
"""What rounding a value to a step moves its mean by at most, in the sample and in the population alike."""


class Answering(Protocol):
    """What holds the state of one holdout; not safe for threads by itself."""

    def admit(self) -> None:
        """Count one more question, before anything is looked at.

        Raises:
            BudgetExhausted: If no more can be promised; nothing is counted then.
        """

    def answer(self, values: IntArray, guess: Fraction | None) -> Reply:
        """Answer the question that was admitted last, from each person's value in steps."""

    @property
    def loss(self) -> GaussianDP | None:
        """What all answers so far lose for `replace_one` neighbours; None if they are not private at all."""

    @property
    def left(self) -> int | None:
        """How many questions are surely left; None if it depends on the answers."""


class Strategy(Protocol):
    """A way to answer so many questions about n persons."""

    name: ClassVar[str]

    def half_width(self) -> Fraction | None:
        """Return what every answer is within of the population's mean, for values in [0, 1]; None: no promise."""

    def start(self, entropy: Entropy) -> Answering:
        """Return what answers."""

    def said(self) -> str:
        """Say in a sentence what it does, with its numbers."""


def mean(values: IntArray) -> Fraction:
    """Return the mean of values in steps, as a number in [0, 1], exactly."""
    return Fraction(int(values.sum()), int(values.size) * STEPS)
