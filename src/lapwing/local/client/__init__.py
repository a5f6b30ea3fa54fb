"""The program of a respondent's device: it reads a task, refuses one that states a wrong ε, and makes answers noisy.

This folder needs the standard library and nothing else, so that a respondent can read all of it, and copy it to a
device.

Theory of operation. A task states integer thresholds T of 64 bits and an ε. A coin falls for T of the 2^64 words of 8
random bytes, so each report has an exact rational probability. Then ε is the logarithm of the greatest ratio of such
probabilities between two answers. The client computes that itself, and refuses a task that states another. You need not
trust the collector of the reports: the guarantee rests only on this folder and on the random bytes.

The answers that a task allows decide which mechanisms fit (`answers`). Each mechanism is a `Rule` or, if its reports
depend on what the device kept, a `MemoryRule` (`rules`). They stand in files that are named like the folders of
`lapwing.local`, and the file of one is read when a task has it. A device that answers tasks of coins needs `answers`,
`frequencies`, `rules`, `task` and `task_text`, and no other file.

Bytes are read in this order: 16 for the report's identity, then 8 for each word, least significant byte first.
"""

from typing import TYPE_CHECKING

from .answers import (
    DECIMALS,
    MOST_BYTES,
    MOST_STEPS,
    MOST_TEXT,
    MOST_VALUES,
    NUMBER_RULES,
    RULES,
    TEXT_RULES,
    VALUE_RULES,
    Answers,
    Number,
    Text,
    Values,
)
from .rules import (
    ALL,
    PLACES,
    UNCHANGED,
    WHOLE,
    AnswerRefused,
    AnyRule,
    Memory,
    MemoryRule,
    NoRandomness,
    Parameters,
    Read,
    Rule,
    Said,
    TaskRefused,
    below,
    coin,
    epsilon_up,
    others,
)
from .task import (
    ALL_ATTRIBUTES,
    EPSILON,
    MOST_ATTRIBUTES,
    ONE_ATTRIBUTE,
    VERSION,
    Answer,
    Asked,
    Attributes,
    Task,
    report,
    report_with_memory,
    true_epsilons,
)
from .task_text import MOST_TASK, read_task, task_of

if TYPE_CHECKING:
    from .frequencies import PRIME
    from .means import MOST_SHIFT, MOST_WIDTH

__all__ = [
    "ALL", "ALL_ATTRIBUTES", "DECIMALS", "EPSILON", "MOST_ATTRIBUTES", "MOST_BYTES", "MOST_SHIFT", "MOST_STEPS",
    "MOST_TASK", "MOST_TEXT", "MOST_VALUES", "MOST_WIDTH", "NUMBER_RULES", "ONE_ATTRIBUTE", "PLACES", "PRIME",
    "RULES", "TEXT_RULES", "UNCHANGED", "VALUE_RULES", "VERSION", "WHOLE", "Answer", "AnswerRefused", "Answers",
    "AnyRule", "Asked", "Attributes", "Memory", "MemoryRule", "NoRandomness", "Number", "Parameters", "Read",
    "Rule", "Said", "Task", "TaskRefused", "Text", "Values", "below", "coin", "epsilon_up", "others", "read_task",
    "report", "report_with_memory", "task_of", "true_epsilons",
]  # fmt: skip


def __getattr__(name: str) -> int:
    """Return a limit of a mechanism, from its file."""
    if name == "PRIME":
        from .frequencies import PRIME

        return PRIME
    if name in ("MOST_SHIFT", "MOST_WIDTH"):
        from . import means

        return means.MOST_SHIFT if name == "MOST_SHIFT" else means.MOST_WIDTH
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
