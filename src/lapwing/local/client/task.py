"""A task: what is asked, and exactly how an answer is made noisy. A task that states a wrong ε is refused."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import ClassVar, Final, final

from .answers import Answers, Text, Values, plain, printable
from .rules import ALL, UNCHANGED, AnswerRefused, Memory, Read, Said, TaskRefused, below, epsilon_up, exactly

VERSION: Final = 1
MOST_ATTRIBUTES: Final = 100
ONE_ATTRIBUTE: Final = "one-attribute"
ALL_ATTRIBUTES: Final = "all-attributes"
EPSILON: Final = "epsilon"
"""The ε of one report."""
_OF: Final = {UNCHANGED: "all reports of an answer that never changes", ALL: "all reports together"}

Answer = str | Mapping[str, str]
"""The answer as a text; or, to several questions, each question with its answer."""


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """One question's allowed answers, and the mechanism that makes an answer noisy.

    Args:
        answers: What may be answered.
        mechanism: The name of one for such answers.
        parameters: Its integers, by name.

    Raises:
        TaskRefused: If the mechanism is not for such answers, or an integer is out of its range.
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
        rule, parameters = self.answers.rules[self.mechanism], dict(self.parameters)
        ratios = {EPSILON: rule.ratio, **rule.more}
        return {name: ratio(parameters, self.answers.size) for name, ratio in ratios.items()}

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
    """Several questions to one person. A report is about one of them, which is drawn at random; or about all.

    One: the draw does not depend on the answers. So the ratio of a report is that of the attribute that was drawn, and
    the whole has the largest of the attributes' ratios, even for two records that differ in every attribute.

    All: every answer is made noisy with randomness of its own. So the probability of a report is the product of those
    of its parts, and its ratio the product of the attributes' ratios, attained by records that differ in all: their ε
    add up.

    Args:
        each: The questions, with what is asked.
        mechanism: "one-attribute" or "all-attributes".

    Raises:
        TaskRefused: Unless there are 2 to 100 questions, no two the same, for values or numbers, with mechanisms that
            keep nothing.

    Source:
        Wang et al. 2019, "Collecting and analyzing multidimensional data with local differential privacy".
    """

    kind: ClassVar[str] = "attributes"
    parameters: ClassVar[tuple[tuple[str, int], ...]] = ()
    remembers: ClassVar[bool] = False
    each: tuple[tuple[str, Asked], ...]
    mechanism: str = ONE_ATTRIBUTE

    def __post_init__(self) -> None:
        if self.mechanism not in (ONE_ATTRIBUTE, ALL_ATTRIBUTES):
            raise TaskRefused(f"Several attributes have the mechanism {ONE_ATTRIBUTE} or {ALL_ATTRIBUTES}.")
        for question, asked in self.each:
            printable("question", question)
            if asked.remembers or isinstance(asked.answers, Text):
                raise TaskRefused(f"The mechanism {asked.mechanism} is not for one of several attributes.")
        if not 2 <= len(self.each) <= MOST_ATTRIBUTES or len(dict(self.each)) != len(self.each):
            raise TaskRefused(f"There must be 2 to {MOST_ATTRIBUTES} attributes, no two questions the same.")

    @property
    def ratios(self) -> Mapping[str, Fraction]:
        """e^ε of a report, exactly."""
        each = [asked.ratios[EPSILON] for _, asked in self.each]
        return {EPSILON: max(each) if self.mechanism == ONE_ATTRIBUTE else prod(each, start=Fraction(1))}

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
        """Return the number of an attribute and what a report says of it; or what it says of all, in their order.

        All answers are checked before any is used.
        """
        if isinstance(answer, str) or set(answer) != {question for question, _ in self.each}:
            raise AnswerRefused("There must be an answer to each question; nothing was sent.")
        for question, asked in self.each:
            asked.answers.check(answer[question])
        if self.mechanism == ALL_ATTRIBUTES:
            said_of_all = [asked.say(answer[question], read, memory, period)[0] for question, asked in self.each]
            return [said for said in said_of_all if said is not None], memory
        chosen = below(len(self.each), read)
        question, asked = self.each[chosen]
        said, _ = asked.say(answer[question], read, memory, period)
        return (None if said is None else [chosen, said]), memory


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked, and exactly how an answer is made noisy; all of it is public.

    Args:
        asked: What may be answered, and the mechanism.
        epsilons: Every ε that applies, by name; "epsilon" is that of one report.
        unit: Whose answer is hidden.
        opens: The days on which reports are taken.
        closes: The days on which reports are taken.
        retention_days: For how long after that they are kept.

    Raises:
        TaskRefused: If a part is out of its range, or an ε is not that of the thresholds.
    """

    question: str
    asked: Asked | Attributes
    epsilons: tuple[tuple[str, Decimal], ...]
    unit: str
    opens: date
    closes: date
    retention_days: int
    digest: str = field(init=False, repr=False, compare=False)
    """SHA-256 of the document in JSON with sorted keys, without spaces, in UTF-8."""

    def __post_init__(self) -> None:
        _check(self)
        true = true_epsilons(self.asked)
        if [name for name, _ in self.epsilons] != [name for name, _ in true]:
            raise TaskRefused(f"The mechanism {self.mechanism} has {', '.join(name for name, _ in true)}; state them.")
        for (name, stated), (_, computed) in zip(self.epsilons, true, strict=True):
            if stated != computed:
                raise TaskRefused(
                    f"The task states {name} {stated}, but its thresholds have {name} {plain(computed)}; send nothing."
                )
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        object.__setattr__(self, "digest", hashlib.sha256(text.encode("utf-8")).hexdigest())

    @property
    def values(self) -> tuple[str, ...]:
        """What may be answered, if that is a list, and else nothing."""
        answers = self.asked.answers if isinstance(self.asked, Asked) else None
        return answers.texts if isinstance(answers, Values) else ()

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self.asked.mechanism

    @property
    def parameters(self) -> tuple[tuple[str, int], ...]:
        """The mechanism's integers, by name."""
        return self.asked.parameters

    @property
    def epsilon(self) -> Decimal:
        """ε of one report."""
        return dict(self.epsilons)[EPSILON]

    @property
    def ratio(self) -> Fraction:
        """The most by which a report can be likelier for one answer than for another."""
        return self.asked.ratios[EPSILON]

    @property
    def document(self) -> dict[str, object]:
        """The task as JSON holds it; integers that may have 64 bits, and each ε, are texts."""
        return {
            "version": VERSION,
            "question": self.question,
            **self.asked.document,
            **{name: plain(epsilon) for name, epsilon in self.epsilons},
            "unit": self.unit,
            "opens": self.opens.isoformat(),
            "closes": self.closes.isoformat(),
            "retention_days": self.retention_days,
        }

    @property
    def id(self) -> str:
        """The first 128 bits of the digest, which every report names."""
        return self.digest[:32]

    @property
    def promise(self) -> str:
        """What reports can tell at most, in words; the percentage is rounded up."""
        sure = -(-1000 * self.ratio.numerator // (self.ratio.numerator + self.ratio.denominator)) / 10
        one = (
            f"epsilon {plain(self.epsilon)}: after any report, someone who thought two answers equally likely can "
            f"become at most {sure:g} % sure of one"
        )
        said = [one]
        said += [f"{_OF[name]} have epsilon {plain(epsilon)}" for name, epsilon in self.epsilons if name in _OF]
        cohorts = dict(self.parameters).get("cohorts")
        if cohorts is not None and self.asked.remembers:  # that links the reports of a device, whatever its answers are
            said.append(f"every report names the device's cohort, one of {cohorts:,}, always the same")
        return "; ".join(said)


def true_epsilons(asked: Asked | Attributes) -> tuple[tuple[str, Decimal], ...]:
    """Return every ε that a task has to state, computed from its thresholds and rounded up."""
    return tuple((name, epsilon_up(ratio)) for name, ratio in asked.ratios.items())


def _check(task: Task) -> None:
    printable("question", task.question)
    printable("unit", task.unit)
    if task.opens > task.closes or not 0 <= task.retention_days <= 36_500:
        raise TaskRefused("A task opens before it closes, and keeps its reports for 0 to 36500 days after that.")


# The report of an answer, as the bytes that are sent.


def report(task: Task, answer: Answer, read: Read) -> bytes:
    """Return the report of an answer, as the bytes that are sent: JSON on one line.

    Guarantee:
        For any two answers of one respondent, each report is at most e^ε times as likely for one as for the other, with
        the task's ε, if `read` gives independent uniform bytes. A second report costs as much again.

    Args:
        answer: A text; for several questions each question with its answer.
        read: The source of randomness: `os.urandom`, and nothing that a seed decides.

    Raises:
        AnswerRefused: If the task allows no such answer, or its mechanism needs a memory.
    """
    if task.asked.remembers:
        raise AnswerRefused(f"The mechanism {task.mechanism} needs the device's memory; nothing was sent.")
    line, _ = report_with_memory(task, answer, read, {})
    if line is None:
        raise AnswerRefused("No report is due; nothing was sent.")
    return line


def report_with_memory(
    task: Task, answer: Answer, read: Read, memory: Memory, period: int = 1
) -> tuple[bytes | None, Memory]:
    """Return the report of an answer, None if none is due, and what the device has to keep for the next one.

    Guarantee:
        As of `report`; the other ε of the task are of all reports together, if each memory is kept before its report is
        sent, and no older one is used again. Who loses the memory begins anew, and what was said adds up.

    Args:
        memory: What the last call for this task returned; empty for the first.
        period: The number of the period for which the answer is, from 1, for mechanisms over time.

    Raises:
        AnswerRefused: If the task allows no such answer, or no such period.
    """
    identity = exactly(read, 16).hex()
    said, kept = task.asked.say(answer, read, memory, period)
    if said is None:
        return None, kept
    whole = {"v": VERSION, "task": task.id, "id": identity, "m": task.mechanism, "r": said}
    return json.dumps(whole, separators=(",", ":")).encode("ascii"), kept
