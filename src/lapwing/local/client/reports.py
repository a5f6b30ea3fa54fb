"""The report of an answer, as the bytes that are sent."""

import json

from .rules import RULES
from .tasks import VERSION, Task
from .words import Read, exactly


class AnswerRefused(ValueError):
    """An answer is none of the task's values; nothing was sent."""


def report(task: Task, answer: str, read: Read) -> bytes:
    """Return the report of an answer, as the bytes that are sent: JSON on one line.

    Guarantee: for any two answers of one respondent, each report is at most e^ε times as likely for one as for the
        other, with the task's ε, if `read` gives independent uniform bytes. A second report costs as much again.
    Args: read: the source of randomness: `os.urandom`, and nothing that a seed decides.
    Raises: AnswerRefused if the task has no such value.
    """
    if answer not in task.values:
        raise AnswerRefused(f"The answer must be one of {', '.join(task.values[:20])}; nothing was sent.")
    identity = exactly(read, 16).hex()
    said = RULES[task.mechanism].draw(dict(task.parameters), len(task.values), task.values.index(answer), read)
    whole = {"v": VERSION, "task": task.id, "id": identity, "m": task.mechanism, "r": said}
    return json.dumps(whole, separators=(",", ":")).encode("ascii")
