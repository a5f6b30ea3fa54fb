"""What a respondent's device runs: read a task, refuse it if it lies, and turn an answer into a noisy report.

This folder needs the standard library and nothing else, so that a respondent can read all of it, and copy it to a
device.

Theory of operation. A task states integer thresholds T of 64 bits and an ε. A coin falls for T of the 2^64 words of 8
random bytes, so each report has an exact rational probability, and ε is the logarithm of the greatest ratio of such
probabilities between two answers. The client computes that itself, and refuses a task that states another. Whoever
collects the reports is not trusted with anything: the guarantee rests on this folder and on the random bytes alone.

Bytes are read in this order: 16 for the report's identity, then 8 for each word, least significant byte first.
"""

from .reports import AnswerRefused, report
from .rules import PLACES, PRIME, RULES, Parameters, Rule, Said, epsilon_up
from .tasks import MOST_TASK, MOST_TEXT, MOST_VALUES, VERSION, Task, TaskRefused, read_task, task_of
from .words import WHOLE, NoRandomness, Read, below, coin, others

__all__ = [
    "MOST_TASK",
    "MOST_TEXT",
    "MOST_VALUES",
    "PLACES",
    "PRIME",
    "RULES",
    "VERSION",
    "WHOLE",
    "AnswerRefused",
    "NoRandomness",
    "Parameters",
    "Read",
    "Rule",
    "Said",
    "Task",
    "TaskRefused",
    "below",
    "coin",
    "epsilon_up",
    "others",
    "read_task",
    "report",
    "task_of",
]
