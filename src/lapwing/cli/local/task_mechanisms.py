"""What `lapwing local task` asks for, and by which mechanism: a list of values, a number, any text, or attributes."""

import csv
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypedDict

import lapwing as lw
from lapwing.cli.local.task_options import check_values, check_whole
from lapwing.errors import InvalidParameter
from lapwing.local.client import MOST_BYTES, MOST_STEPS

if TYPE_CHECKING:
    from lapwing.local import Mechanism
    from lapwing.local.client import Answer, Answers, Number, Task, Text

STEPS: Final = 1000
"""Of a grid, unless others are given."""
ATTRIBUTE: Final = "QUESTION=A,B or QUESTION=LOWER:UPPER, like 'How do you come?=walk,bus' or 'Minutes?=0:120'"


TEXT_MAKERS: Final[Mapping[str, Callable[[Fraction, int], "Mechanism"]]] = {
    "sketch": lambda epsilon, size: lw.local.CountMeanSketch.for_epsilon(epsilon),
    "hadamard": lambda epsilon, size: lw.local.HadamardSketch.for_epsilon(epsilon),
    "prefixes": lambda epsilon, size: lw.local.PrefixExtending.for_epsilon(epsilon, size),
}
"""The mechanisms for texts, at an ε and for so many bytes; without another wish, the one that finds words."""


class MechanismOption(StrEnum):
    """A mechanism, or the most accurate one."""

    best = "best"
    binary = "binary"
    k_ary = "k-ary"
    subset = "subset"
    optimised_unary = "optimised-unary"
    symmetric_unary = "symmetric-unary"
    hashing = "hashing"
    duchi = "duchi"
    piecewise = "piecewise"
    hybrid = "hybrid"
    sketch = "sketch"
    hadamard = "hadamard"
    prefixes = "prefixes"


class Terms(TypedDict):
    """What every task says besides."""

    opens: date
    closes: date
    unit: str
    retention_days: int


def task_of_one(
    question: str, answers: "Sequence[str] | Answers", epsilon: Fraction, kind: MechanismOption, terms: Terms
) -> "Task":
    """Return a task with one question."""
    return lw.local.new_task(question, answers, best(answers, epsilon, kind), **terms)


def task_of_attributes(
    question: str,
    attributes: Sequence[str],
    steps: int,
    epsilon: Fraction,
    kind: MechanismOption,
    terms: Terms,
    *,
    joint: bool = False,
) -> "Task":
    """Return a task with several questions, each with the most accurate mechanism: all of ε, or jointly a part each."""
    if kind is not MechanismOption.best:
        raise InvalidParameter("Each attribute gets the best mechanism: leave out --mechanism.")
    read = [_attribute(text, steps) for text in attributes]
    own = epsilon / len(read) if joint else epsilon
    parts = [(name, answers, best(answers, own, kind)) for name, answers in read]
    return lw.local.new_record_task(question, parts, joint=joint, **terms)


def best(answers: "Sequence[str] | Answers", epsilon: Fraction, kind: MechanismOption) -> "Mechanism":
    """Return the mechanism for some answers: the most accurate one, unless one is named.

    Raises:
        InvalidParameter: If the named one is not for these.
    """
    if isinstance(answers, lw.local.client.Text):
        name = "prefixes" if kind is MechanismOption.best else kind.value
        if name not in TEXT_MAKERS:
            raise InvalidParameter(f"The mechanism {name} is not for texts; take one of {', '.join(TEXT_MAKERS)}.")
        return TEXT_MAKERS[name](epsilon, answers.most_bytes)
    if isinstance(answers, lw.local.client.Number):
        options = [(option.name, option.mechanism) for option in lw.local.advise_mean(epsilon, answers, 1).options]
        return _chosen(options, kind, "a number")
    count = len(answers) if not isinstance(answers, lw.local.client.Values) else answers.size
    named = [(option.name.replace(" ", "-"), option.mechanism) for option in lw.local.advise(epsilon, count, 1).options]
    return _chosen(named, kind, f"{count} values at this epsilon")


def _chosen(options: "Sequence[tuple[str, Mechanism]]", kind: MechanismOption, answers: str) -> "Mechanism":
    for name, mechanism in options:
        if kind is MechanismOption.best or name == kind.value:
            return mechanism
    raise InvalidParameter(f"The mechanism {kind.value} is not for {answers}.")


def text_of(size: int) -> "Text":
    """Return any text of so many bytes, as what may be answered.

    Raises:
        InvalidParameter: For too few or too many.
    """
    check_whole("--text", size, 1, MOST_BYTES)
    return lw.local.client.Text(size)


def number_of(text: str, steps: int, option: str = "--number") -> "Number":
    """Read LOWER:UPPER.

    Raises:
        InvalidParameter: With the option, if these are no bounds or in the wrong order; or for steps out of range.
    """
    check_whole("--steps", steps, 1, MOST_STEPS)
    try:
        lower, upper = map(Decimal, text.split(":"))
        ordered = lower < upper
    except (InvalidOperation, ValueError):
        raise InvalidParameter(
            f"{option} {text[:60]!r} has no pair of bounds; write LOWER:UPPER, like 0:120."
        ) from None
    if not ordered:
        raise InvalidParameter(f"{option} {text[:60]!r} has bounds in the wrong order; LOWER must be below UPPER.")
    return lw.local.grid(lower, upper, steps)


def answer_of(task: "Task", answers: Sequence[str]) -> "Answer":
    """Return the answer to a task; answers to several questions are in their order.

    Raises:
        InvalidParameter: If there are more or fewer than questions.
    """
    attributes = task.asked if isinstance(task.asked, lw.local.client.Attributes) else None
    count = len(attributes.each) if attributes else 1
    if len(answers) != count:
        raise InvalidParameter(f"Give an answer to each question, in order: {count} in all, not {len(answers)}.")
    return {name: text for (name, _), text in zip(attributes.each, answers, strict=True)} if attributes else answers[0]


def _attribute(text: str, steps: int) -> "tuple[str, Sequence[str] | Answers]":
    """Read QUESTION=A,B or QUESTION=LOWER:UPPER; a value that holds a comma stands in double quotes, as in CSV."""
    question, equals, rest = text.rpartition("=")
    try:
        values = next(csv.reader([rest], strict=True), [])
    except csv.Error:
        values = []
    if not equals or not values:
        raise InvalidParameter(f"--attribute {text[:80]!r} names no question and answers; write {ATTRIBUTE}.")
    if len(values) > 1:
        check_values(f"--attribute {question[:60]!r}", values)
        return question, values
    if ":" not in rest:
        raise InvalidParameter(
            f"--attribute {text[:80]!r} has one value; an attribute needs two values or more, or LOWER:UPPER. Write "
            f"{ATTRIBUTE}."
        )
    return question, number_of(rest, steps, f"--attribute {question[:60]!r}:")
