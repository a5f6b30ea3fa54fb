"""The report of an answer, as the bytes that are sent."""

import json

from .randomness import Read, exactly
from .refusals import AnswerRefused
from .rules import Memory
from .task import VERSION, Answer, Task


def report(task: Task, answer: Answer, read: Read) -> bytes:
    """Return the report of an answer, as the bytes that are sent: JSON on one line.

    Guarantee: for any two answers of one respondent, each report is at most e^ε times as likely for one as for the
        other, with the task's ε, if `read` gives independent uniform bytes. A second report costs as much again.
    Args: answer: a text; for several questions each question with its answer. read: the source of randomness:
        `os.urandom`, and nothing that a seed decides.
    Raises: AnswerRefused if the task allows no such answer, or its mechanism needs a memory.
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

    Guarantee: as of `report`; the other ε of the task are of all reports together, if each memory is kept before its
        report is sent, and no older one is used again. Who loses the memory begins anew, and what was said adds up.
    Args: memory: what the last call for this task returned; empty for the first. period: the number of the period for
        which the answer is, from 1, for mechanisms over time.
    Raises: AnswerRefused if the task allows no such answer, or no such period.
    """
    identity = exactly(read, 16).hex()
    said, kept = task.asked.say(answer, read, memory, period)
    if said is None:
        return None, kept
    whole = {"v": VERSION, "task": task.id, "id": identity, "m": task.mechanism, "r": said}
    return json.dumps(whole, separators=(",", ":")).encode("ascii"), kept
