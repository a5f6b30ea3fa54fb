"""What is asked, with the mechanism for it: one answer, or one attribute of a record."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, final

from .answers import Answers, Text, printable
from .refusals import AnswerRefused, TaskRefused
from .rules import Memory, Said
from .words import Read, below

MOST_ATTRIBUTES: Final = 100
EPSILON: Final = "epsilon"
"""The ε of one report."""

Answer = str | Mapping[str, str]
"""The answer as a text; or, to several questions, each question with its answer."""


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """What may be answered, and the mechanism that makes it noisy.

    Args: answers: what may be answered. mechanism: the name of one for such answers. parameters: its integers, by name.
    Raises: TaskRefused if that cannot be meant.
    """

    answers: Answers
    mechanism: str
    parameters: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        rules = self.answers.rules
        if self.mechanism not in rules:
            raise TaskRefused(f"The mechanism of such {self.answers.kind} must be one of {', '.join(rules)}.")
        ranges = rules[self.mechanism].ranges(self.answers.size)
        if [name for name, _ in self.parameters] != list(ranges):
            raise TaskRefused(f"The mechanism {self.mechanism} has the parameters {', '.join(ranges)}, in this order.")
        for name, value in self.parameters:
            if value not in ranges[name]:
                raise TaskRefused(f"{name} must be from {ranges[name].start} to {ranges[name].stop - 1}.")

    @property
    def remembers(self) -> bool:
        """Whether reports depend on what the device kept."""
        return self.answers.rules[self.mechanism].remembers

    @property
    def ratios(self) -> Mapping[str, Fraction]:
        """e^ε, exactly, of each ε that a task states."""
        rule, given, size = self.answers.rules[self.mechanism], dict(self.parameters), self.answers.size
        return {name: ratio(given, size) for name, ratio in {EPSILON: rule.ratio, **rule.more}.items()}

    @property
    def document(self) -> dict[str, object]:
        """What a task says of it, as JSON holds it; integers that may have 64 bits are texts."""
        mechanism = {"name": self.mechanism, **{name: str(value) for name, value in self.parameters}}
        return {self.answers.kind: self.answers.document, "mechanism": mechanism}

    def together(self, reports: int) -> tuple[Fraction, Fraction | None]:
        """Return e^ε of so many reports together: for an answer that never changes, and for any; None: no bound."""
        rule = self.answers.rules[self.mechanism]
        return rule.together(dict(self.parameters), self.answers.size, reports)

    def say(self, answer: Answer, read: Read, memory: Memory, period: int) -> tuple[Said | None, Memory]:
        """Return what a report of an answer says, and the memory to keep."""
        if not isinstance(answer, str):
            raise AnswerRefused("The answer must be a text; nothing was sent.")
        return self.answers.say(self.mechanism, dict(self.parameters), answer, read, memory, period)


@final
@dataclass(frozen=True, slots=True)
class Attributes:
    """Several questions of one person, of whose answers a report tells one: which one, is drawn.

    Which one is told does not depend on the answers. So a report is at most as much likelier for one record than for
    another as that of the attribute is: the ratio is the largest of theirs, though two records may differ in all.

    Args: each: the questions, with what is asked.
    Raises: TaskRefused unless there are 2 to 100 questions, no two the same, for values or numbers, with mechanisms
        that keep nothing.
    Source: Wang et al. 2019, "Collecting and analyzing multidimensional data with local differential privacy".
    """

    kind: ClassVar[str] = "attributes"
    mechanism: ClassVar[str] = "one-attribute"
    parameters: ClassVar[tuple[tuple[str, int], ...]] = ()
    remembers: ClassVar[bool] = False
    each: tuple[tuple[str, Asked], ...]

    def __post_init__(self) -> None:
        for question, asked in self.each:
            printable("question", question)
            if asked.remembers or isinstance(asked.answers, Text):
                raise TaskRefused(f"The mechanism {asked.mechanism} is not for one of several attributes.")
        if not 2 <= len(self.each) <= MOST_ATTRIBUTES or len(dict(self.each)) != len(self.each):
            raise TaskRefused(f"There must be 2 to {MOST_ATTRIBUTES} attributes, no two questions the same.")

    @property
    def ratios(self) -> Mapping[str, Fraction]:
        """e^ε of a report, exactly."""
        return {EPSILON: max(asked.ratios[EPSILON] for _, asked in self.each)}

    @property
    def document(self) -> dict[str, object]:
        """What a task says of them, as JSON holds it."""
        each = [{"question": question, **asked.document} for question, asked in self.each]
        return {self.kind: each, "mechanism": {"name": self.mechanism}}

    def together(self, reports: int) -> tuple[Fraction, Fraction | None]:
        """Return e^ε of so many reports together, twice: nothing is kept."""
        whole = self.ratios[EPSILON] ** reports
        return whole, whole

    def say(self, answer: Answer, read: Read, memory: Memory, period: int) -> tuple[Said | None, Memory]:
        """Return the number of an attribute and what is said of it; all answers are checked, one is told."""
        if isinstance(answer, str) or set(answer) != {question for question, _ in self.each}:
            raise AnswerRefused("There must be an answer to each question; nothing was sent.")
        for question, asked in self.each:
            asked.answers.check(answer[question])
        chosen = below(len(self.each), read)
        question, asked = self.each[chosen]
        said, _ = asked.say(answer[question], read, memory, period)
        return (None if said is None else [chosen, said]), memory
