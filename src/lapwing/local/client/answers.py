"""What may be answered, and the mechanisms for it: one of a list of values, a number on a public grid, or any text."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final, final

from .rules import AnswerRefused, AnyRule, Memory, Parameters, Read, RuleTable, Said, TaskRefused, below

MOST_VALUES: Final = 100_000
MOST_TEXT: Final = 500
MOST_STEPS: Final = 1_000_000
MOST_BYTES: Final = 1_000
"""Of a text that may be answered."""
DECIMALS: Final = 6
_NUMBER: Final = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,6})?")

VALUE_RULES: Final = RuleTable[int](
    dict.fromkeys(("binary", "k-ary", "subset", "unary", "hashing"), "frequencies:FREQUENCY_RULES")
    | dict.fromkeys(("memoised", "memoised-unary", "tree"), "longitudinal:LONGITUDINAL_RULES")
    | {"basic-rappor": "rappor:RAPPOR_VALUES"}
)
"""For one of a list of values, by its number."""
NUMBER_RULES: Final = RuleTable[int](dict.fromkeys(("duchi", "piecewise", "hybrid"), "means:MEAN_RULES"))
"""For a number, by its point on the grid."""
TEXT_RULES: Final = RuleTable[str](
    dict.fromkeys(("sketch", "hadamard", "prefixes"), "heavy_hitters:HEAVY_HITTER_RULES")
    | dict.fromkeys(("rappor", "rappor-once"), "rappor:RAPPOR_TEXT")
)
"""For any text."""
RULES: Final[Mapping[str, AnyRule[int] | AnyRule[str]]] = RuleTable(
    {**VALUE_RULES.homes, **NUMBER_RULES.homes, **TEXT_RULES.homes}
)


@final
@dataclass(frozen=True, slots=True)
class Values:
    """One of a list of texts, in order.

    Raises:
        TaskRefused: Unless there are 2 to 100,000, all different.
    """

    kind: ClassVar[str] = "values"
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        whole = "".join(self.texts)  # much faster than each by itself, and ASCII is of form NFC
        if not (
            whole.isascii()
            and whole.isprintable()
            and 0 < min(sizes := set(map(len, self.texts))) <= max(sizes) <= MOST_TEXT
        ):
            for value in self.texts:
                printable("value", value)
        if not 2 <= len(self.texts) <= MOST_VALUES or len(set(self.texts)) != len(self.texts):
            raise TaskRefused(f"There must be 2 to {MOST_VALUES:,} values, no two the same.")

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.texts)

    @property
    def document(self) -> object:
        """The texts, as JSON holds them."""
        return list(self.texts)

    @property
    def rules(self) -> Mapping[str, AnyRule[int]]:
        """The mechanisms for it."""
        return VALUE_RULES if self.size == 2 else VALUE_RULES.without("binary", "tree")

    def say(
        self, mechanism: str, parameters: Parameters, answer: str, read: Read, memory: Memory, period: int
    ) -> tuple[Said | None, Memory]:
        """Return what a report of an answer says, and the memory to keep."""
        self.check(answer)
        return VALUE_RULES[mechanism].say(parameters, self.size, self.texts.index(answer), read, memory, period)

    def check(self, answer: str) -> None:
        """Raise AnswerRefused unless this may be answered."""
        if answer not in self.texts:
            raise AnswerRefused(f"The answer must be one of {', '.join(self.texts[:20])}; nothing was sent.")


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A number, moved into public bounds, and rounded at random to one of the two nearest points of a public grid.

    The point above is taken with the probability that makes the point right on average. So nothing but the bounds
    changes a mean; and the law of a report is a mixture of those of two points, so no ratio grows.

    Args:
        lower: The bounds, with 6 decimal places and 12 digits before them at most.
        upper: As `lower`.
        steps: Of equal length from one to the other, 1 to 1,000,000.

    Raises:
        TaskRefused: If bounds or steps are out of range.
    """

    kind: ClassVar[str] = "number"
    lower: Decimal
    upper: Decimal
    steps: int

    def __post_init__(self) -> None:
        if not all(_NUMBER.fullmatch(plain(bound)) for bound in (self.lower, self.upper)):
            raise TaskRefused("lower and upper must be decimals such as -2.5, with 12 digits and 6 places at most.")
        if not self.lower < self.upper:
            raise TaskRefused("lower must be below upper.")
        if isinstance(self.steps, bool) or not 1 <= self.steps <= MOST_STEPS:
            raise TaskRefused(f"steps must be a whole number from 1 to {MOST_STEPS:,}.")

    @property
    def size(self) -> int:
        """How many points the grid has."""
        return self.steps + 1

    @property
    def document(self) -> object:
        """The grid, as JSON holds it."""
        return {"lower": plain(self.lower), "upper": plain(self.upper), "steps": self.steps}

    @property
    def rules(self) -> Mapping[str, AnyRule[int]]:
        """The mechanisms for it."""
        return NUMBER_RULES

    def say(
        self, mechanism: str, parameters: Parameters, answer: str, read: Read, memory: Memory, period: int
    ) -> tuple[Said | None, Memory]:
        """Return what a report of an answer says, and the memory to keep."""
        return NUMBER_RULES[mechanism].say(parameters, self.size, self.point(answer, read), read, memory, period)

    def point(self, answer: str, read: Read) -> int:
        """Return the number of a point of the grid, drawn from one word."""
        self.check(answer)
        low, high = Fraction(self.lower), Fraction(self.upper)
        place = (min(max(Fraction(answer), low), high) - low) * self.steps / (high - low)
        down = place.numerator // place.denominator
        return down + (below(place.denominator, read) < place.numerator - down * place.denominator)

    def check(self, answer: str) -> None:
        """Raise AnswerRefused unless this may be answered: any decimal number of so many digits."""
        if not _NUMBER.fullmatch(answer):
            raise AnswerRefused("The answer must be a number such as 12.5; nothing was sent.")


@final
@dataclass(frozen=True, slots=True)
class Text:
    """Any text of at most so many bytes in UTF-8; it is taken in Unicode's form NFC.

    Raises:
        TaskRefused: Unless most_bytes is from 1 to 1,000.
    """

    kind: ClassVar[str] = "text"
    most_bytes: int

    def __post_init__(self) -> None:
        if isinstance(self.most_bytes, bool) or not 1 <= self.most_bytes <= MOST_BYTES:
            raise TaskRefused(f"most_bytes must be a whole number from 1 to {MOST_BYTES:,}.")

    @property
    def size(self) -> int:
        """The most bytes."""
        return self.most_bytes

    @property
    def document(self) -> object:
        """The size, as JSON holds it."""
        return {"most_bytes": self.most_bytes}

    @property
    def rules(self) -> Mapping[str, AnyRule[str]]:
        """The mechanisms for it."""
        return TEXT_RULES

    def say(
        self, mechanism: str, parameters: Parameters, answer: str, read: Read, memory: Memory, period: int
    ) -> tuple[Said | None, Memory]:
        """Return what a report of an answer says, and the memory to keep."""
        self.check(answer)
        text = unicodedata.normalize("NFC", answer)
        return TEXT_RULES[mechanism].say(parameters, self.size, text, read, memory, period)

    def check(self, answer: str) -> None:
        """Raise AnswerRefused unless this may be answered; half a surrogate pair is no text."""
        try:
            length = len(unicodedata.normalize("NFC", answer).encode("utf-8"))
        except UnicodeEncodeError:
            length = 0
        if not 1 <= length <= self.most_bytes:
            raise AnswerRefused(f"The answer must have 1 to {self.most_bytes} bytes in UTF-8; nothing was sent.")


Answers = Values | Number | Text


def printable(name: str, text: str) -> None:
    """Raise TaskRefused unless a text can be shown to a respondent as it is meant."""
    if not (0 < len(text) <= MOST_TEXT and text.isprintable() and unicodedata.is_normalized("NFC", text)):
        raise TaskRefused(f"A {name} must be 1 to {MOST_TEXT} printable characters, in Unicode's form NFC.")


def plain(number: Decimal) -> str:
    """Return a decimal without an exponent and without zeros at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
