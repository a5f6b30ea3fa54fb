"""The first letters of a word: one level of the search for frequent words."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.secure.grid import MOST_CELLS
from lapwing.secure.one_cell import LARGEST_OF_ONE, ONE_CELL, one_cell

MOST_LETTERS: Final = 64
OTHER: Final = "(other)"
"""The label of the cell for words that begin with no prefix of the level."""


@final
@dataclass(frozen=True, slots=True)
class Words:
    """The beginning of a word, among the prefixes of one level: a cell for each, and one for all other words.

    The first letter of the alphabet stands behind the end of a word, as often as it takes. The prefixes of a level are
    those that are followed, each with every choice of `more` further letters.

    Args:
        alphabet: The mark of the end, then the letters.
        length: The most letters of a word.
        followed: The prefixes of the level before, all equally long; one empty text for the first level.
        more: How many letters this level adds.

    Raises:
        InvalidParameter: If a part is out of its range.
    """

    kind: ClassVar[str] = "words"
    alphabet: str
    length: int
    followed: tuple[str, ...]
    more: int

    def __post_init__(self) -> None:
        if not 2 <= len(self.alphabet) <= 256 or len(set(self.alphabet)) != len(self.alphabet):
            raise InvalidParameter("An alphabet has 2 to 256 letters, no two the same.")
        if not self.alphabet.isprintable() or not 1 <= self.length <= MOST_LETTERS:
            raise InvalidParameter(f"Letters must be printable, and a word has 1 to {MOST_LETTERS} of them.")
        begun = {len(prefix) for prefix in self.followed}
        if len(begun) != 1 or len(set(self.followed)) != len(self.followed) or self.more < 1:
            raise InvalidParameter("The prefixes of a level must be equally long, no two the same, and be continued.")
        if self.depth > self.length or not set("".join(self.followed)) <= set(self.alphabet):
            raise InvalidParameter("The prefixes of a level must be of the alphabet, and no longer than words.")
        if self.width > MOST_CELLS:
            raise InvalidParameter(f"A level has {self.width:,} prefixes, and there can be {MOST_CELLS:,}.")

    @property
    def depth(self) -> int:
        """How many letters the prefixes of this level have."""
        return len(self.followed[0]) + self.more

    @property
    def width(self) -> int:
        """How many cells an answer has."""
        choices: int = len(self.alphabet) ** self.more
        return len(self.followed) * choices + 1

    @property
    def largest(self) -> int:
        """The most that one answer adds to a cell."""
        return LARGEST_OF_ONE

    @property
    def sensitivity(self) -> Sensitivity:
        """Another answer empties one cell and fills another, each by 1."""
        return ONE_CELL

    @property
    def texts(self) -> tuple[str, ...]:
        """The labels of all cells, in their order."""
        further = ["".join(letters) for letters in product(self.alphabet, repeat=self.more)]
        return (*(prefix + letters for prefix in self.followed for letters in further), OTHER)

    @property
    def document(self) -> object:
        """The level as JSON holds it."""
        return {
            "alphabet": self.alphabet,
            "length": self.length,
            "followed": list(self.followed),
            "more": self.more,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, object]) -> Self:
        """Read what `document` wrote.

        Raises:
            TypeError: If a part is of another type.
        """
        alphabet, length, followed, more = (document[name] for name in ("alphabet", "length", "followed", "more"))
        if not isinstance(alphabet, str) or not isinstance(length, int) or not isinstance(more, int):
            raise TypeError
        if not isinstance(followed, list) or not all(isinstance(prefix, str) for prefix in followed):
            raise TypeError
        return cls(alphabet, length, tuple(followed), more)

    def cell(self, answer: str) -> int:
        """Return the cell of a word. Every word has one, so that taking part says nothing of the word."""
        if len(answer) > self.length or not set(answer) <= set(self.alphabet[1:]):
            return self.width - 1
        letters = answer.ljust(self.length, self.alphabet[0])[: self.depth]
        prefix = letters[: self.depth - self.more]
        if prefix not in self.followed:
            return self.width - 1
        place = self.followed.index(prefix)
        for letter in letters[len(prefix) :]:
            place = place * len(self.alphabet) + self.alphabet.index(letter)
        return place

    def encode(self, answer: str) -> tuple[int, ...]:
        """Return the cells of an answer."""
        return one_cell(self.cell(answer), self.width)
