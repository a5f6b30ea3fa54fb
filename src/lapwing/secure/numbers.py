"""A number between public bounds, which is asked for."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.secure.documents import signed, written_signed

MOST_STEPS: Final = 1 << 24


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A number, clamped to public bounds and rounded to a public grid: one cell, its steps above the lower bound."""

    kind: ClassVar[str] = "number"
    lower: Fraction
    upper: Fraction
    steps: int

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise InvalidParameter("The lower bound of a number must be below the upper one.")
        if not 1 <= self.steps <= MOST_STEPS:
            raise InvalidParameter(f"There are {self.steps} steps between the bounds; there must be 1 to {MOST_STEPS}.")

    @property
    def width(self) -> int:
        """How many cells an answer has."""
        return 1

    @property
    def largest(self) -> int:
        """The most that one answer adds to a cell."""
        return self.steps

    @property
    def sensitivity(self) -> Sensitivity:
        """Another answer moves the sum by all steps at most."""
        return Sensitivity.from_l1(self.steps)

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return (self.upper - self.lower) / self.steps

    @property
    def document(self) -> object:
        """The bounds and the grid as JSON holds them."""
        return {"lower": written_signed(self.lower), "upper": written_signed(self.upper), "steps": self.steps}

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cell of an answer: the nearest step, of two the upper one, after clamping.

        Raises:
            InvalidParameter: If it is no number; the message does not repeat it.
        """
        try:
            value = signed(answer.strip(), "answer")
        except InvalidParameter:
            raise InvalidParameter("The answer is not a number such as 12 or 0.5. Nothing was sent.") from None
        inside = max(self.lower, min(self.upper, value))
        return (int((inside - self.lower) / self.step + Fraction(1, 2)),)


def number_between(bounds: str, steps: int) -> Number:
    """Return the question for a number between bounds such as "0:120".

    Raises:
        InvalidParameter: If they are none.
    """
    lower, colon, upper = bounds.partition(":")
    if not colon:
        raise InvalidParameter(f"The bounds are {bounds[:60]!r}; they must be LOWER:UPPER, like 0:120.")
    return Number(signed(lower, "The lower bound"), signed(upper, "The upper bound"), steps)
