"""Several numbers that are bounded together, which are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar, Final, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.amounts import written
from lapwing.secure.documents import require_printable, signed
from lapwing.secure.field import LARGEST
from lapwing.secure.numbers import MOST_STEPS

MOST_NAMES: Final = 10_000
NORMS: Final = ("l1", "l2")


@final
@dataclass(frozen=True, slots=True)
class Vector:
    """Several numbers from 0 to `upper`, each on a grid, that are bounded together: by their sum, or by their length.

    Args:
        names: Of the numbers.
        norm: `l1`, for the sum, or `l2`, for the square root of the sum of squares.
        bound: The most that the norm may be, in steps: of l2 the square of it.
    """

    kind: ClassVar[str] = "vector"
    names: tuple[str, ...]
    upper: Fraction
    steps: int
    norm: str
    bound: int

    def __post_init__(self) -> None:
        for name in self.names:
            require_printable("name", name)
        if not 2 <= len(self.names) <= MOST_NAMES or len(set(self.names)) != len(self.names):
            raise InvalidParameter(f"A vector has 2 to {MOST_NAMES:,} names, no two the same.")
        if not 1 <= self.steps <= MOST_STEPS or self.upper <= 0:
            raise InvalidParameter(f"A vector has an upper bound above 0, and 1 to {MOST_STEPS} steps up to it.")
        if self.norm not in NORMS or not 1 <= self.bound <= LARGEST:
            raise InvalidParameter("A vector has a bound l1 or l2 of at least one step.")
        if self.size([self.steps] * self.width) > LARGEST:  # what servers check modulo the modulus holds of integers
            raise InvalidParameter(
                "The steps are too fine for this number of cells and their bound; give fewer --steps."
            )

    @property
    def width(self) -> int:
        """How many cells an answer has."""
        return len(self.names)

    @property
    def largest(self) -> int:
        """The most that one answer adds to a cell."""
        return self.steps

    @property
    def sensitivity(self) -> Sensitivity:
        """Another answer moves the sums as far as two vectors within the bound are apart.

        No number is below 0, so |v − w|₁ ≤ |v|₁ + |w|₁. Likewise |v − w|₂² = |v|₂² + |w|₂² − 2v·w ≤ |v|₂² + |w|₂². With
        a sum of B at most, |v|₂² ≤ min(steps, B)·B. And no number moves by more than all steps.
        """
        entries, b = self.width, self.bound
        if self.norm == "l1":
            square = min(2 * min(self.steps, b) * b, entries * self.steps**2)
            return Sensitivity(l1=min(2 * b, entries * self.steps), l2_squared=square)
        return Sensitivity.from_l2_squared(min(2 * b, entries * self.steps**2), entries=entries)

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return self.upper / self.steps

    @property
    def document(self) -> object:
        """The names, the grid and the bound as JSON holds them; the bound is a whole number, in steps."""
        return {
            "names": list(self.names),
            "upper": written(self.upper),
            "steps": self.steps,
            "norm": self.norm,
            "bound": str(self.bound),
        }

    def size(self, cells: Sequence[int]) -> int:
        """Return what the bound bounds: the sum of the cells, or of their squares."""
        return sum(cells) if self.norm == "l1" else sum(cell**2 for cell in cells)

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cells of an answer, numbers between commas: clamped, rounded, and shrunk together into the bound.

        Raises:
            InvalidParameter: If these are not as many numbers as the task has; the message does not repeat them.
        """
        try:
            numbers = [signed(each.strip(), "number") for each in answer.split(",")]
        except InvalidParameter:
            numbers = []
        if len(numbers) != self.width:
            raise InvalidParameter(
                f"The answer is not {self.width} numbers between commas, such as 1, 0.5 for two. Nothing was sent."
            )
        clamped = (max(Fraction(0), min(self.upper, number)) for number in numbers)
        cells = [int(number / self.step + Fraction(1, 2)) for number in clamped]
        size = self.size(cells)
        if size <= self.bound:
            return tuple(cells)
        if self.norm == "l1":  # rounded down each, so that together they are within the bound
            return tuple(cell * self.bound // size for cell in cells)
        return tuple(isqrt(cell**2 * self.bound // size) for cell in cells)


def vector_within(names: Sequence[str], upper: Fraction, steps: int, norm: str, bound: Fraction) -> Vector:
    """Return the question for a vector whose norm is bounded in its own units; rounded down to the grid."""
    inside = bound / (upper / steps)
    return Vector(tuple(names), upper, steps, norm, int(inside if norm == "l1" else inside**2))
