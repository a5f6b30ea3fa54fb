"""One of a list of texts, which is asked for."""

from dataclasses import dataclass
from typing import ClassVar, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.secure.documents import require_printable
from lapwing.secure.grid import MOST_CELLS
from lapwing.secure.one_cell import LARGEST_OF_ONE, ONE_CELL, one_cell


@final
@dataclass(frozen=True, slots=True)
class Values:
    """One of a list of texts: one cell for each, 1 for the answer and 0 for all others."""

    kind: ClassVar[str] = "values"
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        for text in self.texts:
            require_printable("value", text)
        if not 2 <= len(self.texts) <= MOST_CELLS or len(set(self.texts)) != len(self.texts):
            raise InvalidParameter(f"There must be 2 to {MOST_CELLS:,} values, no two the same.")

    @property
    def width(self) -> int:
        """How many cells an answer has."""
        return len(self.texts)

    @property
    def largest(self) -> int:
        """The most that one answer adds to a cell."""
        return LARGEST_OF_ONE

    @property
    def sensitivity(self) -> Sensitivity:
        """Another answer empties one cell and fills another, each by 1."""
        return ONE_CELL

    @property
    def document(self) -> object:
        """The values as JSON holds them."""
        return list(self.texts)

    def cell(self, answer: str) -> int:
        """Return the place of an answer among the values.

        Raises:
            InvalidParameter: If it is none of the values; the message does not repeat it.
        """
        try:
            return self.texts.index(answer)
        except ValueError:
            allowed = ", ".join(self.texts[:10]) + (", …" if self.width > 10 else "")
            raise InvalidParameter(f"The answer must be one of {allowed}. Nothing was sent.") from None

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cells of an answer.

        Raises:
            InvalidParameter: If it is none of the values; the message does not repeat it.
        """
        return one_cell(self.cell(answer), self.width)
